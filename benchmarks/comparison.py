"""driftbandit against seven other packages: time and regret, measured in one run.

    python benchmarks/comparison.py --json benchmarks/results/comparison.json
    python benchmarks/comparison.py --environments FOLDER   # keep, or reuse, the environments
    python benchmarks/comparison.py --small                 # a look, two minutes

Every package has a virtual environment of its own, with the newest version that pip installs, and a
process of its own (comparison_worker.py). The processes measure in turn, so that a busy machine
slows all of them. BLAS and OpenMP use one thread; simulators use the threads they choose.

1. decide: one choice and its update, 10 arms: median of many, then the median over the turns.
2. simulate: UCB on ten Gaussian arms that do not drift, 1000 rounds × runs, by each package's own
   simulator: best turn, per round. The number of runs is chosen so that each takes about a second.
3. filter: the log-likelihood of a log, 10 000 rounds, 10 states, a given model: best of many. All
   must agree within 1e-6 of its size.
4. learn: the parameters of a series (AR(1) plus noise) and of a log of four arms with known
   features. The log-likelihood of what was learned is computed here, by one textbook filter.
5. regret: on the same reward tables. The first 500 rounds are a log of random play, which every
   policy is taught and from which driftbandit fits its model; regret counts in the next 1000.
   Noise has σ = ½, the most that rewards in [0, 1] can have and what the bonus of UCB assumes;
   policies that accept only [0, 1] get rewards mapped to it.

What is missing is missing because the package has no such function.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.stats

WORKER = Path(__file__).with_name("comparison_worker.py")
OURS = "driftbandit"


class Rival(NamedTuple):
    """A package: its name on the index, and what is installed with it."""

    distribution: str
    also: tuple[str, ...] = ()


RIVALS = {
    "pymab": Rival("pymab"),
    # with SciPy 1.14 or later it does not import: `btdtri` was removed from SciPy
    "SMPyBandits": Rival("SMPyBandits", ("numpy<2", "scipy<1.14")),
    "bayesianbandits": Rival("bayesianbandits"),
    "river": Rival("river", ("gymnasium",)),
    "MABWiser": Rival("mabwiser"),
    "dynamax": Rival("dynamax"),
    "statsmodels": Rival("statsmodels"),
}
SIMULATED = {"pymab": 500, "SMPyBandits": 10, "river": 20, OURS: 20_000}
"""Runs per call of each simulator."""
THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


class Sizes(NamedTuple):
    """How much is measured."""

    turns: int = 7
    pairs: int = 2000
    rounds: int = 10_000  # of the log that is filtered
    learned: int = 1000  # rounds of the logs that models are learned from
    tables: int = 12
    logged: int = 500
    played: int = 1000
    scale: float = 1.0  # of the numbers of simulated runs


SMALL = Sizes(2, 200, 500, 200, 2, 100, 100, 0.02)


class Process:
    """A package in its own process."""

    def __init__(self, name: str, python: Path | str) -> None:
        self.name = name
        # compile times are measured, so nothing compiled earlier may be read
        own = {"DRIFTBANDIT_CACHE": "off", "JAX_PLATFORMS": "cpu", **dict.fromkeys(THREADS, "1")}
        self.process = subprocess.Popen(
            [str(python), str(WORKER), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | own,
        )

    def ask(self, task: str, **options: Any) -> Any:
        """The result of a task."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"task": task, **options}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the process ended"}
        if "error" in answer:
            raise RuntimeError(f"{self.name}, {task}: {answer['error']}")
        return answer["result"]

    def close(self) -> None:
        """End the process: it stops when its stdin ends."""
        self.process.communicate()


def python_of(name: str, folder: Path) -> Path:
    """The interpreter of a package's environment, which is made if it is missing."""
    place = folder / name
    python = place / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not python.exists():
        venv.create(place, with_pip=True)
        rival = RIVALS[name]
        command = [str(python), "-m", "pip", "install", "--quiet", rival.distribution, *rival.also]
        subprocess.run(command, check=True)
    return python


# Worlds


