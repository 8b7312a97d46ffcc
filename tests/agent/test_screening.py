"""Very many arms: decisions found in single precision are those of scoring every arm (P12–P15)."""

import dataclasses
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftbandit as db
import naive
from driftbandit import InvalidInput
from driftbandit.agent import choosing, screening
from driftbandit.kalman import Belief
from driftbandit.policies import Problem, make, optimistic, reach

POLICIES = ("idea", "kalman_ucb(width=0.5)", "reach")
LONGEST_LIST = 50  # that reach compares

ARMS = 1500


@pytest.fixture(autouse=True)
def _small_is_many(monkeypatch):
    """Blocks and screens as if there were a thousand times as many arms."""
    monkeypatch.setattr(choosing, "BLOCK", 64)
    monkeypatch.setattr(choosing, "SCREENED", 100)
    monkeypatch.setattr(screening, "WORK", 4000)
    monkeypatch.setattr(screening, "CACHE", 2000)
    monkeypatch.setattr(reach, "LONGEST_LIST", LONGEST_LIST)


def screened(name):
    """A policy that compares few arms."""
    policy = make(name)
    compares = min(policy.actions.compares, LONGEST_LIST)
    return dataclasses.replace(policy, actions=policy.actions._replace(compares=compares))


def system(states=4, reward_std=None):
    model, _ = db.families.sample("gaussian", n_states=states, n_arms=2, seed=4)[0]
    sigma = model.reward_std if reward_std is None else reward_std
    return db.LGDS(model.transition, model.process_cov, float(sigma))


