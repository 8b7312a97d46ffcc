"""Write docs/understand/memory.md from the stored results of `exploration.py`.

    python benchmarks/exploration_page.py            # after `python benchmarks/exploration.py`
    python benchmarks/exploration_page.py --check    # exit 1 if the page differs

Policies of the library are on the leaderboard; here they are one column, the best of them. A
section that is not stored is not on the page. A test compares the page with the results.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from driftbandit.policies import TITLES

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/results/exploration.json"
PAGE = ROOT / "docs/understand/memory.md"
DEFAULT = "reach"
OTHERS = {"centered_idea": "Centered IDEA", "predictive_sampling": "Predictive sampling"}
OTHERS["ar2"] = "AR2"
NAMES = {**TITLES, **OTHERS}
BEST = "best other policy of the library"
COLUMNS = (DEFAULT, BEST, *OTHERS)
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
        "drift (1 − ρ) that is four times too large or too small, a σ that is twice too large or "
        "too small, or no common factor or no season, although there is one.",
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
    """Regret over that of the best policy; one column for all others of the library."""
    best = min(found.values(), key=lambda ratio: ratio.log)
    rivals = [ratio for name, ratio in found.items() if name not in (DEFAULT, *OTHERS)]
    columns = {name: found[name] for name in (DEFAULT, *OTHERS) if name in found}
    if rivals:
        columns[BEST] = min(rivals, key=lambda ratio: ratio.log)
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
The [leaderboard](leaderboard.md) compares the policies of the library. This page adds three that
are not in it, and lists all problems in which `reach` clearly loses to any policy, from a memory of
two rounds to states that never forget. Every policy plays the same states with the same noise. What
is shown is regret over that of the best policy of the row: 1 is the best.
"""
READING = """\
± is a standard error over runs, on the systems that were drawn; where few runs carry most of the
regret, as without drift, it is rough. Comparisons with `reach` are paired by run; those of two
other policies are taken as independent, so their errors are approximate. Bold: within two standard
errors of the best, which is the best in these runs and so looks a little better than it is. Systems
of a problem, and problems of a row, count alike: means are geometric. Empty: the policy cannot play
the problem, needs hours for it, or was not played.
"""
ADDED = {
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
        "that stand above each table (`--runs` multiplies them). The page is written by "
        "`python benchmarks/exploration_page.py`. Two numbers of `reach` were chosen on problems "
        "of these kinds, with other seeds: random systems are new to it, independent arms are not."
    )
    lines = [
        "# Rivals outside the library\n",
        wrapped(" ".join(INTRODUCTION.split())),
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


def main() -> None:
    """Write the page, or compare it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if it differs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    given = parser.parse_args()
    stored = json.loads(given.results.read_text())
    if given.check:
        sys.exit(PAGE.read_text() != page(stored))
    PAGE.write_text(page(stored))


if __name__ == "__main__":
    main()
