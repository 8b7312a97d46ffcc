"""What the leaderboard shows: one picture, and tables by memory, by kind and by cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit.leaderboard.problems import MEMORIES, PROBLEMS
from driftbandit.leaderboard.ranking import EVERY, FEWEST
from driftbandit.policies import PREFERRED, REGISTRY, TITLES, title
from driftbandit.report import Cell, Figure, Heading, Points, Report, Table, Text, figures, numbers
from driftbandit.result import ORACLE
from driftbandit.studies import Summary

Document = Mapping[str, Any]
Row = Mapping[str, Any]
TICKS = 1, 1.2, 1.5, 2, 3
HIGHEST = 4.0  # multiple of the best policy's regret up to which the picture shows it
PLAIN = "best without a model"
ALT = "Panels for all systems and for each kind: regret over the best policy's, by memory"


def blocks(document: Document) -> list[Any]:
    """The section of the report."""
    return [Heading("Leaderboard", "leaderboard"), Text(_winner(document)), *_body(document)]


def summary(document: Document) -> Summary:
    """The policy with the lowest regret over all cells."""
    return Summary(f"lowest: {title(_ranked(document)[0]['policy'])}", _winner(document))


def page(document: Document) -> Report:
    """The same for Markdown, with every cell and its intervals: ``leaderboard.md``."""
    settings = document["settings"]
    found = document["versions"].items()
    versions = ", ".join(f"{package} {' and '.join(several)}" for package, several in found)
    counts = [f"{settings[key]:,} {key}" for key in ("systems", "runs", "rounds")]
    size = f"{len(_cells(document))} cells of {' × '.join(counts)}, {settings['dtype']} on "
    size += f"{settings['platform']}; where memory is short, more runs of fewer rounds"
    about = [f"Command: `{command(document)}`", f"Size: {size}", f"Computed with: {versions}"]
    shown = [Text(_winner(document)), *_body(document), Points(about), *_details(document)]
    return Report("Leaderboard", "", shown)


def command(document: Document) -> str:
    """The command that makes these numbers again."""
    settings = document["settings"]
    words = ["driftbandit reproduce leaderboard"]
    words += [f"--{key} {settings[key]}" for key in ("systems", "runs", "rounds", "seed")]
    if len(settings["families"]) < len(PROBLEMS):
        words.append(f"--families {','.join(settings['families'])}")
    if document["memories"] != list(MEMORIES):
        words.append(f"--memories {','.join(document['memories'])}")
    if document["policies"]:
        words.append(f"--policies '{', '.join(document['policies'])}'")
    if settings["dtype"] == "float32":
        words.append("--float32")
    words.append(f"--device {settings['platform']}")
    return " ".join(words)


def _rows(document: Document) -> dict[tuple[str, str, str], list[Row]]:
    """By family, kind and memory: the rows of one cell or of several, the best policy first."""
    found: dict[tuple[str, str, str], list[Row]] = {}
    for row in document["rows"]:
        found.setdefault((row["family"], row["kind"], row["memory"]), []).append(row)
    return found


def _cells(document: Document) -> dict[tuple[str, str, str], list[Row]]:
    return {key: rows for key, rows in _rows(document).items() if key[0] != EVERY}


def _ranked(document: Document, memory: str = EVERY) -> list[Row]:
    """All kinds of systems together; without the Oracle."""
    return [row for row in _rows(document)[EVERY, EVERY, memory] if row["policy"] != ORACLE]


def _heading(memory: str) -> str:
    return {"forever": "for ever", "mixed": "2 to 1000"}.get(memory, memory)


def _body(document: Document) -> list[Any]:
    rows = _rows(document)
    memories = [*document["memories"], EVERY]
    by_memory = {_heading(memory): rows[EVERY, EVERY, memory] for memory in memories}
    by_kind = {kind: rows[EVERY, kind, EVERY] for kind in document["kinds"]}
    best = [f"{title(row['policy'])} {_multiple(row)[0]}" for row in _ranked(document)[:6]]
    same = "A policy has a number where it plays all cells of a column."
    return [
        Text(
            "The numbers are dynamic regret (P4) over that of the best policy of the column or "
            "panel: 1 is the best. Memory is 1/(1 − ρ) rounds, for a state that keeps a share ρ of "
            "itself in every round. All policies see the same states and the same noise. "
            f"{title(ORACLE)} sees every arm's reward: it is a reference, not a competitor. In "
            "bold: not clearly worse than the best."
        ),
        Figure(
            "Regret over the best policy's, by memory in rounds; lower is better. Bars: 95% "
            f"intervals. Beyond {HIGHEST:g} is not shown. A policy has a mark where it plays all "
            "systems of the panel. 2 to 1000: all memories in one system.",
            f"{ALT}. All systems and memories: {', '.join(best)}",
            lambda: figure(document),
            "leaderboard",
        ),
        _columns(document, by_memory, f"By memory in rounds, all kinds of systems. {same}"),
        _columns(document, by_kind, f"By kind of systems, all memories. {same}"),
        _each(document),
        Points(_meanings(document)),
        Text(_method(document)),
    ]


def _meanings(document: Document) -> list[str]:
    """What each family is; those of one meaning together."""
    names: dict[str, list[str]] = {}
    for family in document["settings"]["families"]:
        what = " ".join((PROBLEMS[family].draw.__doc__ or "").split())
        names.setdefault(what[:1].lower() + what[1:], []).append(_title(family))
    return [f"{', '.join(found)}: {what}" for what, found in names.items()]


def _title(family: str) -> str:
    return family.replace("_times_", " × ").replace("_by_", " ÷ ").replace("_", " ")


def _method(document: Document) -> str:
    systems, few = document["settings"]["systems"], ""
    if systems < FEWEST:
        few = " These are too few systems: nothing is called worse."
    elif systems < 20:
        few = " With so few systems the intervals are too narrow: this is a first look."
    return (
        "Unless said otherwise there are ten arms of variance 1 and σ = 1. A cell is one family "
        "of systems at one memory. Runs last for eight memories, but at least an eighth of the "
        "rounds of the longest; states that never forget are played for a quarter of them. The "
        "regrets of a system's runs are averaged. Means over systems and cells are geometric, "
        "so that each counts alike; where few runs carry most of a policy's regret, as without "
        f"drift, such a mean is a little low. Intervals are 95% bootstraps over the {systems} "
        "systems of a family. Clearly worse means that the interval is above 1. The best policy "
        "is the best in these runs, and so looks a little better than it is. Whittle plays "
        "where arms are independent, or wrongly believed to be, and forget; Kalman Oracle plays "
        "where states forget. Two numbers of Reach were chosen on independent arms like these, "
        "with other seeds. The least possible regret is `theory.least_regret`, a proven lower "
        "bound on the regret per round of any policy in the long run. Where memory is long or "
        "noise is small it is far below the regret of every policy here: it counts little of "
        "what it costs to see only one reward. The runs also pay for the start, when nothing is "
        f"known.{few}"
    )


def _winner(document: Document) -> str:
    best, *others = _ranked(document)
    cells = _cells(document)
    its = ((key, row) for key, rows in cells.items() for row in rows)
    mine = {key: row for key, row in its if row["policy"] == best["policy"]}
    text = (
        f"{title(best['policy'])} has the lowest regret over all {len(cells)} cells. In "
        f"{sum(row['level'] for row in mine.values())} of them it is the best policy or not "
        "clearly worse."
    )
    if others:
        times = " ".join(_multiple(others[0])).strip()
        text += f" Next: {title(others[0]['policy'])}, with {times} times its regret."
    key, worst = max(mine.items(), key=lambda item: item[1]["over_best"][0])
    if not worst["best"]:
        named = f"{_title(key[0])}, memory {_heading(key[2])}"
        text += f" It is farthest behind the best policy with {' '.join(_multiple(worst)).strip()}"
        text += f" times its regret: {named}."
    above = [
        f"{_percent(row)} at memory {_heading(key[2])}"
        for key, row in mine.items()
        if "over_least" in row and key[0] == "equal_arms"
    ]
    if above:
        text += " With equal arms its regret is at most so far above the least possible, a bound "
        text += f"that is low where memory is long: {', '.join(above)}."
    return text


def _percent(row: Row) -> str:
    """By how much regret is at most above the least possible, and the interval."""
    value, low, high = (None if x is None else round(100 * (x - 1)) for x in row["over_least"])
    return f"{value}%" if low is None else f"{value}% ({low}–{high})"


def _columns(document: Document, columns: Mapping[str, Sequence[Row]], caption: str) -> Table:
    """A row for each policy, the best first, and a column for each group of cells."""
    found = {(row["policy"], text): row for text, rows in columns.items() for row in rows}
    order = {row["policy"]: None for row in _rows(document)[EVERY, EVERY, EVERY]} | {
        name: None for name, _ in found
    }
    rows = []
    for policy in order:
        cells = [found.get((policy, text)) for text in columns]
        if any(cells):
            rows.append([Cell(title(policy)), *map(_cell, cells)])
    return Table(caption, ["policy", *columns], rows)


def _cell(row: Row | None) -> Cell:
    if row is None:
        return Cell(numbers.NONE)
    value, note = _multiple(row)
    return Cell(value, row["over_best"][0], note, "good" if row["level"] else "")


def _multiple(row: Row) -> tuple[str, str]:
    """Regret over the best policy's, and the interval if there is one."""
    value, low, high = (numbers.multiple(x, 3) for x in row["over_best"])
    certain = row["over_best"][1] is None or value == low == high
    return value, "" if certain else f"({low}–{high})"


