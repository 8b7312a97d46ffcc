"""Replay of logs with one reward per round: bias, coverage and width, against the truth.

    python benchmarks/off_policy.py --logs 1000 --json benchmarks/results/off_policy.json

Rewards of all arms are simulated, so what a policy would have earned in the rounds of a log is
known. Each log is drawn three times from the same rewards: uniformly, with fixed uneven chances,
and by a greedy rule that follows past rewards (epsilon-greedy). Each is evaluated with the true
model and with a wrong one, whose arms are permuted and whose states move too fast.

    python benchmarks/off_policy.py --small 800 --json benchmarks/results/off_policy_small.json

does another thing: small samples. Clicks and normal rewards of four arms, steady or drifting, are
logged with a smallest chance of 1% to 20%: arm 3 always has it ("fixed"), or all arms but the one
that paid most lately ("greedy"). There are just enough rounds that a replay has an interval in most
logs. Rows without one do not count. Each interval is compared with the normal one that has the same
variance; predictions m are forgetful means of each arm (dr), or one constant (ips).
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
from typing import Any, NamedTuple

import numpy as np
from scipy import signal, special

import driftbandit as db
from driftbandit.policies import make
from driftbandit.replays import estimates, naming, off_policy, support
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.estimates import Shown
from driftbandit.replays.tasks import Task

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
            task = Task(log, TRAIN, own, rows, 0.0, "dr", True, RUNS, seed)
            doubly = off_policy.shown_by(task)
            both = {"dr": doubly}
            both["ips"] = doubly._replace(predicted=np.full_like(doubly.predicted, center))
            named = {
                name: estimates.shares(naming.choices(make(name), task), N_ARMS)
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
    task = Task(log, TRAIN, model, arms, 0.0, "rejection", True, 1, seed)
    shown, chance = off_policy.shown_by(task), naming.least_chance(log)
    for name in ("idea", "ucb"):
        named = estimates.shares(naming.choices(make(name), task), N_ARMS)
        truth = float(np.vecdot(named, rewards[TRAIN:]).mean())
        mean = float(estimates.earned(named, shown).mean())
        yield (
            f"rejection, {kind}, true, {name}",
            outcome(shown.of_played(named), mean, truth, shown),
        )
        rng = np.random.default_rng([seed, 1])
        alone = deployed(name, model, arms, rewards, chance, rng)
        yield f"rejection minus deployed, {kind}, true, {name}", [mean - alone, np.nan, np.nan]


# Small samples

# Rounds in which the arm of the smallest chance is played, by kind of reward.
PLAYS = {"clicks 0.5%": 1500, "clicks 5%": 200, "clicks 40%": 80, "normal": 80}
CHANCES = (0.01, 0.03, 0.07, 0.2)


class Small(NamedTuple):
    """A kind of logs."""

    rewards: str
    drift: bool
    chance: float
    log: str


def small_rewards(setting: Small, rounds: int, rng: np.random.Generator) -> np.ndarray:
    """The rewards of all arms, rounds × arms."""
    t = np.arange(rounds)[:, None]
    if setting.rewards == "normal":
        moves = np.sqrt(1 - 0.99**2) * rng.normal(size=(rounds, N_ARMS))
        level = signal.lfilter([1], [1, -0.99], moves, axis=0) if setting.drift else 0.0
        return 0.5 * rng.normal(size=N_ARMS) + level + 0.5 * rng.normal(size=(rounds, N_ARMS))
    rates = float(setting.rewards.split()[1].strip("%")) / 100 * np.array([0.7, 1.3, 1.0, 1.0])
    swing = 0.8 * np.sin(6 * np.pi * t / rounds + 2 * np.pi * rng.random(N_ARMS))
    rates = rates * (1 + setting.drift * swing)
    return (rng.random((rounds, N_ARMS)) < rates).astype(float)


def small_log(
    setting: Small, rewards: np.ndarray, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """The arms that are played, and their chances; a greedy log decides 60 times which leads."""
    rounds, least = len(rewards), setting.chance
    if setting.log == "fixed":
        p = np.append(np.full(N_ARMS - 1, (1 - least) / (N_ARMS - 1)), least)
        arms = rng.choice(N_ARMS, size=rounds, p=p)
        return arms, p[arms]
    arms, chances, level = np.empty(rounds, np.int64), np.empty(rounds), np.zeros(N_ARMS)
    for part in np.array_split(np.arange(rounds), 60):
        p = np.full(N_ARMS, least)
        p[level.argmax()] = 1 - (N_ARMS - 1) * least
        arms[part] = drawn = rng.choice(N_ARMS, size=len(part), p=p)
        chances[part] = p[drawn]
        for arm in np.unique(drawn):
            level[arm] += 0.5 * (rewards[part[drawn == arm], arm].mean() - level[arm])
    return arms, chances


def forgetful(arms: np.ndarray, paid: np.ndarray, gain: float, center: float) -> np.ndarray:
    """Predictions m of every arm: its mean before each round, which a reward moves by a share."""
    predicted = np.empty((len(arms), N_ARMS))
    for arm in range(N_ARMS):
        own = paid[arms == arm] - center
        means = np.append(0.0, signal.lfilter([gain], [1, gain - 1], own))
        predicted[:, arm] = center + means[np.append(0, np.cumsum(arms == arm)[:-1])]
    return predicted


def small_rows(setting: Small, seed: int) -> list[list[float]]:
    """For each row with an interval: whether it covers, and its width; the normal one first."""
    rng = np.random.default_rng([seed, SMALL.index(setting)])
    rounds = int(PLAYS[setting.rewards] / setting.chance)
    rewards = small_rewards(setting, rounds, rng)
    arms, chances = small_log(setting, rewards, rng)
    paid = rewards[np.arange(rounds), arms]
    center = float(paid[: rounds // 5].mean())
    gain = 0.3 if setting.rewards == "normal" and setting.drift else 0.03
    doubly = Shown(arms, paid, chances, forgetful(arms, paid, gain, center))
    leader = doubly.predicted.argmax(axis=1)
    named = [np.eye(N_ARMS)[choice] for choice in (np.full(rounds, 3), leader)]
    found = []
    for shown in (doubly, doubly._replace(predicted=np.full_like(doubly.predicted, center))):
        rows = [(shown.of_played(q), support.unsupported(q, shown)) for q in named]
        doubts = [support.doubt(*row, shown) for row in rows]
        means = [estimates.earned(q, shown).mean() - np.vecdot(q, rewards).mean() for q in named]
        cases = [(means[0], rows[0][0], None, doubts[0]), (means[1], rows[1][0], None, doubts[1])]
        lost = rows[0][1] + rows[1][1]
        apart = support.doubt_of_difference(rows[0][0], rows[1][0], lost, shown)
        both = "".join(doubts) + apart
        cases.append((means[0] - means[1], rows[0][0], rows[1][0], both))
        for case, (error, counted, other, doubt) in enumerate(cases):
            if doubt:
                continue
            spread = estimates.variances(counted, shown, other)
            usual = special.ndtri(0.975) * np.sqrt(spread.sum()) / rounds
            low, high = estimates.interval(error, spread, 0.95)
            covers = float(abs(error) <= usual), float(low <= 0 <= high)
            found.append([case, *covers, 2 * usual, high - low])
    return found


def small(logs: int, workers: int) -> list[dict[str, Any]]:
    """Coverage and mean width of every setting, before and after."""
    table = []
    with multiprocessing.get_context("spawn").Pool(workers) as pool:
        for setting in SMALL:
            tasks = [(setting, seed) for seed in range(logs)]
            done = pool.starmap(small_rows, tasks, chunksize=20)
            rows = np.array([row for log in done for row in log])
            figures = setting._asdict() | {"logs": logs}
            for case, name in enumerate(("arm 3", "leader", "difference")):
                own = rows[rows[:, 0] == case, 1:] if len(rows) else rows
                if len(own) >= logs:  # of two estimates, dr and ips
                    names = ("normal", "coverage", "normal width", "width")
                    said = dict(zip(names, own.mean(axis=0).tolist(), strict=True))
                    figures[name] = {"rows": len(own)} | said
            table.append(figures)
            print(figures, flush=True)
    return table


SMALL = [
    Small(rewards, drift, chance, log)
    for rewards in reversed(PLAYS)
    for chance in CHANCES
    for log in ("fixed", "greedy")
    for drift in (False, True)
]


def main() -> None:
    """Run all logs and print bias, coverage and width of every case."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--small", type=int, default=0, help="logs of each small setting instead")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    begin = time.perf_counter()
    if options.small:
        table = small(options.small, options.workers)
        if options.json:
            options.json.write_text(json.dumps({"settings": table}, indent=2) + "\n")
        return
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
