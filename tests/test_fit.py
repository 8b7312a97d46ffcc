"""Learning a model from a log: what is found, what is refused, what the log cannot tell."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit import InvalidInput
from driftbandit.identify import Arms, Log, Sequence, em, fit, one_step, selection
from driftbandit.identify.assembly import measured
from driftbandit.identify.data import Data, Parameters, data_of
from systems import random_system
from test_em import played

SMALL = {"starts": 1, "iterations": 60}


def log_of(data, k):
    """A log with the data's rewards, arms named by their numbers."""
    sequences = []
    for s, length in enumerate(data.lengths):
        rounds, slots = np.nonzero(data.seen[s, :length] > 0)
        arms, rewards = data.arms[s, rounds, slots], data.rewards[s, rounds, slots]
        sequences.append(Sequence(rounds.astype(np.int64), arms.astype(np.int64), rewards))
    return Log(tuple(sequences), tuple(str(i) for i in range(k)))


@pytest.fixture(scope="module")
def system():
    return random_system(3, 2, k=4)


@pytest.fixture(scope="module")
def log(system):
    return log_of(played(*system, 8, 300, missing=0.1), 4)


def test_a_known_system_is_found_again(system, log):
    model, arms = system
    found = fit(log, arms, offsets=False, starts=1, iterations=400)
    assert (np.diff(found.log_likelihoods) > -1e-6).all()
    assert found.warnings == ()
    assert found.converged
    assert np.abs(found.model.transition - model.transition).max() < 0.1
    assert float(found.model.reward_std) == pytest.approx(0.5, rel=0.1)
    options = {"policies": ["idea"], "rounds": 200, "runs": 64}
    known = db.simulate([(model, arms)], **options).regret["idea"].mean()
    learned = db.simulate([(model, arms)], assumed=[(found.model, found.arms)], **options)
    assert learned.regret["idea"].mean() < 1.05 * known


def test_offsets_are_a_constant_state(system, log):
    _, arms = system
    offsets = np.array([5.0, -3.0, 0.0, 1.0])
    moved = Log(
        tuple(Sequence(s.rounds, s.arms, s.rewards + offsets[s.arms]) for s in log.sequences),
        log.names,
    )
    found = fit(moved, Arms(log.names, arms), **SMALL)
    assert found.arms[:, -1] == pytest.approx(offsets, abs=0.5)
    assert found.model.transition[-1].tolist() == [0.0, 0.0, 1.0]
    assert found.model.start_mean()[-1] == 1.0
    agent = db.Agent(found.model, found.arms)
    assert agent.ask().arm == 0  # the offset alone says so
    again = db.Agent.from_json(agent.to_json())
    assert again.ask() == agent.ask()


def test_arms_without_features(log):
    own = fit(log, n_states=4, offsets=False, structure="diagonal", **SMALL)
    assert (own.arms == np.eye(4)).all()
    few = fit(log, n_states=2, offsets=False, **SMALL)
    assert few.arms.shape == (4, 2)
    assert (np.diff(few.log_likelihoods) > -1e-6).all()
    # Two hidden states do explain the four arms: nearly as likely as with one state each.
    assert few.log_likelihoods[-1] > own.log_likelihoods[-1]


def test_the_number_of_states_is_found(system):
    log, shares = log_of(played(*system, 6, 80, missing=0.1), 4), []
    options = {"structure": "free", "prior": 0, "starts": 1, "iterations": 20}
    found = fit(log, **options, progress=shares.append)
    choice = found.selection
    assert choice.n_states == len(found.parameters.transition) == 2
    assert [one.n_states for one in choice.candidates] == [1, 2, 3, 4]
    assert choice.scores[1] > choice.scores[0] + 2 * choice.errors[0]
    assert found.arms.shape == (4, 3)
    assert (np.diff(shares) > 0).all()
    assert 0 < shares[0] < shares[-1] <= 1
    assert (np.diff([share.iterations for share in shares]) > 0).all()
    seen = one_step(found, log)
    # From the model's start, which is any sequence's, not EM's own of these.
    start = found.model.start_mean()[:2], found.model.start_cov()[:2, :2]
    begun = found.parameters._replace(initial_mean=start[0], initial_cov=start[1])
    expected = float(em.e_step(begun, data_of(log)).log_likelihood)
    assert seen.log_likelihood * len(seen.rewards) == pytest.approx(expected)
    assert seen.surprises.std() == pytest.approx(1, abs=0.1)
    assert 0 < seen.share < 1


