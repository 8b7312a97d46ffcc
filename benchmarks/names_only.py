"""Agents that know nothing but their arms' names, against Thompson sampling with the best discount.

    python benchmarks/names_only.py [--runs 6] [--quick]

Clicks whose rates lie between 5 and 60%: each is a logistic function of an AR(1) process of its
own, with a memory of 30 to 1000 rounds, or does not drift. 3000 plays. Three players see the same
rates and clicks:

- names: `Agent(names=…)`, which starts with no model and learns one (in the foreground, so that the
  same clicks always give the same figures);
- told: the same agent, which is told the Gaussian model with the true means, variances and memory;
- thompson: Beta counts that lose a share of themselves every round. The discount is chosen in
  hindsight, from a grid, in every setting: the one that earned most on these very runs.

Earned, as a share of what is possible: 0 is random play, 1 the best arm of every round. Prints a
table and stores benchmarks/results/names_only.json: means, their standard errors, and the paired
difference between names and thompson.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
from collections.abc import Callable
from pathlib import Path

import numpy as np

import driftbandit as db

STORE = Path(__file__).parent / "results" / "names_only.json"
ROUNDS = 3000
SETTINGS = [(30, 5), (100, 5), (300, 3), (300, 10), (1000, 5), (None, 5)]  # memory, arms
DISCOUNTS = (0.8, 0.9, 0.94, 0.96, 0.97, 0.98, 0.985, 0.99, 0.993, 0.995, 0.998, 0.999, 1.0)
LOW, SPAN, SLOPE = 0.05, 0.55, 1.5  # rates are LOW + SPAN / (1 + exp(−SLOPE z))
NAMES, TOLD = "names", "told"
PLAYERS = (NAMES, TOLD)


def rate(z: np.ndarray) -> np.ndarray:
    """The rates of standard normal states."""
    return LOW + SPAN / (1 + np.exp(-SLOPE * z))


def rates_of(n_arms: int, memory: int | None, rng: np.random.Generator) -> np.ndarray:
    """The rate of every arm in every round; ``memory`` None: constant."""
    keep = 1.0 if memory is None else np.exp(-1 / memory)
    z, rates = rng.standard_normal(n_arms), np.empty((ROUNDS, n_arms))
    for t in range(ROUNDS):
        rates[t] = rate(z)
        z = keep * z + np.sqrt(1 - keep**2) * rng.standard_normal(n_arms)
    return rates


def told(n_arms: int, memory: int | None) -> db.System:
    """The Gaussian model with the true means, variances and memory: a level each, and a mean."""
    rates = rate(np.random.default_rng(0).standard_normal(10**6))
    keep = 1.0 if memory is None else float(np.exp(-1 / memory))
    moves = np.append(np.full(n_arms, keep), 1.0)
    begin = np.append(np.full(n_arms, rates.var()), 0.0)
    model = db.LGDS(
        np.diag(moves),
        np.diag(begin * (1 - moves**2)),
        float(np.sqrt((rates * (1 - rates)).mean())),
        np.diag(begin),
        np.append(np.zeros(n_arms), rates.mean()),
    )
    return db.System(model, np.hstack([np.eye(n_arms), np.ones((n_arms, 1))]), range(n_arms))


def played(agent: db.Agent, rates: np.ndarray, clicked: np.ndarray) -> float:
    """The mean rate of what an agent plays."""
    total = 0.0
    for t, row in enumerate(rates):
        decision = agent.ask()
        agent.tell(decision, clicked[t, decision.arm])
        total += row[decision.arm]
    return total / len(rates)


def sampled(discount: float, rates: np.ndarray, clicked: np.ndarray, seed: int) -> float:
    """The mean rate of what Thompson sampling with discounted Beta counts plays."""
    rng, total = np.random.default_rng([seed, 7]), 0.0
    counts = np.zeros((2, rates.shape[1]))  # of clicks, and of plays without one
    for t, row in enumerate(rates):
        arm = int(rng.beta(*(counts + 1)).argmax())
        counts *= discount
        counts[0 if clicked[t, arm] else 1, arm] += 1
        total += row[arm]
    return total / len(rates)


def earned(task: tuple[int | None, int, int]) -> dict[str, float]:
    """What every player earns in one run of one setting."""
    memory, n_arms, run = task
    rng = np.random.default_rng([run, memory or 0, n_arms])
    rates = rates_of(n_arms, memory, rng)
    clicked = rng.random(rates.shape) < rates
    agents: dict[str, Callable[[], db.Agent]] = {
        NAMES: lambda: db.Agent(names=range(n_arms), refit=db.Refit(background=False)),
        TOLD: lambda: db.Agent(told(n_arms, memory)),
    }
    figures = {name: played(agent(), rates, clicked) for name, agent in agents.items()}
    figures |= {str(one): sampled(one, rates, clicked, run) for one in DISCOUNTS}
    low, high = rates.mean(), rates.max(axis=1).mean()
    return {name: float((value - low) / (high - low)) for name, value in figures.items()}


def spread(values: np.ndarray) -> list[float]:
    """A mean and its standard error."""
    return [
        round(float(values.mean()), 3),
        round(float(values.std(ddof=1) / len(values) ** 0.5), 3),
    ]


def summary(memory: int | None, n_arms: int, runs: list[dict[str, float]]) -> dict[str, object]:
    """The row of one setting."""
    shares = {name: np.array([run[name] for run in runs]) for name in runs[0]}
    best = max(map(str, DISCOUNTS), key=lambda name: shares[name].mean())
    row: dict[str, object] = {"memory": memory, "arms": n_arms}
    row |= {name: spread(shares[name]) for name in PLAYERS}
    row |= {"thompson": spread(shares[best]), "discount": float(best)}
    return row | {"names above thompson": spread(shares[NAMES] - shares[best])}


def main() -> None:
    """Play, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=6, help="of each setting")
    parser.add_argument("--quick", action="store_true", help="two runs each; nothing is stored")
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    n_runs, table = 2 if options.quick else options.runs, []
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        for memory, n_arms in SETTINGS:
            runs = pool.map(earned, [(memory, n_arms, run) for run in range(n_runs)], chunksize=1)
            table.append(summary(memory, n_arms, runs))
            print(json.dumps(table[-1]), flush=True)
    if not options.quick:
        stored = {"runs": n_runs, "rounds": ROUNDS, "table": table}
        STORE.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
