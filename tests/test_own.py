"""The default fit: which model is chosen, what it says, and what an agent makes of it."""

import numpy as np
import pytest
import scipy.optimize
from statsmodels.tsa.statespace.sarimax import SARIMAX

import driftbandit as db
from driftbandit.identify import em, fit, fitting, one_step, restarts, selection
from driftbandit.identify import independent_arms as own
from driftbandit.identify.data import Units, data_of
from driftbandit.io.logs import Log, Sequence


def drifting(rows, arms=4, memory=0.95, drift=1.0, noise=0.3, seed=0, factor=False):
    """A log of random play; arms drift by themselves, or with one factor."""
    rng = np.random.default_rng(seed)
    loads = rng.standard_normal((arms, 1)) if factor else np.eye(arms)
    z = drift * rng.standard_normal(loads.shape[1])
    played, offsets = rng.integers(arms, size=rows), 0.3 * rng.standard_normal(arms)
    rewards = np.empty(rows)
    for t, arm in enumerate(played):
        rewards[t] = offsets[arm] + loads[arm] @ z + noise * rng.standard_normal()
        z = memory * z + drift * np.sqrt(1 - memory**2) * rng.standard_normal(len(z))
    return {"round": np.arange(rows), "arm": played, "reward": rewards}


def plays(log, arms):
    one = Sequence(log["round"], log["arm"], log["reward"])
    return own.plays_of(data_of(Log((one,), tuple(map(str, range(arms))))), arms)


def test_an_arms_likelihood_is_statsmodels():
    """An AR(1) with noise and a constant of its own, missing in most rounds."""
    log = drifting(120, arms=3)
    given = plays(log, 3)
    theta = np.array([0.2, -15.0, np.log(0.4), np.log(12.0), np.log(0.8)])
    found = own.Learned("alike", theta, [], True)
    each, means, variances, _ = own.densities(found, given)
    keep = np.exp(-1 / 12)
    for arm in range(3):
        rewards = np.where(log["arm"] == arm, log["reward"], np.nan)
        model = SARIMAX(rewards, np.ones((120, 1)), order=(1, 0, 0), measurement_error=True)
        expected = model.loglike([0.2, keep, 0.4**2, 0.8**2 * (1 - keep**2)])
        assert each[arm].sum() == pytest.approx(expected, abs=1e-6)
    assert means == pytest.approx([0.2] * 3, abs=1e-9)
    assert (variances < 1e-12).all()


def test_offsets_are_integrated_out():
    """Against one big normal law of an arm's rewards."""
    log = drifting(60, arms=2, seed=1)
    given = plays(log, 2)
    theta = np.array([0.1, np.log(0.7), np.log(0.4), np.log(8.0), np.log(0.9), 0.2, -0.3, 0.1, 0.4])
    each, means, variances, _ = own.densities(own.Learned("apart", theta, [], True), given)
    for arm in range(2):
        there = log["arm"] == arm
        times, rewards = log["round"][there], log["reward"][there] - 0.1
        memory, drift = 8.0 * np.exp((0.2, -0.3)[arm]), 0.9 * np.exp((0.1, 0.4)[arm])
        apart = np.abs(times[:, None] - times)
        cov = drift**2 * np.exp(-apart / memory) + 0.49 + 0.16 * np.eye(len(times))
        half = np.linalg.solve(cov, rewards)
        log_det = np.linalg.slogdet(2 * np.pi * cov)[1]
        assert each[arm].sum() == pytest.approx(-0.5 * (log_det + rewards @ half), rel=1e-10)
        assert means[arm] == pytest.approx(0.1 + 0.49 * half.sum(), rel=1e-9)
        told = np.linalg.solve(cov, np.ones(len(times))).sum()
        assert variances[arm] == pytest.approx(0.49 - 0.49**2 * told, rel=1e-9)


def test_sequences_share_offsets_and_no_drift():
    log = drifting(80, arms=2)
    whole = plays(log, 2)
    ones = [
        Sequence(log["round"][part], log["arm"][part], log["reward"][part])
        for part in (slice(40), slice(40, 80))
    ]
    cut = own.plays_of(data_of(Log(tuple(ones), ("0", "1"))), 2)
    assert (cut.rewards == whole.rewards).all()
    assert np.isinf(cut.gaps).sum() == 4
    assert np.isinf(whole.gaps).sum() == 2
    later = own.plays_of(data_of(Log(tuple(ones), ("0", "1"))), 2, later=np.array([True, False]))
    assert later.rewards[0, 0] == log["reward"][40:][log["arm"][40:] == 0][0]


@pytest.fixture(scope="module")
def found():
    return fit(drifting(300))


