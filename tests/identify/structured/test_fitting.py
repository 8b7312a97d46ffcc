"""What a fit returns: the belief after the log, predictions, contexts, degenerate logs."""

import math

import numpy as np
import pytest

import driftbandit as db
from driftbandit import kalman
from driftbandit.identify import one_step
from driftbandit.identify.structured import fitting
from driftbandit.identify.structured.fitting import Maximum, _warnings, fit_structure
from known_structures import known, log_of, naive_filter
from random_structures import FEATURES, GROUPS, random_log

TEXT = "level(arm) + season(5, unchanging) + regression(x_a, arm) + noise(shared)"
VALUES = {"level(arm).drift": 0.4, "season(5, unchanging).size": 2.0, "noise": 0.7}


@pytest.fixture(scope="module", params=[1, 2], ids=["one sequence", "two sequences"])
def found_and_log(request):
    log = random_log(3, sequences=request.param)
    return known(TEXT, log, VALUES, GROUPS, center=1.5), log


def one_round_later(found, log):
    """The naive belief one round after the log: in a new sequence, if it has several."""
    last = log.sequences[-1].rounds[-1] + 1
    begins = len(log.sequences) > 1
    more = (np.array([last]), np.array([0]), np.array([math.nan]), np.zeros((1, 2)))
    parts = [(one.rounds, one.arms, one.rewards, one.features) for one in log.sequences]
    if begins:
        parts.append(more)
    else:
        parts[0] = tuple(np.concatenate(pair) for pair in zip(parts[0], more, strict=True))
    longer = log_of(*map(list, zip(*parts, strict=True)), names=log.names, feature_names=FEATURES)
    return naive_filter(found, longer)[3]


def test_the_system_is_the_belief_one_round_after_the_log(found_and_log):
    found, log = found_and_log
    mean, cov = one_round_later(found, log)
    shift = 1.5 * found.layout.mean_states
    np.testing.assert_allclose(found.system.model.initial_mean, mean + shift, atol=1e-9)
    np.testing.assert_allclose(found.system.model.initial_cov, cov, atol=1e-9)
    start = found.start_system.model
    assert start.initial_mean.tolist() == shift.tolist()
    np.testing.assert_allclose(np.diag(start.initial_cov)[:3], 9.0)
    assert found.system.names == found.start_system.names == log.names


def test_an_agent_continues_where_the_log_ends(found_and_log):
    found, log = found_and_log
    mean, cov = one_round_later(found, log)
    mean = mean + 1.5 * found.layout.mean_states
    model, agent = found.model, db.Agent(found.system, policy="idea")
    rng = np.random.default_rng(0)
    for _ in range(4):
        prices = dict(zip(log.names, rng.normal(2, 1, 3), strict=True))
        rows = found.system.arms_in({"x_a": prices})
        scores = agent.scores(context={"x_a": prices})
        decision = agent.ask(context={"x_a": prices})
        stds = np.sqrt(np.einsum("ad,de,ae->a", rows, cov, rows))
        np.testing.assert_allclose([one.mean for one in scores], rows @ mean, atol=1e-8)
        np.testing.assert_allclose([one.uncertainty for one in scores], stds, rtol=1e-6)
        h, reward = rows[log.names.index(decision.arm)], float(rng.standard_normal())
        gain = cov @ h / (h @ cov @ h + model.reward_std**2)
        mean, cov = mean + gain * (reward - h @ mean), cov - np.outer(gain, h @ cov)
        mean = model.transition @ mean
        cov = model.transition @ cov @ model.transition.T + model.process_cov
        agent.tell(decision, reward)


def test_one_step_predicts_from_earlier_rounds(found_and_log):
    found, log = found_and_log
    ahead = one_step(found, log)
    _, means, variances, _ = naive_filter(found, log)
    rewards = np.concatenate([one.rewards for one in log.sequences])
    seen = ~np.isnan(rewards)
    np.testing.assert_allclose(ahead.rewards, rewards[seen])
    np.testing.assert_allclose(ahead.means, means[seen], atol=1e-9)
    np.testing.assert_allclose(ahead.stds, np.sqrt(variances[seen]), rtol=1e-9)


def test_another_log_is_predicted_in_the_units_of_the_first():
    log, other = random_log(3, sequences=1), random_log(4, sequences=1)
    found = known(TEXT, log, VALUES, GROUPS, center=1.5)
    again = known(TEXT, other, VALUES, GROUPS, center=1.5)
    ahead = one_step(found, other)
    _, means, _, _ = naive_filter(again, other)
    seen = ~np.isnan(other.sequences[0].rewards)
    np.testing.assert_allclose(ahead.means, means[seen], atol=1e-9)


