"""Reads arms files: a column ``arm``, and one column of numbers for each feature."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.io import log_columns, parsing, tables
from driftbandit.io.log_columns import OwnNames
from driftbandit.io.logs import NO_ZERO, Arms, names_of
from driftbandit.system import Name


def read_arms(path: Any, *, columns: OwnNames | None = None) -> Arms:
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


def _with_columns(table: tables.Table, columns: OwnNames | None, *wanted: str) -> tables.Table:
    """The table, which has these columns, with "arm" for its own name of the arms."""
    called = log_columns.checked(columns).get("arm", "arm")
    table = table._replace(columns=["arm" if name == called else name for name in table.columns])
    for name in wanted:
        if name not in table.columns:
            problem = f"has no column {called if name == 'arm' else name!r}"
            raise errors.InvalidInput(table.name, problem, f"give {', '.join(wanted)}")
    return table


def _arms(table: tables.Table) -> Arms:
    places = [place for place in table.without_index if table.columns[place] != "arm"]
    features = {table.columns[place]: place for place in places}
    if "" in features:
        problem = f"column {features[''] + 1} has no name"
        raise errors.InvalidInput(table.name, problem, "name it, or leave it out")
    if not features:
        raise errors.InvalidInput(table.name, "has no features", "give a column of numbers")
    labels = parsing.Labels()
    wanted = {"arm": (table.columns.index("arm"), labels.kind("arm"))}
    wanted |= {name: (place, log_columns.feature(name)) for name, place in features.items()}

    def check(columns: tables.Columns, lines: np.ndarray) -> None:
        codes, *numbers = columns.values()
        again = codes != np.arange(len(codes))
        wrong = parsing.first(again | ~np.any(numbers, axis=0))
        if wrong < len(codes):
            code = codes[wrong]
            arm = f"arm {parsing.shown(names_of(labels.names)[code])}"
            problem, remedy = f"all features of {arm} are zero", NO_ZERO
            if again[wrong]:
                problem = f"{arm} is in {table.unit} {lines[code]} too"
                remedy = "give each arm one row"
            raise errors.InvalidInput(table.place(lines[wrong]), problem, remedy)

    columns, _ = tables.read_rows(table, wanted, check, cells=len(features))
    rows = np.stack([columns[name] for name in features], axis=1)
    return Arms(names_of(labels.names), rows)


def read_groups(path: Any, *, columns: OwnNames | None = None) -> dict[Name, str]:
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
        table = _with_columns(table, columns, "arm", "group")
        arms, groups = parsing.Labels(), parsing.Labels()
        kinds = {"arm": arms.kind("arm"), "group": groups.kind("group")}
        wanted = {name: (table.columns.index(name), kind) for name, kind in kinds.items()}

        group_of: dict[int, int] = {}

        def check(columns: tables.Columns, lines: np.ndarray) -> None:
            for arm, group, line in zip(*columns.values(), lines, strict=True):
                if group_of.setdefault(arm, group) != group:
                    before = parsing.shown(groups.names[group_of[arm]])
                    name = parsing.shown(names_of(arms.names)[arm])
                    problem = f"arm {name} is in group {before} too"
                    raise errors.InvalidInput(table.place(line), problem, "give each one group")

        tables.read_rows(table, wanted, check)
    names = names_of(arms.names)
    return {names[arm]: groups.names[group] for arm, group in group_of.items()}