def world(kind: str, tables: int, rounds: int, logged: int, seed: int = 0) -> dict[str, Any]:
    """Reward tables of ten arms, and the system that made them.

    "drift together": the arms read three hidden states; "drift alone": every arm has a state of
    its own; "no drift". A state forgets with a time constant of 50 rounds. What drifts has a
    standard deviation of 1, the arms' constant means ½ (1 if nothing drifts), and the noise ½. The
    last state is the constant 1, which carries the means.
    """
    rng = np.random.default_rng([seed, len(kind)])
    arms, memory, noise = 10, 0.98, 0.5
    d = {"drift together": 3, "drift alone": arms, "no drift": 0}[kind]
    keep = np.diag(np.append(np.full(d, memory), 1.0))
    shocks = np.diag(np.append(np.full(d, 1 - memory**2), 0.0))
    start, first = np.diag(np.append(np.ones(d), 0.0)), np.append(np.zeros(d), 1.0)
    found: dict[str, list[np.ndarray]] = {key: [] for key in ("rewards", "means", "reads")}
    for _ in range(tables):
        reads = np.eye(arms) if d == arms else rng.standard_normal((arms, d))
        if 0 < d < arms:
            reads /= np.linalg.norm(reads, axis=1, keepdims=True)
        offsets = (0.5 if d else 1.0) * rng.standard_normal(arms)
        reads = np.column_stack([reads, offsets])
        z = first + np.sqrt(np.diag(start)) * rng.standard_normal(d + 1)
        means = np.empty((rounds, arms))
        for t in range(rounds):
            means[t] = reads @ z
            z = keep @ z + np.sqrt(np.diag(shocks)) * rng.standard_normal(d + 1)
        found["means"].append(means)
        found["rewards"].append(means + noise * rng.standard_normal(means.shape))
        found["reads"].append(reads)
    return {key: np.array(parts) for key, parts in found.items()} | {
        "logged": rng.integers(arms, size=(tables, logged)),
        "transition": keep,
        "process_cov": shocks,
        "initial_cov": start,
        "initial_mean": first,
        "reward_std": noise,
        "drifts together": 0 < d < arms,
    }


WORLDS = ("drift together", "drift alone", "no drift")


def random_game(table: dict[str, Any], logged: int) -> list[float]:
    """Regret per round of random play, one number per table, without its noise."""
    means = table["means"][:, logged:]
    return (means.max(axis=2) - means.mean(axis=2)).mean(axis=1).tolist()


def filtered_log(rounds: int, d: int = 10) -> dict[str, Any]:
    """A model with ten states, and a log of random play on ten arms."""
    rng = np.random.default_rng(1)
    transition = rng.standard_normal((d, d))
    transition *= 0.95 / np.abs(np.linalg.eigvals(transition)).max()
    root = rng.standard_normal((d, d)) / math.sqrt(d)
    arms, played = rng.standard_normal((d, d)), rng.integers(d, size=rounds)
    log = _simulated(rng, transition, root @ root.T, 0.5, arms[played])
    return log | {"arms": arms, "played": played}


def _simulated(
    rng: np.random.Generator, transition: Any, process_cov: Any, noise: float, rows: Any
) -> dict[str, Any]:
    start = scipy.linalg.solve_discrete_lyapunov(transition, process_cov)
    d, rewards = len(transition), []
    z = rng.multivariate_normal(np.zeros(d), start)
    for row in rows:
        rewards.append(row @ z + noise * rng.standard_normal())
        z = transition @ z + rng.multivariate_normal(np.zeros(d), process_cov)
    return {
        "transition": transition,
        "process_cov": process_cov,
        "initial_cov": start,
        "reward_std": noise,
        "rewards": np.array(rewards),
    }


def learned_logs(rounds: int) -> dict[str, Any]:
    """A series, AR(1) plus noise; and a log of four arms that read two states that rotate."""
    rng = np.random.default_rng(2)
    one = np.ones((rounds, 1))
    series = _simulated(rng, np.array([[0.95]]), np.array([[0.1]]), 0.5, one)["rewards"]
    transition = 0.97 * np.array([[math.cos(0.2), -math.sin(0.2)], [math.sin(0.2), math.cos(0.2)]])
    arms, played = rng.standard_normal((4, 2)), rng.integers(4, size=rounds)
    log = _simulated(rng, transition, 0.1 * np.eye(2), 0.5, arms[played])
    return {"series": series, "arms": arms, "played": played, "rewards": log["rewards"]}


