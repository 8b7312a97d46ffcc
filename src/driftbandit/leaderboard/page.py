"""What the leaderboard says: a section of the report, and a page of Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from driftbandit.families import FAMILIES
from driftbandit.leaderboard import picture
from driftbandit.leaderboard.ranking import FEWEST
from driftbandit.leaderboard.settings import BASE, CEILING, QUICK, SETTINGS
from driftbandit.leaderboard.words import number, title
from driftbandit.report import Block, Cell, Facts, Figure, Heading, Points, Report, Table, Text
from driftbandit.result import ORACLE
from driftbandit.studies import Summary

__all__ = ["blocks", "command", "page", "summary"]

Document = Mapping[str, Any]
Row = Mapping[str, Any]
STAR = "★"


def blocks(document: Document) -> list[Block]:
    """The overall ranking, the figure, and the ranking by setting and by family."""
    return [Heading("Leaderboard: who wins where", "leaderboard"), *_blocks(document)]


def summary(document: Document) -> Summary:
    """Who has the lowest regret over all cells."""
    return Summary(f"lowest: {title(_competitors(document)[0]['policy'])}", _winner(document))


def page(document: Document) -> Report:
    """The same as Markdown, with every cell and its intervals: ``leaderboard.md``."""
    settings = document["settings"]
    versions = ", ".join(
        f"{package} {' and '.join(found)}" for package, found in document["versions"].items()
    )
    about = Facts(
        {
            "Command": f"`{command(document)}`",
            "Size": f"{settings['systems']} systems × {settings['runs']} runs × "
            f"{settings['rounds']} rounds in each of {_cells(document)} cells, "
            f"{settings['dtype']} on {settings['platform']}",
            "Computed with": versions,
        }
    )
    winner, *others = _blocks(document)
    return Report("Leaderboard", "", [winner, about, *others, *_details(document)])


def command(document: Document) -> str:
    """What makes these numbers again."""
    settings = document["settings"]
    words = ["driftbandit reproduce leaderboard"]
    for option in ("systems", "runs", "rounds", "seed"):
        words.append(f"--{option} {settings[option]}")
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


def _cells(document: Document) -> int:
    return len({(row["family"], row["setting"]) for row in document["rows"]})


def _blocks(document: Document) -> list[Block]:
    settings = document["settings"]
    return [
        Text(_winner(document)),
        Text(
            "Beyond the paper: every policy on the five families of random systems (P20), as the "
            "paper has them and with one thing changed at a time. Measured is dynamic regret (P4) "
            f"over {settings['rounds']} rounds, in multiples of that of {title(BASE)}, the paper's "
            "best policy: below 1 is less regret. All policies of a cell, which is a family in a "
            "setting, meet the same states and the same noise on the same arm. "
            f"{title(ORACLE)} sees every arm's reward and is a yardstick, not a competitor; "
            f"{title(CEILING)} knows nothing."
        ),
        Points([f"{heading}: {meaning}" for heading, meaning in document["setups"].values()]),
        Text(_method(document)),
        *_absences(document),
        _overall(document),
        Figure(
            "Regret in multiples of IDEA's, geometric means; blue is less, bold the lowest of its "
            "column, the Oracle aside. Last: all cells together, with 95 % intervals.",
            "A heat map of policies by settings for each family, and the overall ranking with "
            "intervals",
            lambda: picture.figure(document),
            "leaderboard",
        ),
        _pooled(document, "setting", "By setting: geometric means over families and systems."),
        _pooled(document, "family", "By family: geometric means over settings and systems."),
        Points([_lowest(document, family) for family in settings["families"]]),
    ]


def _method(document: Document) -> str:
    settings, few = document["settings"], ""
    floored = sum(row["floored"] for row in document["rows"])
    pairs = len(document["rows"]) * settings["systems"]
    if settings["systems"] < FEWEST:
        few = " So few systems decide nothing, and nothing is called better or worse."
    elif settings["systems"] < 30:
        few = " So few systems give intervals that are somewhat too narrow: this is a first look."
    return (
        "The regrets of a system's runs are averaged; their ratio to IDEA's, averaged over systems "
        "as a geometric mean, is what ranks, since with heavy tails one system can be most of a "
        "sum. Regrets below a thousandth of random play's, or of the one they are compared with, "
        f"count as a thousandth, which concerns {100 * floored / pairs:.2g} % of the ratios. σ is "
        "0 in half of Bernoulli's systems, and stays 0 whatever it is multiplied with. Intervals "
        "are 95 % bootstraps over "
        f"the {settings['systems']} systems of a family, drawn together for all "
        "policies and settings; better and worse mean that the interval excludes 1, which one "
        f"comparison in twenty does by chance.{few}"
    )


def _absences(document: Document) -> list[Block]:
    if not document["sits_out"]:
        return []
    names = {setting.name: setting.heading for setting in SETTINGS}
    return [
        Points(
            [
                f"{title(policy)} sits out {', '.join(names.get(s, s) for s in settings)}: {reason}"
                for policy, (settings, reason) in document["sits_out"].items()
            ]
        )
    ]


def _competitors(document: Document) -> list[Row]:
    return [row for row in document["overall"] if row["policy"] != ORACLE]


def _winner(document: Document) -> str:
    first, second = _competitors(document)[:2]

    def said(row: Row) -> str:
        ends = _range(row, "geometric")
        times = f" ({number(row['geometric'][0])} times IDEA's regret, {ends})" if ends else ""
        return title(row["policy"]) + times

    return (
        f"Lowest over all cells: {said(first)}; nobody has clearly less in {first['level']} of "
        f"{first['cells']} cells. Next: {said(second)}."
    )


def _overall(document: Document) -> Table:
    rows: list[list[Cell | str | float]] = []
    for row in document["overall"]:
        low = row["geometric"][1]
        rows.append(
            [
                Cell(title(row["policy"]), tone="dim" if row["policy"] == ORACLE else ""),
                _multiple(row, best=row["policy"] == _competitors(document)[0]["policy"]),
                Cell(_range(row, "geometric"), low),
                Cell("–") if row["rank"] is None else Cell(f"{row['rank']:.1f}", row["rank"]),
                *(Cell(str(row[key]), row[key]) for key in ("better", "worse", "lowest", "level")),
                Cell(str(row["cells"]), row["cells"]),
            ]
        )
    return Table(
        f"Each over all cells that it plays. {STAR}: lowest. Better, worse: cells with clearly "
        "less or more regret than IDEA. Lowest: cells in which it has the least. Level: cells in "
        "which nobody has clearly less. Mean rank: the Oracle not counted.",
        [
            "policy",
            "× IDEA's",
            "interval",
            "mean rank",
            "better",
            "worse",
            "lowest",
            "level",
            "cells",
        ],
        rows,
    )


def _multiple(row: Row, best: bool) -> Cell:
    value, low, high = row["geometric"]
    known = low is not None and row["policy"] not in (BASE, ORACLE)
    below = known and high < 1
    return Cell((STAR if best else "") + number(value), value, tone="good" if below else "")


def _pooled(document: Document, kind: str, caption: str) -> Table:
    """Policies × groups; bold or green: the interval lies below 1."""
    found = {(row[kind], row["policy"]): row for row in document[f"by_{kind}"]}
    groups = list(dict.fromkeys(group for group, _ in found))
    best = {group: _least(row for (g, _), row in found.items() if g == group) for group in groups}
    headings = [document["setups"][group][0] if kind == "setting" else group for group in groups]
    rows: list[list[Cell | str | float]] = []
    for overall in document["overall"]:
        policy = overall["policy"]
        entries = [
            _multiple(found[group, policy], best[group] == policy)
            if (group, policy) in found
            else Cell("–")
            for group in groups
        ]
        rows.append([title(policy), *entries])
    return Table(
        f"{caption} {STAR}: lowest. Standing out: clearly below 1.", ["policy", *headings], rows
    )


def _least(rows: Any) -> str:
    rivals = [row for row in rows if row["policy"] != ORACLE]
    return str(min(rivals, key=lambda row: row["geometric"][0])["policy"])


def _lowest(document: Document, family: str) -> str:
    wins: dict[str, int] = {}
    for row in document["rows"]:
        if row["family"] == family and row["lowest"]:
            wins[row["policy"]] = wins.get(row["policy"], 0) + 1
    ordered = sorted(wins.items(), key=lambda item: -item[1])
    total = sum(wins.values())
    named = ", ".join(f"{title(policy)} in {count}" for policy, count in ordered)
    return f"{family}: lowest of {total} settings: {named}."


def _details(document: Document) -> list[Block]:
    """Every cell with both figures and their intervals, family by family."""
    blocks: list[Block] = []
    for family in document["settings"]["families"]:
        blocks.append(Heading(family))
        for figure, caption in (
            ("geometric", "Geometric mean over systems of regret / IDEA's (95 % interval)."),
            ("ratio", "Mean regret / IDEA's mean regret (95 % interval)."),
        ):
            blocks.append(_detail(document, family, figure, caption))
    return blocks


def _detail(document: Document, family: str, figure: str, caption: str) -> Table:
    found = {
        (row["setting"], row["policy"]): row for row in document["rows"] if row["family"] == family
    }
    rows: list[list[Cell | str | float]] = []
    for overall in document["overall"]:
        policy = overall["policy"]
        entries: list[Cell] = []
        for setting in document["setups"]:
            row = found.get((setting, policy))
            entries.append(Cell("–") if row is None else _interval(row, figure))
        rows.append([title(policy), *entries])
    headings = [heading for heading, _ in document["setups"].values()]
    return Table(caption, ["policy", *headings], rows)


def _interval(row: Row, figure: str) -> Cell:
    value, _, high = row[figure]
    ends = _range(row, figure)
    below = ends and row["policy"] != ORACLE and high < 1
    return Cell(number(value), value, f"({ends})" if ends else "", "good" if below else "")


def _range(row: Row, figure: str) -> str:
    _, low, high = row[figure]
    known = low is not None and high is not None and row["policy"] != BASE
    return f"{number(low)}–{number(high)}" if known else ""
