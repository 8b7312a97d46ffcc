"""Decisions whose payoffs drift: bandits driven by a linear Gaussian dynamical system.

    import driftbandit as db

    model, arms = db.families.sample("gaussian", seed=1)[0]
    result = db.simulate(model, arms, policies=["idea", "kode", "random"], rounds=500, runs=100)
    print(result)

JAX is loaded by `simulate` alone; `Agent` and the mathematics run on NumPy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftbandit import families, kalman, policies, steady_state
from driftbandit.agent import Agent, Decision
from driftbandit.errors import InvalidInput, NotDetectable
from driftbandit.model import LGDS
from driftbandit.result import Result

if TYPE_CHECKING:
    from driftbandit.simulation import simulate

__version__ = "0.1.0"

__all__ = [
    "LGDS",
    "Agent",
    "Decision",
    "InvalidInput",
    "NotDetectable",
    "Result",
    "families",
    "kalman",
    "policies",
    "simulate",
    "steady_state",
]


def __dir__() -> list[str]:
    return sorted([*globals(), "simulate"])


def __getattr__(name: str) -> Any:
    if name == "simulate":
        from driftbandit import simulation  # loads JAX, so only when asked for

        return simulation.simulate
    raise AttributeError(f"module 'driftbandit' has no attribute {name!r}")
