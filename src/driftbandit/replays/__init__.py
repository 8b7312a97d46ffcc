"""Policies on real data: the model is learned from the first rounds, the rest is played.

`replay` does both, `Table` holds the data, `load` reads a public data set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftbandit import errors
from driftbandit.replays.data import Table, as_table
from driftbandit.replays.datasets import DATASETS, load

if TYPE_CHECKING:
    from driftbandit.replays.play import replay
    from driftbandit.replays.result import Replay, Row

__all__ = ["DATASETS", "Replay", "Row", "Table", "as_table", "load", "replay"]

LOADS_JAX = {"Replay": "result", "Row": "result", "replay": "play"}
__getattr__ = errors.lazy(__name__, LOADS_JAX)
