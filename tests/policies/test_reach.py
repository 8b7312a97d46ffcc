"""Reach: an index whose horizon is how long a play is felt, and the gain of three rounds."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from context_cases import context, features, shop
from driftbandit import kalman
from driftbandit.agent import choosing
from driftbandit.arrays import first_highest
from driftbandit.kalman import Belief
from driftbandit.policies import Problem, make, reach, three_rounds
from driftbandit.policies.checked import Checked, trusted
from engine_paths import states_and_rewards
from systems import played, random_system

checked = settings(deadline=None, derandomize=True, max_examples=50)
REACH = make("reach")
KINDS = ("stable", "forgetful", "static", "walk", "singular")


def case(seed, d=3, k=4, kind="stable", reward_std=0.5):
    """A random system and a belief of random rank."""
    rng = np.random.default_rng([seed, d, k])
    transition = rng.standard_normal((d, d))
    radius = {"forgetful": 0.1}.get(kind, rng.uniform(0.5, 0.99))
    transition *= radius / np.abs(np.linalg.eigvals(transition)).max()
    root = rng.standard_normal((d, 1 if kind == "singular" else d))
    if kind in ("static", "walk"):
        transition, root = np.eye(d), root * 0.3 * (kind == "walk")
    start = rng.standard_normal((d, d))
    model = db.LGDS(transition, root @ root.T, reward_std, start @ start.T)
    seen = rng.standard_normal((d, rng.integers(1, d + 1)))
    belief = Belief(rng.standard_normal(d), seen @ seen.T)
    return model, rng.standard_normal((k, d)), belief


def numbers(model):
    return model.transition, model.process_cov, float(model.reward_std), model.initial_cov


def unseen(belief):
    """The state of a policy that has seen no reward."""
    return Checked(*belief, np.zeros(2), 20 * np.eye(2))


def problem_of(model, arms, rounds=300):
    return Problem(model, arms, REACH.prepare(model, arms, rounds)[0])


systems = st.tuples(
    st.integers(0, 10**6),
    st.integers(1, 5),
    st.integers(2, 6),
    st.sampled_from(KINDS),
    st.sampled_from([0.0, 0.1, 1.0, 3.0]),
)
rounds = st.sampled_from([1, 2, 7, 50, 300])


# Against the textbook.


@checked
@given(systems, rounds)
def test_scores_equal_the_textbook(system, rounds):
    """To 1e-5; where rewards are known, the textbook's own widths are exact to a root of 1e-16."""
    model, arms, belief = case(*system)
    problem, law = problem_of(model, arms, rounds), numbers(model)
    tables = naive.reach_tables(law, arms, rounds)
    index = naive.reach_index(tables, belief.cov, law, arms, rounds)
    soon, _ = naive.reach_soon(*belief, law, arms)
    expected, bonuses = np.maximum(index, soon), reach.bonus(belief, problem)
    scale = np.abs(arms).sum(axis=1).max() * math.sqrt(np.trace(belief.cov))
    np.testing.assert_allclose(bonuses, expected, rtol=1e-5, atol=1e-7 * scale)
    scores = arms @ belief.mean + expected
    assert scores[int(REACH.choose(unseen(belief), problem, None))] >= scores.max() - 1e-5 * scale


@checked
@given(systems, rounds)
def test_the_average_form_equals_the_textbook(system, rounds):
    model, arms, belief = case(*system)
    problem, law = problem_of(model, arms, rounds), numbers(model)
    new = np.vstack([arms[:1], np.random.default_rng(system[0]).standard_normal((6, len(arms.T)))])
    expected = naive.reach_average(belief.cov, law, new, arms, rounds)
    np.testing.assert_allclose(
        reach.bonus(belief, problem._replace(arms=new)), expected, rtol=1e-5, atol=1e-12
    )


@checked
@given(systems)
def test_tangents_lose_little(system):
    """Tangents half a unit apart miss a convex ψ with ψ'' ≤ φ(0) by φ(0)/32; ψ(3) is less."""
    model, arms, belief = case(*system)
    exact, widths = naive.reach_soon(*belief, numbers(model), arms, naive.overtaken)
    seen = kalman.spread(belief.cov, model, arms)
    ours, rounding = three_rounds.gains(seen, belief, problem_of(model, arms)), 1e-7 * widths.max()
    assert (ours <= exact + rounding).all()
    assert (ours >= exact - widths / math.sqrt(2 * math.pi) / 32 - rounding).all()


