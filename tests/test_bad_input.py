"""Wrong arguments: refused before any work, in one line that names the argument and its value."""

import dataclasses
import hashlib
import json
import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import driftbandit as db
from driftbandit import LGDS, Agent, Decision, InvalidInput, NotDetectable
from driftbandit.agent import Refit
from driftbandit.io import model_file
from driftbandit.kalman import log_likelihood
from driftbandit.paper import perturbation, readings
from driftbandit.paper.readings import Cell as StudyCell
from driftbandit.policies import available, make, optimistic
from driftbandit.result import Timing
from driftbandit.simulation import Options, engine, jobs
from driftbandit.statistics import median_interval, paired
from driftbandit.steady_state import detectable, oracle_cov, prediction_cov
from driftbandit.studies import Specification

NAN, INF = float("nan"), float("inf")
EYE = np.eye(2)
MODEL = LGDS(0.5 * EYE, EYE, 1.0)
UNSTABLE = LGDS(2 * EYE, EYE, 1.0, initial_cov=EYE)
HALF_SEEN = LGDS(np.diag([2.0, 0.5]), EYE, 1.0, initial_cov=EYE)
SMALL = LGDS([[0.5]], [[1.0]], 1.0)


class Case(NamedTuple):
    id: str
    call: Callable[[], Any]
    argument: str
    """What the message must begin with."""
    value: str
    """What it must show."""
    error: type[ValueError] = InvalidInput


def lgds(transition=0.5 * EYE, process_cov=EYE, reward_std=1.0, initial_cov=None):
    return LGDS(transition, process_cov, reward_std, initial_cov)


def simulate(model=MODEL, arms=EYE, policies=("idea", "random"), rounds=10, runs=2, **options):
    studied = [f.name for f in dataclasses.fields(Options) if f.name in options]
    if studied:
        options["options"] = Options(**{name: options.pop(name) for name in studied})
    return db.simulate(model, arms, policies, rounds, runs, **options)


def told(reward, policy="idea"):
    agent = Agent(MODEL, EYE, policy)
    agent.tell(agent.ask(), reward)


def told_wrong(decision):
    agent = Agent(MODEL, EYE)
    agent.ask()
    agent.tell(decision, 1.0)


def told_twice(first, second, policy="idea", arms=EYE):
    agent = Agent(LGDS(0.5 * np.eye(len(arms)), np.eye(len(arms)), 1.0), arms, policy)
    decision = agent.ask()
    agent.tell(decision, first)
    agent.tell(decision, second)


def decided(number, arm, round=0):
    return Decision(number, arm, round, None, None, None)


def asked(arms=None, round=None, policy="idea", refit=None):
    """Ask an agent that has come to round 7."""
    agent = Agent(MODEL, EYE, policy, refit=refit)
    agent.advance(7)
    return agent.ask(arms, round=round)


def greedy(cov, model, arms):
    return 0 * arms[:, 0]


def edited(agent, without=None, **changes):
    """The agent's JSON text with some fields replaced or one left out, its checksum put right."""
    whole = json.loads(agent.to_json())
    whole["agent"] |= changes
    whole["agent"].pop(without, None)
    whole["checksum"] = hashlib.sha256(json.dumps(whole["agent"]).encode()).hexdigest()
    return json.dumps(whole)


def restored(policy="idea", without=None, **changes):
    """from_json of a stored agent with some of its fields replaced or one left out."""
    return Agent.from_json(edited(Agent(MODEL, EYE, policy), without, **changes))


def settled(**state):
    return {"round": 0, "state": state}


def loaded(change):
    """Load an agent's file whose text went through ``change``."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "agent.json"
        agent = Agent(MODEL, EYE)
        agent.tell(agent.ask(), 1.5)
        agent.save(path)
        changed = change(path.read_text())
        path.write_bytes(changed if isinstance(changed, bytes) else changed.encode())
        try:
            Agent.load(path)
        except InvalidInput as error:
            assert str(error).startswith(str(path))  # noqa: PT017 - it goes on below
            raise InvalidInput("FILE", error.problem, error.remedy) from None


def read(content, name="model.json"):
    """model_file.load_model of a file with this text, or with this JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return model_file.load_model(path)


def document(without=None, **changes):
    result = model_file.to_document(MODEL, EYE) | changes
    result.pop(without, None)
    return result


