"""Speed of the batch engine, compared with other programs in the same run.

    python benchmarks/engine.py               # CPU: other programs, scaling, single decisions
    python benchmarks/engine.py --device gpu  # GPU: lanes and XLA, sizes, Table II
    python benchmarks/engine.py --section lanes   # CPU: what benchmarks/lanes.py measures

Prints a table and, with --json FILE, stores it. Programs that loop over runs in Python are timed on
fewer runs and compared per round, since their cost per round does not depend on the number of runs.
All times are the best of a few repeats; ours exclude compilation, which is printed separately.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import driftbandit as db
import lanes
from driftbandit import paper, studies
from driftbandit.model import factor
from driftbandit.paper import table2
from driftbandit.simulation import Options

STATES = ARMS = 10
ROUNDS, RUNS = 500, 2000
REPEATS = 5


def flops_per_idea_round(d: int, k: int) -> int:
    """Floating-point operations of one IDEA round, with the environment, without random numbers."""
    bonus = 2 * k * d * d + 2 * k * d * d + 6 * k * d  # A P, (A P) Γᵀ, norms, ⟨a, ẑ⟩
    step = 2 * d * d + 4 * d * d + 4 * d**3 + 2 * d * d + 4 * d * d  # P a, P − wwᵀ, Γ · Γᵀ + Q, ẑ
    environment = 4 * d * d + 2 * k * d
    return bonus + step + environment


def playing_seconds(**options) -> tuple[float, float, db.Result]:
    """Best time of a few calls, compile time of the first one, and the last result.

    The time covers the whole call, including preparation, once the program is compiled.
    """
    first = db.simulate(**options)
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = db.simulate(**options)
        times.append(time.perf_counter() - start)
    return min(times), first.timing.compile, result


def numpy_loop(model: db.LGDS, arms: np.ndarray, rounds: int, seed: int) -> float:
    """One run of IDEA in plain NumPy; returns its regret."""
    rng = np.random.default_rng(seed)
    G, Q, s2 = model.transition, model.process_cov, float(model.reward_std) ** 2
    z = factor(model.stationary_cov()) @ rng.standard_normal(model.n_states)
    shocks = rng.standard_normal((rounds, model.n_states)) @ factor(Q).T
    noise = model.reward_std * rng.standard_normal(rounds)
    mean, P, regret = np.zeros(model.n_states), model.stationary_cov(), 0.0
    for t in range(rounds):
        PA = arms @ P
        spread = (PA * arms).sum(axis=1) + s2
        moved = PA @ G.T
        arm = int(np.argmax(arms @ mean + np.sqrt((moved * moved).sum(axis=1) / spread)))
        values = arms @ z
        regret += values.max() - values[arm]
        gain = PA[arm] / spread[arm]
        mean = G @ (mean + gain * (values[arm] + noise[t] - arms[arm] @ mean))
        P = G @ (P - gain[:, None] * PA[arm]) @ G.T + Q
        z = G @ z + shocks[t]
    return regret


def filterpy_loop(model: db.LGDS, arms: np.ndarray, rounds: int, seed: int) -> float:
    """One run of IDEA with filterpy's Kalman filter; returns its regret."""
    from filterpy.kalman import KalmanFilter

    rng = np.random.default_rng(seed)
    kf = KalmanFilter(dim_x=model.n_states, dim_z=1)
    kf.F, kf.Q, kf.R = model.transition, model.process_cov, float(model.reward_std) ** 2
    kf.x, kf.P = np.zeros((model.n_states, 1)), model.stationary_cov().copy()
    z = factor(model.stationary_cov()) @ rng.standard_normal(model.n_states)
    shocks = rng.standard_normal((rounds, model.n_states)) @ factor(model.process_cov).T
    noise = model.reward_std * rng.standard_normal(rounds)
    regret = 0.0
    for t in range(rounds):
        bonus = db.policies.idea.bonus(kf.P, model, arms)
        arm = int(np.argmax(arms @ kf.x[:, 0] + bonus))
        values = arms @ z
        regret += values.max() - values[arm]
        kf.update(values[arm] + noise[t], H=arms[arm][None])
        kf.predict()
        z = model.transition @ z + shocks[t]
    return regret


def pymab_seconds(arms: int, rounds: int, runs: int) -> float:
    """Wall time of pymab's Rust engine: UCB on Gaussian arms, with the same sizes."""
    from pymab import BanditEnvironment, Experiment, ExperimentConfig
    from pymab.policies import UCBPolicy

    experiment = Experiment(
        environment=BanditEnvironment(means=np.linspace(0, 1, arms)),
        policies={"ucb": UCBPolicy(n_arms=arms)},
        config=ExperimentConfig(horizon=rounds, n_replicates=runs, seed=1, backend="rust"),
    )
    times = []
    for _ in range(3):
        start = time.perf_counter()
        experiment.run()
        times.append(time.perf_counter() - start)
    return min(times)


