"""What the engine refuses before any work."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import driftbandit as db
from driftbandit import LGDS, InvalidInput, NotDetectable
from driftbandit.policies import Policy, available
from driftbandit.simulation import Options, engine, jobs
from refusals import EYE, HALF_SEEN, STABLE, UNSTABLE, Case, assert_refused, each, lgds


class Counted(NamedTuple):
    """A user's own policy: ε-greedy on the Kalman prediction, with a counter."""

    mean: object
    cov: object
    rounds: object


def test_float32_overflow_is_refused():
    model = db.LGDS([[1.05]], [[1.0]], 1.0, initial_cov=[[1.0]])
    with pytest.raises(db.InvalidInput, match=r"rounds: is 2000.*float32"):
        db.simulate(model, [[1.0]], ["idea"], rounds=2000, runs=2, dtype=np.float32)
    model = db.LGDS([[0.5]], [[1e60]], 1.0)
    with pytest.raises(db.InvalidInput, match=r"model: has variances up to 1.33e\+60"):
        db.simulate(model, [[1.0]], ["idea"], rounds=20, runs=2, dtype=np.float32)


def test_a_state_that_changes_kind_is_refused():
    """Whole numbers that become real would be cut off, silently, every round."""
    policy = Policy(
        "cut",
        lambda model, arms, rounds: ({}, Counted(*np.zeros((3, 2), int))),
        lambda state, problem, noise: 0,
        lambda state, problem, arm, reward: state._replace(mean=state.mean + reward),
    )
    model, arms = db.families.sample("gaussian", n_states=2, n_arms=2)[0]
    with pytest.raises(db.InvalidInput, match=r"state.mean: starts as whole and becomes real"):
        db.simulate(model, arms, [policy], rounds=3, runs=2)
    agent = db.Agent(model, arms, policy)
    with pytest.raises(db.InvalidInput, match=r"state.mean"):
        agent.tell(agent.ask(), 0.5)


@pytest.mark.parametrize("regret", ["hindsigt", "Mean", "", None, 3])
def test_an_unknown_regret_is_refused(regret):
    with pytest.raises(db.InvalidInput, match=r"^regret: .*valid: hindsight, mean, noisy$"):
        db.simulate(STABLE, EYE, options=Options(regret=regret))


SMALL = LGDS([[0.5]], [[1.0]], 1.0)


def simulate(model=STABLE, arms=EYE, policies=("idea", "random"), rounds=10, runs=2, **options):
    studied = [f.name for f in dataclasses.fields(Options) if f.name in options]
    if studied:
        options["options"] = Options(**{name: options.pop(name) for name in studied})
    return db.simulate(model, arms, policies, rounds, runs, **options)


@pytest.fixture
def compiled(monkeypatch):
    """How often the engine began to compile; it never gets further."""
    calls = []

    def stop(job, *_):
        calls.append(job)
        raise RuntimeError("compiling")

    monkeypatch.setattr(engine, "_played", stop)
    return calls


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


def believing(*assumed, model=STABLE, arms=EYE):
    return simulate(model, arms, assumed=list(assumed))


