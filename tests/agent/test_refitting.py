"""Models learned from the agent's own log, at once or in the background."""

import dataclasses
import random
import threading

import numpy as np
import pytest

from driftbandit import (
    LGDS,
    Agent,
    InvalidInput,
    Refit,
    families,
    kalman,
    policies,
)
from driftbandit.agent import refitting
from driftbandit.agent.ledger import replayed
from driftbandit.agent.refitting import OF_NAMES
from late_rewards import AtOnce, assert_same, scripted, told_by
from refusals import EYE, INF, STABLE, Case, assert_refused, each

TRUTH = LGDS([[0.95, 0.0], [0.0, 0.6]], [[0.2, 0.0], [0.0, 1.0]], reward_std=0.3)


THREE = np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]])


# Few and far between: whatever is learned from a longer log is compiled anew.
LEARNS = Refit(background=False, after=120, growth=1.5, iterations=60)


def environment(seed, rounds):
    """What each of three arms pays in each round."""
    rng = np.random.default_rng(seed)
    z, rows = rng.standard_normal(2), []
    for _ in range(rounds):
        rows.append(THREE @ z + 0.3 * rng.standard_normal(3))
        z = TRUTH.transition @ z + np.sqrt(np.diag(TRUTH.process_cov)) * rng.standard_normal(2)
    return np.array(rows)


def learned(agent, rewards):
    for row in rewards:
        decision = agent.ask()
        agent.tell(decision, row[decision.arm])
    return agent


@pytest.fixture(scope="module")
def unknown():
    """An agent that began without a model; as it was after 200 of 320 rounds, and at the end."""
    rewards = environment(11, 320)
    agent = learned(Agent(None, THREE, window=10, refit=LEARNS), rewards[:200])
    return agent.to_json(), learned(agent, rewards[200:]).to_json(), rewards


def test_an_agent_learns_its_model(unknown):
    """Likelier than the random walk it began with, of rewards it never saw."""
    _, end, _ = unknown
    found = Agent.from_json(end).model
    fresh = environment(2, 300)
    rng = np.random.default_rng(0)
    chosen = rng.integers(3, size=300)
    played, paid = THREE[chosen], fresh[np.arange(300), chosen]
    began, knows, true = (
        kalman.log_likelihood(model, played, paid) / 300
        for model in (Agent(None, THREE).model, found, TRUTH)
    )
    assert began + 0.2 < knows < true + 0.05
    assert knows > true - 0.1


def test_stored_between_two_refits(unknown):
    """The schedule goes on, and so does the climb from the model that was learned."""
    middle, end, rewards = unknown
    agent = Agent.from_json(middle)
    assert 0 < agent._history.until_refit < LEARNS.after * LEARNS.growth
    model = agent.model
    assert learned(agent, rewards[200:]).to_json() == end
    assert np.abs(agent.model.transition - model.transition).max() > 1e-6


def test_refit_in_any_order():
    """Model and state, bit for bit; the log is of settled rewards alone."""
    rng = random.Random(4)
    played = [rng.randrange(3) for _ in range(80)]
    table = environment(5, 80)
    rewards = [
        None if t % 9 == 0 else row[arm]
        for t, (row, arm) in enumerate(zip(table, played, strict=True))
    ]
    ends = [
        told_by(
            Agent(
                None,
                THREE,
                scripted("idea", played),
                window=10,
                refit=Refit(background=False, after=30, iterations=5),
            ),
            range(80),
            rewards,
            chance,
        )
        for chance in (AtOnce(), rng)
    ]
    assert ends[0].to_json() == ends[1].to_json()
    assert_same(ends[0].state, ends[1].state)
    np.testing.assert_array_equal(ends[0].model.transition, ends[1].model.transition)
    assert ends[0]._history.has_model
    assert [entry.round for entry in ends[0]._history.log] == [t for t in range(69) if t % 9]