def test_a_short_log_is_not_chosen_from_and_says_so():
    log = Log((Sequence([0, 1, 2], [0, 1, 0], [1.0, 2.0, 1.5]),), ("0", "1"))
    found = fit(log, starts=1, iterations=2)
    assert found.selection is None
    assert found.n_states == 2
    said = "Too few rewards to compare models: each arm is assumed to drift on its own."
    assert found.warnings[0] == said
    assert (
        found.summary()
        == "Each arm drifts on its own, all with the same size and speed (2 states)."
    )
    shared = fit(log, structure="free", starts=1, iterations=2)
    assert shared.n_states == 1
    assert shared.warnings[0] == "Too few rewards to choose the number of states: there is one."


def test_sequences_are_left_out_in_turn():
    lengths = np.array([9, 3, 8, 7, 6, 2])
    there = np.arange(9) < lengths[:, None]
    data = Data(
        np.zeros((6, 9, 2), int), np.ones((6, 9, 2)), np.repeat(there, 2).reshape(6, 9, 2), lengths
    )
    parts = selection.splits(data)
    assert [part.scored for part in parts] == [18, 16, 14, 12, 10]
    for part in parts:
        left_out = part.learned.lengths == 0
        assert (part.learned.lengths == np.where(left_out, 0, lengths)).all()
        assert not part.learned.seen[left_out].any()
        assert (part.learned.seen[~left_out] == data.seen[~left_out]).all()
    assert sum(part.scored for part in parts) == data.seen.sum()


def test_rewards_of_few_sequences_take_turns():
    """Each after the first fifth of its sequence is scored once, by a model without it."""
    seen = np.ones((2, 60, 1))
    seen[1, ::2] = 0
    data = Data(np.zeros(seen.shape, int), seen, seen, np.array([60, 60]))
    parts = selection.splits(data)
    left_out = [part.whole.seen - part.learned.seen for part in parts]
    total = np.sum(left_out, axis=0)
    assert (total[0, :12] == 0).all()
    assert (total[0, 12:] == 1).all()
    assert total[1].sum() == 24
    assert {part.scored for part in parts} == {14, 15}
    assert all(part.whole is data for part in parts)
    few = data._replace(seen=seen * (np.arange(60) < 30)[:, None])
    assert selection.splits(few) == []


def test_what_cannot_be_scored_is_not_chosen():
    gains = np.array([[-np.inf, -1.0], [-1.8, -1.8], [-1.6, -1.98]])
    tried = [selection.Candidate("free", d) for d in (1, 2, 3)]
    found = selection.chosen(tried, gains)
    assert found.n_states == 2
    assert found.scores == pytest.approx((-np.inf, -1.8, -1.79))
    assert found.errors == (np.inf, pytest.approx(0.19), 0.0)
    assert found.close == (tried[2],)


def test_sizes_that_can_only_lose_are_not_tried():
    """Three sizes of shared states far behind the best: the fourth is left out, others are not."""
    data = Data(np.zeros((1, 9, 1), int), np.ones((1, 9, 1)), np.ones((1, 9, 1)), np.array([9]))
    part = selection.Split(data, data._replace(seen=data.seen * (np.arange(9) < 4)[:, None]))
    heights = {"alike": -1.0, "free": -2.0, "apart": -1.5}
    tried = [*selection.candidates(5, None, offsets=False), selection.Candidate("apart", 9)]
    assert [one.n_states for one in tried] == [5, 1, 5, 2, 3, 5, 9]
    found = selection.select(
        [part], tried, lambda split, one: np.full(split.whole.seen.shape, heights[one.kind])
    )
    assert [one.n_states for one in found.candidates] == [5, 1, 5, 2, 3, 9]
    assert found.chosen == tried[0]


