"""What `monitor` sees when a model stops being true, and what an agent's remedies win or cost.

    python benchmarks/monitoring.py --json benchmarks/results/monitoring.json
    python benchmarks/monitoring.py --logs 20 --refits 2     # small

Eight arms; each has a level of its own, an AR(1) process with memory 0.995 and variance 1, and
rewards have noise of standard deviation 0.5. For 200 rounds the model is true. Then the truth
changes in one of these ways, and the model stays:

- nothing changes;
- jump: one arm's level moves by 3 or −3, for good;
- jumps: every 100 rounds the level of another random arm moves by 3 or −3 and then reverts;
- heavy tails: the noise is Student's t with 3 degrees of freedom, of the same variance;
- faster drift: Q is four times as large;
- new season: every arm gains a sine of amplitude 1 and period 12, each at another phase;
- wrong period: the model has a season of period 7, and its period becomes 12.

1. Logs of random play, 400 rounds, so that the change is 200 rounds old: how often `monitor` calls
   the model wrong, which tests do, and how often a single changed arm is named.
2. IDEA plays 600 rounds with the model: the regret of agents with ``on_alarm``, minus that of the
   same agent without, on the same states and noise, in percent; 95% Student's t intervals. Refits
   take a second, so there are fewer of those runs.
3. Two forms of "widen": Q ← λ Q, which the library uses, and P ← λ P, on eight independent arms.
4. Ask and tell with the watch and without, in alternating blocks of one process.

    python benchmarks/monitoring.py --level 20000 --json benchmarks/results/monitoring_level.json

does another thing: the test within arms alone, beside the one of Ljung and Box, whose
autocorrelations have the variance m / (n (n + 2)) with m the number of pairs. Its level is measured
on surprises that are independent and normal, with rules that choose arms from past surprises; its
power on logs of random play with the drift that is faster than the model says.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.stats

import driftbandit as db
from driftbandit.agent.watch import WIDEST
from driftbandit.monitoring import charts, checks
from driftbandit.monitoring.health import SUMS

ARMS, MEMORY, NOISE, CHANGE = 8, 0.995, 0.5, 200
MOVES = 1 - MEMORY**2
NAMES = tuple("abcdefgh")
KINDS = ["none", "jump", "jumps", "heavy tails", "faster drift", "new season", "wrong period"]


class World(NamedTuple):
    """What the arms pay."""

    means: np.ndarray  # of all arms, rounds × arms
    noise: np.ndarray  # rounds × arms
    changed: int | None  # the arm, if a single one changes


def phases(kind: str) -> np.ndarray:
    return 2 * np.pi * np.arange(ARMS) / ARMS


def system(kind: str) -> db.System:
    """The model before the change."""
    blocks, arms = [MEMORY * np.eye(ARMS), MOVES * np.eye(ARMS), np.eye(ARMS)], np.eye(ARMS)
    if kind == "wrong period":
        angle = 2 * np.pi / 7
        turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        more = [turn, np.zeros((2, 2)), 0.5 * np.eye(2)]
        blocks = [scipy.linalg.block_diag(*pair) for pair in zip(blocks, more, strict=True)]
        arms = np.hstack([arms, np.stack([np.cos(phases(kind)), np.sin(phases(kind))], axis=1)])
    transition, moves, start = blocks
    return db.System(db.LGDS(transition, moves, NOISE, start), arms, NAMES)


def world(kind: str, rounds: int, seed: int) -> World:
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    level, offset = rng.standard_normal(ARMS), np.zeros(ARMS)
    means, changed = np.empty((rounds, ARMS)), None
    noise = NOISE * rng.standard_normal((rounds, ARMS))
    start = rng.uniform(0, 2 * np.pi)
    if kind == "heavy tails":
        noise[CHANGE:] = NOISE * rng.standard_t(3, (rounds - CHANGE, ARMS)) / np.sqrt(3)
    for t in range(rounds):
        after, season = t >= CHANGE, 0.0
        if kind == "jump" and t == CHANGE:
            changed = int(rng.integers(ARMS))
            offset[changed] = rng.choice([-3.0, 3.0])
        if kind == "jumps" and after and t % 100 == 0:
            level[rng.integers(ARMS)] += rng.choice([-3.0, 3.0])
        if kind == "wrong period" or (kind == "new season" and after):
            period = 12 if after else 7
            season = np.sin(2 * np.pi * (t - CHANGE) / period + start + phases(kind))
        means[t] = level + offset + season
        speed = 4 if kind == "faster drift" and after else 1
        level = MEMORY * level + np.sqrt(speed * MOVES) * rng.standard_normal(ARMS)
    return World(means, noise, changed)


def seen(kind: str, logs: int) -> dict[str, Any]:
    """What `monitor` says about logs of random play."""
    tests: dict[str, int] = {}
    wrong = right_arm = 0
    delays = []
    for seed in range(logs):
        found, rounds = world(kind, 2 * CHANGE, seed), np.arange(2 * CHANGE)
        arms = np.random.default_rng([seed, 99]).integers(ARMS, size=len(rounds))
        rewards = (found.means + found.noise)[rounds, arms]
        log = {"round": rounds, "arm": [NAMES[arm] for arm in arms], "reward": rewards}
        health = db.monitor(system(kind), log)
        wrong += not health.holds
        for name, test in health.tests.items():
            tests[name] = tests.get(name, 0) + (not test.holds)
        if found.changed is not None and health.off:
            right_arm += health.off == (NAMES[found.changed],)
            delays.append(abs(health.changes[0].since - CHANGE))
    shares = {name: count / logs for name, count in tests.items()}
    figures = {"change": kind, "logs": logs, "wrong": wrong / logs, "tests": shares}
    if delays:
        figures |= {"right arm": right_arm / logs, "median error of since": np.median(delays)}
    return figures


def regret(agent: db.Agent, found: World) -> float:
    """The regret of all rounds."""
    lost = 0.0
    for means, noise in zip(found.means, found.noise, strict=True):
        decision = agent.ask()
        arm = NAMES.index(decision.arm)
        lost += means.max() - means[arm]
        agent.tell(decision, means[arm] + noise[arm])
    return lost


def interval(plain: np.ndarray, differences: np.ndarray) -> dict[str, float]:
    """The mean difference in percent of the mean regret, and its 95% interval."""
    scale, n = 100 / plain.mean(), len(differences)
    half = scipy.stats.t.ppf(0.975, n - 1) * differences.std(ddof=1) / np.sqrt(n)
    mean = differences.mean()
    return {"percent": scale * mean, "low": scale * (mean - half), "high": scale * (mean + half)}


def remedies(kind: str, runs: int, refits: int) -> list[dict[str, Any]]:
    """The regret of both remedies against none."""
    how = db.Refit(background=False, structure="diagonal", iterations=20)
    worlds = [world(kind, 3 * CHANGE, 1000 + seed) for seed in range(runs)]
    plain = np.array([regret(db.Agent(system(kind), "idea", window=0), one) for one in worlds])
    rows = []
    for remedy, count in (("widen", runs), ("refit", refits)):
        lost, alarms = np.zeros(count), 0
        for number, one in enumerate(worlds[:count]):
            options = {"refit": how} if remedy == "refit" else {}
            agent = db.Agent(system(kind), "idea", window=0, on_alarm=remedy, **options)
            lost[number] = regret(agent, one)
            alarms += bool(agent.alarms)
        row = {"change": kind, "remedy": remedy, "runs": count, "alarms": alarms / count}
        rows.append(row | interval(plain[:count], lost - plain[:count]))
    return rows


def forms(kind: str, runs: int) -> dict[str, Any]:
    """Q ← λ Q against P ← λ P, for independent arms, whose P stays diagonal; all runs at once."""
    worlds = [world(kind, 3 * CHANGE, 1000 + seed) for seed in range(runs)]
    means, noise = (np.stack([one[part] for one in worlds], axis=1) for part in (0, 1))
    lost = {form: _lost(form, means, noise) for form in ("none", "Q", "P")}
    found = {form: interval(lost["none"], lost[form] - lost["none"]) for form in ("Q", "P")}
    return {"change": kind, "runs": runs, **found}


def _lost(form: str, means: np.ndarray, noise: np.ndarray) -> np.ndarray:
    runs = means.shape[1]
    every = np.arange(runs)
    mean, cov, moves = np.zeros((runs, ARMS)), np.ones((runs, ARMS)), np.full(runs, MOVES)
    watches = [charts.Charts(charts.limits(1000, 0.01)) for _ in every]
    total = np.zeros(runs)
    for t, (paid, error) in enumerate(zip(means, noise, strict=True)):
        arm = np.argmax(mean + MEMORY * cov / np.sqrt(cov + NOISE**2), axis=1)
        total += paid.max(axis=1) - paid[every, arm]
        before, spread = mean[every, arm], cov[every, arm]
        variance = spread + NOISE**2
        e = paid[every, arm] + error[every, arm] - before
        mean[every, arm] += e * spread / variance
        cov[every, arm] -= spread**2 / variance
        u = e / np.sqrt(variance)
        for run in every if form != "none" else ():
            alarm = watches[run].add(int(arm[run]), float(u[run]), t)
            if alarm is not None and alarm.kind != "smaller":
                factor = min(max(alarm.mean_square, 1.0), WIDEST)
                if form == "Q":
                    moves[run] *= factor
                else:  # so that the arm's variance is as large as its surprises say
                    share = variance[run] / spread[run]
                    cov[run] *= min(1 + (alarm.mean_square - 1) * share, 20.0)
        mean, cov = MEMORY * mean, MEMORY**2 * cov + moves[:, None]
    return total


def cost(blocks: int = 40, block: int = 1000) -> dict[str, float]:
    """CPU microseconds of one ask and tell: the mean over a block, and of blocks the median."""
    model, rows = db.families.sample("gaussian", n_states=10, n_arms=10, seed=1)[0]
    rewards = np.random.default_rng(2).standard_normal(block).tolist()
    agents = {"watched": db.Agent(model, rows), "not watched": db.Agent(model, rows)}
    agents["not watched"]._history.watch = None
    took: dict[str, list[float]] = {name: [] for name in agents}
    for _ in range(blocks):
        for name, agent in agents.items():
            begin = time.process_time()
            for reward in rewards:
                agent.tell(agent.ask(), reward)
            took[name].append(1e6 * (time.process_time() - begin) / block)
    figures = {f"{name} us": float(np.median(times)) for name, times in took.items()}
    slower = np.median(np.divide(took["watched"], took["not watched"])) - 1
    return figures | {"percent slower": 100 * float(slower)}


# The test within arms

SIZES = ((50, 8), (50, 25), (150, 25), (500, 25))  # rounds and arms
RULES = ("any arm", "again after a surprise", "again after a good one", "the last one's best")
SHARES = (0.05, 0.00125)  # nominal levels; the second is that of a test at the default level


def plays(rule: str, u: np.ndarray, arms: int, rng: np.random.Generator) -> np.ndarray:
    """The arms of logs × rounds surprises, each chosen from those before."""
    logs, rounds = u.shape
    chosen = rng.integers(arms, size=u.shape)
    last, every = np.zeros((logs, arms)), np.arange(logs)
    for t in range(1, rounds):
        before = u[:, t - 1]
        last[every, chosen[:, t - 1]] = before
        if rule == "the last one's best":
            chosen[:, t] = last.argmax(axis=1)
        elif rule != "any arm":
            again = np.abs(before) > 1.5 if rule == "again after a surprise" else before > 1
            chosen[:, t] = np.where(again, chosen[:, t - 1], chosen[:, t])
    return chosen


def p_values(u: np.ndarray, arms: np.ndarray) -> tuple[float, float]:
    """Of Ljung and Box's test within arms, and of the one that `monitor` uses."""
    n, lags = len(u), min(10, len(u) // 4)
    own = checks.correlation(u, lags, arms, SUMS)
    pairs = np.count_nonzero(checks.earlier(u, lags, arms), axis=0)
    there = pairs > 0
    q = float(np.sum(own.values[there] ** 2 * n * (n + 2) / pairs[there]))
    return float(scipy.special.chdtrc(np.count_nonzero(there), q)), own.p_value


def level(logs: int) -> list[dict[str, Any]]:
    """How often both tests call independent normal surprises correlated."""
    table = []
    for number, (rounds, arms) in enumerate(SIZES):
        for rule in RULES:
            rng = np.random.default_rng([number, RULES.index(rule)])
            u = rng.standard_normal((logs, rounds))
            found = np.array([*map(p_values, u, plays(rule, u, arms, rng))])
            table.append(
                {"rounds": rounds, "arms": arms, "rule": rule, "logs": logs}
                | {f"Ljung–Box {x:g}": float((found[:, 0] <= x).mean()) for x in SHARES}
                | {f"{x:g}": float((found[:, 1] <= x).mean()) for x in SHARES}
            )
            print(table[-1], flush=True)
    return table


def power(logs: int) -> dict[str, float]:
    """How often both tests see 200 rounds of drift that is four times as fast."""
    rounds, found = np.arange(CHANGE, 2 * CHANGE), []
    own = db.LGDS(MEMORY * np.eye(ARMS), MOVES * np.eye(ARMS), NOISE, np.eye(ARMS))
    for seed in range(logs):
        paid = world("faster drift", 2 * CHANGE, seed)
        arms = np.random.default_rng([seed, 99]).integers(ARMS, size=len(rounds))
        rewards = (paid.means + paid.noise)[rounds, arms]
        log = {"round": rounds, "arm": arms, "reward": rewards}
        u = db.monitor(db.System(own, np.eye(ARMS), tuple(range(ARMS))), log).surprises
        found.append(p_values(u.values, u.arms))
    before, after = np.array(found).T
    shares = {f"Ljung–Box {x:g}": float((before <= x).mean()) for x in SHARES}
    return {"logs": logs} | shares | {f"{x:g}": float((after <= x).mean()) for x in SHARES}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--logs", type=int, default=200, help="per change; also runs of agents")
    parser.add_argument("--refits", type=int, default=20, help="runs of agents that refit")
    parser.add_argument("--level", type=int, default=0, help="logs of the test within arms instead")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    begin = time.perf_counter()
    if options.level:
        tested = {"level": level(options.level), "power": power(options.level // 40)}
        print(tested["power"])
        if options.json:
            options.json.write_text(json.dumps(tested, indent=2) + "\n")
        return
    figures: dict[str, Any] = {"level": 0.01, "seen": [], "remedies": [], "forms": []}
    for kind in KINDS:
        figures["seen"].append(seen(kind, options.logs))
        print(figures["seen"][-1], flush=True)
        figures["remedies"] += remedies(kind, options.logs, options.refits)
        print(*figures["remedies"][-2:], f"{time.perf_counter() - begin:.0f} s", flush=True)
        if kind != "wrong period":
            figures["forms"].append(forms(kind, options.logs))
            print(figures["forms"][-1], flush=True)
    figures["cost"] = cost()
    print(figures["cost"], f"{time.perf_counter() - begin:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
