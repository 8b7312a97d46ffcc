"""Decisions whose payoffs drift: bandits driven by a linear Gaussian dynamical system.

    import driftbandit as db

    model, arms = db.families.sample("gaussian", seed=1)[0]
    result = db.simulate(model, arms, policies=["idea", "kode", "random"], rounds=500, runs=100)
    print(result)

JAX is loaded by `simulate` and by studies alone; `Agent` and the mathematics run on NumPy.
"""

from __future__ import annotations

import importlib
import importlib.util
from typing import TYPE_CHECKING, Any

from driftbandit import errors, families, kalman, policies, statistics, steady_state, theory
from driftbandit.agent import Agent, Decision, Refit
from driftbandit.errors import InvalidInput, MissingExtra, NotDetectable
from driftbandit.model import LGDS
from driftbandit.model_file import read as load_model
from driftbandit.model_file import write as save_model
from driftbandit.result import Result
from driftbandit.system import System

if TYPE_CHECKING:
    from driftbandit import identify, paper, study
    from driftbandit.advice import advise
    from driftbandit.identify import fit
    from driftbandit.replays import replay
    from driftbandit.simulation import simulate

__version__ = "0.1.0"

__all__ = [
    "LGDS",
    "Agent",
    "Decision",
    "InvalidInput",
    "MissingExtra",
    "NotDetectable",
    "Refit",
    "Result",
    "System",
    "advise",
    "families",
    "fit",
    "identify",
    "kalman",
    "load_model",
    "paper",
    "policies",
    "replay",
    "save_model",
    "simulate",
    "statistics",
    "steady_state",
    "study",
    "theory",
]

_LAZY = {
    "advise": "driftbandit.advice",
    "fit": "driftbandit.identify",
    "identify": "driftbandit",
    "replay": "driftbandit.replays",
    "simulate": "driftbandit.simulation",
    "paper": "driftbandit",
    "study": "driftbandit",
}
"""What loads JAX, pyarrow or matplotlib, and so is imported when asked for."""


def __dir__() -> list[str]:
    """Without the lazy names where an extra is missing: `help` loads each name it is given."""
    whole = all(map(importlib.util.find_spec, ("jax", "jinja2", "matplotlib", "pyarrow")))
    return sorted({*globals(), *(_LAZY if whole else ())})


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module 'driftbandit' has no attribute {name!r}")
    with errors.needing(name):
        if _LAZY[name] == "driftbandit":
            return importlib.import_module(f"driftbandit.{name}")
        return getattr(importlib.import_module(_LAZY[name]), name)
