"""States that outgrow all numbers, and stored agents that somebody has tampered with."""

import copy
import hashlib
import json
import random

import numpy as np
import pytest

from driftbandit import LGDS, Agent, InvalidInput, Refit, families, policies
from driftbandit.errors import MissingExtra

MODEL, ARMS = families.sample("gaussian", n_states=2, n_arms=3, seed=3)[0]
UNSEEN = LGDS(np.diag([1.05, 0.5]), np.eye(2), 1.0, np.eye(2))
"""Whose first state explodes, and no arm reads it."""
SECOND = [[0.0, 1.0], [0.0, -2.0]]


def test_a_state_that_nobody_sees_outgrows_all_numbers(tmp_path):
    """One clear error before anything changes; what was decided so far is good, and stays so."""
    agent = Agent(UNSEEN, SECOND, window=3)
    path = tmp_path / "agent.json"
    for _ in range(8000):
        try:
            decision = agent.ask()
        except InvalidInput:
            break
        assert np.isfinite([decision.mean, decision.bonus, decision.uncertainty]).all()
        agent.tell(decision, 0.5)
    reached = agent.round
    assert 3000 < reached < 8000
    agent.save(path)
    back = Agent.load(path)
    for one in (agent, back):
        with pytest.raises(InvalidInput, match=f"round: is {reached}, by when"):
            one.ask()
        assert one.round == reached
        assert one.ask(round=reached - 1).round == reached - 1  # another decision in the last round
        one.replace_model(LGDS(np.diag([0.9, 0.5]), np.eye(2), 1.0))
        assert one.ask().round == reached
    assert back.to_json() == agent.to_json()


@pytest.mark.parametrize(
    "change",
    [
        lambda a: a.advance(10**6),
        lambda a: a.tell_play(0, 1.0, round=10**6),
        lambda a: a.tell_log([(3, 0, 1.0), (10**6, 0, 1.0)]),
        lambda a: a.ask_many(2, round=10**6),
    ],
)
def test_time_that_cannot_pass(change):
    agent = Agent(UNSEEN, SECOND)
    agent.tell(agent.ask(), 1.0)
    before = agent.to_json()
    with pytest.raises(InvalidInput, match=r"round: is 10000.., by when the state has outgrown"):
        change(agent)
    assert agent.to_json() == before
    agent.advance(10)
    assert agent.ask().round == 11


def test_a_file_is_not_replaced_by_one_that_cannot_be_read(tmp_path):
    path = tmp_path / "agent.json"
    agent = Agent(MODEL, ARMS, window=0)
    agent.tell(agent.ask(), 1.0)
    agent.save(path)
    good = path.read_text()
    agent._history.ledger.state = agent._history.ledger.state._replace(mean=np.array([np.nan, 0.0]))
    with pytest.raises(InvalidInput, match="state: has outgrown"):
        agent.save(path)
    assert path.read_text() == good
    own = policies.optimistic("own", policies.idea.bonus)
    object.__setattr__(own, "parameters", {"width": float("inf")})
    with pytest.raises(InvalidInput, match="agent: cannot be written as JSON"):
        Agent(MODEL, ARMS, own).save(path)
    assert path.read_text() == good


def test_rounds_end(tmp_path):
    """Where they could no longer be told apart; what was saved is still good."""
    agent = Agent(MODEL, ARMS)
    agent.ask(round=2**53)
    with pytest.raises(InvalidInput, match=f"round: is {2**53 + 1}"):
        agent.ask()
    with pytest.raises(InvalidInput, match="round: is"):
        agent.tell_play(0, 1.0)
    agent.save(tmp_path / "agent.json")
    assert Agent.load(tmp_path / "agent.json").to_json() == agent.to_json()


@pytest.mark.parametrize("path", [3, None, "a\0b"])
def test_paths_that_are_none(path):
    with pytest.raises(InvalidInput) as caught:
        Agent(MODEL, ARMS).save(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput):
        Agent.load(path)


def test_a_bonus_that_is_no_number_is_refused():
    own = policies.optimistic("own", lambda cov, model, arms: arms[:, 0] * np.nan)
    agent = Agent(MODEL, ARMS, own)
    with pytest.raises(InvalidInput, match=r"policy 'own': gives arm 0 .* the bonus nan"):
        agent.ask()
    assert agent.round == 0


def test_one_bonus_that_is_no_number_is_refused():
    """Whichever arm it is of: comparisons with it are false, and must not choose another arm."""
    last = np.arange(len(ARMS)) == len(ARMS) - 1
    own = policies.optimistic("own", lambda cov, model, arms: np.where(last, np.nan, 0.0))
    with pytest.raises(InvalidInput, match=r"policy 'own': gives arm .* the bonus nan"):
        Agent(MODEL, ARMS, own).ask()


# Tampering.


def lived(policy, **options):
    """An agent with all that can be stored: open and settled plays, others' plays, features."""
    agent = Agent(MODEL, ARMS, policy, window=4, names=["a", "b", 7], seed=1, **options)
    everything = agent.policy.full_information
    for t in range(9):
        decision = agent.ask()
        if t % 4:
            agent.tell(decision, [0.1, 0.2, 0.3] if everything else 0.3 * t)
    if not everything:
        agent.tell_play("b", 0.5, round=7)
    if agent.policy.agent.reads_features and not everything and "refit" not in options:
        agent.tell(agent.ask(arms={"guest": [1.0, 0.5]}), 0.2)
    return agent


