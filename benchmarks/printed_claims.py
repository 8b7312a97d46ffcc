"""How often printed claims fail: the bounds of Theorems 3 and 6, and the conclusion of Lemma 3.

    python benchmarks/printed_claims.py

- Theorem 3 claims a lower bound on the regret of every policy. It fails if it exceeds the regret of
  the Kalman Oracle, which `theory.finite_lower_bound` gives exactly. 200 random systems, 40 of each
  family, in several sizes; then the same systems with state and noise scaled by 100. Systems on
  which the formula has no value (A_j Z A_jᵀ is singular) are counted too.
- Theorem 6 claims an upper bound on the regret of UCB with probability 1 − δ. It fails on a run
  that exceeds it.
- Lemma 3 claims that every arm is explored periodically if its condition holds: 200 systems,
  k = d = 4.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import driftbandit as db
from driftbandit import theory
from driftbandit.simulation import Options

SIZES = ((2, 2), (3, 3), (5, 5), (10, 10))
EACH = 40


def enlarged(model: db.LGDS, factor: float) -> db.LGDS:
    """The same system with its state and noise scaled."""
    return db.LGDS(model.transition, factor**2 * model.process_cov, factor * model.reward_std)


def theorem_3(k: int, d: int, factor: float) -> dict[str, float]:
    """Fraction of systems with a value above the Oracle's regret, and without a value."""
    fails = missing = 0
    ratios = []
    for family in db.families.FAMILIES:
        for model, arms in db.families.sample(family, systems=EACH, n_states=d, n_arms=k):
            scaled = enlarged(model, factor)
            exact = theory.finite_lower_bound(scaled, arms)
            try:
                printed = theory.printed_finite_lower_bound(scaled, arms)
            except db.InvalidInput:
                missing += 1
                continue
            fails += printed > exact.value + exact.error
            ratios.append(printed / exact.value)
    count = EACH * len(db.families.FAMILIES)
    return {
        "fails": fails / count,
        "no value": missing / count,
        "median of printed/exact": float(np.median(ratios)),
    }


def theorem_6(delta: float, k: int) -> float:
    """Fraction of runs in which UCB exceeds the printed bound; 10 systems of each family."""
    systems = [s for f in db.families.FAMILIES for s in db.families.sample(f, 10, n_arms=k)]
    regret = db.simulate(
        systems, policies=["ucb"], rounds=500, runs=20, options=Options(checkpoints=1)
    ).regret["ucb"]
    bounds = [theory.ucb_upper_bound(*system, rounds=500, delta=delta) for system in systems]
    return float(np.mean(regret > np.array(bounds)[:, None]))


def theorem_6_crowd(states: int = 1500, rounds: int = 100, delta: float = 0.05) -> float:
    """The same fraction with independent states of equal variance and one arm each."""
    model, arms = db.LGDS(0.5 * np.eye(states), np.eye(states), 1.0), np.eye(states)
    regret = db.simulate(
        model, arms, ["ucb"], rounds, runs=4, options=Options(checkpoints=1)
    ).regret["ucb"]
    return float(np.mean(regret > theory.ucb_upper_bound(model, arms, rounds, delta)))


def lemma_3(policy: str, unit_arms: bool) -> dict[str, float]:
    """Number of systems that satisfy the condition, have a period, and explore every arm."""
    bonus = getattr(db.policies, policy).bonus
    options = {"systems": EACH, "states": 4, "arms": 4, "unit_arms": unit_arms}
    found = {"condition": 0, "periodic": 0, "longest period": 0, "condition and every arm": 0}
    for family in db.families.FAMILIES:
        for model, arms in db.families.sample(family, **options):
            schedule = theory.exploration_schedule(model, arms, bonus, rounds=1000)
            left = theory.no_arm_is_explored_forever(model, arms, bonus)
            found["condition"] += left
            found["periodic"] += schedule.period is not None
            found["longest period"] = max(found["longest period"], schedule.period or 0)
            found["condition and every arm"] += left and len(set(schedule.cycle.tolist())) == 4
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    figures: dict[str, dict[str, float]] = {}
    for factor in (1.0, 100.0):
        for k, d in SIZES:
            found = theorem_3(k, d, factor)
            figures[f"theorem 3, k = {k}, d = {d}, state and noise x {factor:g}"] = found
            print(
                f"Theorem 3, k = {k:>2}, d = {d:>2}, state × {factor:g}: above the Oracle's "
                f"regret on {100 * found['fails']:.1f}% of systems, no value on "
                f"{100 * found['no value']:.1f}%, median of printed/exact "
                f"{found['median of printed/exact']:.2g}",
                flush=True,
            )
    for k in (10, 100):
        for delta in (0.01, 0.05, 0.5, 0.9):
            share = theorem_6(delta, k)
            figures[f"theorem 6, k = {k}, delta = {delta:g}"] = {"exceeded": share}
            print(f"Theorem 6, k = {k}, δ = {delta:g}: exceeded on {100 * share:.1f}% of runs")
    share = theorem_6_crowd()
    figures["theorem 6, 1500 independent arms, delta = 0.05"] = {"exceeded": share}
    print(f"Theorem 6, 1500 independent arms, δ = 0.05: exceeded on {100 * share:.0f}% of runs")
    for policy in ("kalman_ucb", "idea"):
        for unit_arms in (False, True):
            case = f"lemma 3, {policy}, {'unit' if unit_arms else 'raw'} arms"
            figures[case] = lemma_3(policy, unit_arms)
            shown = ", ".join(f"{name} {value}" for name, value in figures[case].items())
            print(f"{case}, 200 systems: {shown}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