LGDS_CASES = [
    Case("transition 3x2", lambda: lgds(np.ones((3, 2))), "transition", "(3, 2)"),
    Case("transition 1-D", lambda: lgds([0.5, 0.5]), "transition", "(2,)"),
    Case("transition number", lambda: lgds(0.5), "transition", "()"),
    Case("transition 3-D", lambda: lgds(np.ones((2, 2, 2))), "transition", "(2, 2, 2)"),
    Case("transition ragged", lambda: lgds([[1, 2], [3]]), "transition", "[[1, 2], [3]]"),
    Case("transition text", lambda: lgds("gamma"), "transition", "'gamma'"),
    Case("transition nested text", lambda: lgds([["a", 0], [0, 1]]), "transition", "'a'"),
    Case("transition dict", lambda: lgds({"a": 1}), "transition", "{'a': 1}"),
    Case("transition None", lambda: lgds(None), "transition", "None"),
    Case("transition complex", lambda: lgds([[1j, 0], [0, 1]]), "transition", "1j"),
    Case("transition NaN", lambda: lgds([[0.5, NAN], [0, 0.5]]), "transition", "[0, 1] is nan"),
    Case("transition inf", lambda: lgds([[0.5, 0], [INF, 0.5]]), "transition", "[1, 0] is inf"),
    Case("transition empty", lambda: lgds(np.zeros((0, 0))), "transition", "(0, 0)"),
    Case("transition empty list", lambda: lgds([]), "transition", "(0,)"),
    Case("process_cov 3x3", lambda: lgds(process_cov=np.eye(3)), "process_cov", "(3, 3)"),
    Case("process_cov 1-D", lambda: lgds(process_cov=[1.0, 1.0]), "process_cov", "(2,)"),
    Case("process_cov text", lambda: lgds(process_cov="Q"), "process_cov", "'Q'"),
    Case("process_cov None", lambda: lgds(process_cov=None), "process_cov", "None"),
    Case(
        "process_cov NaN",
        lambda: lgds(process_cov=[[1, 0], [0, NAN]]),
        "process_cov",
        "[1, 1] is nan",
    ),
    Case(
        "process_cov -inf",
        lambda: lgds(process_cov=[[-INF, 0], [0, 1]]),
        "process_cov",
        "[0, 0] is -inf",
    ),
    Case(
        "process_cov asymmetric",
        lambda: lgds(process_cov=[[1, 0.25], [0, 1]]),
        "process_cov",
        "entry [0, 1] is 0.25 but [1, 0] is 0",
    ),
    Case(
        "process_cov indefinite",
        lambda: lgds(process_cov=[[1, 2], [2, 1]]),
        "process_cov",
        "eigenvalue -1",
    ),
    Case("reward_std -1", lambda: lgds(reward_std=-1), "reward_std", "-1"),
    Case("reward_std NaN", lambda: lgds(reward_std=NAN), "reward_std", "nan"),
    Case("reward_std inf", lambda: lgds(reward_std=INF), "reward_std", "inf"),
    Case("reward_std text", lambda: lgds(reward_std="1"), "reward_std", "'1'"),
    Case("reward_std None", lambda: lgds(reward_std=None), "reward_std", "None"),
    Case("reward_std True", lambda: lgds(reward_std=True), "reward_std", "True"),
    Case("reward_std list", lambda: lgds(reward_std=[1.0]), "reward_std", "[1.0]"),
    Case("reward_std complex", lambda: lgds(reward_std=1j), "reward_std", "1j"),
    Case("initial_cov 1x1", lambda: lgds(initial_cov=[[1.0]]), "initial_cov", "(1, 1)"),
    Case(
        "initial_cov asymmetric",
        lambda: lgds(initial_cov=[[1, 0.5], [0, 1]]),
        "initial_cov",
        "0.5",
    ),
    Case("initial_cov indefinite", lambda: lgds(initial_cov=-EYE), "initial_cov", "-1"),
    Case("initial_cov NaN", lambda: lgds(initial_cov=NAN * EYE), "initial_cov", "nan"),
    Case("state_cov -1 rounds", lambda: MODEL.state_cov(-1), "rounds", "-1"),
    Case("gramian width", lambda: MODEL.observability_gramian(np.ones((4, 3))), "played", "(4, 3)"),
]

ARM_CASES = [
    Case("arms too wide", lambda: Agent(MODEL, np.ones((4, 3))), "arms", "(4, 3)"),
    Case("arms 1-D", lambda: Agent(MODEL, [1.0, 1.0]), "arms", "(2,)"),
    Case("arms empty", lambda: Agent(MODEL, np.zeros((0, 2))), "arms", "(0, 2)"),
    Case("arms zero row", lambda: Agent(MODEL, [[1, 1], [0, 0]]), "arms", "row 1"),
    Case("arms NaN", lambda: Agent(MODEL, [[1, 0], [0, NAN]]), "arms", "[1, 1] is nan"),
    Case("arms inf", lambda: Agent(MODEL, [[-INF, 0]]), "arms", "[0, 0] is -inf"),
    Case("arms ragged", lambda: Agent(MODEL, [[1, 0], [1]]), "arms", "[[1, 0], [1]]"),
    Case("arms text", lambda: Agent(MODEL, "all"), "arms", "'all'"),
    Case("simulate arms wide", lambda: simulate(arms=np.ones((2, 3))), "arms", "(2, 3)"),
    Case("simulate arms zero row", lambda: simulate(arms=[[0, 0]]), "arms", "row 0"),
    Case("detectable arms", lambda: detectable(MODEL, [[1.0]]), "arms", "(1, 1)"),
]

