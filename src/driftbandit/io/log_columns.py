"""Which columns of a table belong to a log."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from typing import Any

from driftbandit import errors
from driftbandit.io import frames, parsing, tables
from driftbandit.io.logs import FEATURE

REQUIRED = ("round", "arm", "reward")
COLUMNS = ("sequence", *REQUIRED, "chance")
Columns = Mapping[str, str]  # a table's own names for the columns of a log


def checked(columns: Any) -> dict[str, Any]:
    """The argument ``columns`` as a dictionary, if it is right."""
    if not isinstance(columns, Mapping | None):
        remedy = 'give a mapping, such as {"round": "day"}'
        raise errors.InvalidInput("columns", f"is {parsing.shown(columns)}", remedy)
    found = {errors.closest(key, "columns", COLUMNS): name for key, name in (columns or {}).items()}
    names = list(found.values())
    for name in names:
        if names.count(name) > 1:
            problem = f"name {parsing.shown(name)} twice"
            raise errors.InvalidInput("columns", problem, "give each column once")
    return found


def places(table: tables.Table, columns: dict[str, Any]) -> dict[str, int]:
    """The position of each of a log's columns in the table."""
    called = {role: role for role in COLUMNS if role not in columns.values()} | columns
    wanted = [role for role in COLUMNS if role in (*REQUIRED, *columns)]
    lacking = [role for role in wanted if called.get(role) not in table.columns]
    if lacking:
        has = ", ".join(_shown_name(column) for column in table.columns[:6])
        has += ", …" * (len(table.columns) > 6)
        names = ", ".join({parsing.shown(columns.get(role, role)): None for role in lacking})
        near = difflib.get_close_matches(names.strip("'"), map(str, table.columns), n=1)
        hint = f"did you mean {_shown_name(near[0])}? " if near else ""
        options = " ".join(f"--{role}-column NAME" for role in lacking)
        python = f"'{lacking[0]}': NAME" + ", …" * (len(lacking) > 1)
        remedy = f"{hint}it has {has or 'none'}; say {options}"
        remedy += f" (in Python, columns={{{python}}})"
        raise errors.InvalidInput(table.name, f"has no column {names}", remedy)
    check_single(table, called.values())
    found = sorted(COLUMNS.index(role) for role in called if called[role] in table.columns)
    return {COLUMNS[i]: table.columns.index(called[COLUMNS[i]]) for i in found}


def features(table: tables.Table, taken: dict[str, int]) -> dict[str, int]:
    """The position of each column of features, by its name; ``taken`` are the log's others."""
    found = [i for i, name in enumerate(table.columns) if str(name).startswith(FEATURE)]
    named = {str(table.columns[i]): i for i in found if i not in taken.values()}
    check_single(table, named)
    return named


def check_single(table: tables.Table, names: Iterable[Any]) -> None:
    """Refuse a table that has one of these columns twice."""
    for name in names:
        if table.columns.count(name) > 1:
            problem = f"has two columns {parsing.shown(name)}"
            raise errors.InvalidInput(table.name, problem, "give each once")


def ignored(table: tables.Table, read: dict[str, int]) -> str:
    """A note on the columns that are not read; "" if there are none."""
    left = [name for i, name in enumerate(table.columns) if i not in read.values()]
    left = [_shown_name(name) for name in left]
    if not left:
        return ""
    shown = ", ".join(left[:6]) + (f" and {len(left) - 6} more" if len(left) > 6 else "")
    note = f"Ignored columns: {shown}."
    for near in [] if "sequence" in read else difflib.get_close_matches("sequence", left, n=1):
        note += f" If {near} is the sequence, say --sequence-column {near}."
    return note


def flags(columns: Columns | None, every: str | None, zone: str | None) -> list[str]:
    """The options of the command line that read a log the same way.

    Example:
        >>> flags({"round": "day"}, None, "Europe/Berlin")
        ['--round-column', 'day', '--zone', 'Europe/Berlin']
    """
    given = [[f"--{key}-column", name] for key, name in (columns or {}).items()]
    given += [["--every", every]] if every else []
    given += [["--zone", zone]] if zone else []
    return [word for pair in given for word in pair]


def _shown_name(column: Any) -> str:
    if frames.UNNAMED.fullmatch(str(column)):
        return "index"
    return errors.printable(str(column)[:20]) or "''"