def test_rounds_become_a_grid():
    first = Sequence([3, 3, 6], [0, 1, 0], [1.0, 2.0, 3.0])
    second = Sequence([0, 1], [1, 1], [4.0, float("nan")])
    data = data_of(Log((first, second), ("a", "b")))
    assert data.seen.shape == (2, 4, 2)
    assert data.lengths.tolist() == [4, 2]
    assert data.seen.sum(axis=2).tolist() == [[2, 0, 0, 1], [1, 0, 0, 0]]
    assert data.rewards[0, 0].tolist() == [1.0, 2.0]
    assert data.arms[0, 0].tolist() == [0, 1]


def test_what_the_log_cannot_tell_is_said(system):
    model, arms = system
    data = played(model, arms[:1], 1, 60)
    blind = np.vstack([arms[:1] * 0 + [[1.0, 0.0]], arms[1:]])
    log = Log(log_of(data, 1).sequences, tuple("0123"))
    found = fit(log, blind, structure="diagonal", offsets=False, starts=1, iterations=4)
    said = " ".join(found.warnings)
    assert "still rising" in said
    assert "No reward was seen of 3 arms: 1, 2, 3." in said
    assert "hardly show 1 of 2 directions" in said


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"structure": "diag"}, "structure"),
        ({"starts": 0}, "starts"),
        ({"iterations": 0}, "iterations"),
        ({"tolerance": -1}, "tolerance"),
        ({"n_states": 3, "arms": np.eye(2)}, "n_states"),
        ({"n_states": 3}, "n_states"),
        ({"arms": np.eye(3)}, "arms"),
    ],
)
def test_wrong_arguments_are_named(options, argument):
    log = Log((Sequence([0, 1], [0, 1], [1.0, 2.0]),), ("0", "1"))
    with pytest.raises(InvalidInput, match=f"^{argument}: "):
        fit(log, **options)


def test_a_log_that_cannot_be_smoothed_is_refused(monkeypatch):
    far = Log((Sequence([0, 10**12], [0, 0], [1.0, 2.0]),), ("0",))
    assert fit(far, n_states=1, iterations=3, starts=1).model.is_stable  # the pause costs nothing
    with monkeypatch.context() as patch:
        patch.setattr("driftbandit.identify.data.LARGEST_GRID", 1)
        with pytest.raises(InvalidInput, match=r"^log: has 2 rounds in 1 sequences"):
            fit(far)
    silent = Log((Sequence([0], [0], [float("nan")]),), ("0",))
    with pytest.raises(InvalidInput, match=r"^log: holds no reward"):
        fit(silent)
    huge = Log((Sequence([0, 1], [0, 0], [-1e40, 0.0]),), ("0",))
    with pytest.raises(InvalidInput, match=r"^log: has rewards up to 1e\+40"):
        fit(huge)


@pytest.mark.parametrize("rewards", [(0.0, 0.0), (1.0, 2.0)])
def test_rewards_that_are_all_the_same_have_a_model(rewards):
    log = {"round": range(40), "arm": [0, 1] * 20, "reward": rewards * 20}
    found = fit(log, n_states=1, starts=1, iterations=8)
    assert any("All rewards are zero" in said for said in found.warnings) == (not any(rewards))
    assert db.Agent(found.model, found.arms).ask().arm in (0, 1)


