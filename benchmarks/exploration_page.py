"""Write docs/understand/memory.md and its picture from the stored results of `exploration.py`.

    python benchmarks/exploration_page.py            # after `python benchmarks/exploration.py`
    python benchmarks/exploration_page.py --check    # exit 1 if page or picture differ

A section that is not stored is not on the page. A test compares page and picture with the results.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from PIL import Image

from driftbandit.policies import TITLES

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/results/exploration.json"
PAGE = ROOT / "docs/understand/memory.md"
PICTURE = ROOT / "docs/pictures/memory.png"
DEFAULT = "reach"
OTHERS = {"centered_idea": "Centered IDEA", "predictive_sampling": "Predictive sampling"}
NAMES = {**TITLES, **OTHERS, "ar2": "AR2"}
PLAIN = ("ucb", "sliding_window_ucb", "discounted_ucb", "oful", "discounted_linucb")
BEST_PLAIN = "best without a model"
COLUMNS = (DEFAULT, "whittle", "lookahead", "idea", "kode", "kalman_ucb", "thompson")
COLUMNS += ("information_directed", "centered_idea", "predictive_sampling", "ar2", BEST_PLAIN)
MEMORIES = {0.5: 2, 0.9: 10, 0.97: 33, 0.99: 100, 0.997: 333, 0.999: 1000}  # ρ: 1/(1 − ρ)
NOISES = (0.3, 1, 3, 6)
ARMS = 10  # of the picture
CLEAR = 3  # standard errors from which a loss is listed


class Section(NamedTuple):
    """A heading of the page, and what is said below it."""

    title: str
    text: str
    row: Callable[[str], str] = str  # the row of the table to which a problem counts


SECTIONS = {
    "independent": Section(
        "Independent arms",
        "Each arm reads a state of its own, an AR(1) process with variance 1 and autocorrelation "
        "ρ: its memory is 1/(1 − ρ) rounds. Each row is the geometric mean over 2, 5, 10 and 30 "
        "arms and σ = 0.3, 1, 3 and 6.",
        lambda name: name.partition(",")[0],
    ),
    "unequal": Section(
        "Unequal arms", "Ten independent arms of which memories or variances differ."
    ),
    "families": Section(
        "Random systems",
        "The paper's five families of random systems (P20), ten states and ten arms, scaled to "
        "the spectral radius ρ.",
    ),
    "shared": Section(
        "Shared states", "All arms read the same few slow states, each in its own mix."
    ),
    "common": Section(
        "A common factor",
        "Nine arms move together with a factor that has this share of their variance, and each "
        "has a part of its own with autocorrelation ρ; σ = 1.",
    ),
    "static": Section("No drift", "The arms' means never move. They are drawn from N(0, 1)."),
    "walks": Section(
        "Random walks",
        "Ten independent random walks, σ = 1. The step is the standard deviation of a round's "
        "move, in units of σ. They start at N(0, 1).",
    ),
    "wrong": Section(
        "Wrong models",
        "Eight independent arms, σ = 1, of which the policies assume something wrong: a Q or a "
        "drift (1 − ρ) that is four times too large or too small, or no common factor or no "
        "season, although there is one.",
    ),
}

KINDS = {
    "A common factor has 90% of the variance": ("common", "share 0.9"),
    "The assumed Q is four times too large": ("wrong", "Q × 4"),
    "The assumed Q is four times too small": ("wrong", "Q ÷ 4"),
    "Random systems of the Cauchy family": ("families", "cauchy"),
}
"""Kinds of problems of which the page says how much the default policy loses."""


class Ratio(NamedTuple):
    """The logarithm of a ratio of regrets, and its standard error."""

    log: float
    error: float

    def over(self, other: Ratio) -> Ratio:
        """Divide by another ratio, as if both were independent; by itself, the result is one."""
        if self is other:
            return Ratio(0.0, 0.0)
        return Ratio(self.log - other.log, math.hypot(self.error, other.error))

    def shown(self) -> str:
        """The ratio ± its standard error."""
        value = math.exp(self.log)
        digits = 2 if value < 9.995 else 0
        return f"{value:.{digits}f} ± {value * self.error:.{digits}f}"


def ratios(problem: Mapping[str, Any]) -> dict[str, Ratio]:
    """Every policy's regret over the default's."""
    return {
        name: Ratio(math.log(row["ratio"]), row["± s.e."] / row["ratio"])
        for name, row in problem["policies"].items()
    }


def mean(problems: Sequence[Mapping[str, Ratio]]) -> dict[str, Ratio]:
    """The geometric mean over problems, of the policies that play them all."""
    n = len(problems)
    names = [name for name in problems[0] if all(name in problem for problem in problems)]
    return {
        name: Ratio(
            sum(problem[name].log for problem in problems) / n,
            math.sqrt(sum(problem[name].error ** 2 for problem in problems)) / n,
        )
        for name in names
    }


def over_best(found: Mapping[str, Ratio]) -> dict[str, Ratio]:
    """Every policy's regret over that of the best one; one column for all without a model."""
    best = min(found.values(), key=lambda ratio: ratio.log)
    columns = {name: ratio for name, ratio in found.items() if name not in PLAIN}
    plain = [found[name] for name in PLAIN if name in found]
    if plain:
        columns[BEST_PLAIN] = min(plain, key=lambda ratio: ratio.log)
    return {name: ratio.over(best) for name, ratio in columns.items()}


