"""Reads arms files: a column ``arm``, and one column of numbers for each feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import log_columns, parsing, tables
from driftbandit.io.log_columns import Columns
from driftbandit.io.logs import NO_ZERO, Arms, names_of
from driftbandit.system import Name


def read_arms(path: Any, *, columns: Columns | None = None) -> Arms:
    r"""Read the arms' features from a CSV or Parquet file.

    Args:
        path: the file, .csv, .csv.gz or .parquet, with the column arm and one column of numbers
            or more, of any name; one row per arm.
        columns: as in ``read_log``: the column arm may have the log's name for it.

    Returns:
        The arms' names and features, in the file's order.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "arms.csv"
        ...     _ = path.write_text("arm,size,price\nsmall,1,2.5\nlarge,3,4\n")
        ...     arms = read_arms(path)
        >>> arms.names, arms.features.tolist()
        (('small', 'large'), [[1.0, 2.5], [3.0, 4.0]])
        >>> read_arms("/")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: /: is a folder; give the path of a CSV or Parquet file
    """
    with tables.opened(path, "arms") as table:
        return _arms(_with_columns(table, columns, "arm"))


def _with_columns(table: tables.Table, columns: Columns | None, *wanted: str) -> tables.Table:
    """The table, which has these columns, with "arm" for its own name of the arms."""
    called = log_columns.checked(columns).get("arm", "arm")
    table = table._replace(columns=["arm" if name == called else name for name in table.columns])
    log_columns.check_single(table, table.columns)
    for name in wanted:
        if name not in table.columns:
            problem = f"has no column {called if name == 'arm' else name!r}"
            raise errors.InvalidInput(table.name, problem, f"give {', '.join(wanted)}")
    return table


def _arms(table: tables.Table) -> Arms:
    features = [table.columns[place] for place in table.without_index]
    features = [column for column in features if column != "arm"]
    if "" in features:
        problem = f"column {table.columns.index('') + 1} has no name"
        raise errors.InvalidInput(table.name, problem, "name it, or leave it out")
    if not features:
        raise errors.InvalidInput(table.name, "has no features", "give a column of numbers")
    labels = parsing.Labels()
    places: list[int] = []
    parts: list[np.ndarray] = []
    for columns, numbers in table.blocks:
        given = dict(zip(table.columns, columns, strict=True))
        rows = np.stack([parsing.real(given[feature]) for feature in features], axis=1)
        codes = labels.codes(given["arm"])
        start = len(places)
        places += numbers
        if len(places) * len(table.columns) > tables.MOST_ROWS:
            raise tables.too_long(table.name)
        good = np.abs(rows) <= errors.LARGEST
        new = codes == start + np.arange(len(codes))
        i = parsing.first(~(good.all(axis=1) & rows.any(axis=1) & new))
        if i < len(numbers):
            before = f"{table.unit} {places[codes[i]]}" if codes[i] < start + i else ""
            wrong = [name for name, fine in zip(features, good[i], strict=True) if not fine]
            said = _arm_problem({name: given[name][i] for name in given}, before, wrong)
            raise errors.InvalidInput(table.place(numbers[i]), *said)
        parts.append(rows)
    if not parts:
        raise errors.InvalidInput(table.name, "holds no rows", "give one row per arm")
    return Arms(names_of(labels.names), np.concatenate(parts))


def read_groups(path: Any, *, columns: Columns | None = None) -> dict[Name, str]:
    r"""Read the group of each arm from a CSV or Parquet file with the columns arm and group.

    Args:
        path, columns: as in `read_arms`.

    Returns:
        The group of each arm by name, as `fit` takes it.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "groups.csv"
        ...     _ = path.write_text("arm,group\nleft,web\nright,web\ntop,app\n")
        ...     read_groups(path)
        {'left': 'web', 'right': 'web', 'top': 'app'}
        >>> read_groups("no/such/groups.csv")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: no/such/groups.csv: cannot be read (No such file or ...
    """
    with tables.opened(path, "groups") as table:
        wanted = ("arm", "group")
        table = _with_columns(table, columns, *wanted)
        group_of: dict[str, str] = {}
        for block, numbers in table.read([table.columns.index(name) for name in wanted]):
            for *row, number in zip(*block, numbers, strict=True):
                labels = [parsing.label_of(value) for value in row]
                if None in labels:
                    bad = labels.index(None)
                    said = parsing.label_problem(row[bad], wanted[bad])
                    raise errors.InvalidInput(table.place(number), *said)
                arm, group = map(str, labels)
                if group_of.setdefault(arm, group) != group:
                    before = parsing.shown(group_of[arm])
                    problem = f"arm {parsing.shown(row[0])} is in group {before} too"
                    raise errors.InvalidInput(table.place(number), problem, "give each one group")
    return dict(zip(names_of(group_of), group_of.values(), strict=True))


def _arm_problem(row: dict[str, Any], before: str, wrong: list[str]) -> tuple[str, str]:
    """What is wrong with a row: no label, a label that is in ``before`` too, or its features."""
    arm = row["arm"]
    if parsing.label_of(arm) is None:
        return parsing.label_problem(arm)
    if before:
        return f"arm {parsing.shown(arm)} is in {before} too", "give each arm one row"
    if wrong:
        called = f"feature {parsing.shown(wrong[0])}"
        return parsing.number_problem(row[wrong[0]], called)
    return f"all features of arm {parsing.shown(arm)} are zero", NO_ZERO
