"""Units of the constant state that pays arms their offsets.

Its value and the offsets are learned up to a factor. Kalman policies do not care; OFUL and
D-LinUCB, whose ridge is a length, do.
"""

from __future__ import annotations

import numpy as np

from driftbandit.model import LGDS

__all__ = ["measured"]


def measured(model: LGDS, arms: np.ndarray) -> tuple[LGDS, np.ndarray]:
    """The same system with its constant state, the last, measured by the offsets it pays.

        1 ↦ ‖o‖,   o ↦ o / ‖o‖

    Else the arm with the largest offset had by far the longest row, and OFUL the largest hopes of
    it, even where the offset is a loss. The moving states are measured so by `identify.fit`.

    Args:
        model: Γ, Q, σ, Σ0, the mean of z(0).
        arms: k × d, offsets last.
    """
    size = float(np.linalg.norm(arms[:, -1])) or 1.0
    units = np.append(np.ones(model.n_states - 1), size)
    turned = LGDS(
        units[:, None] * model.transition / units,
        model.process_cov,
        model.reward_std,
        model.initial_cov,
        units * model.start_mean(),
    )
    return turned, arms / units
