"""Every unit vector an arm: how good the chosen vectors are, and how fast they come.

    python benchmarks/sphere.py --json benchmarks/results/sphere.json
    python benchmarks/sphere.py --cases 20 --directions 10000       # a small one

Four measurements:

1. Quality. Random beliefs and systems of nine kinds (no noise, singular P, zero mean, the hard
   case, Γ far from normal, scales over twelve decades) with 2, 10 and 50 states. Each solution is
   compared with random search: the best of 10⁵ random directions, improved by ascent until
   convergence. If random search is better by more than 10⁻⁹ of the score, that is a failure. The
   gaps of the certificates are listed by kind. One process per core.
2. Harder search for IDEA: 60 random vectors, all improved by ascent until convergence, 10 states.
3. Speed. One decision of an `Agent` with 10 states, by policy, on NumPy. It alternates with SciPy's
   SLSQP from ten random starts on the same scores, so that a busy machine slows both.
4. Theorem 2 (P8): simulated regret divided by the lower bound on regret.
"""

from __future__ import annotations

import argparse
import itertools
import json
import multiprocessing
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import scipy
import scipy.optimize

import driftbandit as db
from driftbandit.actions import SPHERE, idea_search, sphere
from driftbandit.actions.idea_objective import framed, idea
from driftbandit.machine import cores

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from sphere_cases import KINDS, case, scores_of

SOLVED = ("kalman_ucb", "idea")
STATES = (2, 10, 50)
BLOCK = 10_000
"""Random directions scored per block."""
KEPT = 3
"""Number of random directions that are improved by ascent."""
PROVED = 10
"""The bound, which takes longer than the solution, is computed for one case in this many."""