def _each(document: Document) -> Table:
    """Every cell: who is best, who is not clearly worse, and what is the least possible regret."""
    rows: list[list[Cell | str]] = []
    for (family, _, memory), found in _cells(document).items():
        best = next(row for row in found if row["best"])
        level = [title(r["policy"]) for r in found if r["level"] and not r["best"]]
        mine = next(row for row in found if row["policy"] == PREFERRED)
        above = _percent(mine) if "over_least" in mine else numbers.NONE
        names = _title(family), _heading(memory)
        rows.append([*names, title(best["policy"]), ", ".join(level), _cell(mine), above])
    caption = (
        "Every cell. Level: not clearly worse than the best. The last column: by how much "
        f"{title(PREFERRED)}'s regret is at most above the least possible."
    )
    heads = ["systems", "memory", "best", "level with it", title(PREFERRED), "above the least"]
    return Table(caption, heads, rows)


def _details(document: Document) -> Iterator[Any]:
    """Every cell with intervals, kind by kind and family by family."""
    tables: dict[str, dict[str, dict[str, list[Row]]]] = {}
    for (family, kind, memory), rows in _cells(document).items():
        tables.setdefault(kind, {}).setdefault(family, {})[_heading(memory)] = rows
    for kind, families in tables.items():
        yield Heading(kind.capitalize())
        for family, columns in families.items():
            caption = f"{_title(family).capitalize()}, by memory in rounds."
            yield _columns(document, columns, caption)


