"""The test-bed behind docs/understand/tuning.md: pairing, copying, budgets and stored results."""

import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
sys.path.append(str(ROOT / "benchmarks"))  # at the end: only the package testbed is wanted

from testbed import choosing, play, population, problems, schedules  # noqa: E402
from testbed.bandits import Bandit, shared  # noqa: E402
from testbed.greedy import greedy  # noqa: E402

spec = importlib.util.spec_from_file_location("tuning", ROOT / "benchmarks/tuning.py")
tuning = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tuning)
SEEDS = [3, 5]
EVERY = problems.every()


def names(problem):
    return problem.name


@pytest.mark.parametrize("problem", EVERY, ids=names)
def test_all_methods_meet_the_same_start_and_noise(problem):
    """The first members of a large population are those of a small one, bit for bit."""
    rate = problem.rates[4]
    for other in (SEEDS, [5, 9]):  # seed 5 does not depend on its neighbors either
        few, many = problem.start(SEEDS, 1), problem.start(other, 8)
        for epoch in range(2):
            few = problem.train(SEEDS, few, np.full((2, 1), rate), epoch)
            many = problem.train(other, many, np.full((2, 8), rate), epoch)
        mine, theirs = 1, other.index(5)
        for small, large in zip(few, many, strict=True):
            np.testing.assert_allclose(small[mine, 0], large[theirs, 0], rtol=1e-12)
        seen = problem.measured(SEEDS, few, 2)[mine, 0]
        assert seen == pytest.approx(problem.measured(other, many, 2)[theirs, 0], rel=1e-12)


@pytest.mark.parametrize("problem", EVERY, ids=names)
def test_members_and_epochs_have_noise_of_their_own(problem):
    state = problem.start(SEEDS, 2)
    same = tuple(np.repeat(part[:, :1], 2, axis=1) for part in state)
    rates = np.full((2, 2), problem.rates[4])
    once = problem.train(SEEDS, same, rates, 0)
    later = problem.train(SEEDS, same, rates, 1)
    assert not np.allclose(once[0][:, 0], once[0][:, 1])
    assert not np.allclose(once[0][:, 0], later[0][:, 0])


def test_the_best_gain_is_a_minimum():
    control = problems.Control()
    A, B, best = control._plant(SEEDS)
    gains = 0.3 * np.random.default_rng(0).standard_normal((2, 200, 2, 4))
    assert (control._expected(A[:, None], B[:, None], gains) > best[:, None]).all()


def test_expected_cost_is_the_mean_of_rollouts():
    control = problems.Control()
    A, B, _ = control._plant(SEEDS)
    (gain,) = control.start(SEEDS, 1)
    noise = np.random.default_rng(1).standard_normal((2, 1, 20_000, control.rounds, control.states))
    gains = np.broadcast_to(gain[:, :, None], (2, 1, 20_000, 2, 4))
    costs = control._rollouts(A, B, gains, noise)
    error = costs.std(axis=-1) / np.sqrt(20_000)
    assert (
        abs(costs.mean(axis=-1) - control._expected(A[:, None], B[:, None], gain)) < 4 * error
    ).all()


def test_gradient_of_the_network_is_that_of_its_loss():
    """One step on one minibatch, against central differences."""
    network = problems.Network()
    network.steps, network.clip = 1, np.inf
    state = network.start([7], 1)
    rate = 1e-3
    after = network.train([7], state, np.full((1, 1), rate), 0)
    shape = 1, 1, network.batch, network.inputs + 1
    data = problems.draws(22, [7], 0, shape)[:, :, 0]
    x, y = data[..., :-1], network._target([7], data[..., :-1]) + network.noise * data[..., -1]
    for part in range(4):
        moved = [[np.array(w) for w in state] for _ in range(2)]
        place = (0, 0) + (0,) * (state[part].ndim - 2)
        for sign, weights in zip((1, -1), moved, strict=True):
            weights[part][place] += sign * 1e-5
        up, down = (((network._layers(tuple(w), x)[1] - y) ** 2).mean() for w in moved)
        step = (state[part] - after[part])[place] / rate
        assert step == pytest.approx((up - down) / 2e-5, rel=1e-5, abs=1e-8)