SIMULATE_CASES = [
    Case("rounds 0", lambda: simulate(rounds=0), "rounds", "is 0"),
    Case("rounds -1", lambda: simulate(rounds=-1), "rounds", "-1"),
    Case("rounds 2.5", lambda: simulate(rounds=2.5), "rounds", "2.5"),
    Case("rounds True", lambda: simulate(rounds=True), "rounds", "True"),
    Case("rounds text", lambda: simulate(rounds="many"), "rounds", "'many'"),
    Case("rounds None", lambda: simulate(rounds=None), "rounds", "None"),
    Case("runs 0", lambda: simulate(runs=0), "runs", "is 0"),
    Case("runs 1.0", lambda: simulate(runs=1.0), "runs", "1.0"),
    Case("seed -1", lambda: simulate(seed=-1), "seed", "-1"),
    Case("seed 2**63", lambda: simulate(seed=2**63), "seed", str(2**63)),
    Case("seed None", lambda: simulate(seed=None), "seed", "None"),
    Case("first_system -1", lambda: simulate(first_system=-1), "first_system", "-1"),
    Case("warmup -1", lambda: simulate(warmup=-1), "warmup", "-1"),
    Case("warmup 2.5", lambda: simulate(warmup=2.5), "warmup", "2.5"),
    Case("workers 0", lambda: simulate(workers=0), "workers", "is 0"),
    Case("options dict", lambda: simulate(options={"warmup": 3}), "options", "dict"),
    Case("policy ideaa", lambda: simulate(policies=["ideaa"]), "policy", "did you mean 'idea'?"),
    Case("policy ideaa shown", lambda: simulate(policies=["ideaa"]), "policy", "'ideaa'"),
    Case(
        "policy kalman-ocb",
        lambda: simulate(policies=["idea", "kalman-ocb"]),
        "policy",
        "did you mean 'kalman_ucb'?",
    ),
    Case("policy far off", lambda: simulate(policies=["zzz"]), "policy", "'zzz'"),
    Case("policy number", lambda: simulate(policies=[7]), "policy", "7"),
    Case("policies empty", lambda: simulate(policies=[]), "policies", "empty"),
    Case("idea twice", lambda: simulate(policies=["idea", "idea"]), "policies", "idea"),
    Case(
        "kalman_ucb twice",
        lambda: simulate(policies=["kalman_ucb", "kalman-ucb(width=1)"]),
        "policies",
        "kalman_ucb(width=1)",
    ),
    Case(
        "policy parameter",
        lambda: simulate(policies=["kalman_ucb(width=-2)"]),
        "width",
        "-2",
    ),
    Case("arms missing", lambda: simulate(arms=None), "arms", "missing"),
    Case("arms beside a sequence", lambda: simulate([(MODEL, EYE)]), "arms", "with a sequence"),
    Case("sequence empty", lambda: simulate([], None), "model", "empty"),
    Case("sequence of models", lambda: simulate([MODEL], None), "model[0]", "LGDS"),
    Case("sequence of numbers", lambda: simulate([(1, EYE)], None), "model[0]", "tuple"),
    Case("model number", lambda: simulate(3, None), "model", "int"),
    Case("model text", lambda: simulate("gaussian", None), "model", "str"),
    Case(
        "systems of two widths",
        lambda: simulate([(MODEL, EYE), (SMALL, [[1.0]])], None),
        "arms of system 1",
        "(1, 1)",
    ),
    Case(
        "systems of two arm counts",
        lambda: simulate([(MODEL, EYE), (MODEL, np.ones((3, 2)))], None),
        "arms of system 1",
        "(3, 2)",
    ),
    Case(
        "zero arm in system 1",
        lambda: simulate([(MODEL, EYE), (MODEL, 0 * EYE)], None),
        "arms of system 1",
        "row 0",
    ),
    Case("unstable", lambda: simulate(lgds(2 * EYE)), "transition", "spectral radius 2"),
    Case("unstable 5000 rounds", lambda: simulate(UNSTABLE, rounds=5000), "rounds", "5000"),
    Case(
        "unstable second system",
        lambda: simulate([(MODEL, EYE), (UNSTABLE, EYE)], None, rounds=10**9),
        "rounds",
        "1000000000, by when the state of system 1",
    ),
    Case(
        "oracle blind",
        lambda: simulate(HALF_SEEN, [[0.0, 1.0]], ["kalman_oracle"]),
        "arms",
        "spectral radius 2",
        NotDetectable,
    ),
    Case("dtype float16", lambda: simulate(dtype="float16"), "dtype", "float16"),
    Case("dtype int", lambda: simulate(dtype=int), "dtype", "int"),
    Case("device gppu", lambda: simulate(device="gppu"), "device", "did you mean 'gpu'?"),
    Case("device number", lambda: simulate(device=3), "device", "3"),
]

MAKE_CASES = [
    Case("unknown parameter", lambda: make("kalman_ucb", widht=2), "kalman_ucb", "widht"),
    Case("unknown parameter in text", lambda: make("ucb(width=2)"), "ucb(width=…)", "valid: delta"),
    Case("parameter of idea", lambda: make("idea(width=2)"), "idea(width=…)", "valid: none"),
    Case("no closing", lambda: make("kalman_ucb(width=2"), "policy", "'kalman_ucb(width=2'"),
    Case("no equals sign", lambda: make("kalman_ucb(2)"), "policy", "'2'"),
    Case("empty text", lambda: make(""), "policy", "''"),
    Case("not a number", lambda: make("kalman_ucb(width=two)"), "kalman_ucb(width=…)", "'two'"),
    Case("keyword text", lambda: make("kalman_ucb", width="2"), "width", "'2'"),
    Case("keyword None", lambda: make("ucb", delta=None), "delta", "None"),
    Case("width -1", lambda: make("kalman_ucb(width=-1)"), "width", "-1"),
    Case("width NaN", lambda: make("kalman_ucb(width=nan)"), "width", "nan"),
    Case("width inf", lambda: make("kalman_ucb", width=INF), "width", "inf"),
    Case("delta 0", lambda: make("ucb(delta=0)"), "delta", "is 0"),
    Case("delta 1", lambda: make("oful(delta=1)"), "delta", "is 1"),
    Case("delta 2", lambda: make("sliding_window_ucb(delta=2)"), "delta", "is 2"),
    Case("window 0", lambda: make("sliding_window_ucb(window=0)"), "window", "is 0"),
    Case("window 2.5", lambda: make("sliding_window_ucb(window=2.5)"), "window", "2.5"),
    Case("batch 0", lambda: make("rexp3(batch=0)"), "batch", "is 0"),
    Case("gamma 2", lambda: make("rexp3(gamma=2)"), "gamma", "is 2"),
    Case("gamma -0.1", lambda: make("rexp3(gamma=-0.1)"), "gamma", "-0.1"),
    Case("gamma 1.1", lambda: make("discounted_ucb(gamma=1.1)"), "gamma", "is 1.1"),
    Case("xi -1", lambda: make("discounted_ucb(xi=-1)"), "xi", "-1"),
    Case("ridge 0", lambda: make("oful(ridge=0)"), "ridge", "is 0"),
    Case("bound -1", lambda: make("oful(bound=-1)"), "bound", "-1"),
    Case("discount -1", lambda: make("discounted_linucb(gamma=-1)"), "gamma", "-1"),
    Case("discounted delta", lambda: make("discounted_linucb(delta=1)"), "delta", "is 1"),
    Case("discounted ridge", lambda: make("discounted_linucb(ridge=0)"), "ridge", "is 0"),
    Case("discounted bound", lambda: make("discounted_linucb(bound=-2)"), "bound", "-2"),
]

