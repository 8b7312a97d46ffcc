"""The columns of a log: what each holds, and where it is in a user's table.

A column of numbers is declared twice: in `COLUMNS`, and as a field of `logs.Sequence`. Everything
else goes by these: reading, checking, selecting rows, and the options of the command line.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.io import frames, parsing, tables
from driftbandit.io.parsing import Fault, Kind

FEATURE = "x_"  # how the name of a feature's column starts
OwnNames = Mapping[str, str]  # a table's own names for the columns of a log


class Column(NamedTuple):
    """A column of a log.

    Args:
        meaning: what it holds, for the help of the command line.
        field: of a `Sequence`.
        required: whether every log has it.
        remedy: what would be right in place of a bad value.
        wrong: where numbers are not allowed; NaN is a missing one, infinity not a number.
        outside: what is said of such a number, and its remedy.

    Example:
        >>> COLUMNS["chance"].wrong(np.array([0.0, 0.5, 1.0, 1.5, np.nan])).tolist()
        [True, False, False, True, False]
        >>> COLUMNS["chance"].kind("chance").problem(1.5)[0]
        'chance 1.5 is out of range'
    """

    meaning: str
    field: str = ""
    required: bool = False
    remedy: str = parsing.LABEL
    wrong: Callable[[np.ndarray], np.ndarray] = lambda values: np.abs(values) > errors.LARGEST
    outside: Fault = parsing.TOO_LARGE

    def kind(self, called: str) -> Kind:
        """How the column is read, if it holds numbers."""
        fault = functools.partial(parsing.real_fault, remedy=self.remedy, outside=self.outside)
        return Kind(called, parsing.real, fault, self.wrong, counted=True)


OPTIONAL_LABEL = f"{parsing.LABEL}, or leave the column out"
REWARD = "give a finite number, or leave it empty"
CHANCE = "give a probability above 0 and at most 1, or leave it empty"
COLUMNS = {
    "sequence": Column("Independent sequence that a row belongs to.", remedy=OPTIONAL_LABEL),
    "round": Column("Rounds: whole numbers, or dates and times.", "rounds", required=True),
    "arm": Column("Arms, both here and in the --arms file.", "arms", required=True),
    "reward": Column("Rewards.", "rewards", required=True, remedy=REWARD),
    "chance": Column(
        "Probability with which the log's policy played the arm.",
        "chances",
        remedy=CHANCE,
        wrong=lambda values: (values <= 0) | (values > 1),
        outside=("is out of range", CHANCE),
    ),
}
REQUIRED = tuple(name for name, column in COLUMNS.items() if column.required)


def feature(name: str) -> Kind:
    """How a column of features is read: a value is never missing."""
    column = Column("", remedy=parsing.FINITE, wrong=lambda x: ~(np.abs(x) <= errors.LARGEST))
    return column.kind(f"feature {parsing.shown(name)}")


def checked(columns: Any) -> dict[str, Any]:
    """The argument ``columns`` as a dictionary, if it is right."""
    if not isinstance(columns, Mapping | None):
        remedy = 'give a mapping, such as {"round": "day"}'
        raise errors.InvalidInput("columns", f"is {parsing.shown(columns)}", remedy)
    called = {errors.closest(k, "columns", COLUMNS): name for k, name in (columns or {}).items()}
    names = list(called.values())
    for name in names:
        if names.count(name) > 1:
            problem = f"name {parsing.shown(name)} twice"
            raise errors.InvalidInput("columns", problem, "give each column once")
    return called


def places(table: tables.Table, columns: OwnNames | None) -> dict[str, int]:
    """The position of each of a log's columns in the table, and those of features by their names.

    ``columns``: the table's own names for the columns.
    """
    columns = checked(columns)
    called = {role: role for role in COLUMNS if role not in columns.values()} | columns
    wanted = [role for role in COLUMNS if role in (*REQUIRED, *columns)]
    lacking = [role for role in wanted if called.get(role) not in table.columns]
    if lacking:
        absent = [columns.get(role, role) for role in lacking]
        hint = errors.suggestion(absent[0], table.columns)
        options = " ".join(f"--{role}-column NAME" for role in lacking)
        python = f"'{lacking[0]}': NAME{', …' if len(lacking) > 1 else ''}"
        remedy = f"{hint}it has {_listed(table.columns, 5) or 'none'}; say {options}"
        remedy += f" (in Python, read_log(…, columns={{{python}}}))"
        problem = f"has no column {', '.join(dict.fromkeys(map(parsing.shown, absent)))}"
        raise errors.InvalidInput(table.name, problem, remedy)
    there = [role for role in COLUMNS if called.get(role) in table.columns]
    read = {role: table.columns.index(called[role]) for role in there}
    features = {str(name): i for i, name in enumerate(table.columns) if i not in read.values()}
    return read | {name: i for name, i in features.items() if name.startswith(FEATURE)}


def ignored(table: tables.Table, read: dict[str, int]) -> str:
    """A note on the columns that are not read; "" if there are none."""
    left = [name for i, name in enumerate(table.columns) if i not in read.values()]
    if not left:
        return ""
    note = f"Ignored columns: {_listed(left, 6)}."
    named = [] if "sequence" in read else list(map(str, left))
    for near in map(errors.printable, difflib.get_close_matches("sequence", named, n=1)):
        note += f" If {near} is the sequence, say --sequence-column {near}."
    return note


def flags(columns: OwnNames | None, every: str | None, zone: str | None) -> list[str]:
    """The options of the command line that read a log the same way.

    Example:
        >>> flags({"round": "day"}, None, "Europe/Berlin")
        ['--round-column', 'day', '--zone', 'Europe/Berlin']
    """
    options = [[f"--{key}-column", name] for key, name in (columns or {}).items()]
    options += [[f"--{key}", value] for key, value in (("every", every), ("zone", zone)) if value]
    return [word for option in options for word in option]


def _listed(columns: list[Any], most: int) -> str:
    """The first columns, and how many more there are."""
    unnamed = frames.UNNAMED.fullmatch
    names = ["index" if unnamed(str(x)) else errors.printable(str(x)[:20]) for x in columns[:most]]
    more = f" and {len(columns) - most} more" if len(columns) > most else ""
    return ", ".join(name or "''" for name in names) + more
