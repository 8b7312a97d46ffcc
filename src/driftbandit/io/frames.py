"""The index of a data frame: its levels become columns, and none of them is ever an arm.

pandas gives every table an index: row numbers, what filtering leaves of them, names, or times. Here
a level becomes a column of its own name. Times without a name are called "round", if no column is:
they say when a row was. Any other level without a name keeps the name that pandas gives it in Arrow
and Parquet files, and nothing reads it.
"""

from __future__ import annotations

import re
from typing import Any

UNNAMED = re.compile(r"__index_level_\d+__")  # as pandas calls a level without a name
ROUND = "round"


def flat(table: Any) -> tuple[Any, tuple[int, ...]]:
    """The table with its index as columns, and their places; what has no index is returned as is.

    Args:
        table: a data frame of pandas, or a table of Arrow, in which pandas may have stored one.

    Example:
        >>> import pandas as pd
        >>> days = pd.date_range("2026-01-05", periods=3)
        >>> table, places = flat(pd.DataFrame({"left": [1, 2, 3]}, index=days)[1:])
        >>> list(table.columns), places, len(table)
        (['left', 'round'], (1,), 2)
        >>> flat(pd.DataFrame({"left": [1, 2]}))[1], flat({"left": [1, 2]})[1]
        ((), ())
    """
    if hasattr(table, "reset_index") and hasattr(getattr(table, "index", None), "get_level_values"):
        return _flat_frame(table)
    if hasattr(table, "schema") and hasattr(table, "rename_columns"):
        names, places = names_and_index(table.schema)
        return (table.rename_columns(names) if places else table), places
    return table, ()


def _flat_frame(frame: Any) -> tuple[Any, tuple[int, ...]]:
    index, columns = frame.index, list(frame.columns)
    if index.nlevels == 1 and index.name is None and hasattr(index, "step"):  # row numbers
        return frame, ()
    plain = frame.reset_index(drop=True)
    for number, name in enumerate(index.names):
        values = index.get_level_values(number)
        if hasattr(values, "to_timestamp"):  # periods: when each begins
            values = values.to_timestamp()
        if name is None or name in columns:
            is_time = name is None and values.dtype.kind == "M" and ROUND not in columns
            name = ROUND if is_time else f"__index_level_{number}__"
        columns.append(name)
        plain.insert(len(columns) - 1, name, values)
    return plain, tuple(range(frame.shape[1], len(columns)))


def names_and_index(schema: Any) -> tuple[list[str], tuple[int, ...]]:
    """The names of an Arrow table's columns, and the places of those that were an index.

    Example:
        >>> import pandas as pd, pyarrow as pa
        >>> names_and_index(pa.table(pd.DataFrame({"left": [1, 2]}, index=[4, 9])).schema)
        (['left', '__index_level_0__'], (1,))
    """
    names = [str(name) for name in schema.names]
    try:
        stored = list((schema.pandas_metadata or {}).get("index_columns", []))
    except (AttributeError, TypeError, ValueError):  # not what pandas writes
        stored = []
    places = tuple(i for i, n in enumerate(names) if n in stored or UNNAMED.fullmatch(n))
    for place in places:
        is_time = str(schema.field(place).type).startswith(("timestamp", "date"))
        if is_time and UNNAMED.fullmatch(names[place]) and ROUND not in names:
            names[place] = ROUND
    return names, places
