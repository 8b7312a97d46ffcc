"""Who wins: every policy's regret against IDEA's, system by system.

A system's runs are averaged first. Two figures then compare a policy with the base:

    geometric    exp(mean over systems of log(R / R_base))     every system counts alike
    ratio        Σ R / Σ R_base                                what is lost in all

The second is one system's in a family with heavy tails, so the first one ranks. Systems are what
is independent: intervals are percentile bootstraps that draw systems, the same ones for all
policies. The settings of a family share their systems, so pooled figures draw them together.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from driftbandit.families import FAMILIES
from driftbandit.leaderboard.settings import BASE, CEILING, SITS_OUT, Setting, setting_of
from driftbandit.policies import available, make
from driftbandit.result import ORACLE
from driftbandit.statistics import ends_of
from driftbandit.studies import Outcome, Specification

__all__ = ["Estimate", "document", "log_ratios", "ratio_of_sums"]

CONFIDENCE = 0.95
RESAMPLES = 2000
FLOOR = 1e-3
"""Regrets below this share of random play's count as that share: none has no logarithm."""
FEWEST = 6
"""Systems that could all lie on one side by chance less often than once in twenty."""

Key = tuple[str, str]
"""Of a cell: family and setting."""


class Estimate(NamedTuple):
    """A multiple of the base's regret, and its interval."""

    value: float
    low: float
    high: float

    @property
    def verdict(self) -> str:
        """On which side of the base the interval lies."""
        return "better" if self.high < 1 else "worse" if self.low > 1 else "no difference seen"


def log_ratios(mine: np.ndarray, base: np.ndarray, ceiling: np.ndarray) -> np.ndarray:
    """log(R / R_base) of each system, between log(1/1000) and log(1000).

    Args:
        mine: regret of a policy on each system, the mean of its runs.
        base: the base's.
        ceiling: random play's.

    Example:
        >>> mine, base, ceiling = np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 5.0], [9.0, 0.0, 10.0]])
        >>> np.exp(log_ratios(mine, base, ceiling)).round(3)
        array([2.   , 1.   , 0.002])
    """
    floor = _floor(mine, base, ceiling)
    # Where nobody has any regret, all are equal.
    floor = np.where(floor > 0, floor, 1.0)
    return np.asarray(np.log(np.maximum(mine, floor) / np.maximum(base, floor)))


def _floor(mine: np.ndarray, base: np.ndarray, ceiling: np.ndarray) -> np.ndarray:
    return np.asarray(FLOOR * np.maximum(np.maximum(mine, base), ceiling))


def ratio_of_sums(mine: np.ndarray, base: np.ndarray, counts: np.ndarray) -> Estimate:
    """Σ R / Σ R_base, drawn as often as ``counts`` (resamples × systems) says."""
    tops, bottoms = (np.append(counts @ values, values.sum()) for values in (mine, base))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where((tops == 0) & (bottoms == 0), 1.0, tops / bottoms)
    return Estimate(float(ratios[-1]), *_ends(ratios[:-1], len(mine)))


def _ends(drawn: np.ndarray, systems: int) -> tuple[float, float]:
    """The interval; none with one system."""
    return ends_of(drawn, CONFIDENCE) if systems > 1 else (np.nan, np.nan)


class _Board:
    """Log ratios of every cell, and the draws of systems."""

    def __init__(self, means: Mapping[Key, Mapping[str, np.ndarray]], seed: int) -> None:
        self.means = means
        self.logs = {
            key: {
                policy: log_ratios(values, found[BASE], found[CEILING])
                for policy, values in found.items()
            }
            for key, found in means.items()
        }
        self.systems = len(next(iter(means.values()))[BASE])
        self.counts = {
            family: np.random.default_rng([seed, list(FAMILIES).index(family)]).multinomial(
                self.systems, np.full(self.systems, 1 / self.systems), RESAMPLES
            )
            for family in dict.fromkeys(family for family, _ in means)
        }

    def geometric(self, policy: str, keys: Iterable[Key], against: str = BASE) -> Estimate:
        """The mean over the cells that both play; a family's systems are drawn for all at once."""
        by_family: dict[str, list[np.ndarray]] = {}
        for key in keys:
            logs = self.logs[key]
            if policy in logs and against in logs:
                by_family.setdefault(key[0], []).append(logs[policy] - logs[against])
        joined = {family: np.mean(parts, axis=0) for family, parts in by_family.items()}
        means = [values.mean() for values in joined.values()]
        drawn = [self.counts[family] @ values / len(values) for family, values in joined.items()]
        ends = _ends(np.mean(drawn, axis=0), self.systems)
        return Estimate(*(float(np.exp(x)) for x in (np.mean(means), *ends)))

    def verdict(self, estimate: Estimate) -> str:
        """What an interval says, where there are enough systems."""
        return "too few to tell" if self.systems < FEWEST else estimate.verdict


