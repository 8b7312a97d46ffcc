"""Policies on real data: the model is learned from the first rounds, the rest is played.

`replay` does it, `Table` is the data, `load` gives two public data sets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftbandit import errors
from driftbandit.replays.datasets import DATASETS, load
from driftbandit.replays.table import Table, as_table

if TYPE_CHECKING:
    from driftbandit.replays.play import replay
    from driftbandit.replays.result import Replay, Row

__all__ = ["DATASETS", "Replay", "Row", "Table", "as_table", "load", "replay"]

_LAZY = {"Replay": "result", "Row": "result", "replay": "play"}
"""What loads JAX, and so is imported when asked for."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        with errors.needing(name):
            module = importlib.import_module(f"driftbandit.replays.{_LAZY[name]}")
        return getattr(module, name)
    raise AttributeError(f"module 'driftbandit.replays' has no attribute {name!r}")
