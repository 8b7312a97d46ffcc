"""Policies compared with IDEA on Table II: 5 families × 1000 systems × 10 runs × 1000 rounds.

    python benchmarks/beyond.py                   # the comparison, on systems 0 to 999
    python benchmarks/beyond.py --attempts        # alternatives, on systems 1000 to 1999
    python benchmarks/beyond.py --cost            # time per round compared with IDEA

The settings were chosen once, from the attempts; the comparison uses other systems. Runs are
averaged within each system, since only systems are independent; rollouts use a fifth of them. Two
statistics: Σ R / Σ R_idea, which in the Cauchy family is dominated by the few largest systems, and
exp(mean log(R / R_idea)), which weights every system equally. The 95% intervals come from a
bootstrap over systems.
"""

from __future__ import annotations

import argparse
import functools
import json
from pathlib import Path
from typing import Any

import numpy as np

import driftbandit as db
from driftbandit import kalman
from driftbandit.arrays import Array
from driftbandit.gaussian.lines import gain
from driftbandit.kalman import Belief
from driftbandit.policies import Policy, Problem, idea, optimistic
from driftbandit.policies.base import highest
from driftbandit.policies.optimistic import filtering
from driftbandit.simulation import Options

POLICIES = ("lookahead", "kode", "rollout", "information_directed", "thompson", "kalman_ucb")
SIZE = {"rounds": 1000, "runs": 10}


def larger_idea(cov: Array, model: db.LGDS, arms: Array, size: float) -> Array:
    """IDEA's bonus times a constant."""
    return size * idea.bonus(cov, model, arms)


def open_loop_scores(belief: Belief, problem: Problem) -> tuple[Array, Array]:
    """Lookahead by Γ^(h−1) v, as if nothing were learned before the later round."""
    model, arms, constants = problem
    move = kalman.moves(belief.cov, model, arms)
    mean = belief.mean
    total = 0.0
    for step in range(constants["weights"].shape[0]):
        mean = model.transition @ mean
        total = total + constants["weights"][step] * gain(arms @ mean, move @ arms.T)
        move = move @ model.transition.T
    return arms @ belief.mean, total


def open_loop(steps: int, discount: float) -> Policy:
    """The policy of `open_loop_scores`."""
    name = f"open_loop(steps={steps}, discount={discount})"
    weights = discount ** np.arange(float(steps))
    return filtering(name, highest(open_loop_scores), {"weights": weights})


def attempts() -> list[str | Policy]:
    """One policy per kind of alternative, and settings close to the chosen one."""
    grid = [(1, 1.0), (2, 1.0), (2, 0.8), (2, 0.6), (3, 0.8), (4, 1.0), (4, 0.8), (4, 0.6)]
    rollouts = ["rollout(depth=2)", "rollout", "rollout(depth=4, scenarios=32)"]
    return [
        "kode",
        *(optimistic(f"idea × {size}", larger_idea, size=size) for size in (0.5, 0.8, 1.3)),
        *(f"lookahead(steps={steps}, discount={discount})" for steps, discount in grid),
        *(open_loop(steps, discount) for steps, discount in [(2, 1.0), (2, 0.7), (4, 0.5)]),
        *rollouts,
        "information_directed",
        "thompson",
    ]


def log_ratios(mine: Array, base: Array, ceiling: Array) -> Array:
    """log(R / R_base); regrets below a thousandth of the highest of the three count as that."""
    floor = 1e-3 * np.max([mine, base, ceiling], axis=0)
    floor = np.where(floor > 0, floor, 1.0)
    return np.log(np.maximum(mine, floor) / np.maximum(base, floor))


def ratio_of_sums(mine: Array, base: Array, counts: Array) -> list[float]:
    """Σ R / Σ R_base, and its 95% interval over resamples that draw systems ``counts`` times."""
    drawn = np.sort((counts @ mine) / (counts @ base))
    outside = int(len(drawn) * 0.025)
    return [mine.sum() / base.sum(), drawn[outside], drawn[-1 - outside]]


def compared(policies: list[Any], first: int, systems: int, device: str | None) -> list[dict]:
    """Rows with family, policy, ratio and geometric mean, with intervals."""
    rows = []
    for family in db.families.FAMILIES:
        drawn = list(db.families.sample(family, systems=systems, first=first))
        options = Options(stream=family, first_system=first, checkpoints=1)
        play = functools.partial(db.simulate, **SIZE, device=device, options=options)
        yardsticks = [play(drawn, None, [n]).regret[n].mean(axis=1) for n in ("idea", "random")]
        for policy in policies:
            label = policy if isinstance(policy, str) else policy.name
            count = max(1, systems // 5) if label.startswith("rollout") else systems
            result = play(drawn[:count], None, [policy])
            mine = next(iter(result.regret.values())).mean(axis=1)
            base, ceiling = (values[:count] for values in yardsticks)
            counts = np.random.default_rng(0).multinomial(count, np.full(count, 1 / count), 4000)
            logs = log_ratios(mine, base, ceiling)
            ends = np.quantile(counts @ logs / count, [0.025, 0.975])
            rows.append(
                {
                    "family": family,
                    "policy": label,
                    "systems": count,
                    "ratio": list(map(float, ratio_of_sums(mine, base, counts))),
                    "geometric": list(np.exp([logs.mean(), *ends])),
                    "lower on": float(np.mean(mine < base)),
                    "seconds": result.timing.play,
                }
            )
            print(shown(rows[-1]), flush=True)
    return rows


def shown(row: dict) -> str:
    """One line of the table."""
    ratio, geometric = (
        "{:.4f} [{:.4f}, {:.4f}]".format(*row[name]) for name in ("ratio", "geometric")
    )
    return (
        f"{row['family']:12} {row['policy']:36} sum {ratio}   each {geometric}   "
        f"lower on {row['lower on']:.0%}, {row['seconds']:.1f} s"
    )


def cost(repeats: int = 7) -> dict[str, float]:
    """Microseconds per round in the batch engine, d = k = 10: minimum of interleaved repeats."""
    systems = list(db.families.sample("gaussian", systems=100))
    ahead = ["lookahead(steps=1)", "lookahead(steps=2)", "lookahead"]
    names = ["idea", *ahead, "rollout", "information_directed"]
    least = dict.fromkeys(names, np.inf)
    for _ in range(repeats):
        for name in names:
            rounds = 20 if name == "rollout" else 400
            played = db.simulate(
                systems, None, [name], rounds, runs=10, options=Options(checkpoints=1)
            )
            least[name] = min(least[name], 1e6 * played.timing.play / (rounds * 1000))
    for name, microseconds in least.items():
        times = microseconds / least["idea"]
        print(f"{name:24} {microseconds:8.2f} µs per round, {times:6.2f} times IDEA")
    return least


def main() -> None:
    """Run the comparison and store the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--attempts", action="store_true", help="run the alternatives")
    parser.add_argument("--cost", action="store_true", help="measure the time per round")
    parser.add_argument("--systems", type=int, default=1000)
    parser.add_argument("--device", choices=["cpu", "gpu"])
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    if options.cost:
        found: Any = cost()
    elif options.attempts:
        found = compared(attempts(), 1000, options.systems, options.device)
    else:
        found = compared(list(POLICIES), 0, options.systems, options.device)
    if options.json:
        options.json.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