FAMILY_CASES = [
    Case("gausian", lambda: db.families.sample("gausian"), "family", "did you mean 'gaussian'?"),
    Case("family number", lambda: db.families.sample(3), "family", "3"),
    Case("family None", lambda: db.families.sample(None), "family", "None"),
    Case("systems 0", lambda: db.families.sample("uniform", systems=0), "systems", "is 0"),
    Case("states 0", lambda: db.families.sample("uniform", n_states=0), "n_states", "is 0"),
    Case("arms 0", lambda: db.families.sample("uniform", n_arms=0), "n_arms", "is 0"),
    Case("family seed -1", lambda: db.families.sample("uniform", seed=-1), "seed", "-1"),
    Case("first -1", lambda: db.families.sample("uniform", first=-1), "first", "-1"),
]

AGENT_CASES = [
    Case("agent model dict", lambda: Agent({"a": 1}, EYE), "model", "dict"),
    Case("agent rounds 0", lambda: Agent(MODEL, EYE, rounds=0), "rounds", "is 0"),
    Case("agent seed -1", lambda: Agent(MODEL, EYE, seed=-1), "seed", "-1"),
    Case("agent policy", lambda: Agent(MODEL, EYE, "kod"), "policy", "did you mean 'kode'?"),
    Case("agent unstable", lambda: Agent(lgds(2 * EYE), EYE), "transition", "spectral radius 2"),
    Case(
        "agent oracle blind",
        lambda: Agent(HALF_SEEN, [[0.0, 1.0]], "kalman_oracle"),
        "arms",
        "spectral radius 2",
        NotDetectable,
    ),
    Case("agent window -1", lambda: Agent(MODEL, EYE, window=-1), "window", "-1"),
    Case("agent window None", lambda: Agent(MODEL, EYE, window=None), "window", "None"),
    Case("agent refit True", lambda: Agent(MODEL, EYE, refit=True), "refit", "True"),
    Case("agent refit dict", lambda: Agent(None, EYE, refit={"after": 9}), "refit", "'after': 9"),
    Case("agent no model, no arms", lambda: Agent(None, None), "arms", "is missing"),
    Case("agent no model, zero arm", lambda: Agent(None, [[0.0]]), "arms", "row 0"),
    Case(
        "oracle refit",
        lambda: Agent(MODEL, EYE, "kalman_oracle", refit=Refit()),
        "refit",
        "kalman_oracle",
    ),
    Case("tell unknown", lambda: told_wrong(decided(7, 0)), "decision", "7 was never made"),
    Case("tell other arm", lambda: told_wrong(decided(0, 1)), "decision", "arm=1"),
    Case("tell other round", lambda: told_wrong(decided(0, 0, 3)), "decision", "round=3"),
    Case("tell unknown number", lambda: told_wrong(1), "decision", "1 was never made"),
    Case("tell -1", lambda: told_wrong(-1), "decision", "-1 was never made"),
    Case("tell True", lambda: told_wrong(True), "decision", "True"),
    Case("tell 0.0", lambda: told_wrong(0.0), "decision", "0.0"),
    Case("tell tuple", lambda: told_wrong((0, 0)), "decision", "(0, 0)"),
    Case("tell None", lambda: told_wrong(None), "decision", "None"),
    Case(
        "tell unasked",
        lambda: Agent(MODEL, EYE).tell(decided(3, 0), 1.0),
        "decision",
        "3 was never made: there are 0",
    ),
    Case("conflicting", lambda: told_twice(1.5, 2.5), "reward", "is 2.5, but decision 0 was told"),
    Case("conflicting None", lambda: told_twice(1.5, None), "reward", "is None"),
    Case(
        "conflicting rows",
        lambda: told_twice(np.ones(30), np.zeros(30), "kalman_oracle", np.eye(30)),
        "reward",
        "decision 0",
    ),
    Case("duplicate NaN", lambda: told_twice(1.0, NAN), "reward", "nan"),
    Case(
        "ask round 6", lambda: asked(round=6), "round", "is 6, but the agent is already at round 7"
    ),
    Case("ask round -1", lambda: asked(round=-1), "round", "-1"),
    Case("ask round 7.0", lambda: asked(round=7.0), "round", "7.0"),
    Case("ask round True", lambda: asked(round=True), "round", "True"),
    Case("ask arm 2", lambda: asked([0, 2]), "arms", "holds 2; give indices of 0..1"),
    Case("ask arm -1", lambda: asked([0, -1]), "arms", "holds -1"),
    Case("ask no arms", lambda: asked([]), "arms", "is empty"),
    Case("ask no indices", lambda: asked(np.array([], int)), "arms", "is empty"),
    Case("ask no features", lambda: asked(np.zeros((0, 2))), "arms", "(0, 2)"),
    Case("ask floats", lambda: asked([0.0, 1.0]), "arms", "[0.0, 1.0]"),
    Case("ask mask", lambda: asked([True, False]), "arms", "[True, False]"),
    Case("ask text", lambda: asked("all"), "arms", "'all'"),
    Case("ask number", lambda: asked(1), "arms", "is 1"),
    Case("ask ragged", lambda: asked([[1.0, 2.0], [3.0]]), "arms", "[[1.0, 2.0], [3.0]]"),
    Case("ask long floats", lambda: asked(np.arange(99.0)), "arms", "array"),
    Case("ask wide features", lambda: asked(np.ones((4, 3))), "arms", "(4, 3)"),
    Case("ask NaN features", lambda: asked([[1.0, NAN]]), "arms", "[0, 1] is nan"),
    Case("ask zero features", lambda: asked([[1.0, 0.0], [0.0, 0.0]]), "arms", "row 1"),
    Case("ask text features", lambda: asked([["a", "b"]]), "arms", "'a'"),
    Case("ask 3-D", lambda: asked(np.ones((2, 2, 2))), "arms", "array"),
    Case("ask features of ucb", lambda: asked(EYE, policy="ucb"), "arms", "ucb keeps a score"),
    Case("ask features of rexp3", lambda: asked(EYE, policy="rexp3"), "arms", "rexp3"),
    Case(
        "ask a part of rexp3",
        lambda: asked([0], policy="rexp3"),
        "arms",
        "rexp3 always chooses among",
    ),
    Case("ask a part, oracle", lambda: asked([0], policy="kalman_oracle"), "arms", "kalman_oracle"),
    Case(
        "ask features beside offsets",
        lambda: asked(EYE, refit=Refit(offsets=True)),
        "arms",
        "are new",
    ),
    Case("advance -1", lambda: Agent(MODEL, EYE).advance(-1), "rounds", "-1"),
    Case("advance 0.5", lambda: Agent(MODEL, EYE).advance(0.5), "rounds", "0.5"),
    Case("refit without", lambda: Agent(MODEL, EYE).refit(), "log", "0 settled rewards"),
    Case("refit too early", lambda: Agent(None, EYE).refit(), "log", "0 settled rewards"),
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
    Case("reward NaN", lambda: told(NAN), "reward", "nan"),
    Case("reward -inf", lambda: told(-INF), "reward", "-inf"),
    Case("reward text", lambda: told("1.5"), "reward", "'1.5'"),
    Case("reward row", lambda: told([1.0, 2.0]), "reward", "[1.0, 2.0]"),
    Case("oracle one reward", lambda: told(1.0, "kalman_oracle"), "reward", "()"),
    Case("oracle long row", lambda: told([1, 2, 3], "kalman_oracle"), "reward", "(3,)"),
    Case("oracle NaN", lambda: told([1, NAN], "kalman_oracle"), "reward", "[1] is nan"),
]

