"""Decisions whose payoffs drift: bandits driven by a linear Gaussian dynamical system.

    import driftbandit as db

    model, arms = db.families.sample("gaussian", seed=1)[0]
    result = db.simulate(model, arms, policies=["idea", "kode", "random"], rounds=500, runs=100)
    print(result)

JAX is loaded by `simulate` and by studies alone; `Agent` and the mathematics run on NumPy.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from driftbandit import (
        families,
        identify,
        kalman,
        paper,
        policies,
        statistics,
        steady_state,
        study,
        theory,
    )
    from driftbandit.advice import advise
    from driftbandit.agent import Agent, Decision, Refit
    from driftbandit.errors import InvalidInput, NotDetectable
    from driftbandit.model import LGDS
    from driftbandit.replays import replay
    from driftbandit.result import Result
    from driftbandit.simulation import simulate
    from driftbandit.system import System

__version__ = "0.1.0"

__all__ = [
    "LGDS",
    "Agent",
    "Decision",
    "InvalidInput",
    "NotDetectable",
    "Refit",
    "Result",
    "System",
    "advise",
    "families",
    "identify",
    "kalman",
    "paper",
    "policies",
    "replay",
    "simulate",
    "statistics",
    "steady_state",
    "study",
    "theory",
]

_HOMES = {
    "LGDS": "model",
    "Agent": "agent",
    "Decision": "agent",
    "InvalidInput": "errors",
    "NotDetectable": "errors",
    "Refit": "agent",
    "Result": "result",
    "System": "system",
    "advise": "advice",
    "replay": "replays",
    "simulate": "simulation",
}
"""The module of every name that is not a module itself.

Everything is imported when it is first asked for: `import driftbandit` is immediate, and the
program can answer Ctrl-C before NumPy is loaded.
"""
_MODULES = {*__all__, "arrays", "errors", "model", "result", "system"} - set(_HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(importlib.import_module(f"driftbandit.{_HOMES[name]}"), name)
    elif name in _MODULES:
        found = importlib.import_module(f"driftbandit.{name}")
    else:
        raise AttributeError(f"module 'driftbandit' has no attribute {name!r}")
    globals()[name] = found
    return found
