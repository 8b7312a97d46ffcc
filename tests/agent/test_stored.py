"""Stored agents, some of them damaged or tampered with."""

import copy
import hashlib
import json
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest

from driftbandit import (
    Agent,
    InvalidInput,
    Refit,
    families,
    policies,
)
from driftbandit.errors import MissingExtra
from driftbandit.policies import optimistic
from refusals import EYE, NAN, STABLE, Case, assert_refused, each

MODEL, ARMS = families.sample("gaussian", n_states=2, n_arms=3, seed=3)[0]


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


@pytest.mark.parametrize("path", [3, None, "a\0b"])
def test_paths_that_are_none(path):
    with pytest.raises(InvalidInput) as caught:
        Agent(MODEL, ARMS).save(path)
    assert "\n" not in str(caught.value)
    with pytest.raises(InvalidInput):
        Agent.load(path)


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


def greedy(cov, model, arms):
    return 0 * arms[:, 0]


def edited(agent, without=None, **changes):
    """The agent's JSON text with some fields replaced or one left out, its checksum put right."""
    whole = json.loads(agent.to_json())
    whole["agent"] |= changes
    whole["agent"].pop(without, None)
    whole["checksum"] = hashlib.sha256(json.dumps(whole["agent"]).encode()).hexdigest()
    return json.dumps(whole)


def test_an_agent_keeps_the_policy_it_was_stored_with():
    """Also one that was the default once."""
    assert Agent(STABLE, EYE).policy == policies.make(policies.PREFERRED)
    again = Agent.from_json(Agent(STABLE, EYE, "idea").to_json())
    assert again.policy == policies.make("idea")
    assert again.ask() == Agent(STABLE, EYE, "idea").ask()


def restored(policy="idea", without=None, **changes):
    """from_json of a stored agent with some of its fields replaced or one left out."""
    return Agent.from_json(edited(Agent(STABLE, EYE, policy), without, **changes))


def settled(**state):
    return {"round": 0, "state": state}