def test_the_state_is_measured_by_what_arms_read():
    """Two bases of one system come out as one up to a rotation: IDEA's bonus is the same."""
    model, arms = random_system(3, 2, k=4)
    T = np.array([[3.0, 0.5], [-1.0, 0.2]])
    inverse = np.linalg.inv(T)
    given = Parameters(
        model.transition,
        model.process_cov,
        np.asarray(0.25),
        np.array([1.0, 2.0]),
        np.eye(2),
        arms,
        np.zeros(4),
    )
    turned = given._replace(
        transition=T @ given.transition @ inverse,
        process_cov=T @ given.process_cov @ T.T,
        initial_mean=T @ given.initial_mean,
        initial_cov=T @ given.initial_cov @ T.T,
        reads=arms @ inverse,
    )
    bonuses = []
    for one in (measured(given), measured(turned)):
        np.testing.assert_allclose(one.reads.T @ one.reads, np.eye(2), atol=1e-9)
        np.testing.assert_allclose(one.reads @ one.initial_mean, arms @ given.initial_mean)
        np.testing.assert_allclose(one.reads @ one.initial_cov @ one.reads.T, arms @ arms.T)
        found = db.LGDS(one.transition, one.process_cov, 0.5)
        cov = found.stationary_cov()
        np.testing.assert_allclose(
            one.reads @ cov @ one.reads.T, arms @ model.stationary_cov() @ arms.T
        )
        bonuses.append(db.policies.idea.bonus(cov, found, one.reads))
    np.testing.assert_allclose(*bonuses)


def test_gaps_say_nothing():
    """Every second round is logged: lags without a pair of plays are no zeros."""
    model, arms = db.LGDS(np.diag([0.97, 0.9]), 0.1 * np.eye(2), 0.3), np.eye(4, 2) + 0.3
    log = log_of(played(model, arms, 1, 300, missing=0.0), 4)
    wide = Log((Sequence(2 * log.sequences[0].rounds, *_played(log)),), log.names)
    found = fit(wide, n_states=2, starts=1, iterations=60)
    assert found.model.spectral_radius > 0.8
    assert one_step(found, wide).share > 0.3


def _played(log):
    return log.sequences[0].arms, log.sequences[0].rewards


def test_units_of_features_do_not_matter(system, log):
    """At rest; on the way jumps are lengths, and so in units."""
    options = {"offsets": False, "starts": 1, "iterations": 600, "tolerance": 1e-7}
    likelihoods = [
        fit(log, system[1] * [1.0, scale], **options).log_likelihood for scale in (1.0, 1000.0)
    ]
    assert likelihoods[1] == pytest.approx(likelihoods[0], abs=0.1)


def test_rewards_that_begin_with_nothing():
    """σ² has a floor where all rewards of a part are zero, and jumps keep it."""
    rng = np.random.default_rng(1)
    rewards = np.where(np.arange(120) < 84, 0.0, rng.standard_normal(120))
    log = {"round": range(120), "arm": rng.integers(3, size=120), "reward": rewards}
    assert fit(log, starts=1, iterations=20).selection is not None
    same = fit({"round": range(60), "arm": [0] * 60, "reward": [5.0] * 60}, **SMALL)
    assert (np.diff(same.log_likelihoods) > -0.2).all()  # rounding, at σ² of 10⁻¹¹


def test_simple_structures_stay_simple(log):
    found = fit(log, n_states=2, structure="diagonal", starts=1, iterations=20).model
    for matrix in (found.transition, found.process_cov):
        assert not (matrix - np.diag(np.diag(matrix))).any()


def test_a_start_is_kept_stable(system, log):
    _, arms = system
    walk = db.LGDS(1.02 * np.eye(2), np.eye(2), 1.0, np.eye(2))
    found = fit(log, arms, offsets=False, start=walk, starts=1, iterations=9)
    assert found.model.is_stable
    for start, arms_ in ((db.LGDS(0.5 * np.eye(3), np.eye(3), 1.0), arms), (walk, None)):
        with pytest.raises(InvalidInput, match=r"^start: "):
            fit(log, arms_, 2, start=start, **SMALL)
