"""Replay of logs with one reward per round: bias, coverage and width, against the truth.

    python benchmarks/off_policy.py --logs 1000 --json benchmarks/results/off_policy.json

Rewards of all arms are simulated, so what a policy would have earned in the rounds of a log is
known. Each log is drawn three times from the same rewards: uniformly, with fixed uneven chances,
and by a greedy rule that follows past rewards (epsilon-greedy). Each is evaluated with the true
model and with a wrong one, whose arms are permuted and whose states move too fast.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import platform
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

import driftbandit as db
from driftbandit.policies import make
from driftbandit.replays import estimates, naming, off_policy
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.estimates import Shown

N_ARMS, TRAIN, TEST = 4, 200, 600
UNEVEN = (0.5, 0.25, 0.15, 0.1)
EPSILON = 0.3
LOGGING = ("uniform", "uneven", "adaptive")
MODELS = ("true", "wrong")
POLICIES = ("idea", "thompson", "ucb", "discounted_ucb")
RUNS = 3  # of thompson, which draws random numbers
FIXED = "always 0"


def system(rng: np.random.Generator) -> tuple[db.LGDS, np.ndarray]:
    """Three states that drift at different speeds, and arms that read them."""
    decay = np.array([0.99, 0.95, 0.8])
    arms = rng.normal(size=(N_ARMS, 3))
    return db.LGDS(np.diag(decay), np.diag(1 - decay**2), reward_std=0.5), arms


def wrong(model: db.LGDS, arms: np.ndarray) -> tuple[db.LGDS, np.ndarray]:
    """A model that predicts the rewards of other arms, from states that move too fast."""
    return db.LGDS(0.5 * np.eye(3), np.eye(3), 2 * model.reward_std), np.roll(arms, 1, axis=0)


def all_rewards(model: db.LGDS, arms: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rewards of all arms in all rounds, T × k."""
    states = np.empty((TRAIN + TEST, 3))
    state = rng.multivariate_normal(np.zeros(3), model.stationary_cov())
    for t in range(len(states)):
        states[t] = state
        state = model.transition @ state + rng.multivariate_normal(np.zeros(3), model.process_cov)
    return states @ arms.T + model.reward_std * rng.normal(size=(len(states), N_ARMS))


def logged(rewards: np.ndarray, kind: str, rng: np.random.Generator) -> Decisions:
    """A log of one arm per round."""
    n = len(rewards)
    chances, arms = np.empty(n), np.empty(n, np.int64)
    level = np.zeros(N_ARMS)  # of each arm, for the adaptive log
    for t in range(n):
        p = {"uniform": np.full(N_ARMS, 1 / N_ARMS), "uneven": np.array(UNEVEN)}.get(kind)
        if p is None:
            p = np.full(N_ARMS, EPSILON / N_ARMS)
            p[level.argmax()] += 1 - EPSILON
        arms[t] = arm = rng.choice(N_ARMS, p=p)
        chances[t] = p[arm]
        level[arm] += 0.2 * (rewards[t, arm] - level[arm])
    paid = rewards[np.arange(n), arms]
    return Decisions(np.arange(n), arms, paid, chances, tuple(range(N_ARMS)))


def deployed(
    name: str,
    model: db.LGDS,
    arms: np.ndarray,
    rewards: np.ndarray,
    chance: float,
    rng: np.random.Generator,
) -> float:
    """Mean test reward of a policy that plays by itself and sees each reward with this chance."""
    policy = make(name)
    constants, state = policy.prepare(model, arms, len(rewards))
    problem = db.policies.Problem(model, arms, constants)
    earned = np.empty(len(rewards))
    for t, row in enumerate(rewards):
        if t and policy.agent.advance is not None:
            state = policy.agent.advance(state, problem, 1)
        arm = int(policy.choose(state, problem, None))
        earned[t] = row[arm]
        if rng.random() < chance:
            state = (policy.agent.observe or policy.update)(state, problem, arm, row[arm])
    return float(earned[TRAIN:].mean())


def outcome(
    counted: np.ndarray,
    estimate: float,
    truth: float,
    shown: Shown,
    other: np.ndarray | None = None,
) -> list[float]:
    """Error, whether the 95% interval covers the truth, and half its width."""
    low, high = estimates.interval(estimate, estimates.variances(counted, shown, other), 0.95)
    return [estimate - truth, float(low <= truth <= high), (high - low) / 2]


