"""Learning a model from logs of decisions.

`read_log` and `read_arms` read files, `fit` learns the model.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from driftbandit.identify.log import Arms, Log, Sequence
from driftbandit.identify.readers import as_log, read_arms, read_log

if TYPE_CHECKING:
    from driftbandit.identify.fitting import Fit, fit

__all__ = ["Arms", "Fit", "Log", "Sequence", "as_log", "fit", "read_arms", "read_log"]


def __getattr__(name: str) -> Any:
    if name in ("Fit", "fit"):  # loads JAX
        return getattr(importlib.import_module("driftbandit.identify.fitting"), name)
    raise AttributeError(f"module 'driftbandit.identify' has no attribute {name!r}")
