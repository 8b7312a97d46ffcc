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

if TYPE_CHECKING:
    from driftbandit import (
        actions,
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
    from driftbandit.errors import InvalidInput, MissingExtra, NotDetectable
    from driftbandit.identify import fit
    from driftbandit.io.model_file import load_model, save_model
    from driftbandit.model import LGDS
    from driftbandit.replays import replay
    from driftbandit.result import Result
    from driftbandit.simulation import simulate
    from driftbandit.system import System

__version__ = "0.1.0"

_HOMES = {
    "LGDS": "model",
    "Agent": "agent",
    "Decision": "agent",
    "InvalidInput": "errors",
    "MissingExtra": "errors",
    "NotDetectable": "errors",
    "Refit": "agent",
    "Result": "result",
    "System": "system",
    "advise": "advice",
    "fit": "identify",
    "load_model": "io.model_file",
    "replay": "replays",
    "save_model": "io.model_file",
    "simulate": "simulation",
}
"""The module of every public name that is not a module itself.

Everything is imported when it is first asked for: `import driftbandit` is immediate, and the
program can answer Ctrl-C before NumPy is loaded.
"""

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
    "actions",
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

_MODULES = {*__all__, "arrays", "errors", "model", "result", "simulation", "system"} - set(_HOMES)
_HEAVY = {"advise", "fit", "identify", "paper", "replay", "simulate", "study"}
"""What an extra brings."""


def __dir__() -> list[str]:
    """Without the names whose extra is missing: `help` loads each name it is given."""
    whole = all(map(importlib.util.find_spec, ("jax", "jinja2", "matplotlib", "pyarrow")))
    return sorted({*globals(), *__all__} - (set() if whole else _HEAVY))


def __getattr__(name: str) -> Any:
    if name not in _HOMES and name not in _MODULES:
        raise AttributeError(f"module 'driftbandit' has no attribute {name!r}")
    errors = importlib.import_module("driftbandit.errors")
    with errors.needing(name):
        module = importlib.import_module(f"driftbandit.{_HOMES.get(name, name)}")
        found = getattr(module, name) if name in _HOMES else module
    globals()[name] = found
    return found