LIVES = {
    "idea": lambda: lived("idea"),
    "learning": lambda: lived("kalman_ucb", refit=Refit(after=1000)),
    "window": lambda: lived("sliding_window_ucb(window=5)"),
    "ridge": lambda: lived("sliding_window_linucb(window=5)"),
    "rexp3": lambda: lived("rexp3"),
    "oracle": lambda: lived("kalman_oracle"),
    "sphere": lambda: ball(),
}


def ball():
    agent = Agent(MODEL, "sphere", window=2)
    for _ in range(6):
        agent.tell(agent.ask(), 0.5)
    return agent


def places(inside, path=()):
    """Every field, and every entry of a list, however deep."""
    if path:
        yield path
    if isinstance(inside, dict | list):
        for key in inside if isinstance(inside, dict) else range(len(inside)):
            yield from places(inside[key], (*path, key))


VALUES = [
    None, True, False, 0, 1, -1, 3, 10**6, -(10**6), 2**53, -(2**53), 2**70, 10**400, 0.5, -0.5,
    1e20, 1e150, 1e308, float("nan"), float("inf"), "", "a", "idea", [], [1], [[1]], {}, {"a": 1},
]  # fmt: skip


def put(inside, path, value, gone):
    for key in path[:-1]:
        inside = inside[key]
    if gone:
        del inside[path[-1]]
    else:
        inside[path[-1]] = value


def used(text):
    """An agent from the text does all that agents do, or something is refused in one line."""
    agent = Agent.from_json(text)
    agent.scores() if agent.actions.listed else None
    decision = agent.ask()
    agent.tell(decision, [0.1] * 3 if agent.policy.full_information else 0.1)
    agent.ask()
    Agent.from_json(agent.to_json())


def tampered(whole, changes):
    changed = copy.deepcopy(whole)
    for path, value, gone in changes:
        put(changed["agent"], path, value, gone)
    changed["checksum"] = hashlib.sha256(json.dumps(changed["agent"]).encode()).hexdigest()
    return json.dumps(changed)


@pytest.mark.parametrize(
    "times", [150, pytest.param(5_000, marks=pytest.mark.nightly)], ids=["some", "many"]
)
@pytest.mark.parametrize("life", LIVES)
def test_whatever_is_stored(life, times):
    """Fields of all kinds put in the place of others, the checksum made anew."""
    rng = random.Random(life)
    whole = json.loads(LIVES[life]().to_json())
    used(json.dumps(whole))
    everywhere = list(places(whole["agent"]))
    top = [path for path in everywhere if len(path) < 3 and path[:1] != ("log",)]
    refused = []
    for number in range(times):
        path = rng.choice(top if rng.random() < 0.6 else everywhere)
        value = rng.choice(VALUES)
        if path == ("rounds",) and type(value) is int and value > 10**6:
            continue  # as in a new agent: some policies keep one number for each round
        text = tampered(whole, [(path, value, rng.random() < 0.1)])
        try:
            with np.errstate(all="ignore"):
                used(text)
        except (InvalidInput, MissingExtra) as error:  # the plain install has no refits
            refused.append(str(error))
        except Exception as error:
            raise AssertionError(f"{number}: {path} = {value!r} gave {error!r}") from error
    assert times / 4 < len(refused) < times
    assert not [message for message in refused if "\n" in message]


def test_time_that_runs_backwards_is_refused():
    """It was read, and then never came back."""
    whole = json.loads(lived("idea").to_json())
    for changes in (
        [(("round",), 2, False), (("now",), 2, False)],
        [(("open", 0, 1), 10**9, False)],
        [(("settled", "round"), 10**9, False)],
        [(("log", 0, 1), 10**9, False)],
    ):
        with pytest.raises(InvalidInput, match="text rounds: run backwards"):
            Agent.from_json(tampered(whole, changes))
    for number in (0, 10**6):
        with pytest.raises(InvalidInput, match="text id: comes twice, or was never given out"):
            Agent.from_json(tampered(whole, [(("open", 1, 0), number, False)]))


def test_format_2_is_read():
    """Row numbers for names, and refits that decisions wait for, as they were."""
    agent = Agent(MODEL, ARMS, window=2, refit=Refit(after=50, background=False))
    for t in range(8):
        agent.tell(agent.ask(), 0.1 * t)
    whole = json.loads(agent.to_json())
    whole["driftbandit_agent"] = 2
    for field in ("names", "memory", "base", "complete"):
        del whole["agent"][field]
    del whole["agent"]["refit"]["background"]
    back = Agent.from_json(tampered(whole, []))
    assert back.names == (0, 1, 2)
    assert back.refit_options == agent.refit_options
    assert not back._history.complete  # it cannot be known
    assert back.ask() == agent.ask()
    np.testing.assert_array_equal(back.state.cov, agent.state.cov)