def clicks(rounds, n_arms, seed):
    """Rates between 5 and 60 % that drift, with a memory of 100 rounds, and who clicks."""
    rng, keep = np.random.default_rng(seed), np.exp(-1 / 100)
    z, rates = rng.standard_normal(n_arms), np.empty((rounds, n_arms))
    for t in range(rounds):
        rates[t] = 0.05 + 0.55 / (1 + np.exp(-1.5 * z))
        z = keep * z + np.sqrt(1 - keep**2) * rng.standard_normal(n_arms)
    return rates, rng.random(rates.shape) < rates


def test_names_are_enough():
    """Drifting clicks: the agent earns a third of what is possible; a free Γ earned nothing."""
    agent = Agent(names=["a", "b", "c", "d"], refit=Refit(background=False))
    assert agent.names == ("a", "b", "c", "d")
    assert agent.refit_options.structure == OF_NAMES
    rates, clicked = clicks(1500, 4, seed=2)
    earned = 0.0
    for t, rate in enumerate(rates):
        decision = agent.ask()
        arm = agent.names.index(decision.arm)
        agent.tell(decision, clicked[t, arm])
        earned += rate[arm]
    low, high = rates.mean(), rates.max(axis=1).mean()
    assert (earned / len(rates) - low) / (high - low) > 0.33
    agent.add_arm("e")
    again = Agent.from_json(agent.to_json())
    assert again.refit_options == agent.refit_options
    assert again.ask() == agent.ask()


DEFAULTS = [
    (np.eye(3), {}, OF_NAMES),
    ([[0.0, 2.0], [1.0, 0.0]], {}, OF_NAMES),
    (THREE, {}, "free"),
    ([[1.0], [-1.0]], {}, "free"),
    (np.eye(3), {"offsets": True}, "free"),
    (np.eye(3), {"structure": "diagonal"}, "diagonal"),
    (THREE, {"structure": "level(arm)"}, "level(arm)"),
]


@pytest.mark.parametrize(("arms", "options", "structure"), DEFAULTS)
def test_what_is_learned_unless_the_user_chooses(arms, options, structure):
    agent = Agent(None, arms, refit=Refit(**options))
    assert agent.refit_options.structure == structure
    assert Agent.from_json(agent.to_json()).refit_options.structure == structure


def test_a_given_model_keeps_its_kind():
    assert Agent(TRUTH, np.eye(2), refit=Refit()).refit_options.structure == "free"


def test_refit_with_offsets():
    """By hand, of rewards about 5, 6 and 7: the arms read that, and their features stay."""
    rewards = 0.3 * environment(6, 45) + [5.0, 6.0, 7.0]
    agent = Agent(None, THREE, window=0, refit=Refit(background=False, offsets=True, iterations=20))
    for t, row in enumerate(rewards):
        decision = agent.ask(arms=[t % 3])
        agent.tell(decision, row[decision.arm])
    agent.refit()
    assert agent._history.until_refit == 200
    assert agent.model.n_states == 3 + 2  # what each arm pays on average, and the factors
    assert agent.problem.arms.shape == (3, 5)
    means = agent.problem.arms @ agent.state.mean
    np.testing.assert_allclose(means, [5, 6, 7], atol=1)
    np.testing.assert_array_equal(agent._history.features, THREE)
    other = Agent.from_json(agent.to_json())
    assert other.to_json() == agent.to_json()
    decision = agent.ask()
    assert other.ask() == decision
    assert 4 < decision.mean < 9
    assert agent.ask(arms=[0, 1]).arm in (0, 1)


def test_a_refit_needs_rewards():
    """Two that are settled."""
    agent = Agent(None, THREE, window=0, refit=Refit())
    for reward in (1.0, 2.0):
        agent.tell(agent.ask(), reward)
    before = agent.to_json()
    with pytest.raises(ValueError, match="log: has 1 settled rewards"):
        agent.refit()
    assert agent.to_json() == before