def table(head: Sequence[str], rows: Sequence[Sequence[str]], texts: int = 1) -> str:
    """A Markdown table; the first columns hold text, the others numbers."""
    lines = ["| " + " | ".join(line) + " |\n" for line in (head, *rows)]
    lines.insert(1, "|" + "---|" * texts + "---:|" * (len(head) - texts) + "\n")
    return "".join(lines).replace("|  |", "| |").replace("|  |", "| |")


def section_table(section: Section, problems: Mapping[str, Any]) -> str:
    """One row per problem or group of problems, and one over all."""
    groups: dict[str, list[dict[str, Ratio]]] = {}
    for name, problem in problems.items():
        groups.setdefault(section.row(name), []).append(ratios(problem))
    groups["**all**"] = [one for group in groups.values() for one in group]
    rows = {title: over_best(mean(group)) for title, group in groups.items()}
    columns = [name for name in COLUMNS if any(name in row for row in rows.values())]
    body = [
        [title, *(_cell(row[name]) if name in row else "" for name in columns)]
        for title, row in rows.items()
    ]
    return table(["", *(NAMES.get(name, name) for name in columns)], body)


def _cell(ratio: Ratio) -> str:
    """Bold, if it is the lowest or within two standard errors of it."""
    value, _, error = ratio.shown().partition(" ")
    if ratio.log == 0 == ratio.error:
        return "**1**"
    return f"**{value}** {error}" if ratio.log <= 2 * ratio.error else f"{value} {error}"


def losses(problems: Mapping[str, Any]) -> list[tuple[str, str, Ratio]]:
    """Problem, best rival, and the default's regret over that rival's; the largest loss first."""
    found = []
    for name, problem in problems.items():
        rivals = ratios(problem)
        default = rivals.pop(DEFAULT)
        rival = min(rivals, key=lambda one: rivals[one].log)
        found.append((name, rival, default.over(rivals[rival])))
    return sorted(found, key=lambda loss: -loss[2].log)


def losses_text(stored: Mapping[str, Any]) -> str:
    """The kinds of problems that the page names, and the table of all clear losses."""
    lines = []
    for title, (section, part) in KINDS.items():
        problems = {name: one for name, one in stored.get(section, {}).items() if part in name}
        if problems:
            name, rival, ratio = losses(problems)[0]
            percent, error = (
                math.exp(ratio.log) * x for x in (-math.expm1(-ratio.log), ratio.error)
            )
            text = f"{title}: up to {100 * percent:.0f}% more regret than {NAMES[rival]}"
            lines.append(f"- {text} (± {100 * error:.1f}%; {name}).\n")
    every = [
        (SECTIONS[section].title, problems[loss[0]], *loss)
        for section, problems in stored.items()
        for loss in losses(problems)
    ]
    even = sum(ratio.log <= 2 * ratio.error for *_, ratio in every)
    body = [
        [title, name, NAMES[rival], f"{problem['runs'] * problem['systems']:,}", ratio.shown()]
        for title, problem, name, rival, ratio in sorted(every, key=lambda loss: -loss[4].log)
        if ratio.log > CLEAR * ratio.error
    ]
    text = (
        f"In {even} of {len(every)} problems, `{DEFAULT}` is the best policy or within two "
        f"standard errors of it. In {len(body)} its regret is higher than the best other policy's "
        f"by more than {CLEAR} standard errors:"
    )
    head = ["section", "problem", "best other policy", "runs", f"`{DEFAULT}`'s regret over its"]
    parts = ["".join(lines)] if lines else []
    return "\n".join([*parts, wrapped(text), table(head, body, texts=3) if body else ""])


