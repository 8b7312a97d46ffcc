"""Bandits whose rewards drift, driven by a linear Gaussian dynamical system.

    import driftbandit as db

    model, arms = db.families.sample("gaussian", seed=1)[0]
    result = db.simulate(model, arms, policies=["reach", "kode", "random"], rounds=500, runs=100)
    print(result)

Every name is imported when it is first used, so that `import driftbandit` loads no other library.
Only `simulate`, `fit` and studies load JAX; `Agent`, `trace` and the mathematics run on NumPy.
"""

from __future__ import annotations

import importlib

from driftbandit._version import __version__

TYPE_CHECKING = False  # true for type checkers; `import typing` would take most of the time
if TYPE_CHECKING:
    from typing import Any

    from driftbandit import (
        actions,
        families,
        identify,
        kalman,
        paper,
        policies,
        statistics,
        steady_state,
        structure,
        studies,
        theory,
    )
    from driftbandit import arrays as arrays  # not in __all__, but there for those who look
    from driftbandit import errors as errors
    from driftbandit import model as model
    from driftbandit import result as result
    from driftbandit import simulation as simulation
    from driftbandit import system as system
    from driftbandit.advice import advise
    from driftbandit.agent import Agent, Decision, Refit
    from driftbandit.agent.tracing import Trace, trace
    from driftbandit.errors import InvalidInput, MissingExtra, NotDetectable
    from driftbandit.identify import fit
    from driftbandit.io.log_reader import read_log
    from driftbandit.io.model_file import load_model, save_model
    from driftbandit.model import LGDS
    from driftbandit.monitoring import Health, monitor
    from driftbandit.replays import replay
    from driftbandit.result import Result
    from driftbandit.service.client import AsyncClient, Client, Unavailable
    from driftbandit.simulation import simulate
    from driftbandit.system import System

__all__ = ["__version__"]
__all__ += ["actions", "families", "identify", "kalman", "paper", "policies"]
__all__ += ["statistics", "steady_state", "structure", "studies", "theory"]
__all__ += [
    "LGDS",
    "Agent",
    "AsyncClient",
    "Client",
    "Decision",
    "Health",
    "InvalidInput",
    "MissingExtra",
]
__all__ += ["NotDetectable", "Refit", "Result", "System", "advise", "fit", "load_model"]
__all__ += ["Trace", "Unavailable", "monitor", "read_log", "replay", "save_model", "simulate"]
__all__ += ["trace"]

_HOMES = {
    "advice": "advise",
    "agent": "Agent Decision Refit",
    "agent.tracing": "Trace trace",
    "errors": "InvalidInput MissingExtra NotDetectable",
    "identify": "fit",
    "io.log_reader": "read_log",
    "io.model_file": "load_model save_model",
    "model": "LGDS",
    "monitoring": "Health monitor",
    "replays": "replay",
    "result": "Result",
    "service.client": "AsyncClient Client Unavailable",
    "simulation": "simulate",
    "system": "System",
}
_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}
"""The module of every public name that is not a module itself."""
_MODULES = {*__all__, "arrays", "errors", "model", "result", "simulation", "system"}
_MODULES -= {*_HOME, "__version__"}
_HEAVY = {"advise", "fit", "identify", "paper", "replay", "simulate", "studies"}
_HEAVY |= {"AsyncClient", "Client", "Unavailable"}
"""Names that need an extra."""


def __dir__() -> list[str]:
    """Leave out names whose extra is missing: `help` would try to load them."""
    import importlib.util

    whole = all(map(importlib.util.find_spec, ("httpx", "jax", "jinja2", "matplotlib", "pyarrow")))
    return sorted({*globals(), *__all__} - (set() if whole else _HEAVY))


if not TYPE_CHECKING:  # with it, type checkers would accept any misspelled name

    def __getattr__(name: str) -> Any:
        if name not in _HOME and name not in _MODULES:
            raise AttributeError(f"module 'driftbandit' has no attribute {name!r}")
        errors = importlib.import_module("driftbandit.errors")
        with errors.needing(name):
            module = importlib.import_module(f"driftbandit.{_HOME.get(name, name)}")
            found = getattr(module, name) if name in _HOME else module
        globals()[name] = found
        return found
