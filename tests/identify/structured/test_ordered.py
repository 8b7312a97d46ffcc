"""The test for drift: how often it is wrong, what it sees, and its scores by a slow loop."""

import numpy as np
import pytest

from driftbandit.identify import Log, Sequence, as_log
from driftbandit.identify.structured import ordered

ROWS, ARMS = 300, 4


def log_of(rewards, arms=None, rounds=None):
    rows = np.arange(len(rewards))
    arms = rows % ARMS if arms is None else arms
    return as_log({"round": rows if rounds is None else rounds, "arm": arms, "reward": rewards})


def still(kind, rng):
    """A log in which nothing drifts."""
    arms = rng.integers(ARMS, size=ROWS)
    noise = rng.standard_normal(ROWS)
    rewards = {
        "unequal noise": lambda: np.array([0.1, 1, 1, 10])[arms] * noise,
        "clicks": lambda: (rng.random(ROWS) < np.array([0.05, 0.1, 0.3, 0.5])[arms]) * 1.0,
        "heavy tails": lambda: rng.standard_t(2, ROWS) + arms,
        "season": lambda: noise + 3 * np.sin(2 * np.pi * np.arange(ROWS) / 12),
    }
    return log_of(rewards[kind](), arms)


def greedy(rng):
    """Play that depends on past rewards: stay after a good one, else draw."""
    arms, rewards = [0], [rng.standard_normal()]
    for _ in range(ROWS - 1):
        arms.append(arms[-1] if rewards[-1] > 0 else int(rng.integers(ARMS)))
        rewards.append(rng.standard_normal())
    return log_of(rewards, np.array(arms))


def shocks(rng):
    """All arms in every round, and most of what they pay is common to them."""
    rounds = np.repeat(np.arange(ROWS // ARMS), ARMS)
    common = 3 * rng.standard_normal(ROWS // ARMS)[rounds]
    return log_of(
        common + rng.standard_normal(ROWS), np.tile(np.arange(ARMS), ROWS // ARMS), rounds
    )


KINDS = {
    kind: lambda rng, kind=kind: still(kind, rng)
    for kind in ("unequal noise", "clicks", "heavy tails", "season")
} | {"greedy": greedy, "shocks": shocks}


@pytest.mark.parametrize("kind", KINDS)
def test_it_is_seldom_wrong(kind):
    """p ≤ 0.1 in 10% of the logs: more than 14 of 60 come less than once in 1000."""
    periods = (12,) if kind == "season" else ()
    made = (KINDS[kind](np.random.default_rng([seed, 3])) for seed in range(60))
    assert sum(ordered.p_value(log, periods) <= 0.1 for log in made) <= 14


@pytest.mark.parametrize("together", [False, True])
def test_it_sees_clicks_whose_rates_drift(together):
    """Arms that drift alone, and arms that drift together."""
    seen = 0
    for seed in range(10):
        rng = np.random.default_rng([seed, 5])
        steps = 0.15 * rng.standard_normal((ROWS, 1 if together else ARMS))
        rates = 1 / (1 + np.exp(-np.cumsum(steps, axis=0))) * np.ones(ARMS)
        arms = rng.integers(ARMS, size=ROWS)
        clicked = rng.random(ROWS) < rates[np.arange(ROWS), arms]
        seen += ordered.p_value(log_of(clicked * 1.0, arms)) <= 0.025
    assert seen >= 8


def test_the_answer_depends_on_nothing_but_the_log():
    """Units, arms' means, missing rewards and the first round do not matter."""
    rng = np.random.default_rng(1)
    arms = rng.integers(ARMS, size=ROWS)
    rewards = rng.standard_normal(ROWS) + np.sin(np.arange(ROWS) / 20)
    p = ordered.p_value(log_of(rewards, arms))
    assert p == ordered.p_value(log_of(rewards, arms)) == ordered.p_value(log_of(-rewards, arms))
    assert p == ordered.p_value(log_of(1e9 * rewards + 1e8 * arms, arms, np.arange(ROWS) + 777))
    rows = np.sort(np.append(np.arange(ROWS), [5, 80]))
    gaps = np.where(np.diff(rows, append=-1) == 0, np.nan, rewards[rows])
    assert p == ordered.p_value(log_of(gaps, arms[rows], rows))


def test_a_new_sequence_remembers_nothing():
    """Sequences with levels of their own drift within none of them."""
    rng = np.random.default_rng(0)
    parts = [
        Sequence(np.arange(3), np.zeros(3, int), level + 0.1 * rng.standard_normal(3))
        for level in 5 * rng.standard_normal(60)
    ]
    assert ordered.p_value(Log(tuple(parts), ("a",))) <= 0.01
    alone = [Sequence(np.arange(1), np.zeros(1, int), part.rewards[:1]) for part in parts]
    assert ordered.p_value(Log(tuple(alone), ("a",))) == 1.0


def test_constant_arms_have_no_order():
    assert ordered.p_value(log_of(np.resize([1.0, 2.0, 3.0, 0.1], 40))) is None


def test_the_scores_are_those_of_a_slow_loop():
    rng = np.random.default_rng(2)
    rounds = np.repeat(np.cumsum(rng.integers(1, 4, 30)), 2)
    sequences = np.repeat([0, 1], 30)
    arms, errors = np.tile([0, 1, 1, 2], 15), rng.standard_normal(60)
    begins = np.arange(0, 60, 2)
    found = ordered._scores(errors[:, None], rounds, arms, sequences, begins)[0]
    expected = []
    for shared in (False, True):
        for memory in ordered.MEMORIES:
            terms = []
            for begin in begins:
                term = 0.0
                for play in (begin, begin + 1):
                    for before in range(begin):
                        if sequences[before] != sequences[play]:
                            continue
                        if shared or arms[before] == arms[play]:
                            age = rounds[play] - rounds[before]
                            term += errors[play] * errors[before] * np.exp(-age / memory)
                terms.append(term)
            expected.append(sum(terms) / np.sqrt(np.square(terms).sum()))
    np.testing.assert_allclose(found, expected, rtol=1e-9)