def decision_microseconds(decisions: int = 20_000) -> float:
    """Median time of ask + tell, in a separate process that never loads JAX."""
    code = f"""
import time, sys, numpy as np, driftbandit as db
model, arms = db.families.sample("gaussian", seed=1)[0]
agent = db.Agent(model, arms, "idea")
rewards, times = np.random.default_rng(0).standard_normal({decisions}), []
for reward in rewards:
    start = time.perf_counter()
    agent.tell(agent.ask(), reward)
    times.append(time.perf_counter() - start)
assert "jax" not in sys.modules
print(np.median(times) * 1e6)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return float(done.stdout)


def peak_flops() -> float:
    """Floating-point rate of NumPy's matrix product on all cores, as an upper limit."""
    square = np.random.default_rng(0).standard_normal((1500, 1500))
    square @ square
    times = []
    for _ in range(5):
        start = time.perf_counter()
        square @ square
        times.append(time.perf_counter() - start)
    return 2 * 1500**3 / min(times)


def own_policy() -> db.policies.Policy:
    """A policy as a user would write it: a mix of IDEA and Kalman-UCB."""

    def bonus(cov, model, arms):
        one = db.policies.idea.bonus(cov, model, arms)
        return 0.5 * (one + db.policies.kalman_ucb.bonus(cov, model, arms))

    return db.policies.optimistic("own", bonus)


def cpu(figures: dict[str, float]) -> None:
    model, arms = db.families.sample("gaussian", n_states=STATES, n_arms=ARMS, seed=1)[0]
    study = {"model": model, "arms": arms, "rounds": ROUNDS, "runs": RUNS}
    size = ROUNDS * RUNS

    ours, compiled, result = playing_seconds(**study, policies=["idea"])
    figures["idea rounds/s"], figures["idea compile s"] = size / ours, compiled
    print(f"IDEA, d = k = {STATES}, float64, {RUNS} runs × {ROUNDS} rounds")
    print(f"  driftbandit        {ours / size * 1e6:8.3f} µs/round  (compile {compiled:.1f} s)")
    peak = peak_flops()
    rate = flops_per_idea_round(STATES, ARMS) / (ours / size)
    figures["share of peak"] = rate / peak
    print(
        f"  arithmetic         {rate / 1e9:8.2f} GFLOP/s, {rate / peak:.0%} of the "
        f"{peak / 1e9:.0f} GFLOP/s of a large matrix product here"
    )
    mean = result.regret["idea"].mean()
    error = result.regret["idea"].std() / np.sqrt(RUNS)
    for name, loop, runs in (("NumPy loop", numpy_loop, 20), ("filterpy loop", filterpy_loop, 8)):
        regrets, times = [], []
        for repeat in range(REPEATS):
            start = time.perf_counter()
            seeds = range(repeat * runs, (repeat + 1) * runs)
            regrets += [loop(model, arms, ROUNDS, seed) for seed in seeds]
            times.append(time.perf_counter() - start)
        per_round = min(times) / (runs * ROUNDS)
        figures[f"times {name}"] = per_round / (ours / size)
        print(
            f"  {name:<18} {per_round * 1e6:8.3f} µs/round  → {figures[f'times {name}']:.1f} times"
            f"   (mean regret {statistics.mean(regrets):.0f} ± "
            f"{statistics.stdev(regrets) / len(regrets) ** 0.5:.0f}; ours {mean:.0f} ± {error:.0f})"
        )

    ucb, compiled, _ = playing_seconds(**study, policies=["ucb"])
    rival = pymab_seconds(ARMS, ROUNDS, RUNS)
    figures["times pymab"], figures["ucb rounds/s"] = rival / ucb, size / ucb
    print(f"UCB, {ARMS} arms, {RUNS} runs × {ROUNDS} rounds")
    print(f"  driftbandit        {ucb / size * 1e6:8.3f} µs/round  (compile {compiled:.1f} s)")
    print(f"  pymab, Rust        {rival / size * 1e6:8.3f} µs/round  → {rival / ucb:.1f} times")

    own, _, _ = playing_seconds(**study, policies=[own_policy()])
    figures["own policy / idea"] = own / ours
    print(f"A policy written outside the package: {own / ours:.2f} times IDEA's time")

    print("Time of IDEA for ten times the work, relative to the base size")
    for name, more in (("rounds", {"rounds": 10 * ROUNDS}), ("runs", {"runs": 10 * RUNS})):
        longer, _, _ = playing_seconds(**(study | more), policies=["idea"])
        figures[f"x10 {name}"] = longer / ours
        print(f"  ×10 {name:<8}       {longer / ours:8.2f} times")

    figures["decision us"] = decision_microseconds()
    print(f"Agent, ask + tell, NumPy, median: {figures['decision us']:.1f} µs")