def test_when_an_agent_learns(monkeypatch):
    """After 20 settled rewards, then by half as many as it knows; it knows 50, the newest."""
    logs = []

    def learned(entries, arms, options, start):
        logs.append([entry.round for entry in entries])
        return TRUTH, arms

    monkeypatch.setattr(refitting, "learned", learned)
    agent = Agent(
        None, THREE, window=3, refit=Refit(background=False, after=20, memory=50, check=False)
    )
    sizes = []
    for t in range(240):
        agent.tell(agent.ask(), None if t % 4 == 0 else 0.1)
        if t == 150:
            agent = Agent.from_json(agent.to_json())
        sizes.append(len(agent.to_json()))
    assert [len(log) for log in logs] == [20, 40, 50, 50, 50, 50, 50]
    known = [t for t in range(240) if t % 4]
    for log, count in zip(logs, [20, 40, 60, 85, 110, 135, 160], strict=True):
        assert log == known[:count][-50:]
    assert len(agent._history.log) == 50
    assert max(sizes[160:]) < 1.1 * max(sizes[80:160])


MODEL, ARMS = families.sample("gaussian", n_states=3, n_arms=4, seed=3)[0]


LEARNED = LGDS(np.diag([0.9, 0.5, 0.2]), np.eye(3), 0.5)


class Teacher:
    """Stands for the fit: it waits until it is let go."""

    def __init__(self, result=LEARNED):
        self.begun, self.go, self.logs, self.result = (
            threading.Event(),
            threading.Event(),
            [],
            result,
        )

    def __call__(self, entries, arms, options, start):
        self.logs.append([entry.round for entry in entries])
        self.begun.set()
        assert self.go.wait(300)
        if isinstance(self.result, Exception):
            raise self.result
        return self.result, arms


@pytest.fixture
def teacher(monkeypatch):
    one = Teacher()
    monkeypatch.setattr(refitting, "learned", one)
    yield one
    one.go.set()


def rounds_of(agent, count, seed=0):
    rng = random.Random(seed + agent.round)
    for _ in range(count):
        agent.tell(agent.ask(), rng.gauss(0, 1))


def refolded(agent):
    """An agent that was told the same with the learned model from the start."""
    other = Agent(LEARNED, ARMS, agent.policy, window=agent.window)
    for entry in [*agent._history.log, *agent._history.ledger]:
        other.tell(other.ask(arms=[entry.arm], round=entry.round), entry.reward)
    return other


def test_a_refit_does_not_block(teacher):
    """Decisions go on with the old model, and then with the new one and all that came between."""
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20, check=False))
    rounds_of(agent, 26)
    assert teacher.begun.wait(300)
    assert not agent.wait_for_refit(timeout=0)
    rounds_of(agent, 150)  # the model is still being learned
    assert agent.model is MODEL
    teacher.go.set()
    assert agent.wait_for_refit()
    assert agent.model is LEARNED
    assert teacher.logs == [list(range(20))]
    other = refolded(agent)
    assert agent._history.ledger.round == other._history.ledger.round == 169
    for value, expected in zip(agent.state, other.state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)
    assert agent._history.until_refit == 20 - 150  # it is due again
    rounds_of(agent, 1)
    agent.wait_for_refit()
    assert len(teacher.logs) == 2


def test_a_saved_agent_learns_again(teacher):
    """What is under way is not stored, and is due at once where the agent goes on."""
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20, check=False))
    rounds_of(agent, 30)
    assert teacher.begun.wait(300)
    other = Agent.from_json(agent.to_json())
    assert other.to_json() == agent.to_json()
    assert other.wait_for_refit()  # there is none
    rounds_of(other, 1)
    teacher.go.set()
    assert other.wait_for_refit()
    assert agent.wait_for_refit()
    assert [len(log) for log in teacher.logs] == [20, 25]
    np.testing.assert_array_equal(other.model.transition, LEARNED.transition)