def document(outcome: Outcome) -> dict[str, Any]:
    """Rows by cell and policy, and what they make together: by setting, by family, overall."""
    specification = outcome.specification
    results = outcome.results()
    settings: dict[str, Setting] = {}
    means: dict[Key, dict[str, np.ndarray]] = {}
    for cell in specification.cells:
        setting = setting_of(cell)
        settings[setting.name] = setting
        regret = results[cell.label].regret
        means[cell.family, setting.name] = {
            policy: values.mean(axis=1) for policy, values in regret.items()
        }
    board = _Board(means, specification.seed)
    sitting = {make(label).name for cell in specification.cells for label in cell.absent}
    rows = [row for key in means for row in _cell_rows(board, key)]
    families = list(dict.fromkeys(family for family, _ in means))
    policies = list(dict.fromkeys(policy for found in means.values() for policy in found))
    return {
        "base": BASE,
        "policies": _named(specification),
        "setups": {name: [s.heading, s.meaning] for name, s in settings.items()},
        "sits_out": {
            policy: [list(absence.settings), absence.reason]
            for policy, absence in SITS_OUT.items()
            if policy in sitting
        },
        "overall": _overall(board, rows, policies),
        "by_setting": _pooled(
            board, policies, "setting", {s: [(f, s) for f in families] for s in settings}
        ),
        "by_family": _pooled(
            board, policies, "family", {f: [(f, s) for s in settings] for f in families}
        ),
        "rows": rows,
    }


def _named(specification: Specification) -> list[str]:
    """What --policies said, parameters included; nothing if it was all."""
    given = list(specification.policies)
    return [] if set(available()) == set(given) else given


def _cell_rows(board: _Board, key: Key) -> list[dict[str, Any]]:
    """Every policy of one cell against the base, and its place among the competitors."""
    means = board.means[key]
    rivals = [policy for policy in means if policy != ORACLE]
    places = rankdata([board.logs[key][policy].mean() for policy in rivals])
    rank = dict(zip(rivals, places.tolist(), strict=True))
    best = min(rank, key=lambda policy: rank[policy])
    rows = []
    for policy, values in means.items():
        geometric = board.geometric(policy, [key])
        ratio = ratio_of_sums(values, means[BASE], board.counts[key[0]])
        floor = _floor(values, means[BASE], means[CEILING])
        behind = board.verdict(board.geometric(policy, [key], against=best))
        rows.append(
            {
                "family": key[0],
                "setting": key[1],
                "policy": policy,
                "regret": _short(values.mean()),
                "geometric": _shorts(geometric),
                "ratio": _shorts(ratio),
                "verdict": "" if policy == BASE else board.verdict(geometric),
                "floored": int((np.minimum(values, means[BASE]) < floor).sum()),
                "rank": rank.get(policy),
                "lowest": policy == best,
                "level": policy in rank and behind != "worse",
            }
        )
    return rows


def _overall(
    board: _Board, rows: list[dict[str, Any]], policies: list[str]
) -> list[dict[str, Any]]:
    """Every policy over all cells it plays, the best first."""
    found = []
    for policy in policies:
        mine = [row for row in rows if row["policy"] == policy]
        ranks = [row["rank"] for row in mine if row["rank"] is not None]
        found.append(
            {
                "policy": policy,
                "geometric": _shorts(board.geometric(policy, board.logs)),
                "rank": _short(np.mean(ranks)) if ranks else None,
                "cells": len(mine),
                "better": sum(row["verdict"] == "better" for row in mine),
                "worse": sum(row["verdict"] == "worse" for row in mine),
                "lowest": sum(row["lowest"] for row in mine),
                "level": sum(row["level"] for row in mine),
            }
        )
    return sorted(found, key=lambda row: row["geometric"][0])


def _pooled(
    board: _Board, policies: list[str], kind: str, groups: Mapping[str, list[Key]]
) -> list[dict[str, Any]]:
    return [
        {
            kind: group,
            "policy": policy,
            "geometric": _shorts(board.geometric(policy, keys)),
        }
        for group, keys in groups.items()
        for policy in policies
        if any(policy in board.logs[key] for key in keys)
    ]


def _short(value: float) -> float:
    """Six digits are more than anybody reads, and halve the file."""
    return float(f"{value:.6g}")


def _shorts(estimate: Estimate) -> list[float]:
    return [_short(value) for value in estimate]
