"""Learning a model from a log: what is found, what is refused, what the log cannot tell."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit import InvalidInput
from driftbandit.identify import Arms, Log, Sequence, fit, one_step
from random_logs import drifting, log_of, played
from systems import random_system


@pytest.fixture(scope="module")
def found():
    return fit(drifting(300))


def test_arms_that_drift_by_themselves_are_found(found):
    assert found.drift.verdict == "yes"
    levels = "level(arm)", "constant(arm) + level(arm, memory=free)"
    assert str(found.structure).startswith(levels)
    tried = found.comparison
    texts = list(map(str, tried.structures))
    factor = "constant(arm) + level(shared, loadings=free, memory=free)"
    for other in ("constant(arm)", "constant(arm) + noise(arm, own)", factor):
        gain, error = tried.difference(tried.chosen_place, texts.index(other))
        assert gain > 2 * error
    assert found.warnings == ()
    assert one_step(found, drifting(300, seed=0)).share > 0.3


def test_an_agent_goes_on_learning_the_level_of_arms(found):
    agent = db.Agent(found.system)
    for _ in range(200):
        agent.tell(agent.ask(), 5.0)
    assert agent.ask().mean > 3
    steady = db.steady_state.oracle_cov(found.model, found.arms)
    assert np.isfinite(steady).all()


def test_one_shared_factor_is_found():
    found = fit(drifting(600, factor=True))
    assert "loadings=free" in str(found.structure)
    assert found.drift.verdict == "yes"
    assert found.n_states == 4 + 1


def turning(rounds):
    """A log of six arms that read two states, which turn by an eighth of a circle per round."""
    rng = np.random.default_rng(8)
    turn = 0.98 * np.array([[1.0, -1.0], [1.0, 1.0]]) / np.sqrt(2)
    reads, z, rewards = rng.standard_normal((6, 2)), np.zeros(2), []
    arms = rng.integers(6, size=rounds)
    for arm in arms:
        rewards.append(reads[arm] @ z + 0.5 * rng.standard_normal())
        z = turn @ z + 0.5 * rng.standard_normal(2)
    return {"round": np.arange(rounds), "arm": arms, "reward": 3 + np.array(rewards)}


def test_shared_states_that_turn_are_found():
    log = turning(400)
    found = fit(log)
    assert str(found.structure) == "constant(arm) + factors(2)"
    assert found.drift.verdict == "yes"
    assert found.drift.best_with == "constant(arm) + factors(2)"
    assert found.comparison.chosen == found.structure
    assert found.model.n_states == 6 + 2  # an agent goes on learning what arms pay on average
    turns = np.linalg.eigvals(found.model.transition[6:, 6:])
    np.testing.assert_allclose(np.abs(turns), 0.98, atol=0.04)
    np.testing.assert_allclose(np.abs(np.angle(turns)), np.pi / 4, atol=0.05)
    # The system goes on where the log ends, as that of other structures does.
    told = db.Agent(found.start_system, policy="idea")
    told.tell_log(log)
    knows = db.Agent(found.system, policy="idea")
    assert (found.system.first_round, knows.ask().arm) == (400, told.ask().arm)
    means = [[score.mean for score in agent.scores()] for agent in (knows, told)]
    np.testing.assert_allclose(*means, rtol=1e-9)
    again = fit(log, n_states=2)
    assert again.structure == found.structure
    assert again.log_likelihood == pytest.approx(found.log_likelihood, abs=0.1)


def test_no_drift_is_said():
    log = drifting(300, drift=0.0)
    found = fit(log)
    assert str(found.structure) == "constant(arm)"
    assert found.drift.verdict == "no"
    counts = np.bincount(log["arm"])
    # What is left of the doubt is that of a mean of so many rewards.
    expected = found.model.reward_std**2 / counts[[int(name) for name in found.names]]
    np.testing.assert_allclose(np.diag(found.model.start_cov()), expected, rtol=0.2)


def test_scores_are_in_the_units_of_the_log(found):
    log = drifting(300)
    moved = fit(log | {"reward": log["reward"] * 1000}, starts=1)
    scores = np.array(moved.comparison.scores) + np.log(1000)
    np.testing.assert_allclose(scores[:5], found.comparison.scores[:5], atol=1e-3)


@pytest.mark.parametrize(("shift", "scale"), [(1e7, 1.0), (-40.0, 1e-6)])
def test_zero_and_unit_of_rewards_do_not_matter(found, shift, scale):
    log = drifting(300)
    moved = fit(log | {"reward": log["reward"] * scale + shift})
    assert moved.structure == found.structure
    assert moved.drift.verdict == found.drift.verdict
    assert moved.model.reward_std / scale == pytest.approx(found.model.reward_std, rel=5e-3)
    means = moved.arms @ moved.model.start_mean()
    base = found.arms @ found.model.start_mean()
    np.testing.assert_allclose((means - shift) / scale, base, atol=0.02)


@pytest.mark.parametrize(("shift", "scale"), [(1e7, 1.0), (-40.0, 1e-6)])
def test_zero_and_unit_of_rewards_do_not_matter_to_factors(shift, scale):
    log, options = drifting(300), {"n_states": 1, "starts": 1}
    base = fit(log, **options)
    moved = fit(log | {"reward": log["reward"] * scale + shift}, **options)
    assert moved.structure == base.structure
    # Weights turn on a flat ridge, on which a search may stop anywhere.
    same = moved.log_likelihood + len(log["reward"]) * np.log(scale)
    assert same == pytest.approx(base.log_likelihood, abs=0.05)
    assert moved.model.reward_std / scale == pytest.approx(base.model.reward_std, rel=5e-3)
    assert moved.memory == pytest.approx(base.memory, rel=0.05)
    means, expected = (one.arms @ one.model.start_mean() for one in (moved, base))
    np.testing.assert_allclose((means - shift) / scale, expected, atol=0.02)


def test_without_offsets_a_constant_is_the_states():
    log = drifting(300)
    found = fit(log | {"reward": log["reward"] + 5}, n_states=2, offsets=False)
    assert str(found.structure) == "factors(2)"
    shown = found.arms @ found.model.stationary_cov() @ found.arms.T
    assert np.diag(shown).min() > 4


def test_arms_far_apart_are_learned_as_well():
    log = drifting(300)
    far = log | {"reward": log["reward"] + 1000 * log["arm"]}
    found = fit(far)
    names = np.array([int(name) for name in found.names])
    means = found.arms @ found.model.start_mean()
    np.testing.assert_allclose(means, 1000 * names, atol=3)
    assert found.drift.verdict == "yes"


def test_a_given_model_that_predicts_nothing_is_said():
    log = drifting(300, drift=0.0)
    found = fit(log, n_states=1, structure="diagonal", starts=1)
    assert any("no better than each arm's mean" in said for said in found.warnings)
    assert not fit(drifting(300), n_states=4, structure="diagonal", starts=1).warnings


def test_what_moves_arms_together_within_a_round_is_no_drift():
    """Three arms that share a new shock in every round: nothing can be said before the round."""
    rng = np.random.default_rng(4)
    shocks = rng.standard_normal((100, 1)) + 0.5 * rng.standard_normal((100, 3))
    rounds, arms = np.indices((100, 3)).reshape(2, -1)
    log = {"round": rounds, "arm": arms, "reward": shocks.ravel()}
    found = fit(log)
    assert found.drift.verdict != "yes"
    assert not any("level" in str(part) for part in found.structure.components)
    given = fit(log, n_states=1, starts=1)
    assert abs(one_step(given, log).share) < 0.05  # 0.5 if arms of one round told of each other
    assert any("no better than each arm's mean" in said for said in given.warnings)


@pytest.fixture(scope="module")
def system():
    return random_system(3, 2, k=4)


@pytest.fixture(scope="module")
def log(system):
    return log_of(played(*system, 8, 300, missing=0.1), 4)


def test_a_known_system_is_found_again(system, log):
    model, arms = system
    found = fit(log, arms, offsets=False, starts=1)
    assert found.warnings == ()
    np.testing.assert_array_equal(found.arms, arms)  # the states are what the features weigh
    assert found.converged
    assert np.abs(found.model.transition - model.transition).max() < 0.1
    assert float(found.model.reward_std) == pytest.approx(0.5, rel=0.1)
    options = {"policies": ["idea"], "rounds": 200, "runs": 64}
    known = db.simulate([(model, arms)], **options).regret["idea"].mean()
    learned = db.simulate([(model, arms)], assumed=[(found.model, found.arms)], **options)
    assert learned.regret["idea"].mean() < 1.05 * known


def test_what_arms_pay_on_average_are_constant_states(system, log):
    _, arms = system
    offsets = np.array([5.0, -3.0, 0.0, 1.0])
    moved = Log(
        tuple(Sequence(s.rounds, s.arms, s.rewards + offsets[s.arms]) for s in log.sequences),
        log.names,
    )
    found = fit(moved, Arms(log.names, arms), starts=1)
    assert found.arms[:, :4].tolist() == np.eye(4).tolist()
    assert found.model.start_mean()[:4] == pytest.approx(offsets, abs=0.6)
    assert found.model.transition[:4, :4].tolist() == np.eye(4).tolist()
    agent = db.Agent(found.model, found.arms)
    assert agent.ask().arm == 0  # the offset alone says so
    again = db.Agent.from_json(agent.to_json())
    assert again.ask() == agent.ask()


def test_arms_without_features(log):
    own = fit(log, n_states=4, offsets=False, structure="diagonal", starts=1)
    assert (own.arms == np.eye(4)).all()
    few = fit(log, n_states=2, offsets=False, starts=1)
    assert few.arms.shape == (4, 2)
    # Two hidden states do explain the four arms: more likely than one state each.
    assert few.log_likelihood > own.log_likelihood


@pytest.mark.parametrize("form", ["free", pytest.param("diagonal", marks=pytest.mark.nightly)])
def test_the_number_of_states_is_found(system, form):
    log, shares = log_of(played(*system, 6, 80, missing=0.1), 4), []
    found = fit(log, structure=form, starts=1, progress=shares.append)
    tried = found.comparison
    assert [one.components[1].n_states for one in tried.structures] == [1, 2, 3]
    assert found.structure.components[1].n_states == 2
    gain, error = tried.difference(1, 0)
    assert gain > 2 * error
    assert found.arms.shape == (4, 4 + 2)
    assert (np.diff(shares) > 0).all()
    assert 0 < shares[0] < shares[-1] <= 1
    seen = one_step(found, log)
    assert seen.surprises.std() == pytest.approx(1, abs=0.1)
    assert 0 < seen.share < 1


def test_a_short_log_is_not_chosen_from_and_says_so():
    log = Log((Sequence([0, 1, 2], [0, 1, 0], [1.0, 2.0, 1.5]),), ("0", "1"))
    found = fit(log)
    assert found.comparison is None
    assert str(found.structure) == "constant(arm) + level(arm, memory=free)"
    said = "Too few rewards to compare models: each arm is assumed to drift on its own."
    assert found.warnings[0] == said
    assert found.drift.verdict == "cannot tell"
    shared = fit(log, structure="free", starts=1)
    assert str(shared.structure) == "constant(arm) + factors(1)"
    said = "Too few rewards to choose the number of states: there is one."
    assert said in shared.warnings


def test_what_the_log_cannot_tell_is_said(system):
    model, arms = system
    data = played(model, arms[:1], 1, 60)
    blind = np.vstack([arms[:1] * 0 + [[1.0, 0.0]], arms[1:]])
    log = Log(log_of(data, 1).sequences, tuple("0123"))
    found = fit(log, blind, structure="diagonal", offsets=False, starts=1)
    said = " ".join(found.warnings)
    assert "No reward was seen of 3 arms: 1, 2, 3." in said
    assert "hardly show 1 of 2 states" in said


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"structure": "diag"}, "structure"),
        ({"starts": 0}, "starts"),
        ({"prior": -1}, "prior"),
        ({"n_states": 3, "arms": np.eye(2)}, "n_states"),
        ({"n_states": 3}, "n_states"),
        ({"arms": np.eye(1)}, "arms"),
    ],
)
def test_wrong_arguments_are_named(options, argument):
    log = Log((Sequence([0, 1], [0, 1], [1.0, 2.0]),), ("0", "1"))
    with pytest.raises(InvalidInput, match=f"^{argument}: "):
        fit(log, **options)


def test_a_log_that_cannot_be_learned_from_is_refused():
    far = Log((Sequence([0, 10**12], [0, 0], [1.0, 2.0]),), ("0",))
    assert fit(far, n_states=1, starts=1, offsets=False).model.is_stable  # the pause costs nothing
    silent = Log((Sequence([0], [0], [float("nan")]),), ("0",))
    with pytest.raises(InvalidInput, match=r"^log: has no reward"):
        fit(silent)
    huge = Log((Sequence([0, 1], [0, 0], [-1e40, 0.0]),), ("0",))
    with pytest.raises(InvalidInput, match=r"^log: has rewards up to 1e\+40"):
        fit(huge)


@pytest.mark.parametrize("rewards", [(0.0, 0.0), (1.0, 2.0)])
def test_rewards_that_are_all_the_same_have_a_model(rewards):
    log = {"round": range(40), "arm": [0, 1] * 20, "reward": rewards * 20}
    found = fit(log, n_states=1, starts=1)
    assert any("All rewards are equal" in said for said in found.warnings) == (not any(rewards))
    assert db.Agent(found.model, found.arms).ask().arm in (0, 1)


def test_gaps_say_nothing():
    """Every second round is logged: lags without a pair of plays are no zeros."""
    model, arms = db.LGDS(np.diag([0.97, 0.9]), 0.1 * np.eye(2), 0.3), np.eye(4, 2) + 0.3
    log = log_of(played(model, arms, 1, 300, missing=0.0), 4)
    wide = Log((Sequence(2 * log.sequences[0].rounds, *_played(log)),), log.names)
    found = fit(wide, n_states=2, starts=1)
    assert found.model.spectral_radius > 0.8
    assert one_step(found, wide).share > 0.3


def _played(log):
    return log.sequences[0].arms, log.sequences[0].rewards


def test_units_of_features_do_not_matter(system, log):
    likelihoods = [
        fit(log, system[1] * [1.0, scale], offsets=False, starts=1).log_likelihood
        for scale in (1.0, 1000.0)
    ]
    assert likelihoods[1] == pytest.approx(likelihoods[0], abs=1e-3)


def test_rewards_that_begin_with_nothing():
    """σ² has a floor where all rewards of a part are zero."""
    rewards = np.random.default_rng(1).standard_normal(300)
    log = drifting(300) | {"reward": np.where(np.arange(300) < 210, 0.0, rewards)}
    assert fit(log).comparison is not None
    same = {"round": range(60), "arm": [0] * 60, "reward": [5.0] * 60}
    assert np.isfinite(fit(same, n_states=1, starts=1).log_likelihood)


def test_simple_structures_stay_simple(log):
    found = fit(log, n_states=2, structure="diagonal", starts=1).model
    for matrix in (found.transition, found.process_cov):
        assert not (matrix - np.diag(np.diag(matrix))).any()


def test_a_start_is_kept_stable(system, log):
    _, arms = system
    walk = db.LGDS(1.02 * np.eye(2), np.eye(2), 1.0, np.eye(2))
    found = fit(log, arms, offsets=False, start=walk, starts=1)
    assert found.model.is_stable
    again = fit(log, arms, offsets=False, start=found.start_system.model, starts=1)
    np.testing.assert_allclose(again.model.transition, found.model.transition, atol=1e-3)
    for start, arms_ in ((db.LGDS(0.5 * np.eye(3), np.eye(3), 1.0), arms), (walk, None)):
        with pytest.raises(InvalidInput, match=r"^start: "):
            fit(log, arms_, 2, start=start, starts=1)


@pytest.mark.parametrize(
    ("rounds", "options"),
    [
        ("pause", {"n_states": 2, "structure": "diagonal", "starts": 1}),
        pytest.param("unix", {}, marks=pytest.mark.nightly),
    ],
)
def test_a_pause_and_the_seconds_of_a_clock_are_no_work(rounds, options):
    """Round by round the first is 3 × 10⁵ steps, the second 10⁵: minutes, or for ever."""
    rng = np.random.default_rng(3)
    t, z, rewards = np.arange(250), np.zeros(2), []
    arms = rng.integers(2, size=250)
    for arm in arms:
        rewards.append(z[arm] + 0.3 * rng.standard_normal())
        z = 0.95 * z + 0.3 * rng.standard_normal(2)
    moved = t + 300_000 * (t >= 125) if rounds == "pause" else 1_700_000_000 + 300 * t
    log = {"round": moved, "arm": arms, "reward": np.array(rewards)}
    found = fit(log, **options)
    assert found.converged
    assert one_step(found, log).share > 0.3
    if rounds == "pause":
        radius = np.abs(np.linalg.eigvals(found.model.transition[2:, 2:])).max()
        assert 8 < -1 / np.log(radius) < 60  # the truth is 19.5
