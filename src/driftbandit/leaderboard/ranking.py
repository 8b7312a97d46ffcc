"""What the leaderboard plays, and how it ranks: every policy's regret over that of the best one.

A system's runs are averaged first. A cell is a family of systems at one memory. A policy's score is

    exp(mean over systems and cells of log(R / R_best))

where the best policy is that of the cells that are averaged, so that every system counts alike.
Systems are independent: intervals are percentile bootstraps that draw systems, the same ones for
all policies. The memories of a family share their systems' random numbers, so they are drawn
together.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from driftbandit import statistics
from driftbandit.leaderboard.problems import MEMORIES, PROBLEMS, Cell
from driftbandit.policies import PREFERRED, REGISTRY, available, make
from driftbandit.result import LEAST, ORACLE
from driftbandit.statistics import ends_of
from driftbandit.studies import Options, Outcome, Specification

CONFIDENCE = 0.95
RESAMPLES = 2000
FLOOR = 1e-3  # regrets below this share of the highest count as that share: zero has no logarithm
FEWEST = 6  # systems that could all lie on one side by chance less often than once in twenty
EVERY = "all"  # cells of every family, kind or memory
PLAYERS = available(independent=True)
"""Who plays if nobody is named."""


def specification(options: Options) -> Specification:
    """One study of all cells: the families that ``options`` names, at its memories.

    `PREFERRED` always plays. A policy for independent arms sits out all other cells, and the Kalman
    Oracle states that never forget: with its gain of the steady state it learns nothing of them.
    """
    players = tuple(dict.fromkeys([PREFERRED, *(options.policies or PLAYERS), ORACLE]))
    entries = {player: REGISTRY.get(make(player).name) for player in players}
    picky = tuple(name for name, entry in entries.items() if entry and entry.independent)
    cells = []
    for family, problem in PROBLEMS.items():
        for memory in problem.memories:
            if family in options.families and memory in (options.memories or MEMORIES):
                absent = () if problem.independent and memory != "forever" else picky
                absent += (ORACLE,) if memory == "forever" else ()
                [system], _ = Cell(family, memory=memory).systems(range(1), 0, 0, options.seed)
                k, d = system.arms.shape
                cells.append(Cell(family, d, k, absent=absent, memory=memory))
    return options.specification(players, cells)


Key = tuple[str, str]  # of a cell: family and memory


class Board:
    """Logarithms of regret in every cell, and how often each resample draws each system."""

    def __init__(self, means: Mapping[Key, Mapping[str, np.ndarray]], seed: int) -> None:
        self.logs = {}
        for key, regret in means.items():
            highest = np.max(list(regret.values()), axis=0)
            floor = np.where(highest > 0, FLOOR * highest, 1.0)  # nobody has any: all are equal
            self.logs[key] = {name: np.log(np.maximum(r, floor)) for name, r in regret.items()}
        n = self.systems = len(next(iter(next(iter(means.values())).values())))
        self.counts = {}
        for family in dict.fromkeys(family for family, _ in means):
            rng = np.random.default_rng([seed, zlib.crc32(family.encode())])
            self.counts[family] = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)

    def over(self, policy: str, other: str, keys: list[Key]) -> list[float]:
        """A policy's regret over that of another one, and the interval; none with one system."""
        by_family: dict[str, np.ndarray] = {}
        for key in keys:
            logs = self.logs[key][policy] - self.logs[key][other]
            by_family[key[0]] = by_family.get(key[0], 0.0) + logs / (len(keys) * self.systems)
        drawn = sum(self.counts[family] @ logs for family, logs in by_family.items())
        ends = ends_of(drawn, CONFIDENCE) if self.systems > 1 else (np.nan, np.nan)
        value = sum(logs.sum() for logs in by_family.values())
        return [_rounded(np.exp(x)) for x in (value, *ends)]

    def rows(self, keys: list[Key]) -> list[dict[str, Any]]:
        """The policies that play all of these cells, the best first."""
        names = set.intersection(*({*self.logs[key]} for key in keys))
        score = {name: sum(self.logs[key][name].mean() for key in keys) for name in names}
        ranked = sorted(names - {LEAST}, key=lambda name: (score[name], name))
        best = next(name for name in ranked if name != ORACLE)
        found = []
        for policy in ranked:
            value, low, high = self.over(policy, best, keys)
            worse = statistics.verdict(low - 1, high - 1, self.systems) == statistics.WORSE
            row: dict[str, Any] = {"policy": policy, "over_best": [value, low, high]}
            row |= {"best": policy == best, "level": policy != ORACLE and not worse}
            if LEAST in names:
                row["over_least"] = self.over(policy, LEAST, keys)
            found.append(row)
        return found


def _rounded(value: float) -> float:
    return float(f"{value:.5g}")


def document(outcome: Outcome) -> dict[str, Any]:
    """Rows by cell and policy; then of cells together: of a memory, of a kind, of all."""
    study, results = outcome.specification, outcome.results()
    means = {
        (cell.family, cell.memory): {
            policy: regret.mean(axis=1) for policy, regret in results[cell.label].regret.items()
        }
        for cell in study.cells
        if isinstance(cell, Cell)
    }
    board = Board(means, study.seed)
    groups = {
        (family, PROBLEMS[family].kind, memory): [(family, memory)] for family, memory in means
    }
    for key in means:
        kind = PROBLEMS[key[0]].kind
        for group in ((kind, key[1]), (kind, EVERY), (EVERY, key[1]), (EVERY, EVERY)):
            groups.setdefault((EVERY, *group), []).append(key)
    return {
        # What --policies named, with parameters; none if all play.
        "policies": [] if set(study.policies) == set(PLAYERS) else list(study.policies),
        "memories": [name for name in MEMORIES if any(name == memory for _, memory in means)],
        "kinds": list(dict.fromkeys(PROBLEMS[family].kind for family, _ in means)),
        "rows": [
            {"family": family, "kind": kind, "memory": memory, "cells": len(keys)} | row
            for (family, kind, memory), keys in groups.items()
            for row in board.rows(keys)
        ],
    }
