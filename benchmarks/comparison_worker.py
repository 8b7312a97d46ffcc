"""The part of benchmarks/comparison.py that runs inside one package's own environment.

    python benchmarks/comparison_worker.py river      # then one JSON object per line on stdin

Each request is {"task": …, options}; each answer is one line of JSON. The process stays alive, so
that comparison.py can measure the packages in turn. Only NumPy is imported here: every function
imports its own package.

A *player* is a pair of functions: `choose()` returns an arm, `learn(arm, reward)` takes its reward.
`players_of` lists the players of a package that take part in the comparison of regret; the first is
also timed.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

ARMS = 10
MEMORY = 0.99
"""Discount of policies whose default memory is far from 100 rounds."""
PRECISION = 4.0
"""One over the variance of the noise, for a package that asks for it."""
Player = tuple[Callable[[], int], Callable[[int, float], None]]


# Players: one function per package


def pymab(seed: int, world: Any = None) -> dict[str, Callable[[], Player]]:
    """UCB that discounts, slides or detects changes; Thompson sampling; all on the Rust backend."""
    from pymab import policies as p

    def player(make: Callable[..., Any], **options: Any) -> Callable[[], Player]:
        def begin() -> Player:
            policy, rng = make(n_arms=ARMS, **options), np.random.default_rng(seed)
            return (
                lambda: policy.select_action(rng=rng),
                lambda arm, reward: policy.update(action=arm, reward=reward),
            )

        return begin

    return {
        "DiscountedUCBPolicy": player(p.DiscountedUCBPolicy),
        "DiscountedUCBPolicy(0.99)": player(p.DiscountedUCBPolicy, discount_factor=MEMORY),
        "SlidingWindowUCBPolicy": player(p.SlidingWindowUCBPolicy),
        "PageHinkleyUCBPolicy": player(p.PageHinkleyUCBPolicy),
        "GaussianThompsonSamplingPolicy": player(p.GaussianThompsonSamplingPolicy),
        "UCBPolicy": player(p.UCBPolicy),
    }


def smpybandits(seed: int, world: Any = None) -> dict[str, Callable[[], Player]]:
    """Discounted, sliding-window and change-detecting policies, Thompson sampling and kl-UCB."""
    from SMPyBandits import Policies

    def player(
        make: Callable[..., Any], bounded: bool = False, **options: Any
    ) -> Callable[[], Player]:
        def begin() -> Player:
            import random

            random.seed(seed)  # the package draws from both global generators
            np.random.seed(seed)  # noqa: NPY002
            policy = make(ARMS, **options)
            policy.startGame()

            def learn(arm: int, reward: float) -> None:
                if bounded:  # others are refused; ±4 covers all but one of a thousand
                    reward = min(max(0.5 + reward / 8, 0.0), 1.0)
                policy.getReward(arm, reward)

            return lambda: int(policy.choice()), learn

        return begin

    return {
        "DiscountedUCB": player(Policies.DiscountedUCB),
        "SWUCB(100)": player(Policies.SWUCB, tau=100),
        "DiscountedThompson": player(Policies.DiscountedThompson, True),
        "DiscountedThompson(0.99)": player(Policies.DiscountedThompson, True, gamma=MEMORY),
        "SWR_UCB": player(Policies.SWR_UCB),
        "Thompson": player(Policies.Thompson, True),
        "klUCB": player(Policies.klUCB, True),
    }


def bayesianbandits(seed: int, world: Any = None) -> dict[str, Callable[[], Player]]:
    """Thompson sampling with decay, one normal learner per arm or one for all arms."""
    import bayesianbandits as b

    def player(agent_of: Callable[[], Any], decay: bool, *context: Any) -> Callable[[], Player]:
        def begin() -> Player:
            agent = agent_of()

            def learn(arm: int, reward: float) -> None:
                agent.select_for_update(arm).update(*context, np.array([reward]))
                if decay:
                    agent.decay(decay_rate=MEMORY)

            return lambda: agent.pull(*context)[0], learn

        return begin

    def own() -> Any:
        arms = [b.Arm(i, learner=b.NormalRegressor(alpha=1.0, beta=PRECISION)) for i in range(ARMS)]
        return b.Agent(arms, b.ThompsonSampling(), random_seed=seed)

    def given_features() -> Any:
        """One learner for all arms, told the true features."""
        rows = np.asarray(world)

        def features(contexts: Any, arms: Any) -> Any:
            return np.repeat(rows[list(arms)].T[None], len(contexts), axis=0)

        return b.LipschitzContextualAgent(
            arms=[b.Arm(i) for i in range(ARMS)],
            learner=b.NormalRegressor(alpha=1.0, beta=PRECISION),
            arm_featurizer=b.FunctionArmFeaturizer(features),
            policy=b.ThompsonSampling(),
            random_seed=seed,
        )

    found = {
        "Thompson, NormalRegressor, decay 0.99": player(own, True),
        "Thompson, NormalRegressor": player(own, False),
    }
    if world is not None:
        label, one = "Thompson, true features, decay 0.99", np.ones((1, 1))
        found[label] = player(given_features, True, one)
    return found


def river(seed: int, world: Any = None) -> dict[str, Callable[[], Player]]:
    """Policies over a mean that forgets, and over one that does not.

    Not over `utils.Rolling`: river 0.26.1 clones the statistic inside it, without its window.
    """
    from river import bandit, proba, stats

    def player(make: Callable[[], Any]) -> Callable[[], Player]:
        def begin() -> Player:
            policy, arms = make(), range(ARMS)
            return lambda: policy.pull(arms), policy.update

        return begin

    return {
        "UCB over EWMean": player(lambda: bandit.UCB(1, reward_obj=stats.EWMean(0.1), seed=seed)),
        "EpsilonGreedy(0.1) over EWMean": player(
            lambda: bandit.EpsilonGreedy(0.1, reward_obj=stats.EWMean(0.1), seed=seed)
        ),
        "ThompsonSampling": player(
            lambda: bandit.ThompsonSampling(reward_obj=proba.Gaussian(), seed=seed)
        ),
        "UCB": player(lambda: bandit.UCB(1, seed=seed)),
    }


def mabwiser(seed: int, world: Any = None) -> dict[str, Callable[[], Player]]:
    """Its policies without contexts; none forgets."""
    from mabwiser.mab import MAB, LearningPolicy

    def player(rule: Any) -> Callable[[], Player]:
        def begin() -> Player:
            bandit = MAB(list(range(ARMS)), rule, seed=seed)
            bandit.fit(list(range(ARMS)), [0.0] * ARMS)  # it must be fitted before it predicts
            return bandit.predict, lambda arm, reward: bandit.partial_fit([arm], [reward])

        return begin

    return {
        "UCB1": player(LearningPolicy.UCB1()),
        "EpsilonGreedy": player(LearningPolicy.EpsilonGreedy()),
        "Softmax": player(LearningPolicy.Softmax()),
    }


def driftbandit(seed: int, world: Any = None) -> dict[str, Callable[[], Player]]:
    """Agents for the measurement of time; `_driftbandit_regret` makes those for regret."""
    import driftbandit as db

    model, arms = db.families.sample("gaussian", n_states=ARMS, n_arms=ARMS, seed=1)[0]

    def player(policy: str, **options: Any) -> Callable[[], Player]:
        return lambda: _agent_player(db.Agent(model, arms, policy, seed=seed, **options))

    return {
        "Agent, discounted_ucb": player("discounted_ucb"),
        "Agent, idea, 10 states": player("idea"),
        "Agent, idea, 10 states, compiled": player("idea", compiled=True),
    }


def _agent_player(agent: Any) -> Player:
    last: list[Any] = []

    def choose() -> int:
        last[:] = [agent.ask()]
        return int(last[0].arm)

    return choose, lambda arm, reward: agent.tell(last[0], reward)


PLAYERS: dict[str, Callable[..., dict[str, Callable[[], Player]]]] = {
    "pymab": pymab,
    "SMPyBandits": smpybandits,
    "bayesianbandits": bayesianbandits,
    "river": river,
    "MABWiser": mabwiser,
    "driftbandit": driftbandit,
}


# Task: time of one decision and its update


def decide(name: str, pairs: int, warm: int = 200) -> dict[str, float]:
    """Median time of one choice and its update, µs, for the timed players."""
    found = PLAYERS[name](seed=1)
    timed = list(found) if name == "driftbandit" else list(found)[:1]
    rewards = np.random.default_rng(0).uniform(size=warm + pairs).tolist()
    return {label: _pair_us(*found[label](), rewards, warm) for label in timed}


def _pair_us(choose: Any, learn: Any, rewards: list[float], warm: int) -> float:
    times, clock = [], time.perf_counter_ns
    for reward in rewards:
        begin = clock()
        arm = choose()
        learn(arm, reward)
        times.append(clock() - begin)
    return float(np.median(times[warm:])) / 1e3


# Task: simulation of UCB on stationary Gaussian arms


def simulate(name: str, runs: int, rounds: int) -> dict[str, float]:
    """Seconds per round of the package's own simulator, and its first call if it compiles."""
    return SIMULATORS[name](runs, rounds)


