"""Products with structure: what a fit recovers, and what IDEA earns with it.

    python benchmarks/products.py [--products 50] [--section recovery|seasons]

A product has 8 arms, whose rewards are level(arm) + season(7) + level(shared) + noise, with drifts
that are drawn anew for each product. A log has 400 rounds of random play. `fit` learns the
structure's parameters from it. Then every policy sees the log, and plays on for 300 rounds, 8 runs
with the same states and noise. Intervals are 95% Student's t intervals over the products.

recovery: how often drifts are inside their 95% intervals; regret of IDEA on the true model, on the
fitted structure and on a full matrix, and of all registered policies without a Kalman filter,
which know the features of the fitted structure.

seasons: products whose arms have seasons of their own, level(arm) + season(7, arm). Two fits, with
the season and without it. An agent watches random play and recommends an arm in each round. As
plays do not depend on rewards, true and predicted rewards are jointly normal, and theory gives the
expected regret of both agents: that of the measured difference is compared with it. IDEA's own play
is compared as well; and products without a season, where the season can only cost.

Stores benchmarks/results/products.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

import numpy as np
import scipy.stats

import driftbandit as db
from driftbandit import kalman
from driftbandit.identify import as_log, estimates, fit
from driftbandit.model import factor
from driftbandit.structure import Layout

ARMS, LOGGED, ROUNDS, RUNS = 8, 400, 300, 8
NAMES = tuple(f"arm {i}" for i in range(ARMS))
STRUCTURE = "level(arm) + season(7) + level(shared)"
RIVALS = ("ucb", "sliding_window_ucb", "discounted_ucb", "rexp3", "oful", "discounted_linucb")
RIVALS += ("sliding_window_linucb", "weighted_linucb", "restarted_linucb", "random")
RESULTS = Path(__file__).parent / "results" / "products.json"


def truth(rng, seasonal="shared"):
    """The true values of a product's parameters, and its system."""

    def draw(low, high):
        return float(np.exp(rng.uniform(math.log(low), math.log(high))))

    values = {"level(arm).drift": draw(0.05, 0.3), "noise": 1.0}
    structure = "level(arm, start=1)"
    if seasonal == "shared":
        structure += " + season(7) + level(shared)"
        values |= {"level(shared).drift": draw(0.05, 0.3), "season(7).size": draw(0.2, 0.8)}
        values["season(7).change"] = 0.005
    if seasonal == "arm":
        structure += " + season(7, arm)"
        values |= {"season(7, arm).size": draw(0.2, 0.6), "season(7, arm).change": 0.005}
    names = {"level(arm).drift": "level(arm, start=1).drift"}
    layout = Layout(structure, NAMES)
    return values, layout.system({names.get(name, name): x for name, x in values.items()})


def states(system, rounds, rng, start=None):
    """A path of the state, rounds + 1 × d."""
    model, path = system.model, []
    z = model.start_mean() + factor(model.start_cov()) @ rng.standard_normal(model.n_states)
    z, root = z if start is None else start, factor(model.process_cov)
    for _ in range(rounds):
        path.append(z)
        z = model.transition @ z + root @ rng.standard_normal(len(z))
    return np.array([*path, z])


def logged(system, rng):
    """A log of random play, and the state after it."""
    path, played = states(system, LOGGED, rng), rng.integers(ARMS, size=LOGGED)
    noise = float(system.model.reward_std) * rng.standard_normal(LOGGED)
    rewards = np.vecdot(path[:-1], system.arms[played]) + noise
    names = [NAMES[arm] for arm in played]
    return as_log({"round": range(LOGGED), "arm": names, "reward": rewards}, NAMES), path[-1]


def regret(system, policy, log, futures, noises, seed=0):
    """Regret per round of a policy that has seen the log, in every run."""
    agent = db.Agent(system, policy=policy, rounds=LOGGED + ROUNDS, window=0, seed=seed)
    agent.tell_log(log)
    stored, lost = agent.to_json(), []
    for means, noise in zip(futures, noises, strict=True):
        agent = db.Agent.from_json(stored)
        total = 0.0
        for mean, shock in zip(means, noise, strict=True):
            decision = agent.ask()
            arm = NAMES.index(decision.arm)
            total += mean.max() - mean[arm]
            agent.tell(decision, mean[arm] + shock[arm])
        lost.append(total / len(means))
    return float(np.mean(lost))