# Fits


def priced(rounds=150, seed=0):
    """A log whose two arms react differently to their price."""
    rng = np.random.default_rng(seed)
    arms, price = rng.integers(2, size=rounds), rng.uniform(10, 30, rounds)
    weights, means = np.array([-0.3, 0.2]), np.array([12.0, 2.0])
    rewards = means[arms] + weights[arms] * price + 0.2 * rng.standard_normal(rounds)
    names = np.array(["old", "new"])[arms]
    return {"round": np.arange(rounds), "arm": names, "reward": rewards, "x_price": price}


def test_contexts_from_the_log_to_the_decision():
    found = db.fit(priced(), structure="level(arm) + regression(x_price, arm)", starts=1)
    assert list(found.system.contexts) == ["x_price"]
    means = {
        price: dict(
            zip(
                found.names,
                found.system.arms_in({"x_price": price}) @ found.model.initial_mean,
                strict=True,
            )
        )
        for price in (10.0, 28.0)
    }
    assert means[10.0]["old"] == pytest.approx(9.0, abs=0.5)
    assert means[28.0]["new"] == pytest.approx(7.6, abs=0.5)
    agent = db.Agent(found.system, policy="idea")
    assert agent.ask(context={"x_price": 10.0}).arm == "old"
    assert agent.ask(context={"x_price": 28.0}).arm == "new"
    with pytest.raises(db.InvalidInput, match="context: is missing"):
        agent.ask()


@pytest.mark.parametrize("factor", [1e-20, 1e-3, 1e20])
def test_units_of_rewards_and_features_do_not_matter(factor):
    log = priced()
    text = "level(arm) + regression(x_price, arm)"
    found = db.fit(log, structure=text, starts=1)
    scaled = {**log, "reward": log["reward"] * factor, "x_price": log["x_price"] / factor}
    other = db.fit(scaled, structure=text, starts=1)
    n = len(log["reward"])
    likelihood = found.log_likelihood - n * math.log(factor)
    assert other.log_likelihood == pytest.approx(likelihood, abs=1e-3)
    assert other.model.reward_std == pytest.approx(found.model.reward_std * factor, rel=1e-2)


DEGENERATE = {
    "all equal": [5.0] * 12,
    "equal up to rounding": [0.1] * 11 + [0.1 + 1e-17],
    "all zero": [0.0] * 12,
    "two rewards": [1.0, 3.0] + [math.nan] * 10,
    "far from zero": (1e9 + np.arange(12) % 3).tolist(),
    "large": [1e29, -1e29] * 6,
    "small": [1e-29, 3e-29] * 6,
    "an outlier": [0.0] * 11 + [1e12],
    "one arm only": [1.0, math.nan] * 6,
}


@pytest.mark.parametrize("prior", [0.0, 1.0])
@pytest.mark.parametrize("name", DEGENERATE)
def test_degenerate_logs_give_finite_models(name, prior):
    rewards = np.array(DEGENERATE[name])
    log = log_of(np.arange(12), np.arange(12) % 2, rewards)
    found = fit_structure(log, "level(arm) + season(4) + level(shared)", prior=prior, starts=2)
    assert math.isfinite(found.log_likelihood)
    assert np.isfinite(found.theta).all()
    model = found.model
    for array in (model.process_cov, model.initial_cov, model.initial_mean):
        assert np.isfinite(array).all()
    ahead = one_step(found, log)
    assert np.isfinite(ahead.means).all()
    assert (ahead.stds > 0).all()
    if name == "all equal":
        assert any("All rewards are equal" in warning for warning in found.warnings)
        np.testing.assert_allclose(found.system.arms @ model.initial_mean, 5.0, atol=1e-2)
    if name == "one arm only":
        assert any("No reward was seen of 1 arms: a1" in warning for warning in found.warnings)


def test_a_search_does_not_end_where_it_began():
    # From here a whole gradient leads to the corner of the bounds, where rounding makes the
    # filter's variances negative. A search that takes the wall for the end never moves.
    found = db.fit(priced(), structure="level(arm) + regression(x_price, arm)", starts=1)
    assert found.converged
    assert np.abs(found.problem.loss(found.theta)[1]).max() < 1e-2
    assert found.theta.tolist() != found.problem.centers.tolist()


def warnings_of(text, rewards, converged=True):
    rounds = np.arange(len(rewards))
    log = log_of(rounds, rounds % 2, rewards)
    problem = known(text, log, {}).problem
    return " ".join(_warnings(problem, log, Maximum(problem.centers, 0.0, converged)))