def test_arms_that_drift_by_themselves_are_found(found):
    assert found.kind.kind in ("alike", "apart")
    assert found.n_states == 4
    assert found.summary().startswith("Each arm drifts on its own")
    choice = found.selection
    labels = [one.label for one in choice.candidates]
    scores, errors = (dict(zip(labels, x, strict=True)) for x in (choice.scores, choice.errors))
    for other in ("no drift", "one shared factor"):  # by several standard errors
        assert scores["each arm on its own, all alike"] > scores[other] + 3 * errors[other]
    assert found.warnings == ()
    assert 0.9 < found.spectral_radius < 0.98
    assert one_step(found, drifting(300, seed=0)).share > 0.3


def test_an_agent_goes_on_learning_offsets(found):
    """Each arm has a state for what is not known of its offset; the model stays stationary."""
    model, arms = found.model, found.arms
    assert model.n_states == 4 + 4 + 1
    assert model.is_stable
    doubt = np.diag(model.start_cov())[4:8]
    assert (doubt > 0.01).all()
    np.testing.assert_allclose(np.diag(model.stationary_cov())[4:8], doubt)
    agent = db.Agent(model, arms)
    for _ in range(200):
        agent.tell(agent.ask(), 5.0)
    assert agent.ask().mean > 3
    steady = db.steady_state.oracle_cov(model, arms)
    assert np.isfinite(steady).all()


def test_one_shared_factor_is_found():
    found = fit(drifting(300, factor=True))
    assert found.selection.chosen.label == "one shared factor"
    assert found.summary().startswith("All arms share one drifting factor (1 state).")
    assert found.parameters.reads.shape == (4, 1)
    assert found.model.n_states == 1 + 4 + 1


def test_no_drift_is_said():
    found = fit(drifting(300, drift=0.0))
    assert found.kind.kind == "constant"
    assert found.n_states == 0
    assert found.spectral_radius == 0
    assert found.summary().startswith("No drift: each arm has a constant mean.")
    assert "no better than each arm's mean" in found.warnings[0]
    assert found.model.n_states == 4 + 1
    counts = np.bincount(drifting(300, drift=0.0)["arm"])
    # What is left of the doubt is that of a mean of so many rewards.
    expected = found.model.reward_std**2 / counts[[int(name) for name in found.names]]
    np.testing.assert_allclose(np.diag(found.model.start_cov())[:4], expected, rtol=0.2)


def test_an_arm_that_is_played_once_is_not_predicted_by_its_own_reward():
    """What is said of an arm that was not learned from does not follow its reward."""
    told = []
    for last in (3.0, 8.0):
        rewards = np.r_[np.tile([1.0, 1.2, 2.0, 2.2], 5), last]
        one = Sequence(np.arange(21), np.r_[np.tile([0, 0, 1, 1], 5), 2], rewards)
        raw = data_of(Log((one,), ("a", "b", "once")))
        units = Units.of(raw, 3, True)
        data = units.standard(raw)
        learned = data._replace(seen=data.seen * (data.arms != 2))
        options = em.Options("free", True, True, True)
        rng = np.random.default_rng(0)
        task = restarts.Task(learned, 3, None, options, 0.0, rng, (5, 1e-4), units)
        begin = restarts.starting_point(learned, np.ones((3, 1)), options, rng, 0)
        parameters, doubt = selection.with_new_arms(begin, task)
        assert doubt[:2].tolist() == [0, 0]
        assert doubt[2] > 1
        assert parameters.reads[2] == 0
        told.append(units.raw(parameters).offsets)
    np.testing.assert_allclose(told, [[1.1, 2.1, 1.6]] * 2, atol=1e-9)


def test_scores_are_in_the_units_of_the_log(found):
    log = drifting(300)
    moved = fit(log | {"reward": log["reward"] * 1000}, starts=1)
    scores = np.array(moved.selection.scores) + np.log(1000)
    np.testing.assert_allclose(scores[:2], found.selection.scores[:2], atol=1e-3)
    # All but the first fifth of the rewards are scored: about as likely as the log as a whole.
    assert max(moved.selection.scores) == pytest.approx(moved.log_likelihood / 300, abs=0.15)


def test_a_line_search_without_a_gain_is_at_rest(monkeypatch):
    """SciPy calls that abnormal; more iterations would not help."""
    log = drifting(40, arms=1)
    ends = iter([1.0, 1e-9])

    def minimize(loss, begin, *, callback, **_):
        value, gain = loss(begin)[0], next(ends)
        for better in (value - 5, value - 5 - gain):
            callback(scipy.optimize.OptimizeResult(fun=better))
        return scipy.optimize.OptimizeResult(x=begin, status=2, success=False)

    monkeypatch.setattr(own.scipy.optimize, "minimize", minimize)
    assert not own.learn(plays(log, 1), "constant").converged
    assert own.learn(plays(log, 1), "constant").converged