def interval(values):
    """Mean and 95% interval over products."""
    values = np.asarray(values)
    half = scipy.stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values))
    return [float(values.mean()), float(values.mean() - half), float(values.mean() + half)]


def recovered(seed):
    """One product: intervals, and regrets."""
    rng = np.random.default_rng([1, seed])
    values, system = truth(rng)
    log, end = logged(system, rng)
    futures = [states(system, ROUNDS - 1, rng, end) @ system.arms.T for _ in range(RUNS)]
    noises = [rng.standard_normal((ROUNDS, ARMS)) for _ in range(RUNS)]
    clock = time.perf_counter()
    found = fit(log, structure=STRUCTURE)
    rows = estimates(found)
    seconds = time.perf_counter() - clock
    drifts = [
        {"name": row.name, "truth": values[row.name], "value": row.value, "low": row.low}
        | {"high": row.high, "inside": row.low <= values[row.name] <= row.high}
        for row in rows
        if row.is_drift
    ]
    full = fit(log, structure="free", starts=1, iterations=100)
    chosen = fit(log, starts=1, iterations=100)
    players = {
        "idea, true model": (system, "idea"),
        "idea, fitted structure": (found.start_system, "idea"),
        "idea, full matrix": (full.system, "idea"),
        "idea, default fit": (chosen.system, "idea"),
    }
    players |= {name: (found.start_system, name) for name in RIVALS}
    lost = {name: regret(*one, log, futures, noises, seed) for name, one in players.items()}
    return {"seed": seed, "seconds": seconds, "drifts": drifts, "regret": lost}


def recovery(products):
    """All products."""
    rows = []
    for seed in range(products):
        rows.append(recovered(seed))
        print(seed, {k: round(v, 3) for k, v in rows[-1]["regret"].items()}, flush=True)
    names = sorted({one["name"] for row in rows for one in row["drifts"]})
    inside = {
        name: float(
            np.mean([one["inside"] for row in rows for one in row["drifts"] if one["name"] == name])
        )
        for name in names
    }
    lost = {name: [row["regret"][name] for row in rows] for name in rows[0]["regret"]}
    fitted, true = (np.array(lost[f"idea, {name}"]) for name in ("fitted structure", "true model"))
    return {
        "products": products,
        "inside": inside,
        "inside all": float(np.mean([one["inside"] for row in rows for one in row["drifts"]])),
        "regret": {name: interval(values) for name, values in lost.items()},
        "minus fitted": {n: interval(np.array(values) - fitted) for n, values in lost.items()},
        "fitted over true": float(fitted.mean() / true.mean()),
        "fitted over true, interval": interval(fitted / true.mean()),
        "seconds per fit, median": float(np.median([row["seconds"] for row in rows])),
        "rows": rows,
    }


# Seasons


def recommendations(systems, played, rewards):
    """Predicted rewards of every arm before each round, for each system, rounds × k."""
    found = []
    for system in systems:
        belief, means = kalman.prior(system.model), []
        for arm, reward in zip(played, rewards, strict=True):
            means.append(system.arms @ belief.mean)
            belief = kalman.step(belief, system.model, system.arms[arm], reward)
        found.append(np.array(means))
    return found