FRESH = {"state": {"mean": [0, 0], "cov": [[1, 0], [0, 1]]}}

FROM_JSON_CASES = [
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
        lambda: Agent.from_json(Agent(MODEL, EYE).to_json(), "kode"),
        "text policy",
        "is kode, stored was idea",
    ),
    Case(
        "other parameters given",
        lambda: Agent.from_json(Agent(MODEL, EYE, "kalman_ucb").to_json(), "kalman_ucb(width=2)"),
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
]

MODEL_FILE_CASES = [
    Case(
        "absent",
        lambda: model_file.load_model("/no/such/model.json"),
        "model file",
        "/no/such/model",
    ),
    Case("folder", lambda: model_file.load_model("/"), "model file", "cannot read /"),
    Case("file not JSON", lambda: read("{transition"), "model file", "model.json is not JSON"),
    Case("file empty", lambda: read("", "empty.json"), "model file", "empty.json is not JSON"),
    Case("file list", lambda: read([1, 2]), "model file", "list"),
    Case("file lacks arms", lambda: read(document(without="arms")), "model file", "'arms'"),
    Case(
        "file lacks reward_std",
        lambda: read(document(without="reward_std")),
        "model file",
        "'reward_std'",
    ),
    Case(
        "file unknown key",
        lambda: read(document(initial_kov=[[1]])),
        "model file",
        "'initial_kov'; did you mean 'initial_cov'?",
    ),
    Case("file null arms", lambda: read(document(arms=None)), "model file arms", "null"),
    Case("file text std", lambda: read(document(reward_std="1")), "model file reward_std", "'1'"),
    Case("file NaN", lambda: read(document(reward_std=NAN)), "model file reward_std", "nan"),
]

MATHEMATICS_CASES = [
    Case("rewards short", lambda: log_likelihood(MODEL, EYE, [1.0]), "rewards", "(1,)"),
    Case("rewards NaN", lambda: log_likelihood(MODEL, EYE, [1, NAN]), "rewards", "[1] is nan"),
    Case("rewards 2-D", lambda: log_likelihood(MODEL, EYE, EYE), "rewards", "(2, 2)"),
    Case("played width", lambda: log_likelihood(MODEL, [[1.0]], [1.0]), "played", "(1, 1)"),
    Case("smooth short", lambda: db.kalman.smooth(MODEL, EYE, [1.0]), "rewards", "(1,)"),
    Case("arm length", lambda: prediction_cov(MODEL, [1.0]), "arm", "(1,)"),
    Case("arm matrix", lambda: prediction_cov(MODEL, EYE), "arm", "(2, 2)"),
    Case("arm zero", lambda: prediction_cov(MODEL, [0, 0]), "arm", "zero vector"),
    Case(
        "arm blind",
        lambda: prediction_cov(HALF_SEEN, [0.0, 1.0]),
        "arm",
        "spectral radius 2",
        NotDetectable,
    ),
    Case(
        "arms blind",
        lambda: oracle_cov(HALF_SEEN, [[0.0, 1.0], [0.0, 2.0]]),
        "arms",
        "spectral radius 2",
        NotDetectable,
    ),
    Case("no stationary", lambda: UNSTABLE.stationary_cov(), "transition", "spectral radius 2"),
]