def test_more_iterations_are_no_remedy_where_none_are_taken():
    log = Log((Sequence([0, 1, 2], [0, 0, 0], [1.0, 2.0, 1.5]),), ("0",))
    found = fit(log, starts=1, iterations=2)
    options = em.Options("free", True, False, True)
    for kind, said in ((found.kind, False), (selection.Candidate("free", 1), True)):
        words = fitting.warnings_of(
            found.parameters, data_of(log), log, False, kind, False, 0.0, options
        )
        assert any("more iterations" in word for word in words) == said
    assert found.summary() == "The arm drifts (1 state)."


@pytest.mark.parametrize(("shift", "scale"), [(1e7, 1.0), (-40.0, 1e-6)])
@pytest.mark.parametrize("options", [{}, {"n_states": 1, "starts": 1}])
def test_zero_and_unit_of_rewards_do_not_matter(found, shift, scale, options):
    log = drifting(300)
    base = fit(log, **options) if options else found
    moved = fit(log | {"reward": log["reward"] * scale + shift}, **options)
    assert moved.kind == base.kind
    assert moved.spectral_radius == pytest.approx(base.spectral_radius, abs=2e-3)
    assert moved.model.reward_std / scale == pytest.approx(base.model.reward_std, rel=5e-3)
    np.testing.assert_allclose((moved.arms[:, -1] - shift) / scale, base.arms[:, -1], atol=0.02)


def test_without_offsets_a_constant_is_the_states():
    log = drifting(300)
    found = fit(log | {"reward": log["reward"] + 5}, offsets=False)
    assert found.model.n_states == found.n_states
    assert found.model.stationary_cov().max() > 4


def test_arms_far_apart_are_learned_as_well():
    log = drifting(300)
    found = fit(log | {"reward": log["reward"] + 1e8 * log["arm"]})
    order = np.argsort([int(name) for name in found.names])
    np.testing.assert_allclose(found.arms[order, -1], 1e8 * np.arange(4), atol=2)
    assert found.kind.kind in ("alike", "apart")


def test_a_given_model_that_predicts_nothing_is_said():
    log = drifting(300, drift=0.0)
    found = fit(log, n_states=1, structure="diagonal", starts=1)
    assert any("no better than each arm's mean" in said for said in found.warnings)
    assert not fit(drifting(300), n_states=4, structure="diagonal", starts=1).warnings


def test_a_short_log_is_predicted_as_well_as_by_an_ar_for_each_arm():
    """100 rewards of four arms: shared states lost 0.2 per reward here."""
    log = drifting(200, memory=0.97, noise=0.5)
    seen = one_step(fit({name: column[:100] for name, column in log.items()}), log)
    ours = -0.5 * (np.log(2 * np.pi * seen.stds**2) + seen.surprises**2)[100:].mean()
    theirs = 0.0
    for arm in range(4):
        rewards = np.where(log["arm"] == arm, log["reward"], np.nan)
        options = {"order": (1, 0, 0), "measurement_error": True}
        ones = np.ones((200, 1))
        model = SARIMAX(rewards[:100], ones[:100], **options)
        params = model.fit(disp=0, maxiter=50, warn_convergence=False).params
        theirs += SARIMAX(rewards, ones, **options).smooth(params).llf_obs[100:].sum() / 100
    assert ours > theirs - 0.02


def test_what_moves_arms_together_within_a_round_is_no_drift():
    """Three arms that share a new shock in every round: nothing can be said before the round."""
    rng = np.random.default_rng(4)
    shocks = rng.standard_normal((100, 1)) + 0.5 * rng.standard_normal((100, 3))
    rounds, arms = np.indices((100, 3)).reshape(2, -1)
    log = {"round": rounds, "arm": arms, "reward": shocks.ravel()}
    found = fit(log, starts=1, iterations=30)
    assert found.kind.kind == "constant"
    given = fit(log, n_states=1, starts=1, iterations=30)
    assert abs(one_step(given, log).share) < 0.05  # 0.5 if arms of one round told of each other
    assert any("no better than each arm's mean" in said for said in given.warnings)


def test_densities_are_of_the_rounds_before():
    """Of an arm that is played twice in a round, the first play tells nothing of the second."""
    rng = np.random.default_rng(5)
    rounds = np.repeat(np.arange(20), 2)
    rewards = np.repeat(np.cumsum(rng.standard_normal(20)), 2)
    log = Log((Sequence(rounds, np.zeros(40, int), rewards),), ("a",))
    plays = own.plays_of(data_of(log), 1)
    law = own.Learned("alike", np.array([0.0, 0.0, -1.0, 2.0, 1.0]), [0.0], True)
    each, _, _, total = own.densities(law, plays)
    both = each[0][plays.seen[0] > 0].reshape(20, 2)
    np.testing.assert_allclose(both[:, 0], both[:, 1], rtol=1e-12)  # the same reward twice
    assert total > both.sum() + 10  # the likelihood knows that the second is near the first
