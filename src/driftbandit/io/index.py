"""When the rows of a wide table were, by the index of its data frame."""

from __future__ import annotations

import datetime

import numpy as np

from driftbandit import errors
from driftbandit.io import frames, log_columns, tables
from driftbandit.io.parsing import Kind, first, missing
from driftbandit.io.times import Rounds

REMEDY = "sort the rows by the index, and give one row per round"


def rounds_of(
    table: tables.Table, every: str | None = None, zone: str | None = None
) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """The round of each row from the first one on, if the index says it; and notes on the index.

    It does if it has a level called round, or one of times; the first of them counts.

    Args:
        table: one whose index became columns (`frames.flat`).
        every, zone: as for `Rounds`.

    Example:
        >>> import pandas as pd
        >>> frame = pd.DataFrame({"left": [1, 2, 3]}, index=pd.Index([4, 5, 9], name="round"))
        >>> rounds_of(tables.in_memory(frame, "data"))
        (array([0, 1, 5]), ())
        >>> rounds_of(tables.in_memory(frame.rename_axis("shop"), "data"))
        (None, ('Ignored columns: shop.',))
    """
    read = {str(table.columns[i]): i for i in table.without_index}
    named = [i for i in table.index_columns if table.columns[i] == frames.ROUND]
    levels = named or [i for i in table.index_columns if _holds_times(table, i)]
    if not levels:
        return None, tuple(filter(None, [log_columns.ignored(table, read)]))
    place, time = levels[0], Rounds(every, zone, apart=True)
    wanted = {"rounds": (place, Kind("round", time.read, time.fault))}
    columns, lines = tables.read_rows(table, wanted)
    rounds = time.numbered(columns["rounds"])
    late = first(np.diff(rounds) <= 0) + 1
    if late < len(rounds):
        problem = "comes in the round of the row before, or earlier"
        raise errors.InvalidInput(table.place(lines[late]), problem, REMEDY)
    notes = log_columns.ignored(table, read | {str(table.columns[place]): place}), time.note
    return rounds - rounds[0], tuple(filter(None, notes))


def _holds_times(table: tables.Table, place: int) -> bool:
    values = (value for (column,), _ in table.read([place]) for value in column)
    known = next((value for value in values if not missing(value)), None)
    return isinstance(known, np.datetime64 | datetime.date)