def span(values: Sequence[int]) -> str:
    low, high = min(values), max(values)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def wrapped(text: str) -> str:
    return textwrap.fill(text, 100, break_on_hyphens=False, break_long_words=False) + "\n"


def sizes(problems: Mapping[str, Any]) -> str:
    """How much was played, in a sentence."""
    many = list(problems.values())
    runs, rounds, systems = (
        span([one[key] for one in many]) for key in ("runs", "rounds", "systems")
    )
    drawn = "" if systems == "1" else f" of each of {systems} systems"
    return f"{len(many)} problems, {runs} runs{drawn}, {rounds} rounds."


INTRODUCTION = """\
How many rounds a system remembers decides how much exploration pays. This page compares `reach`
with its rivals from a memory of two rounds to states that never forget. Every policy plays the same
states with the same noise. What is shown is regret over that of the best policy of the row: 1 is
the best.
"""
METHOD = """\
`reach` asks how much an arm could pay in the long run: an arm's bonus grows with how far its reward
moves the differences between arms, and with the number of rounds for which that lasts. Where states
are forgotten or rotate within a few rounds, it adds what can be computed exactly instead: the gain
within three rounds ([policies](../lookup/policies.md); the derivation is the docstring of
`driftbandit.policies.reach`).
"""
READING = """\
± is a standard error over runs, on the systems that were drawn; where few runs carry most of the
regret, as without drift, it is rough. Comparisons with `reach` are paired by run; those of two
other policies are taken as independent, so their errors are approximate. Bold: within two standard
errors of the best, which is the best in these runs and so looks a little better than it is. Systems
of a problem, and problems of a row, count alike: means are geometric. "Best without a model" is the
best of UCB, SW-UCB, D-UCB, OFUL and D-LinUCB. Empty: the policy cannot play the problem, needs
hours for it, or was not played.
"""
ADDED = {
    "whittle": "Whittle is the Whittle index, which plays only independent arms.",
    "centered_idea": "Centered IDEA is IDEA without what moves all arms alike.",
    "predictive_sampling": (
        "Predictive sampling (Liu, Kuang and Van Roy 2023) is Thompson sampling of what future "
        "rewards would reveal."
    ),
    "ar2": (
        "AR2 (Chen, Golrezaei and Bouneffouf 2023, simplified) exploits and explores in turn, and "
        "plays only independent arms."
    ),
}
"""Of policies that few readers know."""


def page(stored: Mapping[str, Any]) -> str:
    """The page as Markdown."""
    played = {name for part in stored.values() for one in part.values() for name in one["policies"]}
    rivals = " ".join(text for name, text in ADDED.items() if name in played)
    private = [f"`{name}`" for name in ADDED if name in played and name not in TITLES]
    if private:
        rivals += f" In `benchmarks/exploration_rivals.py`: {', '.join(private)}."
    seeds = span(sorted({one["seed"] for part in stored.values() for one in part.values()}))
    again = (
        f"Played by `python benchmarks/exploration.py --seed {seeds}` with the numbers of runs "
        "that stand above each table (`--runs` multiplies them). Page and picture are written by "
        "`python benchmarks/exploration_page.py`. Two numbers of `reach` were chosen on problems "
        "of these kinds, with other seeds: random systems are new to it, independent arms are not."
    )
    lines = [
        "# Regret by memory\n",
        wrapped(" ".join(INTRODUCTION.split())),
        f"![{alternative(stored)}](../pictures/memory.png)\n",
        wrapped(
            f"*{ARMS} independent arms with variance 1, by the noise σ of a reward. Bars: standard "
            "errors.*"
        ),
        wrapped(" ".join(METHOD.split())),
        wrapped(rivals),
        wrapped(again),
        "## How to read the tables\n",
        wrapped(" ".join(READING.split())),
        "## Where `reach` loses\n",
        losses_text(stored),
    ]
    for name, section in SECTIONS.items():
        if name in stored:
            text = f"{section.text} {sizes(stored[name])}"
            lines += [f"## {section.title}\n", wrapped(text), section_table(section, stored[name])]
    return "\n".join(lines)