def _pymab_simulates(runs: int, rounds: int) -> dict[str, float]:
    from pymab import BanditEnvironment, Experiment, ExperimentConfig
    from pymab.policies import UCBPolicy

    experiment = Experiment(
        environment=BanditEnvironment(means=np.linspace(0.1, 1, ARMS)),
        policies={"ucb": UCBPolicy(n_arms=ARMS)},
        config=ExperimentConfig(horizon=rounds, n_replicates=runs, seed=1, backend="rust"),
    )
    return {"seconds": _seconds(experiment.run), "runs": runs}


def _smpybandits_simulates(runs: int, rounds: int) -> dict[str, float]:
    from SMPyBandits.Arms import Gaussian
    from SMPyBandits.Environment import Evaluator
    from SMPyBandits.Policies import UCB

    params = [(float(mean), 0.1) for mean in np.linspace(0.1, 1, ARMS)]
    evaluator = Evaluator(
        {
            "horizon": rounds,
            "repetitions": runs,
            "n_jobs": 1,
            "verbosity": 0,
            "environment": [{"arm_type": Gaussian, "params": params}],
            "policies": [{"archtype": UCB, "params": {}}],
        }
    )
    return {"seconds": _seconds(lambda: evaluator.startOneEnv(0, evaluator.envs[0])), "runs": runs}