def test_a_refit_in_the_background_that_fails(monkeypatch, caplog):
    teacher = Teacher(RuntimeError("no memory left"))
    teacher.go.set()
    monkeypatch.setattr(refitting, "learned", teacher)
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20, check=False))
    rounds_of(agent, 26)
    assert agent.wait_for_refit()
    rounds_of(agent, 10)
    assert agent.model is MODEL
    assert agent.refit_failure == "no memory left"
    assert "no memory left" in caplog.text
    assert len(teacher.logs) == 1
    assert agent._history.until_refit == 10
    with pytest.raises(RuntimeError, match="no memory left"):
        agent.refit()


@pytest.mark.parametrize("change", ["model", "arms"])
def test_what_is_being_learned_is_dropped_when_the_agent_changes(teacher, change):
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20, check=False))
    rounds_of(agent, 26)
    assert teacher.begun.wait(300)
    task = agent._history.refit_task
    if change == "model":
        agent.replace_model(dataclasses.replace(MODEL, reward_std=2.0))
    else:
        agent.add_arm("new", [1.0, 0.0, 0.0])
    kept = agent.model
    teacher.go.set()
    assert task.done.wait(300)
    assert agent.model is kept
    assert agent.refit_failure is None
    rounds_of(agent, 19)
    agent.wait_for_refit()
    assert (agent.model is LEARNED) is (change == "arms")  # it was due, and began again
    rounds_of(agent, 1)
    agent.wait_for_refit()
    assert agent.model is LEARNED


def test_a_refit_that_was_dropped_does_not_say_why_it_failed(teacher, caplog):
    teacher.result = RuntimeError("no memory left")
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20, check=False))
    rounds_of(agent, 26)
    assert teacher.begun.wait(300)
    task = agent._history.refit_task
    agent.replace_model(dataclasses.replace(MODEL, reward_std=2.0))
    teacher.go.set()
    assert task.done.wait(300)
    for thread in threading.enumerate():
        if thread.name == "driftbandit refit":
            thread.join()
    assert agent.refit_failure is None
    assert not caplog.text


def test_a_log_that_fails_while_a_model_is_learned(teacher):
    """What it would have settled is not in the new model's state either."""
    plain = policies.make("idea")

    def picky(belief, problem, arm, reward):
        if reward > 5:
            raise RuntimeError("too much")
        return plain.agent.observe(belief, problem, arm, reward)

    own = dataclasses.replace(plain, name="picky", agent=plain.agent._replace(observe=picky))
    agent = Agent(MODEL, ARMS, own, window=5, refit=Refit(after=20, check=False))
    rounds_of(agent, 26)
    assert teacher.begun.wait(300)
    rounds_of(agent, 3)
    rewards = [1.0] * 1500 + [9.0]  # a block of 1000 is settled before it fails
    with pytest.raises(RuntimeError, match="too much"):
        agent.tell_log({"arm": [0] * 1501, "reward": rewards})
    assert len(agent._history.since_refit) == 3
    teacher.go.set()
    assert agent.wait_for_refit()
    assert agent._history.until_refit == 20 - 3
    for value, expected in zip(agent.state, refolded(agent).state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)
    rounds_of(agent, 3)


def test_a_model_that_explodes_is_not_swapped_in(monkeypatch):
    wild = LGDS(1.5 * np.eye(3), np.eye(3), 1.0, np.eye(3))
    monkeypatch.setattr(refitting, "learned", lambda entries, arms, *_: (wild, arms))
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=20, stable=False, check=False))
    rounds_of(agent, 25)
    agent.advance(2000)
    agent.wait_for_refit()
    assert "has outgrown the largest number" in agent.refit_failure
    assert agent.model is MODEL
    assert agent.ask().round == 2025