def test_the_factor_is_as_exact_as_it_says():
    logs = np.linspace(0, math.log(1e12), 2000)
    exact = [naive.reach_factor(ratio) for ratio in np.exp(logs)]
    np.testing.assert_allclose(reach.index_factor(logs), exact, rtol=4e-7)
    single = reach.index_factor(logs.astype(np.float32))
    assert single.dtype == np.float32
    np.testing.assert_allclose(single, exact, rtol=1e-6)
    assert reach.index_factor(np.array([-3.0])) == reach.index_factor(np.zeros(1))


def test_with_one_play_and_one_round_it_is_a_multiple_of_idea_for_independent_arms():
    """eᵀΓPa is ‖ΓPa‖; H = 1 in the only round that counts."""
    model = db.LGDS(np.diag([0.9, 0.5]), np.eye(2), 0.5)
    belief = Belief(np.array([50.0, 0.0]), np.diag([2.0, 0.7]))  # too far apart to overtake soon
    bonus = reach.bonus(belief, problem_of(model, np.eye(2), rounds=1))
    idea = db.policies.idea.bonus(belief.cov, model, np.eye(2))
    np.testing.assert_allclose(bonus, reach.index_factor(np.zeros(1)) * idea, rtol=1e-12)


def test_engines_agree():
    """Lanes, XLA and NumPy in double precision; single precision in the mean."""
    systems = [random_system(1, 3, k=5, reward_std=0.0), random_system(2, 3, k=5, radius=0.98)]
    systems.append((db.LGDS(np.eye(3), 0.1 * np.eye(3), 0.5, np.eye(3)), systems[0][1]))
    study = {"policies": "reach", "rounds": 150, "runs": 32}

    def regret(engine, dtype=np.float64):
        return db.simulate(systems, None, engine=engine, dtype=dtype, **study).regret["reach"]

    lanes, xla = regret("lanes"), regret("xla")
    np.testing.assert_allclose(lanes, xla, rtol=1e-9)
    single = regret("lanes", np.float32)  # that of XLA is among all policies' tests
    np.testing.assert_allclose(single.mean(axis=1), lanes.mean(axis=1), rtol=0.02)
    for place, (model, arms) in enumerate(systems):
        states, rewards = states_and_rewards(model, arms, 150, system=place)
        own, _, _ = played(REACH, rewards, model, arms)
        expected = naive.regret(arms, states, own)
        np.testing.assert_allclose(lanes[place, 0], expected, rtol=1e-9)


# What decisions do not depend on.


def path(model, arms, rewards):
    return played(REACH, rewards, model, arms)[0].tolist()


@pytest.fixture(scope="module", params=[(0, "stable", 0.5), (1, "walk", 0.0), (2, "singular", 0.0)])
def run(request):
    """A system, rewards of all arms, and the decisions."""
    seed, kind, reward_std = request.param
    model, arms, belief = case(seed, 3, 5, kind, reward_std)
    model = dataclasses.replace(model, initial_mean=0.1 * belief.mean)  # no arms are tied
    _, rewards = states_and_rewards(model, arms, 100)
    decisions = path(model, arms, rewards)
    assert len(set(decisions)) > 1
    return model, arms, rewards, decisions


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_units_of_rewards_and_of_states_do_not_matter(run, unit):
    model, arms, rewards, decisions = run
    G, Q, sigma, start = numbers(model)
    mean = model.initial_mean
    of_states = db.LGDS(G, unit**2 * Q, unit * sigma, unit**2 * start, unit * mean)
    of_arms = db.LGDS(G, Q, unit * sigma, start, mean)
    assert path(of_states, arms, unit * rewards) == decisions
    assert path(of_arms, unit * arms, unit * rewards) == decisions


def test_names_do_not_matter(run):
    model, arms, rewards, decisions = run
    order = np.array([3, 0, 4, 2, 1])
    found = path(model, arms[order], rewards[:, order])
    assert [int(order[arm]) for arm in found] == decisions


def test_the_basis_of_the_state_does_not_matter(run):
    model, arms, rewards, decisions = run
    G, Q, sigma, start = numbers(model)
    B = np.array([[2.0, 0.3, 0.0], [-0.5, 1.0, 4.0], [0.1, 0.0, 1.0]])
    turned = db.LGDS(
        B @ G @ np.linalg.inv(B), B @ Q @ B.T, sigma, B @ start @ B.T, B @ model.initial_mean
    )
    assert path(turned, arms @ np.linalg.inv(B), rewards) == decisions