SUBTLE_CASES = [
    Case(
        "dtype misspelled",
        lambda: simulate(dtype="flaot32"),
        "dtype",
        "flaot32",
    ),
    Case(
        "oful twice",
        lambda: simulate(policies=["oful", "oful"]),
        "policies",
        "oful",
    ),
    Case(
        "policies not a list",
        lambda: simulate(policies=5),
        "policies",
        "5",
    ),
    Case(
        "policies one text",
        lambda: simulate(policies="ideaa"),
        "policy",
        "did you mean 'idea'",
    ),
    Case(
        "unstable 5000 rounds of warmup",
        lambda: simulate(UNSTABLE, warmup=5000),
        "warmup",
        "5000",
    ),
    Case(
        "agent unstable 5000 rounds",
        lambda: Agent(UNSTABLE, EYE, "ucb", rounds=5000),
        "rounds",
        "5000",
    ),
    Case(
        "stream number",
        lambda: simulate(stream=3),
        "stream",
        "3",
    ),
    Case(
        "transition array of text",
        lambda: lgds(np.array([["a", "b"], ["c", "d"]])),
        "transition",
        "'a'",
    ),
    Case(
        "transition complex array",
        lambda: lgds(np.array([[0.5j, 0], [0, 0.5]])),
        "transition",
        "0.5j",
    ),
    Case(
        "transition 10**400",
        lambda: lgds([[10**400, 0], [0, 0.5]]),
        "transition",
        "1000",
    ),
    Case("reward 10**400", lambda: told(10**400), "reward", "1000"),
    Case(
        "tell None unasked",
        lambda: Agent(MODEL, EYE).tell(None, 1.0),
        "decision",
        "None",
    ),
    Case(
        "batch beyond int32",
        lambda: Agent(MODEL, EYE, "rexp3(batch=3000000000)"),
        "batch",
        "3000000000",
    ),
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
    Case(
        "file with 5000 digits",
        lambda: read("1" * 5000),
        "model file",
        "model.json",
    ),
]

CASES = [
    *LGDS_CASES,
    *ARM_CASES,
    *SIMULATE_CASES,
    *MAKE_CASES,
    *FAMILY_CASES,
    *AGENT_CASES,
    *FROM_JSON_CASES,
    *MODEL_FILE_CASES,
    *MATHEMATICS_CASES,
    *SUBTLE_CASES,
]


@pytest.fixture
def compiled(monkeypatch):
    """How often the engine began to compile; it never gets further."""
    calls = []

    def stop(job):
        calls.append(job)
        raise RuntimeError("compiling")

    monkeypatch.setattr(engine, "compiled", stop)
    return calls


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_refused_in_one_line(case, compiled):
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the message is looked at below
        case.call()
    message = str(caught.value)
    assert caught.type is case.error
    assert message.startswith(case.argument)
    assert case.value in message
    assert "\n" not in message
    assert compiled == []


def test_case_names_are_unique():
    names = [case.id for case in CASES]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"runs": 2.5}, {"seed": -1}, {"workers": 0}])
def test_nothing_heavy_before_the_error(wrong, compiled, monkeypatch):
    prepared = []
    monkeypatch.setattr(jobs, "prepared", lambda policy, *_: prepared.append(policy))
    policies = [*available(), "kalman_ucb(width=2)"]
    assert len(policies) > 12
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        simulate(policies=policies, **wrong)
    assert prepared == []
    assert compiled == []


def test_the_watch_on_compiling_works(compiled):
    with pytest.raises(RuntimeError, match="compiling"):
        simulate()
    assert len(compiled) == 1


def test_a_refused_reward_leaves_the_decision_open():
    agent = Agent(MODEL, EYE)
    decision, before = agent.ask(), agent.to_json()
    with pytest.raises(InvalidInput, match="reward"):
        agent.tell(decision, NAN)
    assert agent.to_json() == before
    assert agent.tell(decision, 1.0) == "learned"
    told = agent.to_json()
    with pytest.raises(InvalidInput, match="reward"):
        agent.tell(decision, 2.0)
    assert agent.tell(decision, 1.0) == "duplicate"
    assert agent.to_json() == told


@pytest.mark.parametrize("wrong", [{"arms": [9]}, {"arms": [[1.0]]}, {"round": 1}, {"round": 2.5}])
def test_a_refused_question_changes_nothing(wrong):
    agent = Agent(MODEL, EYE, window=1)
    for _ in range(3):
        agent.tell(agent.ask(), 1.0)
    before = agent.to_json()
    with pytest.raises(InvalidInput, match=next(iter(wrong))):
        agent.ask(**{"round": 99} | wrong)
    assert agent.to_json() == before


def test_any_damaged_byte_is_noticed():
    """Flipped anywhere: refused in one line, or it says the same as before."""
    agent = Agent(MODEL, EYE, "kalman_ucb(width=0.3)", refit=Refit())
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


def test_the_argument_is_on_the_error():
    with pytest.raises(InvalidInput, match="reward_std") as caught:
        lgds(reward_std=-1)
    assert caught.value.argument == "reward_std"


def compare(baseline="idea", **options):
    regret = {"idea": np.ones(3), "kode": np.zeros(3)}
    timing = Timing(0, 0, 0, "cpu")
    return db.Result(regret, {}, np.ones(1), 1, 0, timing).compare(baseline, **options)


STATISTICS_CASES = [
    Case("first text", lambda: paired("ab", "ab"), "first", "shape ()"),
    Case("first number", lambda: paired(1.0, 2.0), "first", "shape ()"),
    Case("first empty", lambda: paired([], []), "first", "(0,)"),
    Case("first 3-D", lambda: paired(np.ones((2, 2, 2)), 1), "first", "(2, 2, 2)"),
    Case("first ragged", lambda: paired([[1, 2], [3]], [1]), "first", "several lengths"),
    Case("first complex", lambda: paired([1j], [1]), "first", "complex128"),
    Case("second None", lambda: paired([1], [None]), "second", "object"),
    Case("second NaN", lambda: paired([[1, 2]], [[1, NAN]]), "second", "[0, 1] is nan"),
    Case("second shorter", lambda: paired([1, 2], [1]), "second", "(1,), first has (2,)"),
    Case("values NaN", lambda: median_interval([1, NAN]), "values", "[1] is nan"),
    Case("confidence 1", lambda: paired([1], [2], confidence=1), "confidence", "is 1"),
    Case("confidence 95", lambda: median_interval([1], confidence=95), "confidence", "is 95"),
    Case("resamples 0", lambda: paired([1], [2], resamples=0), "resamples", "is 0"),
    Case("resamples 1e3", lambda: paired([1], [2], resamples=1e3), "resamples", "1000.0"),
    Case("bootstrap seed -1", lambda: paired([1], [2], seed=-1), "seed", "-1"),
    Case("baseline koda", lambda: compare("koda"), "baseline", "did you mean 'kode'?"),
    Case("baseline number", lambda: compare(3), "baseline", "3"),
    Case("compare confidence", lambda: compare(confidence=0), "confidence", "is 0"),
    Case("compare seed", lambda: compare(seed=0.5), "seed", "0.5"),
]