def loaded(change):
    """Load an agent's file whose text went through ``change``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.json"
        agent = Agent(STABLE, EYE)
        agent.tell(agent.ask(), 1.5)
        agent.save(path)
        changed = change(path.read_text())
        path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
        try:
            Agent.load(path)
        except InvalidInput as error:
            assert str(error).startswith(str(path))  # noqa: PT017 - it goes on below
            raise InvalidInput("FILE", error.problem, error.remedy) from None


FRESH = {"state": {"mean": [0, 0], "cov": [[1, 0], [0, 1]]}}


def test_any_damaged_byte_is_noticed():
    """Flipped anywhere: refused in one line, or it says the same as before."""
    agent = Agent(STABLE, EYE, "kalman_ucb(width=0.3)", refit=Refit())
    for reward in (0.1, -1 / 3, 1e-9):
        agent.tell(agent.ask(), reward)
    agent.ask(arms=[[0.1, 0.7]])
    text = agent.to_json()
    rng = np.random.default_rng(0)
    for place in range(len(text)):
        other = chr(ord(text[place]) ^ (1 << int(rng.integers(7))))
        try:
            said = Agent.from_json(text[:place] + other + text[place + 1 :]).to_json()
        except InvalidInput as error:
            said = text if "\n" not in str(error) else "two lines"
        assert said == text


TEXT_CASES = [
    Case("not JSON", lambda: Agent.from_json("{"), "text", "line 1 column 2"),
    Case("not text", lambda: Agent.from_json(None), "text", "NoneType"),
    Case("other JSON", lambda: Agent.from_json('{"a": 1}'), "text", "not a stored agent"),
    Case("JSON list", lambda: Agent.from_json("[1]"), "text", "not a stored agent"),
    Case(
        "newer format",
        lambda: Agent.from_json('{"driftbandit_agent": 4, "news": []}'),
        "text",
        "format 4; this version reads format 3",
    ),
    Case("older format", lambda: Agent.from_json('{"driftbandit_agent": 1}'), "text", "format 1"),
    Case(
        "nothing inside", lambda: Agent.from_json('{"driftbandit_agent": 3}'), "text", "is damaged"
    ),
    Case("no rounds", lambda: restored(without="rounds"), "text", "'rounds'"),
    Case("no settled", lambda: restored(without="settled"), "text", "'settled'"),
    Case("no state", lambda: restored(settled={"round": 0}), "text", "'state'"),
    Case("no mean", lambda: restored(settled=settled(cov=[[1, 0], [0, 1]])), "text", "'mean'"),
    Case(
        "state shape",
        lambda: restored(settled=settled(mean=[0, 0, 0], cov=[[1, 0], [0, 1]])),
        "text state.mean",
        "(3,)",
    ),
    Case(
        "state NaN",
        lambda: restored(settled=settled(mean=[0, 0], cov=[[1, 0], [0, NAN]])),
        "text state.cov",
        "[1, 1] is nan",
    ),
    Case("round -1", lambda: restored(round=-1), "text round", "-1"),
    Case("now 0.5", lambda: restored(now=0.5), "text now", "0.5"),
    Case("decided None", lambda: restored(decided=None), "text decided", "None"),
    Case("settled -1", lambda: restored(settled={"round": -1} | FRESH), "text rounds", "0 to -1"),
    Case("open too short", lambda: restored(open=[[0, 0]]), "text decision", "[0, 0]"),
    Case("open None", lambda: restored(open=None), "text", "NoneType"),
    Case("open reward", lambda: restored(open=[[0, 0, 0, None, NAN]]), "text reward", "nan"),
    Case("stored seed", lambda: restored(seed=0.5), "text seed", "0.5"),
    Case("stored window", lambda: restored(window=None), "text window", "None"),
    Case("stored policy", lambda: restored(policy="iddea"), "policy", "did you mean 'idea'?"),
    Case(
        "stored parameter", lambda: restored(parameters={"w": 1}), "text idea(w=…)", "valid: none"
    ),
    Case("stored model", lambda: restored(model=[1]), "text model file", "list"),
    Case("stored refit", lambda: restored(refit={"after": 1}), "text after", "is 1"),
    Case("stored refit list", lambda: restored(refit=[1]), "text", "mapping"),
    Case("stored refit unknown", lambda: restored(refit={"when": 1}), "text", "'when'"),
    Case(
        "own policy not given",
        lambda: restored(optimistic("my own", greedy)),
        "text policy",
        "my own",
    ),
    Case(
        "another policy given",
        lambda: Agent.from_json(Agent(STABLE, EYE).to_json(), "kode"),
        "text policy",
        "is kode, stored was reach",
    ),
    Case(
        "other parameters given",
        lambda: Agent.from_json(Agent(STABLE, EYE, "kalman_ucb").to_json(), "kalman_ucb(width=2)"),
        "text policy",
        "width",
    ),
    Case("file digit", lambda: loaded(lambda text: text.replace("1.5", "1.6")), "FILE", "damaged"),
    Case("file half", lambda: loaded(lambda text: text[: len(text) // 2]), "FILE", "not JSON"),
    Case("file without its end", lambda: loaded(lambda text: text[:-1]), "FILE", "not JSON"),
    Case("file of nothing", lambda: loaded(lambda text: ""), "FILE", "not JSON"),
    Case("file of zeros", lambda: loaded(lambda text: bytes(len(text))), "FILE", "not JSON"),
    Case("file not text", lambda: loaded(lambda text: b"\xff" * 9), "FILE", "cannot be read"),
    Case(
        "file checksum",
        lambda: loaded(lambda text: text.replace('"checksum": "', '"checksum": "0')),
        "FILE",
        "damaged",
    ),
    Case(
        "file newer",
        lambda: loaded(lambda text: text.replace('_agent": 3', '_agent": 4')),
        "FILE",
        "format 4",
    ),
    Case("no such agent", lambda: Agent.load("/no/such/agent"), "/no/such/agent", "cannot be read"),
    Case("agent folder", lambda: Agent.load("/"), "/", "cannot be read"),
    Case("agent path None", lambda: Agent.load(None), "None", "cannot be read"),
    Case("agent path zero", lambda: Agent.load("a\0b"), "'a\\x00b'", "cannot be read"),
    Case(
        "stored state list",
        lambda: restored(settled={"round": 0, "state": []}),
        "text",
        "its state is []",
    ),
    Case(
        "stored parameters list",
        lambda: restored(parameters=[1]),
        "text",
        "cannot be read: driftbandit.policies.make() argument after **",
    ),
    Case(
        "stored text deep",
        lambda: Agent.from_json("[" * 100_000),
        "text",
        "not JSON",
    ),
]


@each(TEXT_CASES)
def test_bad_texts_are_refused(case):
    assert_refused(case)