def log_likelihood(learned: dict[str, Any], rows: np.ndarray, rewards: np.ndarray) -> float:
    """Of rewards under learned parameters: the textbook filter from the stationary distribution."""
    transition, process_cov = np.array(learned["transition"]), np.array(learned["process_cov"])
    variance, total = float(learned["reward_var"]), 0.0
    mean = np.zeros(len(transition))
    cov = scipy.linalg.solve_discrete_lyapunov(transition, process_cov)
    for row, reward in zip(rows, rewards, strict=True):
        s, e = row @ cov @ row + variance, reward - row @ mean
        gain = cov @ row / s
        total -= 0.5 * (math.log(2 * math.pi * s) + e**2 / s)
        mean = transition @ (mean + gain * e)
        cov = transition @ (cov - np.outer(gain, row @ cov)) @ transition.T + process_cov
    return total


# Measurements


def decisions(processes: dict[str, Process], sizes: Sizes) -> dict[str, Any]:
    """Median µs of one choice and its update, by player, with the ratio to `OURS`' first."""
    names = [name for name in processes if name not in ("dynamax", "statsmodels")]
    turns: dict[tuple[str, str], list[float]] = {}
    for _ in range(sizes.turns):
        for name in names:
            for label, us in processes[name].ask("decide", pairs=sizes.pairs).items():
                turns.setdefault((name, label), []).append(us)
    base = statistics.median(next(us for (name, _), us in turns.items() if name == OURS))
    return {
        f"{name}: {label}": {
            "package": name,
            "policy": label,
            "us": statistics.median(us),
            "least": min(us),
            "most": max(us),
            "ratio": statistics.median(us) / base,
        }
        for (name, label), us in turns.items()
    }


def simulations(processes: dict[str, Process], sizes: Sizes) -> dict[str, Any]:
    """Best µs per round of each simulator, with the ratio to `OURS`."""
    rounds = 1000
    found: dict[str, Any] = {}
    for _ in range(min(sizes.turns, 3)):
        for name, most in SIMULATED.items():
            runs = max(1, round(most * sizes.scale))
            one = processes[name].ask("simulate", runs=runs, rounds=rounds)
            one["us per round"] = 1e6 * one.pop("seconds") / (runs * rounds)
            before = found.setdefault(name, one)
            before["us per round"] = min(before["us per round"], one["us per round"])
    for one in found.values():
        one["ratio"] = one["us per round"] / found[OURS]["us per round"]
    return found