def with_common(model, arms, keeps, mean):
    """Beside the system a known state that every arm reads alike."""
    transition = np.pad(model.transition, (0, 1))
    transition[-1, -1] = keeps
    covs = [np.pad(cov, (0, 1)) for cov in (model.process_cov, model.initial_cov)]
    start = np.append(model.start_mean(), mean)
    whole = db.LGDS(transition, covs[0], model.reward_std, covs[1], start)
    return whole, np.hstack([arms, np.ones((len(arms), 1))])


@pytest.mark.parametrize("keeps", [1.0, 0.4])
def test_what_is_known_and_all_arms_share_does_not_matter(run, keeps):
    """A constant, or a state that decays from where it is known to be."""
    model, arms, rewards, decisions = run
    whole, rows = with_common(model, arms, keeps, 7.0)
    assert path(whole, rows, rewards + 7 * keeps ** np.arange(100.0)[:, None]) == decisions


@checked
@given(systems)
def test_only_differences_between_arms_are_explored(system):
    """A state that all arms read alike adds to aᵀPa, and nothing to e."""
    model, arms, belief = case(*system)
    own = problem_of(model, arms)
    whole, rows = with_common(model, arms, 1.0, 0.0)
    shared = problem_of(whole, rows)
    first = shared.constants["own"][1]
    np.testing.assert_allclose(first[:, :-1], own.constants["own"][1], rtol=1e-9, atol=1e-12)
    assert not first[:, -1].any()
    wider = Belief(np.append(belief.mean, 3.0), np.pad(belief.cov, (0, 1)))
    for arms_of in ((rows, arms), (rows[:-1], arms[:-1])):  # the second: the average form
        problems = [p._replace(arms=a) for p, a in zip((shared, own), arms_of, strict=True)]
        bonuses = [reach.bonus(b, p) for b, p in zip((wider, belief), problems, strict=True)]
        np.testing.assert_allclose(*bonuses, rtol=1e-6, atol=1e-9)
    # Equal arms: what a play tells about all of them is no reason to play.
    alike = problem_of(whole, np.tile(rows[0], (3, 1)))
    assert (reach.bonus(wider, alike) <= 1e-7).all()
    assert int(REACH.choose(unseen(wider), alike, None)) == 0


def test_offsets_do_not_change_the_average_form():
    """They count neither as a direction in which arms differ nor as information."""
    model, arms, belief = case(5, d=4, k=3)
    whole, rows = with_common(model, arms, 1.0, 0.0)
    rows[:, -1] = [3.0, -1.0, 0.5]
    wider = Belief(np.append(belief.mean, 1.0), np.pad(belief.cov, (0, 1)))
    for few in (rows[:1], rows):
        ours = reach.average_bonus(wider, problem_of(whole, few)._replace(arms=rows))
        expected = problem_of(model, few[:, :-1])._replace(arms=arms)
        np.testing.assert_allclose(ours, reach.average_bonus(belief, expected), rtol=1e-9)


# Agents.


def test_agents_decide_as_the_functions():
    model, arms, _ = case(3, 3, 5)
    rewards = 3 * np.random.default_rng(0).standard_normal((60, 5))
    agents = [db.Agent(model, arms, "reach", rounds=60, compiled=c) for c in (False, True)]
    found = []
    for row in rewards:
        decisions = [agent.ask() for agent in agents]
        assert decisions[0].arm == decisions[1].arm
        found.append(decisions[0].arm)
        for agent, decision in zip(agents, decisions, strict=True):
            agent.tell(decision, row[decision.arm])
    assert found == path(model, arms, rewards[:60])