CASES = [
    Case("simulate arms wide", lambda: simulate(arms=np.ones((2, 3))), "arms", "(2, 3)"),
    Case("simulate arms zero row", lambda: simulate(arms=[[0, 0]]), "arms", "row 0"),
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
    Case("arms beside a sequence", lambda: simulate([(STABLE, EYE)]), "arms", "with a sequence"),
    Case("sequence empty", lambda: simulate([], None), "model", "empty"),
    Case("sequence of models", lambda: simulate([STABLE], None), "model[0]", "LGDS"),
    Case("sequence of numbers", lambda: simulate([(1, EYE)], None), "model[0]", "tuple"),
    Case("model number", lambda: simulate(3, None), "model", "int"),
    Case("model text", lambda: simulate("gaussian", None), "model", "str"),
    Case(
        "systems of two widths",
        lambda: simulate([(STABLE, EYE), (SMALL, [[1.0]])], None),
        "arms of system 1",
        "(1, 1)",
    ),
    Case(
        "systems of two arm counts",
        lambda: simulate([(STABLE, EYE), (STABLE, np.ones((3, 2)))], None),
        "arms of system 1",
        "(3, 2)",
    ),
    Case(
        "zero arm in system 1",
        lambda: simulate([(STABLE, EYE), (STABLE, 0 * EYE)], None),
        "arms of system 1",
        "row 0",
    ),
    Case("unstable", lambda: simulate(lgds(2 * EYE)), "transition", "spectral radius 2"),
    Case("unstable 5000 rounds", lambda: simulate(UNSTABLE, rounds=5000), "rounds", "5000"),
    Case(
        "unstable second system",
        lambda: simulate([(STABLE, EYE), (UNSTABLE, EYE)], None, rounds=10**9),
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
        "stream number",
        lambda: simulate(stream=3),
        "stream",
        "3",
    ),
    Case("assumed number", lambda: simulate(assumed=5), "assumed", "int"),
    Case("assumed text", lambda: simulate(assumed="truth"), "assumed", "str"),
    Case("assumed dict", lambda: simulate(assumed={}), "assumed", "dict"),
    Case("assumed model", lambda: simulate(assumed=STABLE), "assumed", "LGDS"),
    Case("assumed empty", lambda: believing(), "assumed", "0 systems for 1"),
    Case("assumed bare pair", lambda: simulate(assumed=(STABLE, EYE)), "assumed", "2 systems"),
    Case(
        "assumed too many",
        lambda: believing((STABLE, EYE), (STABLE, EYE)),
        "assumed",
        "2 systems for 1",
    ),
    Case(
        "assumed too few",
        lambda: believing((STABLE, EYE), model=[(STABLE, EYE)] * 3, arms=None),
        "assumed",
        "1 systems for 3",
    ),
    Case("assumed list of models", lambda: believing(STABLE), "assumed[0]", "LGDS"),
    Case("assumed list of None", lambda: believing(None), "assumed[0]", "NoneType"),
    Case("assumed triple", lambda: believing((STABLE, EYE, 1)), "assumed[0]", "tuple"),
    Case("assumed swapped", lambda: believing((EYE, STABLE)), "assumed[0]", "tuple"),
    Case(
        "assumed second a model",
        lambda: believing((STABLE, EYE), STABLE, model=[(STABLE, EYE)] * 2, arms=None),
        "assumed[1]",
        "LGDS",
    ),
    Case("assumed array", lambda: believing(*np.zeros((1, 2))), "assumed[0]", "ndarray"),
    Case("assumed arm count", lambda: believing((STABLE, np.ones((3, 2)))), "assumed", "(3, 2)"),
    Case("assumed states", lambda: believing((SMALL, [[1.0]])), "assumed", "(1, 1)"),
    Case(
        "assumed too large",
        lambda: simulate(assumed=[(lgds(process_cov=1e60 * EYE), EYE)], dtype="float32"),
        "assumed",
        "1.33e+60",
    ),
    Case("assumed arms wide", lambda: believing((STABLE, np.ones((2, 3)))), "assumed", "(2, 3)"),
    Case("assumed zero arm", lambda: believing((STABLE, 0 * EYE)), "assumed", "row 0"),
    Case("assumed unstable", lambda: believing((lgds(2 * EYE), EYE)), "assumed", "radius 2"),
    Case(
        "assumed of two shapes",
        lambda: believing(
            (STABLE, EYE), (STABLE, np.ones((3, 2))), model=[(STABLE, EYE)] * 2, arms=None
        ),
        "assumed",
        "(3, 2)",
    ),
    Case("regret Mean", lambda: simulate(regret="Mean"), "regret", "did you mean 'mean'?"),
    Case("regret best", lambda: simulate(regret="best"), "regret", "hindsight, mean, noisy"),
    Case("regret None", lambda: simulate(regret=None), "regret", "None"),
]


@each(CASES)
def test_bad_arguments_are_refused(case, compiled):
    assert_refused(case)
    assert compiled == []
