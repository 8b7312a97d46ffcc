"""Speed and memory of `Agent`, compared with a textbook loop and a matrix product.

    python benchmarks/agent.py --json benchmarks/results/agent.json
    python benchmarks/agent.py --decisions 20000 --arms 100000      # small
    python benchmarks/agent.py --only compiled                      # one measurement

Four measurements. All but the third alternate with a baseline in the same run, so that a busy
machine slows both:

1. ask and tell, d = k = 10, IDEA, a million times in one process: median and 99th percentile of one
   pair, and memory use, which must not grow. The baseline is the textbook filter and score in plain
   NumPy, without a window, ids, checks or late rewards; both must make the same decisions.
2. One ask among a million arms, d = 10. The baseline is NumPy's arms @ F, with F a d × d factor of
   the covariance: any score with a bonus needs about as much. Best of ten, with BLAS's default
   number of threads and with one thread, since threads that wait for each other on a busy machine
   distort the result.
3. A reward that is 10, 30 or 100 rounds late, and the next ask: the extra time over a reward on
   time, per round that is filtered again. Median of a hundred.
4. Ask and tell with ``compiled=True``. The baseline is the same agent without; both must make the
   same decisions. Median of 5000 pairs, 1000 for lookahead. The time to make the agent is that of
   compiling if DRIFTBANDIT_CACHE=off; the first also loads JAX.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import platform
import time
from pathlib import Path
from typing import Any

import numpy as np

import driftbandit as db
from driftbandit.model import factor

BLOCK = 10_000
"""Decisions per block; blocks alternate with the baseline."""
POLICIES = ("idea", "kalman_ucb", "kode")
COMPILED = [("idea", 3), ("idea", 10), ("idea", 20), ("idea", 30)]
COMPILED += [
    (name, 10) for name in ("reach", "kalman_ucb", "ucb", "discounted_linucb", "lookahead")
]
"""Policies and d = k for the fourth measurement."""


def blas_threads(number: int | None = None) -> int | None:
    """Number of threads of NumPy's matrix products, or None if unknown; sets it to ``number``."""
    for library in Path(np.__file__).parent.parent.glob("numpy.libs/*openblas*"):
        blas = ctypes.CDLL(str(library))
        for form in ("scipy_openblas_{}_num_threads64_", "openblas_{}_num_threads"):
            asked = getattr(blas, form.format("get"), None)
            if asked is not None:
                before = int(asked())
                if number is not None:
                    getattr(blas, form.format("set"))(number)
                return before
    return None


def memory() -> float:
    """Current memory of the process, MiB."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def engine(agent: db.Agent, rewards: np.ndarray, arms: np.ndarray, times: np.ndarray) -> None:
    """Ask and tell once per reward; record the arms and the time of each pair, in ns."""
    clock = time.perf_counter_ns
    for i, reward in enumerate(rewards):
        begin = clock()
        decision = agent.ask()
        agent.tell(decision, reward)
        times[i] = clock() - begin
        arms[i] = decision.arm


def textbook(
    model: db.LGDS,
    rows: np.ndarray,
    belief: tuple[np.ndarray, np.ndarray],
    rewards: np.ndarray,
    arms: np.ndarray,
    times: np.ndarray,
) -> tuple[np.ndarray, np.ndarray]:
    """The same in plain NumPy: IDEA's score, argmax, and the filter of P5 and P15."""
    clock = time.perf_counter_ns
    G, Q, variance = model.transition, model.process_cov, float(model.reward_std) ** 2
    mean, P = belief
    for i, reward in enumerate(rewards):
        begin = clock()
        seen = rows @ P
        s = np.sum(seen * rows, axis=1) + variance
        bonus = np.linalg.norm(seen @ G.T, axis=1) / np.sqrt(s)
        arm = int(np.argmax(rows @ mean + bonus))
        a = rows[arm]
        K = P @ a / (a @ P @ a + variance)
        mean = G @ (mean + K * (reward - a @ mean))
        P = G @ (P - np.outer(K, a @ P)) @ G.T + Q
        P = (P + P.T) / 2
        times[i] = clock() - begin
        arms[i] = arm
    return mean, P


