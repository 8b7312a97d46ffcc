"""P15: IDEA's score on the sphere, and its slopes."""

import numpy as np
import pytest

from driftbandit.actions.idea_objective import framed, idea
from sphere_cases import case


def test_slopes_are_the_scores_derivatives():
    """By differences; the Hessian is the one between tangents, which takes b to zero."""
    rng = np.random.default_rng(6)
    belief, model = case("plain", 4, rng)
    frame = framed(belief, model)
    rows, step = rng.standard_normal((3, 4)), 1e-4
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    objective = idea(frame)
    gradient, hessian = objective.slopes(rows)
    assert (hessian @ rows[:, :, None])[:, :, 0] == pytest.approx(0 * rows, abs=1e-12)
    cross = rows[:, :, None] * gradient[:, None, :]
    hessian = hessian - cross - cross.mT
    for i, way in enumerate(step * np.eye(4)):
        scores = [objective.scores(rows + s * way) - s * way @ frame.mean for s in (1, -1)]
        slopes = [objective.slopes(rows + s * way)[0] for s in (1, -1)]
        assert gradient[:, i] == pytest.approx((scores[0] - scores[1]) / (2 * step), abs=1e-6)
        assert hessian[:, i] == pytest.approx((slopes[0] - slopes[1]) / (2 * step), abs=1e-6)