def drawn(kind, states=4, count=ARMS):
    rng = np.random.default_rng(7)
    rows = rng.standard_normal((count, states))
    return {
        "gaussian": rows,
        "unit": rows / np.linalg.norm(rows, axis=1, keepdims=True),
        "cauchy": rng.standard_cauchy((count, states)),
        "both signs": np.concatenate([rows[: count // 2], -rows[: count // 2]]),
        "few, repeated": rows[rng.integers(0, 9, count)],
        "of one length": np.repeat(np.eye(states), -(-count // states), axis=0)[:count],
    }[kind]


def play(agents, rounds, seed=1):
    """Let agents play side by side; assert that they decide alike; the decisions."""
    made = []
    for reward in 20 * np.random.default_rng(seed).standard_normal(rounds):
        decisions = [agent.ask() for agent in agents]
        assert len(set(decisions)) == 1
        for agent, decision in zip(agents, decisions, strict=True):
            agent.tell(decision, reward)
        made.append(decisions[0])
    return made


@pytest.mark.parametrize(
    "kind", ["gaussian", "unit", "cauchy", "both signs", "few, repeated", "of one length"]
)
@pytest.mark.parametrize("reward_std", [None, 0.0])
@pytest.mark.parametrize("policy", POLICIES)
def test_the_screen_changes_no_decision(policy, reward_std, kind):
    """To the bit, figures included, from the first round on."""
    model, arms = system(reward_std=reward_std), drawn(kind)
    policy = screened(policy)
    made = play([db.Agent(model, arms, policy, screen=on) for on in (True, False)], 60)
    assert kind == "cauchy" or len({decision.arm for decision in made}) > 1


@pytest.mark.parametrize("name", ["idea", "kalman_ucb"])
def test_decisions_are_the_textbook_s(name):
    """P12, P13, P15: a plain loop over all arms."""
    model, arms = system(), drawn("gaussian")
    rewards = 3 * np.random.default_rng(2).standard_normal((25, len(arms)))
    expected = naive.play(
        name, model.transition, model.process_cov, float(model.reward_std), None, arms, rewards, []
    )
    agent = db.Agent(model, arms, name)
    played = []
    for row in rewards:
        decision = agent.ask()
        agent.tell(decision, row[decision.arm])
        played.append(decision.arm)
    assert played == expected


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("mean", [0.0, 1.0])
def test_few_arms_remain(policy, mean):
    """Otherwise all would be scored, and nothing of this file would show anything."""
    model, arms = system(), drawn("gaussian")
    policy = screened(policy)
    constants, state = policy.prepare(model, arms, 10)
    state, problem = state._replace(mean=np.full(4, mean)), Problem(model, arms, constants)
    (remains,) = screening.Screen(arms).remaining(policy, problem, state)
    expected, bonuses = policy.scores(state, problem)
    assert remains == np.argmax(expected + bonuses)


def exact_scores(name, belief, model, arms):
    """The formulas in extended precision."""
    mean, cov, transition, rows = (
        np.asarray(x, np.longdouble) for x in (*belief, model.transition, arms)
    )
    expected = (rows * mean).sum(axis=1)
    variances = np.maximum(((rows[:, None, :] * cov).sum(axis=2) * rows).sum(axis=1), 0)
    if name == "kalman_ucb":
        return expected + np.sqrt(variances)
    cross = (rows[:, None, :] * cov).sum(axis=2)
    moved = (cross[:, None, :] * transition).sum(axis=2)
    return expected + np.sqrt((moved**2).sum(axis=1) / (variances + model.reward_std**2))


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    states=st.sampled_from([1, 2, 5, 12]),
    narrow=st.floats(0, 4),
    sizes=st.tuples(*[st.floats(-6, 6)] * 4),
    spread=st.floats(0, 8),
    centered=st.booleans(),
)
@pytest.mark.parametrize("name", ["idea", "kalman_ucb"])
def test_doubts_cover_all_rounding(name, seed, states, narrow, sizes, spread, centered):
    """Each half of the doubt covers its part: in any units, on covariances of any shape."""
    rng = np.random.default_rng(seed)
    noise, moving, far, unit = (10.0**size for size in sizes)
    root = rng.standard_normal((states, states)) * 10 ** -rng.uniform(0, narrow, (states, 1))
    belief = Belief((not centered) * far * rng.standard_normal(states), root @ root.T)
    transition = moving * rng.standard_normal((states, states))
    model = db.LGDS(transition, np.eye(states), noise, initial_cov=np.eye(states))
    arms = rng.standard_normal((200, states)) * 10 ** -rng.uniform(0, spread, (200, 1)) * unit
    policy, problem = make(name), Problem(model, arms, {})
    screen = screening.Screen(arms)
    scaled = screen.usable and screening._scaled(
        *policy.actions.length_ratio(belief, problem), screen.unit
    )
    if not scaled:
        return  # refused: all arms are scored
    rough = np.empty(len(arms), np.float32)
    without = scaled._replace(of_mean=0.0, of_bonus=0.0)
    screen._rough(without, rough)
    y = arms / screen.unit @ scaled.root
    q = np.sqrt((y**2).sum(axis=1) + scaled.noise**2) if scaled.divided else 1.0
    doubts = screen.lengths * (scaled.of_mean + scaled.of_bonus / q) / 2
    scores = sum(policy.scores(belief, problem))
    truth = exact_scores(name, belief, model, arms)
    assert (np.abs(rough - truth / scaled.top) <= doubts).all()
    assert (np.abs(scores - truth) <= doubts * scaled.top).all()
    again = sum(policy.scores(belief, problem._replace(arms=arms[3:])))
    finer = screen._doubts(np.arange(3, len(arms)), scaled)
    assert (np.abs(scores[3:] - again) <= finer).all()


def test_the_first_of_equal_arms():
    """Equal arms in many blocks are scored in all of them."""
    model = system()
    arms = np.tile(drawn("gaussian", count=50), (30, 1))
    agent, short = db.Agent(model, arms, "idea"), db.Agent(model, arms[:50], "idea")
    for reward in 20 * np.random.default_rng(1).standard_normal(40):
        decision, other = agent.ask(), short.ask()
        assert decision.arm == other.arm
        agent.tell(decision, reward)
        short.tell(other, reward)


def test_a_screen_that_does_not_help_rests(monkeypatch):
    looked = []
    leaders = screening.Screen._leaders
    monkeypatch.setattr(
        screening.Screen,
        "_leaders",
        lambda screen, scaled: looked.append(1) or leaders(screen, scaled),
    )
    agent = db.Agent(system(), drawn("of one length"), "idea")
    for _ in range(100):
        agent.tell(agent.ask(), 1.0)
    assert 2 <= len(looked) < 12
    looked.clear()
    agent = db.Agent(system(), drawn("gaussian"), "idea")
    for _ in range(20):
        agent.tell(agent.ask(), 1.0)
    assert len(looked) == 20


@pytest.mark.parametrize("policy", POLICIES[:2])  # fourth powers of 10¹⁴⁰ are no numbers
@pytest.mark.parametrize(
    ("cov", "scale"),
    [
        (np.zeros((4, 4)), 1.0),  # all is known
        (np.diag([1.0, 0.0, 0.0, 0.0]), 1.0),  # most arms' rewards are, up to rounding
        (np.eye(4), 10.0 ** -np.arange(0, 15, 0.01)[:, None]),  # lengths too different
        (np.eye(4), 1e-180),  # squares that are no numbers
        (np.eye(4), 1e140),
    ],
)
def test_where_nothing_is_proven_all_arms_are_scored(policy, cov, scale):
    model = db.LGDS(0.9 * np.eye(4), 1e-3 * cov, 0.0, cov)
    arms = drawn("gaussian") * scale
    with np.errstate(over="ignore", invalid="ignore"):
        play([db.Agent(model, arms, policy, screen=on) for on in (True, False)], 10)


def test_a_part_of_the_arms_and_new_ones():
    model, arms = system(), drawn("gaussian")
    agents = [db.Agent(model, arms, screen=on) for on in (True, False)]
    play(agents, 3)
    others = drawn("unit")
    for offer in (np.arange(0, ARMS, 2), others):
        first, second = (agent.ask(arms=offer) for agent in agents)
        assert first == second
        for agent in agents:
            agent.tell(first, 2.0)
        play(agents, 3)


def test_stored_agents_keep_the_choice():
    model, arms = system(), drawn("gaussian", count=300)
    for on in (True, False):
        agent = db.Agent(model, arms, screen=on)
        play([agent], 3)
        other = db.Agent.from_json(agent.to_json())
        assert other.screen is on
        play([agent, other], 5)
        assert (other._screen is not None) is on


def test_agents_stored_before_there_were_screens():
    from driftbandit.agent import stored

    whole = json.loads(db.Agent(system(), drawn("gaussian", count=300)).to_json())
    whole["driftbandit_agent"] = 2
    del whole["agent"]["screen"]
    whole["checksum"] = stored.checksum(json.dumps(whole["agent"]))
    assert db.Agent.from_json(json.dumps(whole)).screen is True


def test_the_screen_follows_the_model():
    """A model learned with offsets reads its arms otherwise."""
    arms = drawn("gaussian", states=2, count=150)
    refit = db.Refit(after=30, offsets=True, iterations=3, background=False, check=False)
    agents = [
        db.Agent(None, arms, "idea", window=5, refit=refit, screen=on) for on in (True, False)
    ]
    play(agents, 45)
    assert agents[0].problem.arms.shape[1] > 2
    assert agents[0]._screen.arms is agents[0].problem.arms


def test_policies_without_a_length_ratio_score_all_arms():
    mine = optimistic("mine", db.policies.kalman_ucb.bonus)
    agent = db.Agent(system(), drawn("gaussian"), mine)
    play([agent, db.Agent(system(), drawn("gaussian"), mine, screen=False)], 10)
    assert agent._screen is None


def test_bad_option():
    with pytest.raises(InvalidInput, match="screen: is 'yes'"):
        db.Agent(system(), drawn("gaussian"), screen="yes")


def test_an_arm_that_is_far_worse_changes_no_decision():
    """Ties are between two arms: what a third one scores does not widen them."""
    model = db.LGDS(0.9 * np.eye(2), np.eye(2), 0.5)
    arms = np.zeros((300, 2))
    arms[:, 1] = 1.0
    arms[10], arms[20], arms[290] = [1, 0], [1 + 2e-8, 0], [-1e6, 0]
    agents = [db.Agent(model, arms, "kode", screen=screen) for screen in (True, False)]
    for agent in agents:
        for _ in range(3):
            agent.tell_play(10, 3.0)
    assert [agent.ask().arm for agent in agents] == [20, 20]
