"""Learning a model from logs of decisions.

`read_log`, `read_arms` and `read_groups` read files, `fit` learns a model, `one_step` shows how
well it predicts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftbandit import errors
from driftbandit.io.arms_reader import read_arms, read_groups
from driftbandit.io.log_reader import as_log, read_log
from driftbandit.io.logs import Arms, Log, Sequence

if TYPE_CHECKING:
    from driftbandit.identify.fitting import fit
    from driftbandit.identify.predictions import OneStep, one_step
    from driftbandit.identify.structured.comparison import Comparison
    from driftbandit.identify.structured.components import components
    from driftbandit.identify.structured.fitting import Fit
    from driftbandit.identify.structured.intervals import estimates
    from driftbandit.identify.structured.selection import compare

__all__ = ["Arms", "Comparison", "Fit", "Log", "OneStep", "Sequence"]
__all__ += [
    "as_log",
    "compare",
    "components",
    "estimates",
    "fit",
    "one_step",
    "read_arms",
    "read_groups",
    "read_log",
]

LOADS_JAX = {"Fit": "structured.fitting", "fit": "fitting"}
LOADS_JAX |= {"OneStep": "predictions", "one_step": "predictions"}
LOADS_JAX |= {"components": "structured.components", "estimates": "structured.intervals"}
LOADS_JAX |= {"Comparison": "structured.comparison"}
LOADS_JAX |= {"compare": "structured.selection"}
__getattr__ = errors.lazy(__name__, LOADS_JAX)
