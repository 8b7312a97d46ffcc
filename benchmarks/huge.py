"""Very many arms: time per decision, and a check that it is exact.

    python benchmarks/huge.py --json benchmarks/results/huge.json
    python benchmarks/huge.py --arms 100000 --rounds 100        # small

Three measurements:

1. One `ask` among a million arms, in the first round (all predictions are equal) and after 50
   rounds, with and without the screen. It alternates with one pass over the arms: NumPy's double
   precision `arms @ vector`, stored by rows as users do and by columns as the agent does, and a sum
   of all entries, which shows the memory bandwidth. Medians, and ratios of medians.
2. A tenth of the arms, 1000 rounds. In every round, three decisions must agree: the screened one,
   the one from scoring all arms block by block, and the argmax of all scores at once.
3. `simulate` with those arms, 1000 rounds, 2 runs, and a plain NumPy loop on the same states and
   noise: regret must agree to 1e-10. The time per round and run is compared with the two products
   of the arms with d × d matrices that IDEA's bonus needs, in NumPy. Single precision is measured
   too.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import numpy as np

import driftbandit as db
from driftbandit.machine import cores
from driftbandit.model import factor
from driftbandit.simulation import draws

POLICIES = ("idea", "kalman_ucb")
"""The policies with a screen; KODE's score is a single pass anyway."""


def system(states: int) -> db.LGDS:
    return db.families.sample("gaussian", n_states=states, n_arms=2, seed=1)[0][0]


def drawn(arms: int, states: int) -> np.ndarray:
    return np.random.default_rng(3).standard_normal((arms, states))


class World:
    """The true state, for realistic rewards."""

    def __init__(self, model: db.LGDS, seed: int = 5) -> None:
        self.model, self.rng = model, np.random.default_rng(seed)
        self.push = factor(model.process_cov)
        self.z = factor(model.start_cov()) @ self.rng.standard_normal(model.n_states)

    def reward(self, row: np.ndarray) -> float:
        """The reward of an arm; then the state moves one round."""
        paid = row @ self.z + float(self.model.reward_std) * self.rng.standard_normal()
        self.z = self.model.transition @ self.z
        self.z += self.push @ self.rng.standard_normal(self.model.n_states)
        return float(paid)


def medians(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Median milliseconds of each call; the calls alternate."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats + 1):
        for name, call in calls.items():
            begin = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - begin)
    return {name: 1e3 * float(np.median(took[1:])) for name, took in times.items()}


def one_decision(arms: int, states: int, repeats: int) -> dict[str, Any]:
    """One ask among many arms, compared with one pass over them."""
    model, rows = system(states), drawn(arms, states)
    vector = np.random.default_rng(4).standard_normal(states)
    figures: dict[str, Any] = {}
    for name in POLICIES:
        agent = db.Agent(model, rows, name)
        columns = agent.problem.arms
        for when, rounds in {"first round": 0, "steady": 50}.items():
            world = World(model)
            for _ in range(rounds):
                decision = agent.ask()
                agent.tell(decision, world.reward(rows[decision.arm]))
            if rounds:
                agent.advance()

            def ask(screen: bool, agent: db.Agent = agent, now: int = agent.round) -> int:
                agent.screen = screen
                return agent.ask(round=now).arm

            assert ask(True) == ask(False)
            calls = {
                "screened": lambda: ask(True),
                "pass": lambda: rows @ vector,
                "pass by columns": lambda columns=columns: columns @ vector,
                "read": lambda: rows.sum(),
                "exact": lambda: ask(False),
            }
            took = medians(calls, repeats)
            figures[f"{name}, {when}"] = {
                "ms": took,
                "read GB/s": rows.nbytes / took["read"] / 1e6,
                "over one pass": took["screened"] / took["pass"],
                "over one pass by columns": took["screened"] / took["pass by columns"],
                "exact over screened": took["exact"] / took["screened"],
            }
    return figures


def same_decisions(arms: int, states: int, rounds: int) -> dict[str, Any]:
    """Check that every decision is exact."""
    model, rows = system(states), drawn(arms, states)
    figures: dict[str, Any] = {}
    for name in POLICIES:
        agent, world = db.Agent(model, rows, name), World(model)
        equal, times, played = 0, np.zeros(2), set()
        for now in range(rounds):
            every = int(agent.policy.choose(agent.state, agent.problem, None))
            made = []
            for place, screen in enumerate((True, False)):
                agent.screen = screen
                begin = time.perf_counter()
                made.append(agent.ask(round=now))
                times[place] += time.perf_counter() - begin
            equal += made[0][2:] == made[1][2:] and made[0].arm == made[1].arm == every
            agent.tell(made[0], world.reward(rows[made[0].arm]))
            played.add(made[0].arm)
        assert equal == rounds, f"{name}: {rounds - equal} decisions differ"
        figures[name] = {
            "rounds": rounds,
            "same decision": equal,
            "different arms played": len(played),
            "ms screened": 1e3 * times[0] / rounds,
            "ms exact": 1e3 * times[1] / rounds,
        }
    return figures


