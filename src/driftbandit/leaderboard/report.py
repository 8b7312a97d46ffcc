"""What the leaderboard shows: the overall ranking, a figure, and tables by setting and family."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from driftbandit.families import FAMILIES
from driftbandit.leaderboard.ranking import BASE, CEILING, FEWEST, QUICK, SETTINGS
from driftbandit.policies import title
from driftbandit.report import (
    Block,
    Cell,
    Facts,
    Figure,
    Heading,
    Points,
    Report,
    Table,
    Text,
    figures,
    numbers,
)
from driftbandit.result import ORACLE
from driftbandit.studies import Summary

Document = Mapping[str, Any]
Row = Mapping[str, Any]
STAR = "★"
# Counts of cells, and their headings.
COUNTS = {"better": "better", "worse": "worse", "lowest": "lowest", "level": "unbeaten"}
WIDEST = 1.5  # colors show multiples from 2/3 to 3/2; beyond that only the numbers differ


def blocks(document: Document) -> list[Block]:
    """The section of the report."""
    return [Heading("Leaderboard", "leaderboard"), Text(_winner(document)), *_body(document)]


def summary(document: Document) -> Summary:
    """The policy with the lowest regret over all cells."""
    return Summary(f"lowest: {title(_competitors(document)[0]['policy'])}", _winner(document))


def page(document: Document) -> Report:
    """The same for Markdown, with every cell and its intervals: ``leaderboard.md``."""
    settings = document["settings"]
    cells = len({(row["family"], row["setting"]) for row in document["rows"]})
    found = document["versions"].items()
    versions = ", ".join(f"{package} {' and '.join(several)}" for package, several in found)
    size = " × ".join(f"{settings[key]} {key}" for key in ("systems", "runs", "rounds"))
    size += f" in each of {cells} cells, {settings['dtype']} on {settings['platform']}"
    command_line = f"`{command(document)}`"
    about = Facts({"Command": command_line, "Size": size, "Computed with": versions})
    shown = [Text(_winner(document)), about, *_body(document), *_details(document)]
    return Report("Leaderboard", "", shown)


def command(document: Document) -> str:
    """The command that makes these numbers again."""
    settings = document["settings"]
    words = ["driftbandit reproduce leaderboard"]
    words += [f"--{key} {settings[key]}" for key in ("systems", "runs", "rounds", "seed")]
    setups = tuple(document["setups"])
    if setups == QUICK:
        words.insert(1, "--quick")
    elif len(setups) < len(SETTINGS):
        words.append(f"--settings {','.join(setups)}")
    if len(settings["families"]) < len(FAMILIES):
        words.append(f"--families {','.join(settings['families'])}")
    if document["policies"]:
        words.append(f"--policies '{', '.join(document['policies'])}'")
    if settings.get("reading", "plain") != "plain":
        words.append(f"--reading '{settings['reading']}'")
    if settings["dtype"] == "float32":
        words.append("--float32")
    words.append(f"--device {settings['platform']}")
    return " ".join(words)


def _body(document: Document) -> list[Block]:
    settings = document["settings"]
    found: list[Block] = [
        Text(
            "Beyond the paper: every policy on the five families of random systems (P20), both "
            "unchanged and with one thing changed at a time. The numbers are dynamic regret (P4) "
            f"over {settings['rounds']} rounds, in multiples of the regret of {title(BASE)}, the "
            "paper's best policy: below 1 is less regret. A cell is a family in a setting; its "
            "policies all see the same states and the same noise on the same arm. "
            f"{title(ORACLE)} sees every arm's reward: it is a reference, not a competitor. "
            f"{title(CEILING)} knows nothing. No state here remembers for more than about 100 "
            "rounds, and most forget within 10; where memory is longer, policies that plan a few "
            f"rounds ahead, such as {title('lookahead')}, have more regret than {title(BASE)} "
            f"(page {title('lookahead')})."
        ),
        Points([f"{heading}: {meaning}" for heading, meaning in document["setups"].values()]),
        Text(_method(document)),
    ]
    if document["sits_out"]:
        headings, lines = {setting.name: setting.heading for setting in SETTINGS}, []
        for policy, (names, reason) in document["sits_out"].items():
            missed = ", ".join(headings.get(name, name) for name in names)
            lines.append(f"{title(policy)} does not play {missed}: {reason}")
        found.append(Points(lines))
    return [
        *found,
        _overall(document),
        Figure(
            "Regret in multiples of IDEA's, geometric means; blue is less. Bold: the lowest of its "
            "column, not counting the Oracle. Last panel: all cells together, with 95% intervals.",
            "A heat map of policies by settings for each family, and the overall ranking with "
            "intervals",
            lambda: figure(document),
            "leaderboard",
        ),
        _pooled(document, "setting", "By setting: geometric means over families and systems."),
        _pooled(document, "family", "By family: geometric means over settings and systems."),
        Points([_wins(document, family) for family in settings["families"]]),
    ]


def _method(document: Document) -> str:
    systems, few = document["settings"]["systems"], ""
    floored = sum(row["floored"] for row in document["rows"])
    share = 100 * floored / (len(document["rows"]) * systems)
    if systems < FEWEST:
        few = " These are too few systems: nothing is called better or worse."
    elif systems < 30:
        few = " With so few systems the intervals are somewhat too narrow: this is a first look."
    return (
        "The regrets of a system's runs are averaged. Policies are ranked by the geometric mean "
        "over systems of the ratio to IDEA's regret, since with heavy tails one system can be most "
        "of a sum. Regrets below a thousandth of random play's, or of the regret they are compared "
        f"with, count as a thousandth; this affects {share:.2g}% of the ratios. σ is 0 in half of "
        "Bernoulli's systems, and stays 0 when it is multiplied. Intervals are 95% bootstraps "
        f"over the {systems} systems of a family, drawn together for all policies and settings; "
        "better and worse mean that the interval excludes 1, which happens by chance in one "
        f"comparison in twenty.{few}"
    )


def _competitors(document: Document) -> list[Row]:
    return [row for row in document["overall"] if row["policy"] != ORACLE]


def _winner(document: Document) -> str:
    first, second = _competitors(document)[:2]

    def described(row: Row) -> str:
        ends = _ends(row)
        value = numbers.multiple(row["geometric"][0], 3)
        return title(row["policy"]) + (f" ({value} times IDEA's regret, {ends})" if ends else "")

    return (
        f"Lowest over all cells: {described(first)}; no policy has clearly less in "
        f"{first['level']} of {first['cells']} cells. Next: {described(second)}."
    )


def _overall(document: Document) -> Table:
    best = _competitors(document)[0]["policy"]
    rows = [
        [
            Cell(title(row["policy"]), tone="dim" if row["policy"] == ORACLE else ""),
            _multiple(row, row["policy"] == best),
            Cell(_ends(row), row["geometric"][1]),
            Cell(numbers.NONE) if row["rank"] is None else Cell(f"{row['rank']:.1f}", row["rank"]),
            *(Cell(str(row[key])) for key in (*COUNTS, "cells")),
        ]
        for row in document["overall"]
    ]
    return Table(
        f"Each policy over all cells that it plays. {STAR}: lowest. Mean rank: without the Oracle. "
        "Better, worse: cells with clearly less or more regret than IDEA. Lowest: cells in which "
        "it has the least. Unbeaten: cells in which no policy has clearly less.",
        ["policy", "× IDEA's", "interval", "mean rank", *COUNTS.values(), "cells"],
        rows,
    )


def _pooled(document: Document, kind: str, caption: str) -> Table:
    """Policies × groups, all cells of a group together."""
    found = {(row["policy"], row[kind]): row for row in document[f"by_{kind}"]}
    groups = dict.fromkeys(group for _, group in found)
    rivals = [row for row in found.values() if row["policy"] != ORACLE]
    least = {g: min(row["geometric"][0] for row in rivals if row[kind] == g) for g in groups}

    def cell(policy: str, group: str) -> Cell:
        row = found.get((policy, group))
        if row is None:
            return Cell(numbers.NONE)
        return _multiple(row, row in rivals and row["geometric"][0] == least[group])

    headings = {g: document["setups"][g][0] if kind == "setting" else g for g in groups}
    caption = f"{caption} {STAR}: lowest. Highlighted: clearly below 1."
    return _by_policy(document, caption, headings, cell)


def _by_policy(
    document: Document, caption: str, headings: Mapping[str, str], cell: Callable[[str, str], Cell]
) -> Table:
    """A table with a row for each policy, the best first, and a column for each key."""
    listed = _listed(document)
    rows = [[Cell(title(policy)), *(cell(policy, key) for key in headings)] for policy in listed]
    return Table(caption, ["policy", *headings.values()], rows)


def _listed(document: Document) -> list[str]:
    """The policies, the best first."""
    return [row["policy"] for row in document["overall"]]


def _multiple(row: Row, lowest: bool) -> Cell:
    value, low, high = row["geometric"]
    below = low is not None and row["policy"] not in (BASE, ORACLE) and high < 1
    text = (STAR if lowest else "") + numbers.multiple(value, 3)
    return Cell(text, value, tone="good" if below else "")


def _ends(row: Row, kind: str = "geometric") -> str:
    _, low, high = row[kind]
    known = low is not None and high is not None and row["policy"] != BASE
    return f"{numbers.multiple(low, 3)}–{numbers.multiple(high, 3)}" if known else ""


def _wins(document: Document, family: str) -> str:
    rows = [row for row in document["rows"] if row["family"] == family and row["lowest"]]
    wins = Counter(title(row["policy"]) for row in rows).most_common()
    named = ", ".join(f"{name} in {count}" for name, count in wins)
    return f"{family}: lowest of {len(rows)} settings: {named}."


def _details(document: Document) -> Iterator[Block]:
    """Every cell with both figures and their intervals, family by family."""
    captions = {
        "geometric": "Geometric mean over systems of regret / IDEA's (95% interval).",
        "ratio": "Mean regret / IDEA's mean regret (95% interval).",
    }
    headings = {name: heading for name, (heading, _) in document["setups"].items()}
    rows = {(row["family"], row["policy"], row["setting"]): row for row in document["rows"]}
    for family in document["settings"]["families"]:
        yield Heading(family)
        for kind, caption in captions.items():

            def cell(policy: str, setting: str, family: str = family, kind: str = kind) -> Cell:
                row = rows.get((family, policy, setting))
                if row is None:
                    return Cell(numbers.NONE)
                value, _, high = row[kind]
                ends = _ends(row, kind)
                below = ends and policy != ORACLE and high < 1
                note = f"({ends})" if ends else ""
                return Cell(numbers.multiple(value, 3), value, note, "good" if below else "")

            yield _by_policy(document, caption, headings, cell)


def figure(document: Document) -> Any:
    """Policies × settings of each family, in multiples of the base's regret; then all cells."""
    listed, setups = _listed(document), document["setups"]
    cells = {(row["family"], row["setting"], row["policy"]): row for row in document["rows"]}
    families = list(dict.fromkeys(family for family, _, _ in cells))
    panels = len(families) + 1
    drawing, axes = figures.grid(panels, 2, 9.6, 0.9 + 0.18 * len(listed))
    for axis, family in zip(axes, families, strict=False):
        none = {"geometric": [np.nan], "lowest": False}  # the policy sits the setting out
        grid = [[cells.get((family, key, policy), none) for key in setups] for policy in listed]
        values = np.array([[row["geometric"][0] for row in line] for line in grid])
        bold = np.array([[row["lowest"] for row in line] for line in grid])
        figures.heat_map(axis, values, WIDEST, numbers.multiple, bold)
        headings = [heading for heading, _ in setups.values()]
        axis.set_xticks(range(len(setups)), headings, rotation=45, ha="right")
        axis.set_yticks(range(len(listed)), [title(policy) for policy in listed])
        axis.tick_params(labelsize=7, length=0)
        axis.set_title(family, fontsize=10)
    last = axes[panels - 1]
    rows = [[np.nan if x is None else x for x in row["geometric"]] for row in document["overall"]]
    colors = ["black" if policy == ORACLE else figures.COLORS[0] for policy in listed]
    figures.interval_rows(last, [(low, value, high) for value, low, high in rows], colors)
    last.axvline(1, color="black", lw=0.8, ls="--")
    last.set_xscale("log")
    figures.log_ticks(last.xaxis, *last.get_xlim())
    figures.name_rows(last, [title(policy) for policy in listed])
    last.tick_params(labelsize=7)
    last.set_title("all cells, with 95% intervals", fontsize=10)
    last.set_xlabel("regret, in multiples of IDEA's (geometric mean)", fontsize=8)
    figures.note(axes[panels:], "")
    return drawing