def _lines(document: Document, kind: str) -> dict[str, dict[int, Sequence[float]]]:
    """What a panel shows: by policy that knows the model, at each memory, ratio and interval."""
    lines: dict[str, dict[int, Sequence[float]]] = {}
    for place, memory in enumerate(document["memories"]):
        for row in _rows(document).get((EVERY, kind, memory), ()):
            entry = REGISTRY.get(row["policy"].partition("(")[0])
            if row["policy"] != ORACLE:
                name = row["policy"] if entry is None or entry.filters else PLAIN
                lines.setdefault(name, {}).setdefault(place, row["over_best"])  # the best one first
    return lines


def figure(document: Document) -> Any:
    """A panel for all systems and one for each kind; a line for each policy."""
    kinds, memories = [EVERY, *document["kinds"]], document["memories"]
    drawing, axes = figures.grid(len(kinds) + 1, 2, 8.4, 2.4)
    found = {kind: _lines(document, kind) for kind in kinds}
    names = list(dict.fromkeys(name for lines in found.values() for name in lines))
    looks = figures.styles(names, [*TITLES], black=[PLAIN]) | {
        PLAIN: {"color": "black", "marker": "."}
    }
    shown: dict[str, Any] = {}
    for axis, kind in zip(axes, kinds, strict=False):
        for name, points in found[kind].items():
            look = looks[name] | ({"lw": 2.4, "zorder": 4} if name == PREFERRED else {"lw": 1.2})
            mixed = [place for place in points if memories[place] == "mixed"]
            for places in ([place for place in points if place not in mixed], mixed):
                table = np.array([points[place] for place in places], float).reshape(-1, 3)
                bars = np.nan_to_num(np.abs(table[:, 1:] - table[:, :1])).T  # none: one system
                bar = axis.errorbar(places, table[:, 0], bars, ms=4, elinewidth=0.8, **look)
                shown.setdefault(title(name), bar)
        axis.set_title("all systems" if kind == EVERY else kind, fontsize=10)
        axis.axhline(1, color="#BBBBBB", lw=0.8, zorder=1)
        axis.set_yscale("log")
        axis.set_ylim(0.96, HIGHEST)
        axis.set_yticks(TICKS, [f"{tick:g}" for tick in TICKS])
        axis.minorticks_off()
        axis.set_xlim(-0.3, len(memories) - 0.7)
        axis.set_xticks(range(len(memories)), [_heading(memory) for memory in memories])
    for axis in axes[: len(kinds) : 2]:
        axis.set_ylabel("regret / best policy's", fontsize=9)
    for axis in axes[max(0, len(kinds) - 2) : len(kinds)]:
        axis.set_xlabel("memory in rounds", fontsize=9)
    figures.note(axes[len(kinds) :], "")
    axes[len(kinds)].legend(shown.values(), shown, fontsize=9, ncols=2, loc="center", frameon=False)
    return drawing