def filters(processes: dict[str, Process], sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Best milliseconds of each filter, and its log-likelihood."""
    data = folder / "filter.npz"
    np.savez(data, **filtered_log(sizes.rounds))
    found: dict[str, Any] = {}
    for _ in range(min(sizes.turns, 4)):
        for name in (OURS, "dynamax", "statsmodels"):
            for label, one in processes[name].ask("filter", data=str(data), repeats=3).items():
                before = found.setdefault(f"{name}: {label}", {"package": name, **one})
                before["seconds"] = min(before["seconds"], one["seconds"])
    base = next(iter(found.values()))
    for one in found.values():
        one["ratio"] = one["seconds"] / base["seconds"]
        apart = abs(one["log-likelihood"] / base["log-likelihood"] - 1)
        if not apart < 1e-6:
            raise RuntimeError(f"log-likelihoods differ by {apart:.1e} of their size")
    return found


def learners(processes: dict[str, Process], sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Seconds of each fit, and the log-likelihood of what it learned."""
    data, logs = folder / "learn.npz", learned_logs(sizes.learned)
    np.savez(data, **logs)
    cases: dict[str, Any] = {}
    for case in ("series", "arms"):
        found = cases.setdefault(case, {})
        for name in (OURS, "dynamax", "statsmodels"):
            results = processes[name].ask("learn", data=str(data), case=case, repeats=1)
            for label, one in results.items():
                learned = one.pop("learned")
                reads = np.array(learned["reads"])
                rows = (
                    reads[logs["played"]]
                    if case == "arms"
                    else np.tile(reads[0], (sizes.learned, 1))
                )
                rewards = logs["rewards"] if case == "arms" else logs["series"]
                one["log-likelihood"] = log_likelihood(learned, rows, rewards)
                found[f"{name}: {label}"] = {"package": name, **one}
        first = next(iter(found.values()))
        for one in found.values():
            one["ratio"] = one["seconds"] / first["seconds"]
    return cases


def interval(values: Any) -> list[float]:
    """Mean and 95% Student's t interval."""
    values = np.asarray(values, float)
    mean, error = float(values.mean()), float(values.std(ddof=1)) / math.sqrt(len(values))
    wide = float(scipy.stats.t.ppf(0.975, len(values) - 1)) * error
    return [mean, mean - wide, mean + wide]


def regrets(processes: dict[str, Process], sizes: Sizes, folder: Path) -> dict[str, Any]:
    """Regret per round of every player in every world; the difference from the fitted IDEA."""
    found: dict[str, Any] = {}
    names = [name for name in processes if name not in ("dynamax", "statsmodels")]
    for kind in WORLDS:
        table = world(kind, sizes.tables, sizes.logged + sizes.played, sizes.logged)
        data = folder / "regret.npz"
        np.savez(data, **table)
        each = {
            (name, label): values
            for name in names
            for label, values in processes[name].ask("regret", data=str(data)).items()
        }
        each["", "random play"] = random_game(table, sizes.logged)
        fitted = np.array(each[OURS, "IDEA, fitted model"])
        found[kind] = {
            f"{name}: {label}".removeprefix(": "): {
                "package": name,
                "policy": label,
                "regret": interval(values),
                "minus fitted": interval(np.array(values) - fitted),
            }
            for (name, label), values in each.items()
        }
    return found


def machine() -> dict[str, Any]:
    """The processor and the number of cores."""
    model, cpuinfo = platform.machine(), Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line for line in cpuinfo.read_text().splitlines() if line.startswith("model name")]
        model = names[0].partition(": ")[2] if names else model
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {"processor": model, "cores": cores, "system": platform.system()}


def measured(folder: Path, sizes: Sizes) -> dict[str, Any]:
    """All measurements; environments are in, or are made in, this folder."""
    pythons = {OURS: Path(sys.executable)} | {name: python_of(name, folder) for name in RIVALS}
    processes = {name: Process(name, python) for name, python in pythons.items()}
    begin = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        try:
            found: dict[str, Any] = {"machine": machine(), "sizes": sizes._asdict()}
            found["packages"] = {
                name: process.ask(
                    "versions", distribution=RIVALS[name].distribution if name != OURS else OURS
                )
                for name, process in processes.items()
            }
            for part in ("decide", "simulate", "filter", "learn", "regret"):
                found[part] = {
                    "decide": lambda: decisions(processes, sizes),
                    "simulate": lambda: simulations(processes, sizes),
                    "filter": lambda: filters(processes, sizes, Path(temporary)),
                    "learn": lambda: learners(processes, sizes, Path(temporary)),
                    "regret": lambda: regrets(processes, sizes, Path(temporary)),
                }[part]()
                took = time.perf_counter() - begin
                print(
                    f"{part}, after {took:.0f} s\n{json.dumps(found[part], indent=1)}", flush=True
                )
        finally:
            for process in processes.values():
                process.close()
    return found | {"seconds": time.perf_counter() - begin}


def main() -> None:
    """Make the environments, measure, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--environments", type=Path, help="folder of the virtual environments")
    parser.add_argument("--small", action="store_true", help="measure less")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    sizes = SMALL if options.small else Sizes()
    if options.environments:
        options.environments.mkdir(parents=True, exist_ok=True)
        found = measured(options.environments.resolve(), sizes)
    else:
        with tempfile.TemporaryDirectory() as folder:
            found = measured(Path(folder), sizes)
    if options.json:
        options.json.write_text(json.dumps(found, indent=2, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
