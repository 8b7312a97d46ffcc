"""Learn the model anew from what an agent has seen itself."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from driftbandit import errors
from driftbandit.agent.choosing import by_columns
from driftbandit.agent.ledger import Entry
from driftbandit.model import LGDS, checked_arms

__all__ = ["Refit", "learned", "random_walk"]

MOST = 2**53
"""Settled rewards that can be kept or waited for."""


@dataclasses.dataclass(frozen=True)
class Refit:
    """When and how an agent learns its model from its own log.

    The log are the settled rewards, those older than the agent's window: what is learned from
    them does not depend on the order in which rewards came. The first time after ``after`` of
    them, then whenever the log has grown by ``growth`` of itself, and by ``after`` at least.

    Args:
        after: settled rewards before the first time.
        growth: share by which the log grows until the next.
        memory: how many settled rewards are kept, the newest.
        structure: of Γ: "free", "diagonal" or "scalar".
        stable: keep ρ(Γ) below 1.
        offsets: whether arms pay an offset of their own; `Agent.ask` then takes no new features.
        iterations: of expectation maximization, at most, each time.
        scale: about how far rewards spread; the start's random walk is made for it.
        background: learn in a thread of its own. Decisions go on with the old model until the new
            one is there. This is the default, since learning takes seconds, for which a service
            cannot stop. Which decision is the first under the new model then depends on timing.
            False: `Agent.ask` waits, so that the same rewards always give the same decisions, as
            experiments need.
    """

    after: int = 200
    growth: float = 0.5
    memory: int = 5000
    structure: Literal["free", "diagonal", "scalar"] = "free"
    stable: bool = True
    offsets: bool = False
    iterations: int = 100
    scale: float = 1.0
    background: bool = True

    def __post_init__(self) -> None:
        errors.whole_number(self.after, "after", low=2, high=MOST)
        errors.number(self.growth, "growth", low=0)
        errors.whole_number(self.memory, "memory", low=self.after, high=MOST)
        errors.closest(self.structure, "structure", ("free", "diagonal", "scalar"))
        errors.whole_number(self.iterations, "iterations", low=1)
        errors.number(self.scale, "scale", low=0, strict=True)
        for field in ("stable", "offsets", "background"):
            if not isinstance(getattr(self, field), bool):
                raise errors.InvalidInput(field, f"is {getattr(self, field)!r}", "True or False")

    def pause(self, seen: int) -> int:
        """How many more settled rewards until the next time, after ``seen`` were used."""
        return max(self.after, int(self.growth * min(seen, self.memory)))


def random_walk(arms: Any, scale: float = 1.0) -> LGDS:
    """What to believe of arms of which nothing is known: a state that wanders, read with noise.

        Γ = I,   Σ0 = s² I,   Q = Σ0 / 50,   σ² = scale² / 2,   s² = scale² / (2 mean ‖a‖²)

    Args:
        arms: k × d.
        scale: about how far rewards spread.
    """
    rows = errors.matrix(arms, "arms", shape=(None, None))
    identity = np.eye(rows.shape[1])
    checked_arms(rows, LGDS(identity, identity, 1.0, identity))  # none is zero
    size = scale**2 / 2 / max(float((rows**2).sum(axis=1).mean()), np.finfo(float).tiny)
    return LGDS(identity, size / 50 * identity, scale / np.sqrt(2), size * identity)


def learned(
    entries: Sequence[Entry], arms: np.ndarray, options: Refit, start: LGDS | None, seed: int
) -> tuple[LGDS, np.ndarray]:
    """The likeliest model of the entries, and the agent's arms as this model reads them.

    Args:
        entries: in the order of time, each with its reward.
        arms: the agent's own features, k × d.
        options: how to learn.
        start: a model to climb from; None: the usual starts.
        seed: of those.
    """
    from driftbandit.identify import fitting
    from driftbandit.io import logs  # JAX, and pyarrow

    if options.offsets:  # they belong to arms by number
        rows, numbers = arms, np.array([entry.arm for entry in entries])
    else:
        played = [arms[entry.arm] if entry.row is None else entry.row for entry in entries]
        rows, numbers = np.unique(played, axis=0, return_inverse=True)
    rounds = np.array([entry.round for entry in entries], np.int64)
    rewards = np.array([entry.reward for entry in entries])
    sequence = logs.Sequence(rounds - rounds[0], numbers.astype(np.int64), rewards)
    names = tuple(str(i) for i in range(len(rows)))
    found = fitting.fit(
        logs.Log((sequence,), names),
        rows,
        structure=options.structure,
        stable=options.stable,
        offsets=options.offsets,
        starts=1,
        iterations=options.iterations,
        seed=seed,
        start=start,
    )
    return found.model, by_columns(found.arms) if options.offsets else arms