def test_refit_by_hand_is_done_when_it_returns(teacher):
    """And another thread may ask meanwhile."""
    agent = Agent(MODEL, ARMS, window=5, refit=Refit(after=1000, check=False))
    rounds_of(agent, 30)
    hand = threading.Thread(target=agent.refit)
    hand.start()
    assert teacher.begun.wait(300)
    rounds_of(agent, 10)
    assert agent.model is MODEL
    teacher.go.set()
    hand.join()
    assert agent.model is LEARNED
    for value, expected in zip(agent.state, refolded(agent).state, strict=True):
        np.testing.assert_array_equal(value, expected, strict=True)


def test_waiting_makes_background_refits_repeatable():
    """The real fit, twice."""
    ends = []
    for _ in range(2):
        agent = Agent(None, ARMS, window=2, refit=Refit(after=25, iterations=5))
        for _ in range(35):
            rounds_of(agent, 1)
            agent.wait_for_refit()
        ends.append(agent.to_json())
    assert ends[0] == ends[1]
    assert agent._history.has_model


def test_background_is_checked():
    with pytest.raises(InvalidInput, match="background: is 1"):
        Refit(background=1)


REFIT_CASES = [
    Case("agent refit True", lambda: Agent(STABLE, EYE, refit=True), "refit", "True"),
    Case("agent refit dict", lambda: Agent(None, EYE, refit={"after": 9}), "refit", "'after': 9"),
    Case(
        "oracle refit",
        lambda: Agent(STABLE, EYE, "kalman_oracle", refit=Refit()),
        "refit",
        "kalman_oracle",
    ),
    Case("refit without", lambda: Agent(STABLE, EYE).refit(), "log", "0 settled rewards"),
    Case("refit too early", lambda: Agent(None, EYE).refit(), "log", "0 settled rewards"),
    Case("no names", lambda: Agent(names=[]), "names", "is empty"),
    Case("one name", lambda: Agent(names="ab"), "names", "is 'ab'"),
    Case("names twice", lambda: Agent(names=["a", "a"]), "names", "has 'a' twice"),
    Case("a number of names", lambda: Agent(names=3), "names", "is 3"),
    Case("nothing", lambda: Agent(), "arms", "only the arms' names"),
    Case("Refit after 1", lambda: Refit(after=1), "after", "is 1"),
    Case("Refit after 2.5", lambda: Refit(after=2.5), "after", "2.5"),
    Case("Refit growth -1", lambda: Refit(growth=-1), "growth", "-1"),
    Case("Refit growth text", lambda: Refit(growth="half"), "growth", "'half'"),
    Case("Refit growth inf", lambda: Refit(growth=INF), "growth", "inf"),
    Case("Refit memory", lambda: Refit(after=50, memory=49), "memory", "is 49"),
    Case("Refit structure", lambda: Refit(structure="diag"), "structure", "'diagonal'"),
    Case("Refit stable", lambda: Refit(stable=1), "stable", "is 1"),
    Case("Refit offsets", lambda: Refit(offsets=None), "offsets", "None"),
    Case("Refit iterations", lambda: Refit(iterations=0), "iterations", "is 0"),
    Case("Refit scale", lambda: Refit(scale=0), "scale", "is 0"),
]


@each(REFIT_CASES)
def test_bad_refits_are_refused(case):
    assert_refused(case)


# Arms that come and go while a level is learned for each.

LEVELS = Refit(after=5000, structure="level(arm)", background=False)
PAYS = {"a": 0.2, "b": 0.5, "c": 0.9, "d": 0.4}


def play_among(agent, rng, arms, rounds):
    for number in range(rounds):
        decision = agent.ask([arms[number % len(arms)]])
        agent.tell(decision, PAYS[decision.arm] + 0.1 * float(rng.standard_normal()))