def one_log(seed: int) -> dict[str, list[float]]:
    """All cases on one history of rewards."""
    rng = np.random.default_rng(seed)
    model, arms = system(rng)
    rewards = all_rewards(model, arms, rng)
    later = rewards[TRAIN:]
    found: dict[str, list[float]] = {}
    for kind in LOGGING:
        log = logged(rewards, kind, rng)
        center = float(log.rewards[:TRAIN].mean())
        for believed in MODELS:
            own, rows = (model, arms) if believed == "true" else wrong(model, arms)
            task = off_policy.Task(log, TRAIN, own, rows, 0.0, "dr", True, RUNS, seed)
            doubly = task.filtered
            both = {"dr": doubly}
            both["ips"] = doubly._replace(predicted=np.full_like(doubly.predicted, center))
            named = {
                name: estimates.shares(off_policy.choices(make(name), task), N_ARMS)
                for name in POLICIES
            }
            named[FIXED] = np.eye(N_ARMS)[np.zeros(TEST, int)]
            truth = {name: float(np.vecdot(q, later).mean()) for name, q in named.items()}
            for method, shown in both.items():
                means = {
                    name: float(estimates.earned(q, shown).mean()) for name, q in named.items()
                }
                counted = {name: shown.of_played(q) for name, q in named.items()}
                for name in named:
                    case = f"{method}, {kind}, {believed}, {name}"
                    found[case] = outcome(counted[name], means[name], truth[name], shown)
                apart, true = (values["idea"] - values["ucb"] for values in (means, truth))
                case = f"{method}, {kind}, {believed}, idea minus ucb"
                found[case] = outcome(counted["idea"], apart, true, shown, counted["ucb"])
        found |= dict(rejected(log, model, arms, rewards, kind, seed))
    return found


def rejected(
    log: Decisions, model: db.LGDS, arms: np.ndarray, rewards: np.ndarray, kind: str, seed: int
) -> Iterator[tuple[str, list[float]]]:
    """Rejection: its estimate against the truth, and its choices against a policy by itself."""
    task = off_policy.Task(log, TRAIN, model, arms, 0.0, "rejection", True, 1, seed)
    shown, chance = task.filtered, naming.least_chance(log)
    for name in ("idea", "ucb"):
        named = estimates.shares(off_policy.choices(make(name), task), N_ARMS)
        truth = float(np.vecdot(named, rewards[TRAIN:]).mean())
        mean = float(estimates.earned(named, shown).mean())
        yield (
            f"rejection, {kind}, true, {name}",
            outcome(shown.of_played(named), mean, truth, shown),
        )
        rng = np.random.default_rng([seed, 1])
        alone = deployed(name, model, arms, rewards, chance, rng)
        yield f"rejection minus deployed, {kind}, true, {name}", [mean - alone, np.nan, np.nan]


def main() -> None:
    """Run all logs and print bias, coverage and width of every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    begin = time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.workers) as pool:
        logs = pool.map(one_log, range(options.logs), chunksize=5)
    cases = {case: summary([log[case] for log in logs]) for case in logs[0]}
    for case, figures in cases.items():
        print(f"{case:52}", "  ".join(f"{key} {value:8.4f}" for key, value in figures.items()))
    seconds = time.perf_counter() - begin
    print(f"{options.logs} logs, {seconds:.0f} s")
    if options.json:
        stored = {
            "python": platform.python_version(),
            "packages": {name: metadata.version(name) for name in ("driftbandit", "numpy")},
            "settings": {"logs": options.logs, "train": TRAIN, "test": TEST, "arms": N_ARMS},
            "cases": cases,
        }
        options.json.write_text(json.dumps(stored, indent=2) + "\n")


def summary(outcomes: list[list[float]]) -> dict[str, Any]:
    """Mean error, its standard error, how many of these it is away from zero, coverage, width."""
    values = np.array(outcomes)
    error = values[:, 0]
    deviation = float(error.std(ddof=1)) / len(error) ** 0.5
    mean = float(error.mean())
    found = {"error": mean, "standard_error": deviation, "z": mean / deviation}
    if np.isfinite(values[:, 1]).all():
        found |= {"coverage": float(values[:, 1].mean()), "half_width": float(values[:, 2].mean())}
    return found


if __name__ == "__main__":
    main()
