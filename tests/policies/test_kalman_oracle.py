"""The Kalman Oracle where no steady state exists."""

import numpy as np
import pytest

from driftbandit import LGDS, Agent, NotDetectable, kalman, simulate

# Two levels and a shared one: no reward tells a shared step from two equal ones.
ARMS = np.array([[1.0, 0.0, 1.0], [0.0, 1.0, 1.0]])
SPREADS = np.diag([0.04, 0.09, 0.01])
HIDDEN = LGDS(np.eye(3), SPREADS, 0.5, 4 * SPREADS, [1.0, 2.0, 0.0])


def test_a_mode_that_never_shows_does_not_matter():
    """Predictions are those of a filter of what the arms pay, without the hidden mode."""
    reduced = LGDS(np.eye(2), ARMS @ SPREADS @ ARMS.T, 0.5, 4 * ARMS @ SPREADS @ ARMS.T, [1.0, 2.0])
    agent, belief = Agent(HIDDEN, ARMS, "kalman_oracle"), kalman.prior(reduced)
    for rewards in np.random.default_rng(0).normal(1.5, 1.0, size=(30, 2)):
        np.testing.assert_allclose(ARMS @ agent.state.mean, belief.mean, rtol=1e-9)
        agent.tell(agent.ask(), rewards)
        for row, reward in zip(np.eye(2), rewards, strict=True):
            belief = kalman.observe(belief, reduced, row, reward)
        belief = kalman.advance(belief, reduced, 1)


def test_a_shared_level_beside_levels_can_be_simulated():
    pytest.importorskip("jax")
    both = [simulate(HIDDEN, ARMS, rounds=20, runs=64, engine=one) for one in ("xla", "auto")]
    regret = both[0].regret
    assert regret["kalman_oracle"].mean() < regret["random"].mean()
    np.testing.assert_allclose(regret["kalman_oracle"], both[1].regret["kalman_oracle"], atol=1e-9)


def test_a_mode_that_grows_unseen_is_refused():
    grows = LGDS(np.diag([1.5, 0.5]), np.eye(2), 1.0, np.eye(2))
    with pytest.raises(NotDetectable, match=r"spectral radius 1\.5"):
        Agent(grows, [[0.0, 1.0]], "kalman_oracle")