def test_parts_new_arms_and_late_rewards():
    model, arms, _ = case(4, 3, 5)
    agent = db.Agent(model, arms, "reach", names=list("abcde"), rounds=300)
    every = {score.arm: score for score in agent.scores()}
    assert {score.arm: score for score in agent.scores(["d", "b"])} == {
        name: every[name] for name in "db"
    }
    late = [agent.ask() for _ in range(5)]
    new = np.random.default_rng(1).standard_normal((7, 3))
    scores = agent.scores(new)
    expected = reach.average_bonus(trusted(agent.state), agent.problem._replace(arms=new))
    np.testing.assert_allclose([score.bonus for score in scores], expected, rtol=1e-12)
    assert agent.tell(agent.ask(new), 1.0) == "learned"
    assert {agent.tell(decision, 0.3) for decision in reversed(late)} == {"learned"}
    several = agent.ask_many(3)
    assert len({decision.arm for decision in several}) == 3
    assert all(decision.bonus >= 0 for decision in several)

    agent.add_arm("f", [0.4, -1.0, 2.0])
    agent.remove_arm("a")
    fresh = problem_of(model, agent.problem.arms)
    assert agent.problem.arms.shape == (5, 3)
    expected = reach.bonus(trusted(agent.state), fresh)
    np.testing.assert_allclose([score.bonus for score in agent.scores()], expected, rtol=1e-12)


def test_contexts_are_prepared_alike_by_agents_and_simulations():
    """No context is taken for the arms, not even one in which nothing changes."""
    system, x = shop(), features(40)
    x[3] = 0.0  # the arms are those of the system
    rows = naive.rows_in_contexts(system.arms, list(system.contexts.values()), x)
    constants, belief = REACH.prepare(system.model, rows.swapaxes(0, 1), 40)
    agent = db.Agent(system, policy="reach", rounds=40)
    rng = np.random.default_rng(2)
    for features_now, arms in zip(x, rows, strict=True):
        problem = Problem(system.model, arms, constants)
        scores = reach.scores(belief, problem)
        place = int(REACH.choose(belief, problem, None))
        decision = agent.ask(context=context(features_now))
        assert decision.arm == system.names[place]
        assert decision.bonus == pytest.approx(scores[1][place], rel=1e-9)
        reward = rng.standard_normal()
        agent.tell(decision, reward)
        belief = REACH.update(belief, problem, place, reward)
    result = db.simulate(system, None, "reach", rounds=40, runs=2, contexts=x)
    assert np.isfinite(result.regret["reach"]).all()


@pytest.mark.parametrize("n_states", [3, 4])
def test_only_the_best_of_a_long_list_are_compared(n_states, monkeypatch):
    """Each arm has an index; the gain of three rounds is computed among the best ones."""
    model, _, belief = case(8, n_states, 4)
    arms = np.random.default_rng(1).standard_normal((reach.MOST + 40, n_states))
    if n_states == 4:  # too many states for an index of every arm
        monkeypatch.setattr(reach, "MOST_WORK", 4.0**3)
    problem, law = problem_of(model, arms), numbers(model)
    if n_states == 3:
        tables = naive.reach_tables(law, arms, 300)
        index = naive.reach_index(tables, belief.cov, law, arms, 300)
    else:
        index = naive.reach_average(belief.cov, law, arms, arms, 300)
    best = np.argsort(-(arms @ belief.mean + index))[: reach.MOST]
    expected = index.copy()
    expected[best] = np.maximum(index[best], naive.reach_soon(*belief, law, arms[best])[0])
    assert (expected > 1.01 * index).any()
    np.testing.assert_allclose(reach.bonus(belief, problem), expected, rtol=1e-5, atol=1e-7)


def test_simulations_and_agents_choose_alike_from_a_long_list():
    model, _, _ = case(9, 3, 4)
    arms = np.random.default_rng(3).standard_normal((reach.MOST + 10, 3))
    states, rewards = states_and_rewards(model, arms, 60)
    regret = db.simulate(model, arms, "reach", rounds=60, runs=1).regret["reach"]
    expected = naive.regret(arms, states, played(REACH, rewards, model, arms)[0])
    np.testing.assert_allclose(regret[0], expected, rtol=1e-9)