def test_cosine_begins_at_its_peak_and_ends_at_zero():
    assert schedules.cosine(0) == 1
    assert schedules.cosine(problems.EPOCHS) == pytest.approx(0, abs=1e-15)
    shares = [schedules.cosine(epoch) for epoch in range(problems.EPOCHS)]
    assert shares == sorted(shares, reverse=True)
    assert shares[-1] > 0  # the last epoch still trains


def test_pbt_copies_better_weights():
    """The worst two take weights and rate of one of the best two; the others keep theirs."""
    problem = EVERY[0]
    pbt = population.PBT(problem.rates, SEEDS, period=2)
    before = np.zeros((2, 8))
    losses = np.array([[5, 1, 4, 8, 2, 7, 3, 6], [1, 2, 3, 4, 5, 6, 7, 8]], float)
    rates = pbt.rates(0).copy()
    assert pbt.learn(0, before, losses) is None
    source = pbt.learn(1, before, losses)
    kept = losses <= 6
    assert (source[kept] == np.tile(np.arange(8), (2, 1))[kept]).all()
    copied = np.take_along_axis(losses, source, axis=1)
    assert (copied[~kept] <= 2).all()
    assert (pbt.rates(2)[kept] == rates[kept]).all()
    assert (pbt.rates(2)[~kept] != rates[~kept]).all()
    state = problem.start(SEEDS, 8)
    moved = play.taken(state, source)
    assert (moved[0][0, 3] == state[0][0, source[0, 3]]).all()
    assert source[0, 3] in (1, 4)


def test_pb2_chooses_where_the_loss_fell_most():
    """A clear peak at one place of the range: the process finds it, and takes it if it is sure."""
    pb2 = population.PB2(EVERY[0].rates, [0], period=1)
    for epoch in range(12):
        falls = -((pb2.places(pb2.rates(epoch)) - 0.7) ** 2) * 10
        pb2.learn(epoch, np.zeros((1, 8)), -falls)
    assert abs(np.median(pb2.places(pb2.chosen)) - 0.7) < 0.15


def test_successive_halving_spends_what_it_says():
    problem = EVERY[0]
    halving = population.SuccessiveHalving(problem.rates, SEEDS)
    played = play.play(problem, SEEDS, halving)
    assert played.spent == problems.EPOCHS * population.MEMBERS == 1024
    assert halving.rates(0).shape == (2, 2)


def test_the_greedy_oracle_is_at_least_as_good_as_any_constant_in_its_first_interval():
    problem = EVERY[0]
    found = greedy(problem, SEEDS, hold=8, epochs=8)
    constants = [schedules.Schedule(np.full((2, 1), rate)) for rate in problem.rates]
    others = [play.play(problem, SEEDS, one, epochs=8).final for one in constants]
    np.testing.assert_array_equal(found.final, np.min(others, axis=0))


def test_one_filter_learns_from_every_member():
    problem, seeds = EVERY[0], [1]
    method = shared(problem.rates, seeds, choosing.FILTER, period=8)
    play.play(problem, seeds, method, epochs=2 * choosing.FILTER.hold)
    assert method.members == 8
    assert len(method.agents[0].open_decisions) == 0
    assert method.agents[0].round == 2
    alone = Bandit(problem.rates, seeds, choosing.FILTER)
    assert play.play(problem, seeds, alone, epochs=8).spent == 8


def test_every_cell_of_the_table_is_stored():
    stored = json.loads(tuning.RESULTS.read_text())
    assert list(stored["problems"]) == [problem.name for problem in EVERY]
    listed = {name: group for group, methods in tuning.METHODS.items() for name in methods}
    epochs = {tuning.SINGLE: 128, tuning.POPULATION: 1024, tuning.ORACLE: 1280}
    for found in stored["problems"].values():
        groups = {name: one["group"] for name, one in found["methods"].items()}
        assert groups.items() >= listed.items()
        assert set(groups.values()) == set(epochs)
        for one in found["methods"].values():
            assert one["epochs"] == epochs[one["group"]]
            assert len(one["final"]) == len(tuning.SEEDS) == 20
            assert np.isfinite(one["difference"]).all()
    assert stored["settings"] == choosing.described()
    assert not set(tuning.SEEDS) & {*tuning.TUNED_ON, *choosing.FIRST, *choosing.SECOND}
