"""What an agent answers: decisions, and the scores behind them."""

from __future__ import annotations

import math
from typing import Any, Literal, NamedTuple

import numpy as np

__all__ = ["Decision", "Score", "Told"]

Told = Literal["learned", "missing", "duplicate", "too late"]


class _Decision(NamedTuple):
    id: int
    """Number of the decision, from 0."""
    arm: Any
    """Name of the arm to play: its row number, if arms were given without names. If `ask` was given
    features, the place among them or the key; on the sphere, the unit vector, a NumPy array."""
    round: int
    """The round it is for."""
    mean: float | None
    """The reward the policy expects; None for policies that expect none."""
    bonus: float | None
    """What the policy adds to that, for what it may learn; infinite for an arm never tried;
    None for policies without a score, and on the sphere."""
    uncertainty: float | None
    """√(aᵀPa), the standard deviation of ⟨a, z⟩; None for policies without a Kalman filter."""


class Decision(_Decision):
    """What to play in a round; `to_dict` gives what JSON can hold."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values: a vector becomes a list, an infinite bonus None.

        Example:
            >>> Decision(0, "left", 0, 0.0, float("inf"), None).to_dict()
            {'id': 0, 'arm': 'left', 'round': 0, 'mean': 0.0, 'bonus': None, 'uncertainty': None}
        """
        return _plain(self)

    _asdict = to_dict


class _Score(NamedTuple):
    arm: Any
    """Name of the arm."""
    mean: float | None
    """The reward the policy expects; None for policies that expect none."""
    bonus: float | None
    """What the policy adds to that; None for policies without a score."""
    uncertainty: float | None
    """√(aᵀPa); None for policies without a Kalman filter."""


class Score(_Score):
    """What a policy thinks of one arm."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON values: an infinite bonus becomes None."""
        return _plain(self)

    _asdict = to_dict


def _plain(record: Any) -> dict[str, Any]:
    found = {}
    for field, value in zip(record._fields, record, strict=True):
        if isinstance(value, np.ndarray):
            value = value.tolist()
        elif isinstance(value, float) and not math.isfinite(value):
            value = None
        found[field] = value
    return found