@pytest.mark.parametrize("structure", ["level(arm)", "constant(arm) + level(arm, memory=free)"])
def test_arms_with_components_of_their_own_come_and_go(structure):
    """After a refit, as if all arms had been there from the start, and had never left."""
    refit = dataclasses.replace(LEVELS, structure=structure)
    given = {"policy": "idea", "window": 7, "refit": refit}  # reach's bonus depends on all arms
    one = Agent(None, np.eye(3), names=["a", "b", "d"], **given)
    other = Agent(None, np.eye(4), names=["a", "b", "c", "d"], **given)
    for agent in (one, other):
        rng = np.random.default_rng(5)
        play_among(agent, rng, ["a", "b", "d"], 40)
        if agent is one:
            one.add_arm("c")
        play_among(agent, rng, ["a", "b", "c", "d"], 40)
        if agent is one:
            one.remove_arm("d")
        play_among(agent, rng, ["a", "b", "c"], 3)  # plays of d are inside the window
        agent.refit()
        play_among(agent, rng, ["a", "b", "c"], 9)
    assert one.names == ("a", "b", "c")
    known = {score.arm: score for score in other.scores()}
    for score in one.scores():
        assert score[1:] == pytest.approx(known[score.arm][1:], rel=1e-9), score.arm
    each = one.model.n_states // 4
    one.add_arm("e")  # as all arms began
    assert one.model.n_states == 5 * each
    begin, (*_, new) = one.model.start_cov(), one.problem.arms
    for row in one.problem.arms:
        assert row @ begin @ row == pytest.approx(new @ begin @ new)
        assert row @ one.model.start_mean() == new @ one.model.start_mean()
    one.remove_arm("e")
    copy = Agent.from_json(one.to_json())
    assert copy.to_json() == one.to_json()
    for agent in (one, copy):
        agent.add_arm("d")  # its old plays are its own again
        agent.refit()
    assert one.scores()[3].mean == pytest.approx(PAYS["d"], abs=0.1)
    assert one.to_json() == copy.to_json()


def test_arms_with_levels_change_while_plays_are_open_and_a_refit_runs(monkeypatch):
    """A play of a removed arm that is settled during the refit is filtered with its own state."""
    agent = Agent(None, np.eye(2), names=["a", "b"], window=3, refit=LEVELS)
    play_among(agent, np.random.default_rng(1), ["a", "b"], 20)
    late = agent.ask(["a"])
    agent.remove_arm("a")
    learned = refitting.learned

    def slow(*given):
        agent.tell(late, PAYS["a"])
        play_among(agent, np.random.default_rng(2), ["b"], 5)
        return learned(*given)

    monkeypatch.setattr(refitting, "learned", slow)
    agent.refit()
    kept = [entry for entry in agent._history.log if entry.removed]
    assert len(kept) == 11
    assert all(entry.row.tolist() == [0.0, 1.0] for entry in kept)
    assert agent.problem.arms.tolist() == [[1.0, 0.0]]
    history = agent._history
    _, prior = history.prepared(agent.model, agent.problem.arms)
    plays = [*history.log, *history.ledger]
    state, round_ = replayed(agent.policy, agent.problem, prior, plays[0].round, plays)
    np.testing.assert_array_equal(history.ledger.at(round_).mean, state.mean)


def test_arms_stay_with_other_components():
    seasonal = Refit(structure="level(arm) + season(7)")
    agent = Agent(None, np.eye(2), names=["a", "b"], refit=seasonal)
    for change in (lambda: agent.add_arm("c"), lambda: agent.remove_arm("a")):
        with pytest.raises(InvalidInput, match="learns offsets or components for each arm"):
            change()
    agent = Agent(None, np.eye(2), names=["a", "b"], refit=LEVELS)
    with pytest.raises(InvalidInput, match="features: were given, and the agent learns components"):
        agent.add_arm("c", [1.0, 0.0])


def test_an_arm_of_a_level_comes_back_under_its_own_name():
    """The models of refits have one arm of each name, as text."""
    agent = Agent(None, np.eye(3), names=[0, 1, 2], refit=LEVELS)
    agent.remove_arm(1)
    with pytest.raises(InvalidInput, match="name: is '1', and 1 was removed; add 1, or choose"):
        agent.add_arm("1")
    agent.add_arm(1)
    assert agent.names == (0, 2, 1)