class Ucb:
    """Kalman-UCB's score, so that rivals of its solution can be climbed from too."""

    def __init__(self, belief: Any, model: Any) -> None:
        self.frame = framed(belief, model)
        self.variances = self.frame.variances / self.frame.unit**2

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """⟨b, m⟩ + √(bᵀPb)."""
        return rows @ self.frame.mean + np.sqrt((rows * rows) @ self.variances)

    def slopes(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Of √(bᵀPb)/‖b‖, which does not depend on b's length."""
        cov, eye = np.diag(self.variances), np.eye(rows.shape[1])
        deviation = np.sqrt((rows * rows) @ self.variances)
        safe = np.where(deviation > 0, deviation, np.inf)[:, None]
        slope = rows * self.variances / safe
        bent = (cov - slope[:, :, None] * slope[:, None, :]) / safe[:, :, None]
        cross = rows[:, :, None] * slope[:, None, :]
        radial = 3 * rows[:, :, None] * rows[:, None, :] - eye
        hessian = bent - cross - cross.mT + deviation[:, None, None] * radial
        slope = slope - deviation[:, None] * rows
        cross = rows[:, :, None] * slope[:, None, :]
        return slope, hessian + cross + cross.mT


def objective_of(name: str, belief: Any, model: Any) -> Any:
    return Ucb(belief, model) if name == "kalman_ucb" else idea(framed(belief, model))


def rival(objective: Any, directions: np.ndarray) -> float:
    """The best direction, after climbing from the best few."""
    best = directions[:0]
    for begin in range(0, len(directions), BLOCK):
        rows = directions[begin : begin + BLOCK]
        top = np.argpartition(objective.scores(rows), -200)[-200:]
        rows = np.concatenate([best, rows[top]])
        best = rows[np.argsort(objective.scores(rows))[-KEPT:]]
    return float(objective.scores(idea_search.climbed(objective, best, 40)).max())


def measured(task: tuple[int, int, int, int]) -> dict[str, list[tuple[str, float, float]]]:
    """Of some cases: kind, the rival's lead and, for some, the gap; by policy."""
    d, first, last, count = task
    rng = np.random.default_rng([d, 1])
    directions = rng.standard_normal((count, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rows: dict[str, list[tuple[str, float, float]]] = {name: [] for name in SOLVED}
    for i in range(first, last):
        kind = KINDS[i % len(KINDS)]
        belief, model = case(kind, d, np.random.default_rng([d, i]))
        for name in SOLVED:
            objective = objective_of(name, belief, model)
            gap = np.nan
            if name == "kalman_ucb":
                found = sphere.best(belief, model, name)
                value, gap = found.value / float(objective.frame.unit), found.gap / found.value
            else:
                value = float(objective.scores(idea_search.highest(objective)[None, :])[0])
                if (i // len(KINDS)) % PROVED == 0:
                    found = sphere.best(belief, model, name)
                    gap = found.gap / abs(found.value)
            rows[name].append((kind, (rival(objective, directions) - value) / abs(value), gap))
    return rows


def quality(first: int, cases: int, directions: int) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # for the processes, of which there is one a core
    with multiprocessing.get_context("spawn").Pool(cores()) as pool:
        for d in STATES:
            begin = time.perf_counter()
            edges = first + np.linspace(0, cases, 4 * cores() + 1).astype(int)
            tasks = [(d, int(a), int(b), directions) for a, b in itertools.pairwise(edges)]
            parts = pool.map(measured, tasks, chunksize=1)
            for name in SOLVED:
                rows = [row for part in parts for row in part[name]]
                leads = np.array([lead for _, lead, _ in rows])
                gaps = {kind: [gap for k, _, gap in rows if k == kind] for kind in KINDS}
                figures[f"{name}, {d} states"] = {
                    "cases": len(rows),
                    "failures": int((leads > 1e-9).sum()),
                    "rival's largest lead": float(leads.max()),
                    "rival falls short by more than 1e-9": int((leads < -1e-9).sum()),
                    "largest gap by kind": {k: float(np.nanmax(gap)) for k, gap in gaps.items()},
                }
                print(f"{name}, {d} states: {figures[f'{name}, {d} states']}", flush=True)
            print(f"{time.perf_counter() - begin:.0f} s", flush=True)
    return figures


def missed(task: tuple[int, int]) -> list[float]:
    """Lead of the best of 60 ascents over IDEA's solution, by case."""
    leads = []
    for i in range(*task):
        rng = np.random.default_rng([10, i, 98])
        objective = idea(framed(*case(KINDS[i % len(KINDS)], 10, rng)))
        starts = rng.standard_normal((60, 10))
        starts /= np.linalg.norm(starts, axis=1, keepdims=True)
        ended = idea_search.climbed(objective, starts, 25)
        best = ended[[int(np.argmax(objective.scores(ended)))]]
        other = float(objective.scores(idea_search.climbed(objective, best, 10))[0])
        value = float(objective.scores(idea_search.highest(objective)[None, :])[0])
        leads.append((other - value) / abs(other))
    return leads


def harder(cases: int) -> dict[str, Any]:
    with multiprocessing.get_context("spawn").Pool(cores()) as pool:
        edges = np.linspace(0, cases, 4 * cores() + 1).astype(int)
        tasks = [(int(a), int(b)) for a, b in itertools.pairwise(edges)]
        leads = np.array(list(itertools.chain(*pool.map(missed, tasks, chunksize=1))))
    return {
        "idea": {
            "cases": cases,
            "60 climbs end higher by more than 1e-9": int((leads > 1e-9).sum()),
            "largest lead": float(leads.max()),
        }
    }


def slsqp(score: Any, starts: np.ndarray) -> float:
    """SciPy's sequential quadratic programming from every start; the best value."""
    unit = {"type": "eq", "fun": lambda a: a @ a - 1}
    found = [
        scipy.optimize.minimize(
            lambda a: -score(a[None, :])[0], a, method="SLSQP", constraints=unit
        )
        for a in starts
    ]
    rows = np.array([one.x / np.linalg.norm(one.x) for one in found])
    return float(score(rows).max())


def speed(decisions: int) -> dict[str, Any]:
    model = db.families.sample("gaussian", n_states=10, n_arms=10, seed=1)[0][0]
    rng = np.random.default_rng(2)
    figures: dict[str, Any] = {}
    for name in db.policies.default(SPHERE):
        agent = db.Agent(model, "sphere", name)
        took, rivals, leads = [], [], []
        for t in range(decisions):
            belief = agent.state
            begin = time.perf_counter()
            decision = agent.ask()
            took.append(time.perf_counter() - begin)
            if name in ("kalman_ucb", "idea") and t % (decisions // 20) == 0:
                score = scores_of(name, belief, model)
                starts = rng.standard_normal((10, 10))
                starts /= np.linalg.norm(starts, axis=1, keepdims=True)
                begin = time.perf_counter()
                other = slsqp(score, starts)
                rivals.append(time.perf_counter() - begin)
                ours = float(score(decision.arm[None, :])[0])
                leads.append((other - ours) / abs(ours))
            size = (10,) if name == "kalman_oracle" else ()
            agent.tell(decision, rng.standard_normal(size) * 3)
        figures[name] = {"median us": 1e6 * float(np.median(took))}
        if rivals:
            figures[name] |= {
                "SLSQP, ten starts, median us": 1e6 * float(np.median(rivals)),
                "times slower": float(np.median(rivals) / np.median(took)),
                "SLSQP's largest lead": max(leads),
            }
        print(f"{name}: {figures[name]}", flush=True)
    return figures


def bound(runs: int, rounds: int = 200) -> dict[str, Any]:
    """Regret per round over Theorem 2's."""
    model = db.families.sample("gaussian", n_states=4, n_arms=4, seed=1)[0][0]
    floor = db.theory.sphere_lower_bound(model, rounds=rounds).value * rounds
    policies = ("kalman_oracle", "idea", "kalman_ucb", "kode", "random")
    result = db.simulate(model, "sphere", policies, rounds=rounds, runs=runs)
    return {
        name: {"regret over the bound": row["mean"] / floor, "±": row["standard_error"] / floor}
        for name, row in result.summary().items()
    }


def main() -> None:
    """Measure all and print it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="of the cases; 1000 for fresh ones")
    parser.add_argument("--directions", type=int, default=10**5)
    parser.add_argument("--decisions", type=int, default=2000)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--json", type=Path, help="store the figures here")
    options = parser.parse_args()
    begin = time.perf_counter()
    figures = {
        "machine": platform.machine(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "speed": speed(options.decisions),
        "theorem 2": bound(options.runs),
        "quality": quality(options.first, options.cases, options.directions),
        "a harder rival": harder(options.cases),
    }
    figures["minutes"] = (time.perf_counter() - begin) / 60
    print(json.dumps(figures, indent=2))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