def _river_simulates(runs: int, rounds: int) -> dict[str, float]:
    import gymnasium
    from river import bandit

    world = gymnasium.make("river_bandits/KArmedTestbed-v0", max_episode_steps=rounds)

    def play() -> None:
        for _ in bandit.evaluate([bandit.UCB(1, seed=1)], world, n_episodes=runs, seed=1):
            pass

    return {"seconds": _seconds(play), "runs": runs}


def _driftbandit_simulates(runs: int, rounds: int) -> dict[str, float]:
    import driftbandit as db

    still = db.LGDS([[1.0]], [[0.0]], 1.0, [[0.0]], [1.0])
    arms = np.linspace(0.1, 1, ARMS)[:, None]
    compiled: list[float] = []

    def play() -> None:
        result = db.simulate(still, arms, ["ucb"], rounds=rounds, runs=runs)
        compiled.append(result.timing.compile)

    begin = _seconds(play)
    return {"seconds": _seconds(play), "runs": runs, "first call": begin, "compile": compiled[0]}


def _seconds(work: Callable[[], Any]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


SIMULATORS = {
    "pymab": _pymab_simulates,
    "SMPyBandits": _smpybandits_simulates,
    "river": _river_simulates,
    "driftbandit": _driftbandit_simulates,
}


# Task: the likelihood of a log under a given model

_prepared: dict[str, Callable[[], float]] = {}


def filtering(name: str, data: str, repeats: int) -> dict[str, Any]:
    """Log-likelihood of the log, seconds of the first call and the best of the later ones."""
    found = {}
    for label, prepare in FILTERS[name].items():
        if label not in _prepared:
            loglike = prepare(dict(np.load(data)))
            first = _seconds(loglike)
            _prepared[label] = loglike
            found[label] = {"first call": first}
        else:
            found[label] = {}
        loglike = _prepared[label]
        found[label] |= {"seconds": min(_seconds(loglike) for _ in range(repeats))}
        found[label]["log-likelihood"] = loglike()
    return found


def _driftbandit_filter(data: dict[str, np.ndarray]) -> Callable[[], float]:
    import driftbandit as db
    from driftbandit.identify import as_log, one_step

    arms = data["arms"]
    model = db.LGDS(data["transition"], data["process_cov"], float(data["reward_std"]))
    system = db.System(model, arms, tuple(range(len(arms))))
    n = len(data["rewards"])
    log = as_log({"round": np.arange(n), "arm": data["played"], "reward": data["rewards"]})
    return lambda: one_step(system, log).log_likelihood * n


def _driftbandit_loop(data: dict[str, np.ndarray]) -> Callable[[], float]:
    import driftbandit as db

    model = db.LGDS(data["transition"], data["process_cov"], float(data["reward_std"]))
    rows = data["arms"][data["played"]]
    return lambda: db.kalman.log_likelihood(model, rows, data["rewards"])


def _dynamax_filter(data: dict[str, np.ndarray]) -> Callable[[], float]:
    import jax
    import jax.numpy as jnp
    from dynamax.linear_gaussian_ssm import lgssm_filter

    jax.config.update("jax_enable_x64", True)
    params = _dynamax_params(data, data["arms"][data["played"]][:, None, :])
    rewards = jnp.asarray(data["rewards"][:, None])
    filtered = jax.jit(lgssm_filter)
    return lambda: float(jax.block_until_ready(filtered(params, rewards)).marginal_loglik)


def _dynamax_params(data: dict[str, np.ndarray], reads: np.ndarray) -> Any:
    import jax.numpy as jnp
    from dynamax.linear_gaussian_ssm.inference import make_lgssm_params

    return make_lgssm_params(
        jnp.zeros(len(data["transition"])),
        jnp.asarray(data["initial_cov"]),
        jnp.asarray(data["transition"]),
        jnp.asarray(data["process_cov"]),
        jnp.asarray(reads),
        jnp.asarray([[float(data["reward_std"]) ** 2]]),
    )


def _statsmodels_filter(data: dict[str, np.ndarray]) -> Callable[[], float]:
    from statsmodels.tsa.statespace.kalman_filter import KalmanFilter

    d = len(data["transition"])
    model = KalmanFilter(k_endog=1, k_states=d)
    model.bind(np.ascontiguousarray(data["rewards"][:, None]))
    model["design"] = data["arms"][data["played"]].T[None]
    model["transition"], model["selection"] = data["transition"], np.eye(d)
    model["state_cov"] = data["process_cov"]
    model["obs_cov"] = np.array([[float(data["reward_std"]) ** 2]])
    model.initialize_known(np.zeros(d), data["initial_cov"])
    return lambda: float(model.loglike())


FILTERS: dict[str, dict[str, Callable[..., Callable[[], float]]]] = {
    "driftbandit": {
        "one_step": _driftbandit_filter,
        "kalman.log_likelihood": _driftbandit_loop,
    },
    "dynamax": {"lgssm_filter, jit": _dynamax_filter},
    "statsmodels": {"KalmanFilter.loglike": _statsmodels_filter},
}


# Task: learn a model from a log. Every learner returns Γ, Q, the read-outs of the arms and σ².


def learning(name: str, data: str, case: str, repeats: int) -> dict[str, Any]:
    """Seconds of the first and the fastest later fit, and the parameters of the last."""
    logs = dict(np.load(data))
    found: dict[str, Any] = {}
    for label, fit in LEARNERS[case].get(name, {}).items():
        times, result = [], None
        for _ in range(repeats + 1):
            begin = time.perf_counter()
            result = fit(logs)
            times.append(time.perf_counter() - begin)
        kinds = ("transition", "process_cov", "reads", "reward_var")
        learned = {
            kind: np.asarray(part).tolist() for kind, part in zip(kinds, result, strict=True)
        }
        found[label] = {"first call": times[0], "seconds": min(times[1:]), "learned": learned}
    return found


def _driftbandit_learns(logs: dict[str, np.ndarray], series: bool) -> Any:
    import driftbandit as db

    rewards = logs["series"] if series else logs["rewards"]
    played = np.zeros(len(rewards), int) if series else logs["played"]
    arms = np.ones((1, 1)) if series else logs["arms"]
    log = {"round": np.arange(len(rewards)), "arm": played, "reward": rewards}
    found = db.fit(log, arms, offsets=False, prior=0.0, starts=1)
    return found.model.transition, found.model.process_cov, found.arms, found.model.reward_std**2


def _statsmodels_learns_series(logs: dict[str, np.ndarray]) -> Any:
    from statsmodels.tsa.statespace.structural import UnobservedComponents

    model = UnobservedComponents(logs["series"], irregular=True, autoregressive=1)
    found = dict(zip(model.param_names, model.fit(disp=False).params, strict=True))
    return [[found["ar.L1"]]], [[found["sigma2.ar"]]], [[1.0]], found["sigma2.irregular"]


def _statsmodels_learns_arms(logs: dict[str, np.ndarray]) -> Any:
    """A model class of our own, because no ready one has an arm per round."""
    from statsmodels.tsa.statespace.mlemodel import MLEModel

    reads = logs["arms"]
    d = reads.shape[1]
    lower = np.tril_indices(d)

    class Arms(MLEModel):
        start_params = np.concatenate([0.5 * np.eye(d).ravel(), np.eye(d)[lower], [1.0]])

        def __init__(self) -> None:
            super().__init__(logs["rewards"], k_states=d, k_posdef=d)
            self["design"] = reads[logs["played"]].T[None]
            self["selection"] = np.eye(d)
            self.ssm.initialize_known(np.zeros(d), 10.0 * np.eye(d))

        def update(self, params: Any, **_: Any) -> None:
            self["transition"] = params[: d * d].reshape(d, d)
            self["state_cov"] = _from_root(params[d * d : -1])
            self["obs_cov"] = np.array([[params[-1] ** 2]])

    def _from_root(values: np.ndarray) -> np.ndarray:
        root = np.zeros((d, d), values.dtype)
        root[lower] = values
        return root @ root.T

    found = Arms().fit(disp=False, maxiter=500, cov_type="none").params
    return found[: d * d].reshape(d, d), _from_root(found[d * d : -1]), reads, found[-1] ** 2


def _dynamax_learns_series(logs: dict[str, np.ndarray]) -> Any:
    import jax
    import jax.numpy as jnp
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM

    jax.config.update("jax_enable_x64", True)
    model = LinearGaussianSSM(1, 1, has_dynamics_bias=False, has_emissions_bias=False)
    params, properties = model.initialize(jax.random.key(0), emission_weights=jnp.ones((1, 1)))
    rewards = jnp.asarray(logs["series"][:, None])
    params, _ = model.fit_em(params, properties, rewards, num_iters=200, verbose=False)
    found = params.dynamics.weights, params.dynamics.cov, params.emissions.weights
    return (*found, params.emissions.cov[0, 0])


def _dynamax_learns_arms(logs: dict[str, np.ndarray]) -> Any:
    """By gradient descent: `fit_em` refuses a different read-out per round."""
    import jax
    import jax.numpy as jnp
    import optax
    from dynamax.linear_gaussian_ssm import LinearGaussianSSM
    from dynamax.parameters import ParameterProperties

    jax.config.update("jax_enable_x64", True)
    d = logs["arms"].shape[1]
    model = LinearGaussianSSM(d, 1)
    params, properties = model.initialize(
        jax.random.key(0),
        dynamics_weights=0.5 * jnp.eye(d),
        dynamics_covariance=jnp.eye(d),
        emission_covariance=jnp.eye(1),
        initial_covariance=10.0 * jnp.eye(d),
    )
    rows = jnp.asarray(logs["arms"][logs["played"]][:, None, :])
    fixed = ParameterProperties(trainable=False)
    params = params._replace(emissions=params.emissions._replace(weights=rows))
    properties = properties._replace(
        dynamics=properties.dynamics._replace(bias=fixed),  # the model has no constant terms
        emissions=properties.emissions._replace(weights=fixed, bias=fixed),
        initial=properties.initial._replace(mean=fixed, cov=fixed),
    )
    rewards = jnp.asarray(logs["rewards"][None, :, None])
    params, _ = model.fit_sgd(
        params, properties, rewards, optimizer=optax.adam(0.02), num_epochs=500
    )
    dynamics = params.dynamics
    return dynamics.weights, dynamics.cov, logs["arms"], params.emissions.cov[0, 0]


LEARNERS: dict[str, dict[str, dict[str, Callable[[dict[str, np.ndarray]], Any]]]] = {
    "series": {
        "driftbandit": {"fit, EM": lambda logs: _driftbandit_learns(logs, series=True)},
        "statsmodels": {"UnobservedComponents.fit": _statsmodels_learns_series},
        "dynamax": {"fit_em, 200 iterations": _dynamax_learns_series},
    },
    "arms": {
        "driftbandit": {"fit, EM": lambda logs: _driftbandit_learns(logs, series=False)},
        "statsmodels": {"MLEModel of our own": _statsmodels_learns_arms},
        "dynamax": {"fit_sgd, Adam, 500 steps": _dynamax_learns_arms},
    },
}


# Task: regret on stored reward tables


def regret(name: str, data: str) -> dict[str, list[float]]:
    """Regret per round of every player, one number per table."""
    world = np.load(data)
    found: dict[str, list[float]] = {}
    for number in range(len(world["rewards"])):
        table = {key: world[key][number] for key in ("rewards", "means", "logged", "reads")}
        if name == "driftbandit":
            parts = [world[key] for key in ("transition", "process_cov", "initial_cov")]
            start, noise = world["initial_mean"], float(world["reward_std"])
            players = _driftbandit_regret(table, (*parts, start, noise))
        else:
            features = table["reads"] if bool(world["drifts together"]) else None
            players = PLAYERS[name](seed=number, world=features)
        for label, begin in players.items():
            found.setdefault(label, []).append(_played(begin(), table, name != "driftbandit"))
    return found


def _played(player: Player, table: dict[str, np.ndarray], teach: bool) -> float:
    """Teach the log of random play, then play the later rounds."""
    choose, learn = player
    logged, rewards, means = table["logged"], table["rewards"], table["means"]
    if teach:
        for t, arm in enumerate(logged.tolist()):
            learn(arm, float(rewards[t, arm]))
    lost = []
    for t in range(len(logged), len(rewards)):
        arm = choose()
        learn(arm, float(rewards[t, arm]))
        lost.append(means[t].max() - means[t, arm])
    return float(np.mean(lost))


def _driftbandit_regret(table: dict[str, np.ndarray], truth: Any) -> dict[str, Any]:
    import driftbandit as db

    transition, process_cov, initial_cov, initial_mean, noise = truth
    logged = table["logged"]
    n = len(logged)
    rewards = table["rewards"][np.arange(n), logged]
    log = {"round": np.arange(n), "arm": logged, "reward": rewards}
    true = db.LGDS(transition, process_cov, noise, initial_cov, initial_mean)
    fitted = db.fit(log).start_system

    def player(policy: str, *system: Any) -> Callable[[], Player]:
        def begin() -> Player:
            agent = db.Agent(*system, policy=policy, seed=0)
            agent.tell_log({key: np.asarray(part).tolist() for key, part in log.items()})
            return _agent_player(agent)

        return begin

    return {
        "IDEA, true model": player("idea", true, table["reads"]),
        "IDEA, fitted model": player("idea", fitted),
        "discounted_ucb": player("discounted_ucb", fitted),
        "ucb": player("ucb", fitted),
    }


TASKS: dict[str, Callable[..., Any]] = {
    "decide": decide,
    "simulate": simulate,
    "filter": filtering,
    "learn": learning,
    "regret": regret,
}


def versions(name: str, distribution: str) -> dict[str, str]:
    """The version of the package, of NumPy and of Python here."""
    found = {"version": importlib.metadata.version(distribution), "NumPy": np.__version__}
    if name == "driftbandit":  # its source may be newer than its metadata, in a checkout
        found["version"] = importlib.import_module(name).__version__
    for other in ("scipy", "jax"):
        try:
            found[other] = importlib.metadata.version(other)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found | {"Python": platform.python_version()}


def main() -> None:
    """Answer requests until stdin ends."""
    name = sys.argv[1]
    answers, sys.stdout = sys.stdout, sys.stderr  # packages print what they like elsewhere
    for line in sys.stdin:
        request = json.loads(line)
        task = request.pop("task")
        try:
            result = (
                versions(name, **request) if task == "versions" else TASKS[task](name, **request)
            )
            answer = {"result": result}
        except Exception as error:  # reported, not hidden: comparison.py stops with it
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    sys.path.pop(0)  # this folder's tables.py would be taken for PyTables
    main()
