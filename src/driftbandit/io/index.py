"""When the rows of a wide table were, by the index of its data frame."""

from __future__ import annotations

import datetime

import numpy as np

from driftbandit import errors
from driftbandit.io import frames, log_columns, tables
from driftbandit.io.parsing import first, missing
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
    place = next((i for i in table.index_columns if table.columns[i] == frames.ROUND), None)
    if place is None:
        place = next((i for i in table.index_columns if _holds_times(table, i)), None)
    if place is None:
        return None, tuple(filter(None, [log_columns.ignored(table, read)]))
    rounds, parts = Rounds(every, zone, apart=True), []
    for (values,), numbers in table.read([place]):
        part = rounds.read(values)
        wrong = first(part < 0)
        if wrong < len(part):
            raise errors.InvalidInput(table.place(numbers[wrong]), *rounds.problem(values[wrong]))
        parts.append(part)
    if not parts:
        return None, ()
    found = rounds.numbered(np.concatenate(parts))
    late = first(np.diff(found) <= 0) + 1
    if late < len(found):
        problem = "comes in the round of the row before, or earlier"
        raise errors.InvalidInput(table.place(late + 1), problem, REMEDY)
    notes = log_columns.ignored(table, read | {str(table.columns[place]): place}), rounds.note
    return found - found[0], tuple(filter(None, notes))


def _holds_times(table: tables.Table, place: int) -> bool:
    for (values,), _ in table.read([place]):
        for value in values:
            if not missing(value):
                return isinstance(value, np.datetime64 | datetime.date)
    return False