def expected_regret(true, assumed, played, rng, draws=4000):
    """Theory: E max μ − E μ of the arm with the highest prediction, mean over the last rounds.

    (z, ẑ) is jointly normal, with a covariance that does not depend on the rewards:
    z ← Γz + ξ, ẑ ← Γ'(ẑ + K(⟨a, z⟩ + η − ⟨a', ẑ⟩)).
    """
    d, e = true.model.n_states, assumed.model.n_states
    mean = np.concatenate([true.model.start_mean(), assumed.model.start_mean()])
    cov = np.zeros((d + e, d + e))
    cov[:d, :d] = true.model.start_cov()
    belief, lost = assumed.model.start_cov(), []
    reads = np.zeros((2 * ARMS, d + e))
    reads[:ARMS, :d], reads[ARMS:, d:] = true.arms, assumed.arms
    noise = float(true.model.reward_std) ** 2
    for t, arm in enumerate(played):
        if t >= len(played) // 2 and t % 5 == 0:
            root = factor(reads @ cov @ reads.T)
            sample = rng.standard_normal((draws // 2, 2 * ARMS)) @ root.T
            both = np.concatenate([sample, -sample]) + reads @ mean
            values, guesses = both[:, :ARMS], both[:, ARMS:]
            got = values[np.arange(len(values)), guesses.argmax(axis=1)]
            lost.append(float((values.max(axis=1) - got).mean()))
        row, own = true.arms[arm], assumed.arms[arm]
        gain = belief @ own / (own @ belief @ own + float(assumed.model.reward_std) ** 2)
        turn = assumed.model.transition
        step = np.zeros((d + e, d + e))
        step[:d, :d] = true.model.transition
        step[d:, :d] = np.outer(turn @ gain, row)
        step[d:, d:] = turn @ (np.eye(e) - np.outer(gain, own))
        cov = step @ cov @ step.T
        cov[:d, :d] += true.model.process_cov
        cov[d:, d:] += np.outer(turn @ gain, turn @ gain) * noise
        mean = step @ mean
        belief = kalman.riccati_step(belief, assumed.model, own)
    return float(np.mean(lost))


def seasonal(seed, season):
    """One product with or without seasons: regrets with both fits, measured and expected."""
    rng = np.random.default_rng([2, seed, season])
    _, system = truth(rng, "arm" if season else "none")
    log, end = logged(system, rng)
    fits = [fit(log, structure=f"level(arm){more}") for more in (" + season(7, arm)", "")]
    systems = [one.start_system for one in fits]
    # Recommendations while others play at random, on new paths of the same product.
    plays, watched = rng.integers(ARMS, size=LOGGED), []
    for _ in range(40):
        path = states(system, LOGGED - 1, rng)
        means = path @ system.arms.T
        rewards = means[np.arange(LOGGED), plays] + rng.standard_normal(LOGGED)
        now = np.arange(LOGGED // 2, LOGGED, 5)
        for one in recommendations(systems, plays, rewards):
            best = one[now].argmax(axis=1)
            watched.append(float((means[now].max(axis=1) - means[now, best]).mean()))
    measured = np.array(watched).reshape(-1, 2).mean(axis=0)
    theory = [expected_regret(system, one, plays, rng) for one in systems]
    futures = [states(system, ROUNDS - 1, rng, end) @ system.arms.T for _ in range(RUNS)]
    noises = [rng.standard_normal((ROUNDS, ARMS)) for _ in range(RUNS)]
    played = [regret(one, "idea", log, futures, noises) for one in systems]
    return {"measured": measured.tolist(), "theory": theory, "idea": played}


def seasons(products):
    """All products with and without seasons."""
    found = {}
    for season in (True, False):
        rows = []
        for seed in range(products):
            rows.append(seasonal(seed, season))
            print(season, seed, rows[-1], flush=True)
        parts = {key: np.array([row[key] for row in rows]) for key in rows[0]}
        gains = {key: interval(part[:, 1] - part[:, 0]) for key, part in parts.items()}
        off = interval(
            parts["measured"][:, 1]
            - parts["measured"][:, 0]
            - parts["theory"][:, 1]
            + parts["theory"][:, 0]
        )
        found["with season" if season else "without season"] = {
            "gain of the season": gains,
            "measured minus theory": off,
            "regret": {key: part.mean(axis=0).tolist() for key, part in parts.items()},
            "loss, share": float(parts["idea"][:, 0].mean() / parts["idea"][:, 1].mean() - 1),
        }
    return {"products": products, **found}


def main():
    """Run the sections and store their results."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--products", type=int, default=50)
    parser.add_argument("--section", choices=("recovery", "seasons"))
    given = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for name, run in {"recovery": recovery, "seasons": seasons}.items():
        if given.section in (None, name):
            stored[name] = run(given.products)
            RESULTS.write_text(json.dumps(stored, indent=1) + "\n")
            shown = {key: value for key, value in stored[name].items() if key != "rows"}
            print(json.dumps(shown, indent=1))


if __name__ == "__main__":
    main()