@pytest.mark.parametrize("case", STATISTICS_CASES, ids=lambda case: case.id)
def test_statistics_refuse_in_one_line(case, compiled):
    test_refused_in_one_line(case, compiled)


def test_the_best_of_none():
    alone = db.Result({"kalman_oracle": np.ones(3)}, {}, np.ones(1), 1, 0, Timing(0, 0, 0, "cpu"))
    with pytest.raises(InvalidInput, match="policies: the Oracle played alone"):
        alone.best()


def believing(*assumed, model=MODEL, arms=EYE):
    return simulate(model, arms, assumed=list(assumed))


BELIEF_CASES = [
    Case("assumed number", lambda: simulate(assumed=5), "assumed", "int"),
    Case("assumed text", lambda: simulate(assumed="truth"), "assumed", "str"),
    Case("assumed dict", lambda: simulate(assumed={}), "assumed", "dict"),
    Case("assumed model", lambda: simulate(assumed=MODEL), "assumed", "LGDS"),
    Case("assumed empty", lambda: believing(), "assumed", "0 systems for 1"),
    Case("assumed bare pair", lambda: simulate(assumed=(MODEL, EYE)), "assumed", "2 systems"),
    Case(
        "assumed too many",
        lambda: believing((MODEL, EYE), (MODEL, EYE)),
        "assumed",
        "2 systems for 1",
    ),
    Case(
        "assumed too few",
        lambda: believing((MODEL, EYE), model=[(MODEL, EYE)] * 3, arms=None),
        "assumed",
        "1 systems for 3",
    ),
    Case("assumed list of models", lambda: believing(MODEL), "assumed[0]", "LGDS"),
    Case("assumed list of None", lambda: believing(None), "assumed[0]", "NoneType"),
    Case("assumed triple", lambda: believing((MODEL, EYE, 1)), "assumed[0]", "tuple"),
    Case("assumed swapped", lambda: believing((EYE, MODEL)), "assumed[0]", "tuple"),
    Case(
        "assumed second a model",
        lambda: believing((MODEL, EYE), MODEL, model=[(MODEL, EYE)] * 2, arms=None),
        "assumed[1]",
        "LGDS",
    ),
    Case("assumed array", lambda: believing(*np.zeros((1, 2))), "assumed[0]", "ndarray"),
    Case("assumed arm count", lambda: believing((MODEL, np.ones((3, 2)))), "assumed", "(3, 2)"),
    Case("assumed states", lambda: believing((SMALL, [[1.0]])), "assumed", "(1, 1)"),
    Case(
        "assumed too large",
        lambda: simulate(assumed=[(lgds(process_cov=1e60 * EYE), EYE)], dtype="float32"),
        "assumed",
        "1.33e+60",
    ),
    Case("assumed arms wide", lambda: believing((MODEL, np.ones((2, 3)))), "assumed", "(2, 3)"),
    Case("assumed zero arm", lambda: believing((MODEL, 0 * EYE)), "assumed", "row 0"),
    Case("assumed unstable", lambda: believing((lgds(2 * EYE), EYE)), "assumed", "radius 2"),
    Case(
        "assumed of two shapes",
        lambda: believing(
            (MODEL, EYE), (MODEL, np.ones((3, 2))), model=[(MODEL, EYE)] * 2, arms=None
        ),
        "assumed",
        "(3, 2)",
    ),
    Case("regret Mean", lambda: simulate(regret="Mean"), "regret", "did you mean 'mean'?"),
    Case("regret best", lambda: simulate(regret="best"), "regret", "hindsight, mean, noisy"),
    Case("regret None", lambda: simulate(regret=None), "regret", "None"),
]


def test_an_error_travels_between_processes():
    """As from a Ray worker to whoever waits for it."""
    error = InvalidInput("arms", "are none", "give some")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.argument) == (str(error), "arms")


@pytest.mark.parametrize("case", BELIEF_CASES, ids=lambda case: case.id)
def test_beliefs_and_yardsticks_refuse_in_one_line(case, compiled):
    test_refused_in_one_line(case, compiled)


reading = readings.named


def perturbed(target="arms", states=2, arms=2):
    systems = db.families.sample("gaussian", n_states=states, n_arms=arms)
    return perturbation.perturb(systems, target, [np.eye(states)])


def specified(n_arms=10, perturbed="arms", family="gaussian"):
    return Specification(
        (StudyCell(family, perturbed=perturbed, strength=1.0),), ("idea",), n_arms=n_arms
    )


STUDY_CASES = [
    Case("reading clos", lambda: reading("clos"), "reading", "did you mean 'closest'?"),
    Case("reading empty", lambda: reading(""), "reading", "closest, plain, unit"),
    Case("reading question alone", lambda: reading("arms"), "reading", "'arms'"),
    Case("reading arm=unit", lambda: reading("arm=unit"), "reading", "did you mean 'arms'?"),
    Case("reading arms=uni", lambda: reading("arms=uni"), "reading.arms", "did you mean 'unit'?"),
    Case("reading no answer", lambda: reading("arms="), "reading.arms", "bounded, common, drawn"),
    Case("reading no question", lambda: reading("=unit"), "reading", "arms, belief, interval"),
    Case("reading name and change", lambda: reading("unit, noise=one"), "reading", "'unit'"),
    Case("reading comma", lambda: reading("arms=unit,"), "reading", "''"),
    Case("Reading arms", lambda: readings.Reading(arms="uni"), "reading.arms", "'unit'"),
    Case("Reading None", lambda: readings.Reading(noise=None), "reading.noise", "None"),
    Case(
        "reading family",
        lambda: readings.sample(readings.PLAIN, "gausian", 1, n_states=2, n_arms=2, seed=0),
        "family",
        "did you mean 'gaussian'?",
    ),
    Case("perturb target", lambda: perturbed("gamma"), "target", "arms, process_cov, "),
    Case("perturb wide arms", lambda: perturbed(arms=3), "arms", "(3, 2)"),
    Case("perturb tall arms", lambda: perturbed(states=3), "arms", "(2, 3)"),
    Case("study perturbs arms", lambda: specified(n_arms=7), "n_arms", "7 with 10 states"),
    Case("study perturbs noise", lambda: specified(perturbed="noise"), "perturbed", "'noise'"),
    Case("study family", lambda: specified(family="gausian"), "family", "'gaussian'"),
]