def pairs(decisions: int) -> dict[str, Any]:
    """Measure many pairs of ask and tell."""
    model, rows = db.families.sample("gaussian", n_states=10, n_arms=10, seed=1)[0]
    rewards = np.random.default_rng(2).standard_normal(decisions)
    agent = db.Agent(model, rows, "idea")
    belief = db.kalman.prior(model)
    times = np.zeros((2, decisions), np.int64)
    arms = np.zeros((2, decisions), np.int8)
    times[:], arms[:] = 1, 1  # touch the memory before measuring it
    held = {}
    block = max(1, min(BLOCK, decisions // 10))
    marks = {round(share * decisions / block): share for share in (0.1, 0.5, 1.0)}
    for number, begin in enumerate(range(0, decisions, block), 1):
        part = slice(begin, begin + block)
        engine(agent, rewards[part], arms[0, part], times[0, part])
        belief = textbook(model, rows, belief, rewards[part], arms[1, part], times[1, part])
        if number in marks:
            held[f"{marks[number]:.0%}"] = memory()
    figures: dict[str, Any] = {"decisions": decisions}
    for name, took in zip(("ours", "textbook"), times, strict=True):
        figures[f"{name} median us"] = float(np.median(took)) / 1e3
        figures[f"{name} 99% us"] = float(np.percentile(took, 99)) / 1e3
    return figures | {
        "median over the textbook's": figures["ours median us"] / figures["textbook median us"],
        "same decisions": float((arms[0] == arms[1]).mean()),
        "memory MiB": held,
        "memory grows MiB": held["100%"] - held["10%"],
    }


def many_arms(arms: int, repeats: int = 10) -> dict[str, Any]:
    """One ask among many arms."""
    model, _ = db.families.sample("gaussian", n_states=10, n_arms=10, seed=1)[0]
    rows = np.random.default_rng(3).standard_normal((arms, 10))
    agents = {name: db.Agent(model, rows, name) for name in POLICIES}
    for agent in agents.values():
        for reward in (1.0, -2.0, 0.5):
            agent.tell(agent.ask(), reward)
    root = factor(agents["idea"].state.cov)
    times: dict[str, list[float]] = {name: [] for name in (*POLICIES, "product")}
    for _ in range(repeats):
        for name, agent in agents.items():
            begin = time.perf_counter()
            agent.ask()
            times[name].append(time.perf_counter() - begin)
        begin = time.perf_counter()
        rows @ root
        times["product"].append(time.perf_counter() - begin)
    best = {name: min(took) for name, took in times.items()}
    return {
        "arms": arms,
        "ms": {name: 1e3 * took for name, took in best.items()},
        "over the product": {name: best[name] / best["product"] for name in POLICIES},
    }


def late_rewards(repeats: int = 100) -> dict[str, Any]:
    """Microseconds per round that a late reward makes the agent filter again."""
    model, rows = db.families.sample("gaussian", n_states=10, n_arms=10, seed=1)[0]
    agent = db.Agent(model, rows, "idea", window=200)
    rng = np.random.default_rng(4)

    def told(delay: int) -> float:
        first = agent.ask()
        for _ in range(delay):
            decision = agent.ask()
            agent.tell(decision, rng.standard_normal())
        begin = time.perf_counter()
        agent.tell(first, rng.standard_normal())
        decision = agent.ask()
        took = time.perf_counter() - begin
        agent.tell(decision, rng.standard_normal())  # leave no decision open
        return took

    took = {delay: np.median([told(delay) for _ in range(repeats)]) for delay in (0, 10, 30, 100)}
    return {
        f"{delay} rounds late, us per round": float(1e6 * (took[delay] - took[0]) / delay)
        for delay in (10, 30, 100)
    }


def compiled(blocks: int = 10) -> dict[str, Any]:
    """Ask and tell with compiled functions and without."""
    figures: dict[str, Any] = {}
    for policy, size in COMPILED:
        model, rows = db.families.sample("gaussian", n_states=size, n_arms=size, seed=1)[0]
        begin = time.perf_counter()
        agents = [db.Agent(model, rows, policy, compiled=True), db.Agent(model, rows, policy)]
        made = time.perf_counter() - begin
        shape = len(agents), blocks, 100 if policy == "lookahead" else 500
        rewards = np.random.default_rng(2).standard_normal(shape[1:])
        times, arms = np.zeros(shape, np.int64), np.zeros(shape, np.int8)
        for block in range(blocks):
            for agent, took, chosen in zip(agents, times, arms, strict=True):
                engine(agent, rewards[block], chosen[block], took[block])
        ours, numpy = np.median(times, axis=(1, 2)) / 1e3
        figures[f"{policy}, d = k = {size}"] = {
            "compiled us": ours,
            "NumPy us": numpy,
            "times faster": numpy / ours,
            "same decisions": float((arms[0] == arms[1]).mean()),
            "seconds to make": made,
        }
    return figures


def calls(repeats: int = 5000) -> dict[str, Any]:
    """Microseconds of the policy's functions alone, d = k = 10, IDEA."""
    model, rows = db.families.sample("gaussian", n_states=10, n_arms=10, seed=1)[0]
    figures: dict[str, Any] = {}
    for name, on in (("NumPy us", False), ("compiled us", True)):
        agent = db.Agent(model, rows, "idea", compiled=on)
        policy, problem, state = agent._history.policy, agent.problem, agent.state
        functions = {
            "choose": lambda p=policy, g=(state, problem): p.choose.best(*g),
            "learn": lambda p=policy, g=(state, problem): p.agent.observe(*g, 3, 0.5),
            "wait": lambda p=policy, g=(state, problem): p.agent.advance(*g, 1),
        }
        figures[name] = {}
        for what, function in functions.items():
            took = np.zeros(repeats)
            for i in range(repeats):
                begin = time.perf_counter_ns()
                function()
                took[i] = time.perf_counter_ns() - begin
            figures[name][what] = float(np.median(took)) / 1e3
    return figures


def main() -> None:
    """Run all measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--decisions", type=int, default=10**6)
    parser.add_argument("--arms", type=int, default=10**6)
    parser.add_argument("--only", choices=["compiled"], help="measure nothing else")
    parser.add_argument("--json", type=Path, help="store the numbers here; others stay")
    options = parser.parse_args()
    threads = blas_threads()
    figures: dict[str, Any] = {
        "machine": platform.machine(),
        "numpy": np.__version__,
        "BLAS threads": threads,
    }
    if options.only is None:
        figures["ask and tell"] = pairs(options.decisions)
        figures["late reward"] = late_rewards()
        figures["one ask"] = many_arms(options.arms)
    figures["compiled"] = compiled()
    figures["calls"] = calls()
    if options.only is None and blas_threads(1) is not None:
        figures["one ask, one thread"] = many_arms(options.arms)
    print(f"driftbandit {db.__version__}")
    for name, value in figures.items():
        print(f"  {name}: {value if not isinstance(value, dict) else ''}")
        for inner, figure in value.items() if isinstance(value, dict) else ():
            print(f"    {inner}: {_shown(figure)}")
    if options.json:
        before = json.loads(options.json.read_text()) if options.json.exists() else {}
        options.json.write_text(json.dumps(before | figures, indent=2) + "\n")


def _shown(figure: Any) -> str:
    if isinstance(figure, dict):
        return ", ".join(f"{name} {value:.4g}" for name, value in figure.items())
    return f"{figure:.6g}"


if __name__ == "__main__":
    main()
