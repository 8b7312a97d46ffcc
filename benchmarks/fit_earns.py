"""Regret of IDEA on a model chosen by the default `fit`, compared with policies without a model.

    python benchmarks/fit_earns.py [--seeds 5] [--ar]

Logs of random play over 8 arms without features: four kinds of system (independent arms, one
shared factor, a full system of four states, no drift) × 300, 1000 and 3000 rows × seeds. `fit`
learns a model from each log with its defaults. Then all policies play the true system for 1000
rounds, 32 runs, with the same states and noise. The Kalman policies start from their model, the
others with the true scale of the rewards. In a "cold" start no policy has seen rewards; in a "warm"
start every policy, including the Kalman policies, has seen the rewards of the log. The intervals
are 95% Student's t intervals over the logs of a cell.

--ar: held-out log-likelihood on short logs (100 training rewards, 4 independent arms), compared
with one AR(1) model per arm, fitted by maximum likelihood with statsmodels.

Stores benchmarks/results/fit_earns.json.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from pathlib import Path

import numpy as np
import scipy.stats

import driftbandit as db
from driftbandit.identify import fit, one_step
from driftbandit.model import factor
from driftbandit.policies.ucb import reward_scale

KINDS = ("independent arms", "one shared factor", "full system", "no drift")
ROWS = (300, 1000, 3000)
ARMS, ROUNDS, RUNS = 8, 1000, 32
RIVALS = ("ucb", "sliding_window_ucb", "discounted_ucb")
MEMORY, NOISE, OFFSETS = 0.97, 0.5, 0.5
RESULTS = Path(__file__).parent / "results" / "fit_earns.json"


def system(kind, rng, arms=ARMS):
    """A model and its arms; the last state is a constant 1, which carries the offsets."""
    offsets = OFFSETS * rng.standard_normal(arms)
    if kind == "independent arms":
        transition, cov, reads = MEMORY * np.eye(arms), np.eye(arms), np.eye(arms)
    elif kind == "one shared factor":
        transition, cov = np.array([[MEMORY]]), np.eye(1)
        reads = rng.standard_normal((arms, 1))
    elif kind == "full system":
        d = 4
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
        transition = turn + 0.3 * rng.standard_normal((d, d))
        transition *= MEMORY / np.abs(np.linalg.eigvals(transition)).max()
        noise = np.eye(d)
        cov = db.LGDS(transition, noise, 1.0).stationary_cov()
        reads = rng.standard_normal((arms, d))
        reads /= np.sqrt(np.einsum("kd,de,ke->k", reads, cov, reads))[:, None]
    else:
        transition, cov, reads = np.zeros((1, 1)), np.zeros((1, 1)), np.zeros((arms, 1))
    d = len(cov)
    process = cov - transition @ cov @ transition.T
    whole = [np.zeros((d + 1, d + 1)) for _ in range(3)]
    for matrix, part in zip(whole, (transition, (process + process.T) / 2, cov), strict=True):
        matrix[:d, :d] = part
    whole[0][d, d] = 1.0
    model = db.LGDS(whole[0], whole[1], NOISE, whole[2], np.append(np.zeros(d), 1.0))
    return model, np.column_stack([reads, offsets])


def future(model, arms, rounds, runs, rng):
    """Means of all arms, rounds × runs × k, starting from the stationary distribution."""
    z = (
        model.start_mean()
        + rng.standard_normal((runs, model.n_states)) @ factor(model.start_cov()).T
    )
    root, means = factor(model.process_cov), []
    for _ in range(rounds):
        means.append(z @ arms.T)
        z = z @ model.transition.T + rng.standard_normal(z.shape) @ root.T
    return np.array(means)


class Idea:
    """IDEA on a model, all runs at once."""

    def __init__(self, model, arms, runs):
        self.model, self.arms = model, arms
        self.means = np.tile(model.start_mean(), (runs, 1))
        self.covs = np.tile(model.start_cov(), (runs, 1, 1))

    def choose(self):
        """The arm of every run."""
        cross = self.covs @ self.arms.T  # runs × d × k
        spread = np.einsum("kd,rdk->rk", self.arms, cross) + self.model.reward_std**2
        moved = self.model.transition @ cross
        bonus = np.sqrt((moved**2).sum(axis=1) / spread)
        return (self.means @ self.arms.T + bonus).argmax(axis=1)

    def learn(self, played, rewards):
        """Update with the observed rewards."""
        rows = self.arms[played]
        cross = np.einsum("rde,re->rd", self.covs, rows)
        spread = np.vecdot(rows, cross) + self.model.reward_std**2
        gain = cross / spread[:, None]
        surprise = rewards - np.vecdot(rows, self.means)
        means = self.means + gain * surprise[:, None]
        covs = self.covs - gain[:, :, None] * cross[:, None, :]
        step = self.model.transition
        self.means = means @ step.T
        covs = step @ covs @ step.T + self.model.process_cov
        self.covs = (covs + covs.swapaxes(1, 2)) / 2


class Counting:
    """UCB, sliding-window UCB and discounted UCB with their defaults, all runs at once."""

    def __init__(self, name, scale, arms, runs):
        self.name, self.scale = name, scale
        self.sums, self.counts = np.zeros((runs, arms)), np.zeros((runs, arms))
        self.gamma = 1 - 0.25 / math.sqrt(ROUNDS) if name == "discounted_ucb" else 1.0
        self.window = math.ceil(2 * math.sqrt(ROUNDS * math.log(ROUNDS)))
        self.past = []

    def choose(self):
        """The arm of every run."""
        seen = np.where(self.counts > 0, self.counts, 1.0)
        if self.name == "discounted_ucb":
            total = np.maximum(self.counts.sum(axis=1, keepdims=True), 1.0)
            bonus = 2 * self.scale * np.sqrt(0.6 * np.log(total) / seen)
        else:
            bonus = self.scale * math.sqrt(2 * math.log(10)) / np.sqrt(seen)
        return np.where(self.counts > 0, self.sums / seen + bonus, np.inf).argmax(axis=1)

    def learn(self, played, rewards):
        """Update with the observed rewards."""
        runs = np.arange(len(played))
        self.sums *= self.gamma
        self.counts *= self.gamma
        self.sums[runs, played] += rewards
        self.counts[runs, played] += 1
        if self.name == "sliding_window_ucb":
            self.past.append((played, rewards))
            if len(self.past) > self.window:
                old, paid = self.past.pop(0)
                self.sums[runs, old] -= paid
                self.counts[runs, old] -= 1


def regret(player, means, noise, history=None):
    """Regret per round of every run, after the player has seen the history."""
    runs = np.arange(means.shape[1])
    for arm, reward in history or ():
        player.learn(np.full(len(runs), arm), np.full(len(runs), reward))
    lost = np.zeros(len(runs))
    for now, shocks in zip(means, noise, strict=True):
        played = player.choose()
        lost += now.max(axis=1) - now[runs, played]
        player.learn(played, now[runs, played] + shocks[runs, played])
    return lost / len(means)


def one(kind, rows, seed):
    """Regret per round of all players on one log."""
    rng = np.random.default_rng([KINDS.index(kind), rows, seed])
    model, arms = system(kind, rng)
    past = future(model, arms, rows, 1, rng)[:, 0]
    played = rng.integers(ARMS, size=rows)
    rewards = past[np.arange(rows), played] + NOISE * rng.standard_normal(rows)
    clock, cpu = time.perf_counter(), time.process_time()
    found = fit({"round": range(rows), "arm": played.tolist(), "reward": rewards.tolist()})
    clock, cpu = time.perf_counter() - clock, time.process_time() - cpu
    means = future(model, arms, ROUNDS, RUNS, rng)
    noise = NOISE * rng.standard_normal(means.shape)
    order = np.array([int(name) for name in found.names]).argsort()
    assumed = found.start_system.model, found.start_system.arms[order]
    scale = reward_scale(model, arms, ROUNDS)
    row = {"kind": kind, "rows": rows, "seed": seed, "seconds": clock, "cpu_seconds": cpu}
    row |= {"chosen": str(found.structure), "summary": found.summary()}
    row["random"] = float((means.max(axis=2) - means.mean(axis=2)).mean())
    for warm in (False, True):
        history = list(zip(played.tolist(), rewards.tolist(), strict=True)) if warm else None
        players = {"idea, fitted": Idea(*assumed, RUNS), "idea, true": Idea(model, arms, RUNS)}
        players |= {name: Counting(name, scale, ARMS, RUNS) for name in RIVALS}
        row["warm" if warm else "cold"] = {
            name: float(regret(player, means, noise, history).mean())
            for name, player in players.items()
        }
    return row


def cells(rows, start):
    """Means of every cell, and the paired difference from the best baseline."""
    table = []
    for kind in KINDS:
        for size in ROWS:
            here = [row for row in rows if row["kind"] == kind and row["rows"] == size]
            if not here:
                continue
            values = {name: np.array([row[start][name] for row in here]) for name in here[0][start]}
            best = min(RIVALS, key=lambda name: values[name].mean())
            apart = values["idea, fitted"] - values[best]
            half = 0.0
            if len(apart) > 1:
                half = scipy.stats.t.ppf(0.975, len(apart) - 1) * scipy.stats.sem(apart)
            middle = float(apart.mean())
            verdict = "better" if middle + half < 0 else "worse" if middle - half > 0 else "even"
            table.append(
                {"kind": kind, "rows": size, "start": start, "best rival": best}
                | {name: float(value.mean()) for name, value in values.items()}
                | {"difference": middle, "low": middle - half, "high": middle + half}
                | {"verdict": verdict, "chosen": [row["chosen"] for row in here]}
                | {"fit, median cpu seconds": float(np.median([r["cpu_seconds"] for r in here]))}
            )
    return table


def show(table, start):
    names = ("idea, fitted", "idea, true", *RIVALS)
    print(f"\nRegret per round, {start} start; lower is better")
    print(f"{'system':18}{'rows':>5}" + "".join(f"{n[:14]:>16}" for n in names), end="")
    print(f"{'minus best baseline':>26}")
    for cell in table:
        print(f"{cell['kind']:18}{cell['rows']:5}", end="")
        print("".join(f"{cell[name]:16.3f}" for name in names), end="")
        print(f"  {cell['difference']:+.3f} [{cell['low']:+.3f}, {cell['high']:+.3f}]", end="")
        print(f" {cell['verdict']}")


def short_logs(logs=12, arms=4, learned=100, scored=100):
    """Held-out log-likelihood per reward in nats, compared with one AR(1) model per arm."""
    gains, rows = [], learned + scored
    for seed in range(logs):
        rng = np.random.default_rng([7, seed])
        model, reads = system("independent arms", rng, arms)
        past = future(model, reads, rows, 1, rng)[:, 0]
        played = rng.integers(arms, size=rows)
        rewards = past[np.arange(rows), played] + NOISE * rng.standard_normal(rows)
        table = {"round": np.arange(rows), "arm": played, "reward": rewards}
        log = {name: column[:learned].tolist() for name, column in table.items()}
        found = fit(log)
        whole = one_step(found, {name: column.tolist() for name, column in table.items()})
        left = (whole.rewards - whole.means) / whole.stds
        ours = -0.5 * (np.log(2 * math.pi * whole.stds**2) + left**2)[learned:].mean()
        gains.append((float(ours), by_statsmodels(played, rewards, arms, learned), found.summary()))
    ours, theirs = (np.array([row[i] for row in gains]) for i in (0, 1))
    apart = ours - theirs
    print(f"\nHeld-out log-likelihood, {logs} logs of {learned} rewards, {arms} independent arms:")
    half = scipy.stats.t.ppf(0.975, logs - 1) * scipy.stats.sem(apart)
    print(f"fit {ours.mean():.3f}, AR(1) for each arm {theirs.mean():.3f}, ", end="")
    print(
        f"difference {apart.mean():+.3f} [{apart.mean() - half:+.3f}, {apart.mean() + half:+.3f}]"
    )
    return {
        "logs": logs,
        "fit": ours.tolist(),
        "AR(1) for each arm, statsmodels": theirs.tolist(),
        "difference": float(apart.mean()),
        "interval": [float(apart.mean() - half), float(apart.mean() + half)],
        "fit ahead in": int((apart > 0).sum()),
        "chosen": [row[2] for row in gains],
    }


def by_statsmodels(played, rewards, arms, learned):
    """Log-likelihood per held-out reward of an AR(1), noise and a constant for each arm."""
    from statsmodels.tsa.statespace.sarimax import SARIMAX

    total, count = 0.0, len(rewards) - learned
    for arm in range(arms):
        own = np.where(played == arm, rewards, np.nan)
        options = {"order": (1, 0, 0), "trend": None, "measurement_error": True}
        center = np.nanmean(own[:learned]) if np.isfinite(own[:learned]).any() else 0.0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            constant = np.ones((len(own), 1))
            model = SARIMAX(own[:learned], constant[:learned], **options)
            end = model.fit(disp=0, maxiter=200)
            if not np.isfinite(end.llf):
                model = SARIMAX(own[:learned] - center, **options)
                end = model.fit(disp=0)
        whole = SARIMAX(own, constant, **options).smooth(end.params)
        total += float(whole.llf_obs[learned:].sum())
    return total / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, nargs="*", default=list(ROWS))
    parser.add_argument("--ar", action="store_true", help="run only the short logs")
    parser.add_argument("--dry", action="store_true", help="do not store the results")
    given = parser.parse_args()
    stored = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    if given.ar:
        stored["short logs"] = short_logs()
    else:
        rows = []
        for size in given.rows:
            for kind in KINDS:
                for seed in range(given.seeds):
                    rows.append(one(kind, size, seed))
                    last = rows[-1]
                    cold = {name: round(value, 3) for name, value in last["cold"].items()}
                    print(kind, size, seed, last["chosen"], round(last["cpu_seconds"], 1), cold)
        stored |= {"arms": ARMS, "rounds": ROUNDS, "runs": RUNS, "cells": []}
        for start in ("cold", "warm"):
            table = cells(rows, start)
            stored["cells"] += table
            show(table, start)
        stored["logs"] = rows
    if not given.dry:
        RESULTS.write_text(json.dumps(stored, indent=1) + "\n")


if __name__ == "__main__":
    main()