@pytest.mark.parametrize("case", STUDY_CASES, ids=lambda case: case.id)
def test_studies_refuse_in_one_line(case, compiled):
    test_refused_in_one_line(case, compiled)


u = db.policies.idea.bonus
WIDE = [[1.0, 0.0], [0.0, 1.0], [1.0, 1.0], [1.0, -1.0]]
finite, sphere = db.theory.finite_lower_bound, db.theory.sphere_lower_bound
printed, mistakes = db.theory.printed_finite_lower_bound, db.theory.wrong_action_probability
schedule, ahead = db.theory.exploration_schedule, db.theory.two_step_value


def of_path(states=EYE, rewards=EYE):
    return db.theory.path_upper_bound(MODEL, EYE, u, states, rewards)


def bound(bonus):
    return db.theory.two_step_upper_bound(db.kalman.prior(MODEL), MODEL, EYE, bonus)


THEORY_CASES = [
    Case("finite unstable", lambda: finite(UNSTABLE, EYE), "model", "radius 2"),
    Case("finite no model", lambda: finite(None, EYE), "model", "NoneType"),
    Case("finite arms", lambda: finite(MODEL, np.eye(3)), "arms", "(3, 3)"),
    Case("finite rounds", lambda: finite(MODEL, EYE, rounds=0), "rounds", "0"),
    Case("finite far", lambda: finite(UNSTABLE, EYE, rounds=2000), "rounds", "2000"),
    Case("finite accuracy", lambda: finite(MODEL, EYE, accuracy=0), "accuracy", "0"),
    Case("sphere unstable", lambda: sphere(UNSTABLE), "model", "radius 2"),
    Case("sphere no model", lambda: sphere("model"), "model", "str"),
    Case("sphere too large", lambda: sphere(MODEL, 2 * EYE), "error_cov", "by 0.666667"),
    Case("sphere both", lambda: sphere(MODEL, EYE, rounds=3), "error_cov", "beside rounds"),
    Case("sphere no cov", lambda: sphere(MODEL, -EYE), "error_cov", "indefinite"),
    Case(
        "printed arms",
        lambda: printed(MODEL, WIDE),
        "arms",
        "4 arms in 2 states differ in only 2 directions",
    ),
    Case("printed unstable", lambda: printed(UNSTABLE, EYE), "model", "radius 2"),
    Case("mistakes alone", lambda: mistakes(MODEL, [[1, 0]], u, EYE), "arms", "1 rows"),
    Case("mistakes crowd", lambda: mistakes(MODEL, np.ones((17, 2)), u, EYE), "arms", "17 rows"),
    Case("mistakes cov", lambda: mistakes(MODEL, EYE, u, 2 * EYE), "cov", "by 0.666667"),
    Case("mistakes unstable", lambda: mistakes(UNSTABLE, EYE, u, EYE), "model", "radius 2"),
    Case("mistakes accuracy", lambda: mistakes(MODEL, EYE, u, EYE, -1), "accuracy", "-1"),
    Case("mistakes bonus", lambda: mistakes(MODEL, EYE, lambda *_: NAN, EYE), "bonus", "nan"),
    Case("schedule bonus", lambda: schedule(MODEL, EYE, lambda *_: 1.0), "bonus", "1."),
    Case("schedule rounds", lambda: schedule(MODEL, EYE, u, rounds=2.5), "rounds", "2.5"),
    Case("schedule cov", lambda: schedule(MODEL, EYE, u, cov=[[1]]), "cov", "(1, 1)"),
    Case(
        "ahead mean", lambda: ahead(db.kalman.Belief([1], EYE), MODEL, EYE), "belief.mean", "(1,)"
    ),
    Case(
        "ahead cov", lambda: ahead(db.kalman.Belief([1, 1], -EYE), MODEL, EYE), "belief.cov", "-1"
    ),
    Case("path states", lambda: of_path(states=[[1.0]]), "states", "(1, 1)"),
    Case("path rewards", lambda: of_path(rewards=np.ones((3, 2))), "rewards", "(3, 2)"),
    Case("ucb delta", lambda: db.theory.ucb_upper_bound(MODEL, EYE, 9, 1.0), "delta", "1"),
    Case("finite long", lambda: finite(MODEL, EYE, rounds=10**12), "rounds", "1000000000000"),
    Case("ucb far", lambda: db.theory.ucb_upper_bound(UNSTABLE, EYE, 2000), "rounds", "2000"),
    Case("bound bonus", lambda: bound(lambda *_: np.full(2, NAN)), "bonus", "nan"),
    Case("advise crowd", lambda: db.advise(MODEL, EYE, runs=10**9), "runs", "1000000000"),
    Case("advise runs", lambda: db.advise(MODEL, EYE, runs=0), "runs", "0"),
    Case("advise arms", lambda: db.advise(MODEL, [[0, 0]]), "arms", "zero vector"),
]


@pytest.mark.parametrize("case", THEORY_CASES, ids=lambda case: case.id)
def test_theory_and_advice_refuse_in_one_line(case, compiled):
    test_refused_in_one_line(case, compiled)
