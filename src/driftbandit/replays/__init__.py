"""Policies on real data: the model is learned from the first rounds, the rest is played.

`replay` does both, `Table` holds the data, `load` reads one of two public data sets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftbandit import errors
from driftbandit.replays.data import DATASETS, Table, as_table, load

if TYPE_CHECKING:
    from driftbandit.replays.play import replay
    from driftbandit.replays.result import Replay, Row

__all__ = ["DATASETS", "Replay", "Row", "Table", "as_table", "load", "replay"]

_LAZY = {"Replay": "result", "Row": "result", "replay": "play"}
"""These load JAX, so they are imported on first use."""


def __getattr__(name: str) -> Any:
    if name in _LAZY:
        with errors.needing(name):
            module = importlib.import_module(f"driftbandit.replays.{_LAZY[name]}")
        return getattr(module, name)
    raise AttributeError(f"module 'driftbandit.replays' has no attribute {name!r}")