def rate_of(name: str, systems: list, runs: int, rounds: int, **options) -> tuple[float, float]:
    """Rounds per second of playing on a GPU, best of three calls, and seconds of compiling."""
    total = Options(checkpoints=1)
    settings = {"policies": [name], "runs": runs, "rounds": rounds, "device": "gpu"} | options
    results = [db.simulate(systems, options=total, **settings) for _ in range(4)]
    play = min(result.timing.play for result in results[1:])
    return len(systems) * runs * rounds / play, results[0].timing.compile


def gpu(figures: dict[str, float]) -> None:
    """Throughput of `lanes` and of XLA; Table II; sizes."""

    def show(key: str, value: float, unit: str = "M rounds/s", note: str = "") -> None:
        figures[key] = value
        print(
            f"  {key:<46} {value / 1e6 if 'M ' in unit else value:10.4g} {unit} {note}", flush=True
        )

    one = db.families.sample("gaussian", n_states=STATES, n_arms=ARMS, seed=1)
    print("d = k = 10, float64: rounds/s while playing")
    for name in ("idea", "kode", "kalman_ucb", "ucb", "oful", "thompson"):
        rate, compiled = rate_of(name, one, 8 * 33_792, 1000)
        slow, _ = rate_of(name, one, 65_536, 128, engine="xla")
        show(f"{name} rounds/s", rate, note=f"compiled in {compiled:.1f} s")
        show(f"{name} rounds/s, XLA", slow, note=f"lanes: {rate / slow:.0f} times as fast")
    for runs in (2_000, 33_792, 1_048_576):
        show(f"idea rounds/s at {runs} runs", rate_of("idea", one, runs, 1000)[0])
    many = db.families.sample("gaussian", systems=10_000, n_states=STATES, n_arms=ARMS, seed=1)
    show("idea rounds/s, 10000 systems x 10 runs", rate_of("idea", many, 10, 1000)[0])
    show("idea rounds/s, float32", rate_of("idea", one, 8 * 33_792, 1000, dtype=np.float32)[0])
    flops = figures["idea rounds/s"] * flops_per_idea_round(STATES, ARMS)
    show("idea TFLOP/s", flops / 1e12, "", "products counted in full; FMA units: 34 on an H200")
    print("sizes: M rounds/s of IDEA, lanes and XLA")
    for states, number in ((2, 2), (5, 5), (10, 2), (10, 30), (12, 12), (20, 20)):
        size = db.families.sample("gaussian", n_states=states, n_arms=number, seed=1)
        ours = rate_of("idea", size, 4 * 33_792, 256)[0]  # where lanes refuses, XLA plays
        xla = rate_of("idea", size, 16_384, 64, engine="xla")[0]
        show(f"idea {states} x {number}", ours, note=f"XLA {xla / 1e6:.4g}")
    specification = table2.specification(paper.Options(paper.PAPER_SIZE, platform="gpu"))
    for turn in ("first", "again"):
        with tempfile.TemporaryDirectory() as folder:
            start = time.perf_counter()
            study = studies.engines.run(specification, Path(folder))
            table2.document(study)
            took = time.perf_counter() - start
            show(f"Table II, {turn}: seconds", took, "s", str(dict(study.seconds)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--section", choices=("programs", "lanes"), default="programs")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    parser.add_argument("--against", type=Path, help="stored numbers of a CPU run to compare with")
    options = parser.parse_args()
    if options.section == "lanes":
        lanes.main(["--json", str(options.json)] if options.json else [])
        return
    figures: dict[str, float] = {}
    print(f"{platform.machine()}, Python {platform.python_version()}, NumPy {np.__version__}")
    {"cpu": cpu, "gpu": gpu}[options.device](figures)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures["peak MiB"] = memory
    print(f"Peak memory of the whole benchmark: {memory:.0f} MiB")
    if options.against:
        base = json.loads(options.against.read_text())["idea rounds/s"]
        figures["times CPU"] = figures["idea rounds/s"] / base
        print(f"IDEA: {figures['times CPU']:.0f} times the CPU's {base / 1e6:.2f} M rounds/s")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
