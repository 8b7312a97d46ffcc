"""Learning a model from logs of decisions.

`read_log` and `read_arms` read files, `fit` learns a model, `one_step` shows how well it predicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftbandit import errors
from driftbandit.io.arms_reader import read_arms
from driftbandit.io.log_reader import as_log, read_log
from driftbandit.io.logs import Arms, Log, Sequence

if TYPE_CHECKING:
    from driftbandit.identify.fitting import Fit, fit
    from driftbandit.identify.report import OneStep, one_step
    from driftbandit.identify.restarts import Share
    from driftbandit.identify.selection import Selection

__all__ = ["Arms", "Fit", "Log", "OneStep", "Selection", "Sequence", "Share"]
__all__ += ["as_log", "fit", "one_step", "read_arms", "read_log"]

LOADS_JAX = {"Fit": "fitting", "fit": "fitting", "OneStep": "report", "one_step": "report"}
LOADS_JAX |= {"Selection": "selection", "Share": "restarts"}
__getattr__ = errors.lazy(__name__, LOADS_JAX)