def numpy_regret(name: str, model: db.LGDS, rows: np.ndarray, rounds: int, run: int) -> float:
    """One run of IDEA or KODE by textbook formulas, on the engine's states and noise."""
    G, Q, sigma = model.transition, model.process_cov, float(model.reward_std)
    blocks = [rows[begin : begin + 8192] for begin in range(0, len(rows), 8192)]

    def bonus(block: np.ndarray, P: np.ndarray) -> np.ndarray:
        seen = block @ P
        s = np.sum(seen * block, axis=1) + sigma**2
        return np.linalg.norm(seen @ G.T, axis=1) / np.sqrt(s)

    def normal(role: str, round_: Any, index: Any) -> np.ndarray:
        key = draws.run_key(draws.role_key(0, "", role), 0, run)
        return np.asarray(draws.normal(key, round_, index, np.float64))

    with jax.enable_x64(True):
        states = np.arange(model.n_states)
        z = model.start_mean() + factor(model.start_cov()) @ normal(draws.START, 0, states)
        shocks = normal(draws.PROCESS, np.arange(rounds)[:, None], states) @ factor(Q).T
        mean, P = np.zeros(model.n_states), model.start_cov()
        regret = 0.0
        for t in range(rounds):
            scores = rows @ mean
            if name == "idea":
                scores = scores + np.concatenate([bonus(block, P) for block in blocks])
            arm = int(np.argmax(scores))
            values = rows @ z
            regret += values.max() - values[arm]
            a = rows[arm]
            reward = values[arm] + sigma * float(normal(draws.REWARD, t, arm))
            K = P @ a / (a @ P @ a + sigma**2)
            mean = G @ (mean + K * (reward - a @ mean))
            P = G @ (P - np.outer(K, a @ P)) @ G.T + Q
            P = (P + P.T) / 2
            z = G @ z + shocks[t]
    return float(regret)


def batch(arms: int, states: int, rounds: int) -> dict[str, Any]:
    """`simulate` with many arms."""
    model, rows, runs = system(states), drawn(arms, states), 2
    P = db.kalman.prior(model).cov
    product = medians({"two": lambda: (rows @ P) @ model.transition.T}, 7)["two"]
    figures: dict[str, Any] = {"two products ms": product}
    for name in ("idea", "kode", "kalman_ucb", "kalman_oracle"):
        length = rounds if name in ("idea", "kode") else max(1, rounds // 10)
        result = db.simulate(model, rows, [name], rounds=length, runs=runs)
        took = 1e3 * result.timing.play / (length * runs)
        figures[name] = {"rounds": length, "ms per round and run": took}
        if name in ("idea", "kode"):
            expected = [numpy_regret(name, model, rows, length, run) for run in range(runs)]
            wrong = float(np.max(np.abs(result.regret[name] / expected - 1)))
            assert wrong < 1e-10, f"{name}: regret differs by {wrong}"
            figures[name]["regret, relative difference from NumPy's loop"] = wrong
            figures[name]["over two products"] = took / product
    length = max(1, rounds // 10)
    regrets = {}
    for dtype in ("float64", "float32"):
        result = db.simulate(model, rows, ["idea"], rounds=length, runs=runs, dtype=dtype)
        regrets[dtype] = result.regret["idea"]
        took = 1e3 * result.timing.play / (length * runs)
    figures["idea in float32"] = {
        "rounds": length,
        "ms per round and run": took,
        "regret, relative difference": float(
            np.max(np.abs(regrets["float32"] / regrets["float64"] - 1))
        ),
    }
    figures["peak memory MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return figures


def show(figures: dict[str, Any], indent: int = 1) -> None:
    for name, value in figures.items():
        if isinstance(value, dict) and any(isinstance(inner, dict) for inner in value.values()):
            print(f"{'  ' * indent}{name}:")
            show(value, indent + 1)
        elif isinstance(value, dict):
            inside = ", ".join(f"{inner} {figure:.4g}" for inner, figure in value.items())
            print(f"{'  ' * indent}{name}: {inside}")
        else:
            print(f"{'  ' * indent}{name}: {value if isinstance(value, str) else f'{value:.4g}'}")


def main() -> None:
    """Run all three measurements and print them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--arms", type=int, default=10**6)
    parser.add_argument("--rounds", type=int, default=1000)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument(
        "--states",
        type=int,
        nargs="*",
        default=[2, 10, 30],
        help="numbers of states for measurement 1",
    )
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    begin = time.perf_counter()
    tenth = max(1, options.arms // 10)
    figures: dict[str, Any] = {
        "machine": platform.machine(),
        "cores": cores(),
        "numpy": np.__version__,
        "arms": options.arms,
    }
    print(f"driftbandit {db.__version__}")
    show(figures)
    parts: dict[str, Callable[[], dict[str, Any]]] = {
        f"batch engine, {tenth} arms, d = 10": lambda: batch(tenth, 10, options.rounds),
        f"decisions compared, {tenth} arms, d = 10": lambda: same_decisions(
            tenth, 10, options.rounds
        ),
    } | {
        f"one ask, d = {d}": lambda d=d: one_decision(options.arms, d, options.repeats)
        for d in options.states
    }
    for name, part in parts.items():
        figures[name] = part()
        show({name: figures[name]})
    figures["seconds"] = time.perf_counter() - begin
    print(f"  {figures['seconds']:.0f} seconds")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