def curves(stored: Mapping[str, Any]) -> dict[str, dict[str, list[tuple[int, float, float]]]]:
    """What the picture shows: by σ and policy, (memory, regret over the best, standard error)."""
    found: dict[str, dict[str, list[tuple[int, float, float]]]] = {}
    for noise in NOISES:
        panel = found.setdefault(f"{noise:g}", {})
        for decay, memory in MEMORIES.items():
            problem = stored.get("independent", {}).get(f"ρ {decay}, σ {noise:g}, k {ARMS}")
            for name, ratio in over_best(ratios(problem)).items() if problem else ():
                value = math.exp(ratio.log)
                point = (memory, round(value, 4), round(value * ratio.error, 4))
                panel.setdefault(name, []).append(point)
    return found


def digest(stored: Mapping[str, Any]) -> str:
    """A short name of the numbers in the picture, which the file carries with it."""
    text = json.dumps(curves(stored), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def alternative(stored: Mapping[str, Any]) -> str:
    """The picture in words."""
    ends = [
        f"{NAMES[name]} {points[-1][1]:.2f}"
        for name, points in curves(stored)["1"].items()
        if points and points[-1][0] == max(MEMORIES.values())
    ]
    return (
        "Four panels, one for each σ: regret over the best policy's, by memory from 2 to 1000 "
        f"rounds; at 1000 rounds and σ = 1: {', '.join(ends)}"
    )


STYLES = {
    DEFAULT: ("#0072B2", "o"),
    "whittle": ("#222222", "s"),
    "idea": ("#D55E00", "D"),
    "kalman_ucb": ("#009E73", "^"),
    "lookahead": ("#8C6D1F", "v"),
    "centered_idea": ("#E69F00", "P"),
    "predictive_sampling": ("#CC79A7", "X"),
    "ar2": ("#56B4E9", "*"),
}


def picture(stored: Mapping[str, Any]) -> Figure:
    """One panel per σ, one line per policy."""
    figure = Figure(figsize=(7.2, 6.0), dpi=200, facecolor="white", layout="constrained")
    panels = figure.subplots(2, 2, sharex=True, sharey=True).ravel()
    shown: dict[str, Any] = {}
    for axes, (noise, lines) in zip(panels, curves(stored).items(), strict=True):
        for name, points in lines.items():
            memory, value, error = zip(*points, strict=True)
            color, marker = STYLES[name]
            own = name == DEFAULT
            shown[name] = axes.errorbar(
                memory, value, error, color=color, marker=marker, markersize=4.5 + own,
                linewidth=1.3 + own, elinewidth=0.8, zorder=3 + own, label=NAMES[name],
            )  # fmt: skip
        axes.set_title(f"σ = {noise}", fontsize=11, loc="left")
        axes.axhline(1, color="#BBBBBB", linewidth=0.8, zorder=1)
        axes.set_xscale("log")
        axes.set_xticks(list(MEMORIES.values()), [str(rounds) for rounds in MEMORIES.values()])
        axes.minorticks_off()
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[2:]:
        axes.set_xlabel("memory in rounds, 1/(1 − ρ)")
    for axes in panels[::2]:
        axes.set_ylabel("regret over the best policy's")
    handles = [shown[name] for name in STYLES if name in shown]
    figure.legend(
        handles=handles,
        loc="outside upper center",
        ncols=min(len(handles), 5),
        fontsize=9,
        frameon=False,
    )
    return figure


def write_picture(stored: Mapping[str, Any], path: Path) -> None:
    metadata = {"Software": None, "Description": f"results {digest(stored)}"}
    picture(stored).savefig(path, metadata=metadata)


def drawn_digest(path: Path) -> str:
    """The `digest` of the results that a picture shows."""
    with Image.open(path) as image:
        return str(image.info.get("Description", "")).removeprefix("results ")


def main() -> None:
    """Write the page and the picture, or compare them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if they differ")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    stored = json.loads(given.results.read_text())
    if given.check:
        same = PAGE.read_text() == page(stored) and drawn_digest(PICTURE) == digest(stored)
        sys.exit(not same)
    PAGE.write_text(page(stored))
    write_picture(stored, PICTURE)


if __name__ == "__main__":
    main()