@pytest.mark.parametrize("reward_std", [0.0, 0.5])
def test_long_lists_get_the_average_form_and_are_screened(reward_std):
    model, _, _ = case(6, 3, 4, reward_std=reward_std)
    arms = np.random.default_rng(0).standard_normal((100_000, 3))
    assert len(arms) >= choosing.SCREENED
    assert "own" in problem_of(model, arms[: reach.LONGEST_LIST]).constants
    assert "own" not in problem_of(model, arms[: reach.LONGEST_LIST + 1]).constants
    agent = db.Agent(model, arms, "reach")
    for reward in (1.0, -2.0, 0.5):
        bonuses = reach.average_bonus(trusted(agent.state), agent.problem)
        means = arms @ agent.state.mean
        _, ratio = reach.length_ratio(agent.state, agent.problem)
        decision = agent.ask()
        assert decision.arm == int(first_highest(means + bonuses, abs(means) + bonuses))
        assert decision.bonus == pytest.approx(bonuses[decision.arm], rel=1e-9)
        read = arms[:9] @ ratio.factor
        lengths = np.linalg.norm(read @ ratio.stretch.T, axis=1)
        divisors = np.sqrt((read**2).sum(axis=1) + ratio.noise**2)
        np.testing.assert_allclose(lengths / divisors, bonuses[:9], rtol=1e-7)
        assert np.linalg.norm(ratio.stretch) <= ratio.size * (1 + 1e-12)
        agent.tell(decision, reward)


def test_on_the_sphere_it_is_idea():
    model, _, _ = case(7, 3)
    agents = [db.Agent(model, "sphere", name) for name in ("reach", "idea")]
    for reward in (0.3, -1.0, 2.0):
        first, second = (agent.ask() for agent in agents)
        np.testing.assert_array_equal(first.arm, second.arm)
        agents[0].tell(first, reward)
        agents[1].tell(second, reward)


# Where formulas could fail.


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.integers(0, 10**6),
    st.integers(1, 4),
    st.integers(1, 6),
    st.sampled_from([0.0, 0.5, 0.9999, 1.0, 1.05]),
    st.sampled_from([1, 500, 10**6]),
    st.sampled_from([0.0, 1e-9, 1.0]),
    st.sampled_from([1e-6, 1.0, 1e6]),
    st.sampled_from([1e-6, 1.0, 1e6]),
    st.booleans(),
)
def test_every_bonus_is_a_number(seed, d, k, radius, rounds, reward_std, unit, size, diagonal):
    """Equal arms, zero arms, states nobody reads, explosive and still states, any units."""
    rng = np.random.default_rng(seed)
    transition = radius * np.eye(d)
    if not diagonal:
        transition = rng.standard_normal((d, d))
        transition *= radius / np.abs(np.linalg.eigvals(transition)).max()
    root = unit * rng.integers(-1, 2, (d, rng.integers(1, d + 1)))
    noise = reward_std * unit * size
    model = db.LGDS(transition, root @ root.T, noise, unit**2 * np.eye(d))
    arms = size * rng.integers(-1, 2, (k, d))
    arms[:, 0] *= rng.integers(0, 2)
    problem = problem_of(model, arms, rounds)
    for cov in (model.start_cov(), model.state_cov(min(rounds, 300))):
        belief = Belief(unit * rng.standard_normal(d), cov)
        for bonus in (reach.bonus(belief, problem), reach.average_bonus(belief, problem)):
            assert bonus.shape == (k,)
            assert np.isfinite(bonus).all()
            assert (bonus >= 0).all()
        assert 0 <= int(REACH.choose(unseen(belief), problem, None)) < k


def test_what_nobody_reads_does_not_spoil_the_sums():
    """Two arms read two numbers of a random walk of three: without noise, for 10⁶ rounds."""
    process_cov = np.array([[1.0, -1, -1], [-1, 1, 1], [-1, 1, 3]])
    model = db.LGDS(np.eye(3), process_cov, 0.0, np.eye(3))
    arms = np.array([[0.0, 0.0, -1.0], [1.0, 1.0, 0.0]])
    read = db.LGDS(np.eye(2), arms @ process_cov @ arms.T, 0.0, arms @ arms.T)
    cov = np.diag([1.0, 2.0, 3.0])
    whole = reach.bonus(Belief(np.zeros(3), cov), problem_of(model, arms, 10**6))
    part = Belief(np.zeros(2), arms @ cov @ arms.T)
    expected = reach.bonus(part, problem_of(read, np.eye(2), 10**6))
    np.testing.assert_allclose(whole, expected, rtol=1e-6)


def test_explosive_states_are_played():
    model = db.LGDS([[1.05, 0.2], [0.0, 0.9]], np.eye(2), 0.5, np.eye(2))
    result = db.simulate(model, [[1.0, 0.0], [-1.0, 0.3]], ["reach", "random"], 500, runs=4)
    regret = {name: values.mean() for name, values in result.regret.items()}
    assert np.isfinite(regret["reach"])
    assert regret["reach"] < 1e-3 * regret["random"]
