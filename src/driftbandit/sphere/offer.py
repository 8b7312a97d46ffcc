"""``arms="sphere"``: every unit vector is on offer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS

if TYPE_CHECKING:
    from driftbandit.policies import Policy

__all__ = ["SPHERE", "able", "check_able", "coordinates", "is_sphere"]

SPHERE = "sphere"


def is_sphere(arms: Any, argument: str = "arms") -> bool:
    """Whether ``arms`` is the word for all unit vectors; another word is refused."""
    if not isinstance(arms, str):
        return False
    if arms != SPHERE:
        raise errors.InvalidInput(argument, f"is {arms!r}", 'give a k × d array, or "sphere"')
    return True


def coordinates(model: Any) -> np.ndarray:
    """The unit coordinate vectors, which stand for the sphere in ``problem.arms``."""
    if not isinstance(model, LGDS):
        raise errors.InvalidInput("model", f"has type {type(model).__name__}", "give an LGDS")
    rows = np.eye(model.n_states)
    rows.setflags(write=False)
    return rows


def able() -> tuple[str, ...]:
    """The registered policies that can play any unit vector."""
    from driftbandit.policies import available, make  # which know the sphere themselves

    return tuple(name for name in available() if make(name).on_sphere is not None)


def check_able(policy: Policy, argument: str = "policy") -> None:
    """Refuse a policy that needs a list of arms."""
    if policy.on_sphere is None:
        problem = f"{policy.name} chooses from a list of arms, not from the sphere"
        raise errors.InvalidInput(argument, problem, f"give one of {', '.join(able())}")
