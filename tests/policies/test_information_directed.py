"""Information-directed sampling."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
from driftbandit.kalman import Belief
from driftbandit.policies import information_directed
from systems import problem_of

checked = settings(deadline=None, derandomize=True, max_examples=50)


@checked
@given(st.lists(st.tuples(st.floats(0, 5), st.floats(0, 1)), min_size=1, max_size=4))
def test_the_least_information_ratio_is_found(arms):
    """No chance q on a fine grid does better, for any pair."""
    regret, information = np.array(arms).T
    least, share = information_directed.shares(regret, information)
    q = np.linspace(0, 1, 501)
    for a in range(len(arms)):
        for b in range(len(arms)):
            mixed = q * regret[a] + (1 - q) * regret[b]
            told = q * information[a] + (1 - q) * information[b] + information_directed.LEAST
            assert least[a, b] <= (mixed**2 / told).min() * (1 + 1e-9) + 1e-300
            assert 0 <= share[a, b] <= 1


def test_information_directed_asks_about_the_next_round():
    """Γ = 0: nothing learned now helps later, so the best prediction is played."""
    model = db.LGDS(np.zeros((2, 2)), np.eye(2), reward_std=1.0)
    belief = Belief(np.array([0.1, 0.0]), np.diag([0.01, 25.0]))
    policy = db.policies.make("information_directed(points=4096)")
    problem = problem_of(policy, model, np.eye(2))
    regret, information = information_directed.regret_and_information(belief, problem)
    assert (information < 0.01).all()
    moving = model.__class__(0.9 * np.eye(2), np.eye(2), reward_std=1.0)
    problem = problem_of(policy, moving, np.eye(2))
    _, more = information_directed.regret_and_information(belief, problem)
    assert more[1] > 10 * information.max()
    assert regret[0] < regret[1]
