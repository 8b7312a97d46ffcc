"""Learning a model from logs of decisions.

`read_log` and `read_arms` read files, `fit` learns a model, `one_step` shows how well it predicts.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftbandit import errors
from driftbandit.io.logs import Arms, Log, Sequence, as_log, read_arms, read_log

if TYPE_CHECKING:
    from driftbandit.identify.fitting import Fit, fit
    from driftbandit.identify.prediction import OneStep, one_step
    from driftbandit.identify.restarts import Share
    from driftbandit.identify.selection import Selection

__all__ = [
    "Arms",
    "Fit",
    "Log",
    "OneStep",
    "Selection",
    "Sequence",
    "Share",
    "as_log",
    "fit",
    "one_step",
    "read_arms",
    "read_log",
]

LATER = {
    "Fit": "fitting",
    "fit": "fitting",
    "OneStep": "prediction",
    "one_step": "prediction",
    "Selection": "selection",
    "Share": "restarts",
}
"""Names whose modules load JAX."""


def __getattr__(name: str) -> Any:
    if name in LATER:
        with errors.needing(name):
            module = importlib.import_module(f"driftbandit.identify.{LATER[name]}")
        return getattr(module, name)
    raise AttributeError(f"module 'driftbandit.identify' has no attribute {name!r}")