def test_warnings():
    rewards = 1.0 + 0.1 * np.arange(12) % 3
    assert warnings_of("level(arm) + season(12)", rewards) == ""
    assert "spans 12 rounds, less than the period of season(50)" in warnings_of(
        "level(arm) + season(7) + season(50)", rewards
    )
    assert "returns to zero: add constant(arm)" in warnings_of("season(7)", rewards)
    assert warnings_of("level(shared, loadings=[1, 2])", rewards) == ""  # it starts wide
    assert "did not converge" in warnings_of("level(arm)", rewards, converged=False)


def test_kalman_steps_from_the_start_system_give_the_likelihood():
    log = log_of(np.arange(12), np.arange(12) % 2, np.sin(np.arange(12)))
    found = fit_structure(log, "level(arm) + season(4) + level(shared)", starts=1)
    system = found.start_system
    played = system.arms[log.sequences[0].arms]
    density = kalman.log_likelihood(system.model, played, log.sequences[0].rewards)
    assert found.log_likelihood == pytest.approx(density, abs=1e-6)


def test_the_system_begins_after_the_last_round_of_all_sequences():
    """Not after the last one's: a season that never moves says which round it is."""
    rounds = np.concatenate([np.arange(40), np.arange(21)])
    week = np.cos(2 * np.pi * rounds / 7)
    noise = 0.1 * np.random.default_rng(0).standard_normal(len(rounds))
    log = {"round": rounds, "arm": ["a"] * 61, "reward": week + noise}
    log["sequence"] = ["long"] * 40 + ["short"] * 21
    system = db.fit(log, structure="constant(arm) + season(7, unchanging)", starts=1).system
    belief = kalman.prior(system.model)
    for round_ in range(40, 47):
        expected = np.cos(2 * np.pi * round_ / 7)
        np.testing.assert_allclose(system.arms @ belief.mean, expected, atol=0.2)
        belief = kalman.advance(belief, system.model, 1)


def test_a_system_with_contexts_cannot_be_asked_for_predictions():
    log = priced()
    found = db.fit(log, structure="level(arm) + regression(x_price, arm)", starts=1)
    with pytest.raises(db.InvalidInput, match=r"found: has contexts \(x_price\)"):
        one_step(found.start_system, log)


def test_an_agent_of_the_system_knows_the_log_and_one_of_the_start_is_told_it():
    noise = np.random.default_rng(0).standard_normal((2, 60))
    rewards = np.cumsum(0.3 * noise[0]) + 0.5 * noise[1]
    log = {"round": np.arange(40, 100), "arm": ["a", "b"] * 30, "reward": rewards}
    found = db.fit(log, structure="level(arm) + season(7)", starts=1)
    assert (found.system.first_round, found.start_system.first_round) == (100, None)
    knows, told = (db.Agent(one, policy="idea") for one in (found.system, found.start_system))
    assert told.tell_log(log) == {"learned": 60}
    with pytest.raises(db.InvalidInput, match=r"^log: holds rounds 40 to 99, .*"):
        knows.tell_log(log)
    for round_ in (None, 112):  # at once, and after a pause: the season stays in phase
        one, other = knows.ask(round=round_), told.ask(round=round_)
        assert one[:3] == other[:3]
        np.testing.assert_allclose(one[3:], other[3:], rtol=1e-6)


def test_a_search_on_the_end_of_a_log_ends_at_the_maximum_of_all(monkeypatch):
    log = random_log(3)
    text = "level(arm) + level(shared, memory=free)"
    whole = fit_structure(log, text)
    monkeypatch.setattr(fitting, "SEARCH_ROWS", log.rows // 2)
    monkeypatch.setattr(fitting, "SEARCH_SIZE", 0)
    found = fit_structure(log, text)
    assert found.log_likelihood == pytest.approx(whole.log_likelihood, abs=1e-4)
    assert found.learned is None
    monkeypatch.setattr(fitting, "LARGEST_GRADIENT", 500)  # no space for the gradient of all
    part = fit_structure(log, text)
    rows = log.rows // 2
    assert part.warnings[0] == f"The parameters were learned from the last {rows} rewards."
    assert part.learned.described.n_rows == rows
    assert part.log_likelihood < whole.log_likelihood
    expected = whole.problem.log_likelihood(part.theta)
    assert part.log_likelihood == pytest.approx(expected)
    assert part.covariance.shape == (len(part.theta),) * 2
    assert part.system.first_round == whole.system.first_round
