"""What the leaderboard plays, and how it ranks: every policy's regret against IDEA's.

A system's runs are averaged first. Two figures then compare a policy with the base:

    geometric    exp(mean over systems of log(R / R_base))     every system counts alike
    ratio        Σ R / Σ R_base                                the total loss

With heavy tails one system dominates the second, so the first one ranks. Systems are independent:
intervals are percentile bootstraps that draw systems, the same ones for all policies. The settings
of a family share their systems, so pooled figures draw them together.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import rankdata

from driftbandit import errors, statistics
from driftbandit.families import FAMILIES
from driftbandit.policies import REGISTRY, available, make
from driftbandit.result import ORACLE
from driftbandit.statistics import ends_of
from driftbandit.studies import Cell, Options, Outcome, Specification

BASE = "idea"  # the paper's best policy, with which all others are compared
CEILING = "random"  # knows nothing
CONFIDENCE = 0.95
RESAMPLES = 2000
FLOOR = 1e-3  # regrets below this share of random play's count as that share: zero has no logarithm
FEWEST = 6  # systems that could all lie on one side by chance less often than once in twenty
FEW_ARMS = 100  # a first look leaves out settings with more arms; slow policies never play them


class Setting(NamedTuple):
    """One way to change the paper's systems, or what the learners know of them."""

    name: str
    heading: str  # of a column
    meaning: str
    changes: Mapping[str, Any]  # fields of a study's `Cell`


def _wrong(target: str, symbol: str) -> Setting:
    meaning = f"learners see {symbol} through T = I + νΞ, ‖Ξ‖ = ν = 1 (P24)"
    changes = {"perturbed": target, "strength": 1.0}
    truth = "the Oracle knows the truth"
    return Setting(f"wrong_{target}", f"{symbol} wrong", f"{meaning}; {truth}", changes)


SETTINGS = (  # in the order of tables
    Setting("base", "base", "the paper's: d = k = 10, ρ(Γ) = 0.9, σ as drawn, the true model", {}),
    Setting("rho0.99", "ρ 0.99", "ρ(Γ) = 0.99: a state with a longer memory", {"radius": 0.99}),
    Setting("k100", "k 100", "100 arms", {"n_arms": 100}),
    Setting("k1000", "k 1000", "1000 arms", {"n_arms": 1000}),
    Setting("d2", "d 2", "2 states", {"n_states": 2}),
    Setting("d30", "d 30", "30 states", {"n_states": 30}),
    Setting("noise0.1", "σ × 0.1", "a tenth of the noise", {"noise_scale": 0.1}),
    Setting("noise10", "σ × 10", "ten times the noise", {"noise_scale": 10.0}),
    _wrong("transition", "Γ"),
    _wrong("arms", "arms"),
    _wrong("process_cov", "Q"),
)
LARGE = tuple(s.name for s in SETTINGS if s.changes.get("n_arms", 0) > FEW_ARMS)
QUICK = tuple(setting.name for setting in SETTINGS if setting.name not in LARGE)  # a first look


class Absence(NamedTuple):
    """In which settings a policy does not play, and why."""

    settings: tuple[str, ...]
    reason: str


def _too_slow(policy: str) -> str:
    """Why a policy does not play large settings; empty if it does."""
    if REGISTRY[policy].max_arms is not None:
        return "it considers every pair of arms, which takes a day or more per family"
    return "" if REGISTRY[policy].default else "it is the slowest policy: four hours per family"


SITS_OUT = {name: Absence(LARGE, reason) for name in available() if (reason := _too_slow(name))}


def specification(options: Options) -> Specification:
    """One study of all settings: families × settings, every registered policy.

    ``options.settings`` and ``options.policies`` restrict it; `BASE`, `CEILING` and the Kalman
    Oracle always play. A policy that sits a setting out does so with all parameters.
    """
    for name in options.settings:
        errors.closest(name, "settings", [setting.name for setting in SETTINGS])
    players = tuple(dict.fromkeys([BASE, *(options.policies or available()), CEILING, ORACLE]))
    absences = {player: SITS_OUT.get(make(player).name, Absence((), "")) for player in players}
    cells = []
    for family in options.families:
        for setting in SETTINGS:
            if not options.settings or setting.name in options.settings:
                absent = tuple(p for p in players if setting.name in absences[p].settings)
                cells.append(options.cell(family, absent=absent, **setting.changes))
    return options.specification(players, cells)


def setting_of(cell: Cell) -> Setting:
    """The setting that a cell of the leaderboard's study belongs to."""
    changeable = {name for setting in SETTINGS for name in setting.changes}
    fields = [field for field in dataclasses.fields(cell) if field.name in changeable]
    changes = {f.name: v for f in fields if (v := getattr(cell, f.name)) != f.default}
    for setting in SETTINGS:
        if changes == setting.changes:
            return setting
    problem = f"{cell.label} belongs to no setting"
    raise errors.InvalidInput("cell", problem, "use a cell of the leaderboard's study")


class Estimate(NamedTuple):
    """A multiple of the base's regret, and its interval."""

    value: float
    low: float
    high: float

    def rounded(self) -> list[float]:
        """Rounded to six digits, which halves the file."""
        return [_rounded(value) for value in self]


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")


def log_ratios(mine: np.ndarray, base: np.ndarray, ceiling: np.ndarray) -> np.ndarray:
    """log(R / R_base) of each system, between log(1/1000) and log(1000).

    Args:
        mine: a policy's regret on each system, averaged over runs; likewise ``base``, the base
            policy's, and ``ceiling``, random play's.

    Example:
        >>> mine, base, ceiling = np.array([[2.0, 0.0, 0.0], [1.0, 0.0, 5.0], [9.0, 0.0, 10.0]])
        >>> np.exp(log_ratios(mine, base, ceiling)).round(3)
        array([2.   , 1.   , 0.002])
    """
    floor = _floor(mine, base, ceiling)
    floor = np.where(floor > 0, floor, 1.0)  # if no policy has any regret, all are equal
    return np.asarray(np.log(np.maximum(mine, floor) / np.maximum(base, floor)))


def _floor(mine: np.ndarray, base: np.ndarray, ceiling: np.ndarray) -> np.ndarray:
    return np.asarray(FLOOR * np.maximum(np.maximum(mine, base), ceiling))


def ratio_of_sums(mine: np.ndarray, base: np.ndarray, counts: np.ndarray) -> Estimate:
    """Σ R / Σ R_base; ``counts`` (resamples × systems) says how often each system is drawn."""
    tops, bottoms = (np.append(counts @ values, values.sum()) for values in (mine, base))
    with np.errstate(divide="ignore", invalid="ignore"):
        ratios = np.where((tops == 0) & (bottoms == 0), 1.0, tops / bottoms)
    return Estimate(float(ratios[-1]), *_ends(ratios[:-1], len(mine)))


def _ends(drawn: np.ndarray, systems: int) -> tuple[float, float]:
    """The interval; none with one system."""
    return ends_of(drawn, CONFIDENCE) if systems > 1 else (np.nan, np.nan)


Key = tuple[str, str]  # of a cell: family and setting


class Board:
    """Log ratios of every cell, and how often each resample draws each system."""

    def __init__(self, means: Mapping[Key, Mapping[str, np.ndarray]], seed: int) -> None:
        self.means = means
        self.logs = {
            key: {name: log_ratios(own, found[BASE], found[CEILING]) for name, own in found.items()}
            for key, found in means.items()
        }
        n = self.systems = len(next(iter(means.values()))[BASE])
        self.counts = {}
        for family in dict.fromkeys(family for family, _ in means):
            rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
            self.counts[family] = rng.multinomial(n, np.full(n, 1 / n), RESAMPLES)

    def geometric(self, policy: str, keys: Iterable[Key], against: str = BASE) -> Estimate:
        """The mean over cells that both play; the cells of a family draw the same systems."""
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
        """On which side of 1 an interval lies, if there are enough systems."""
        return statistics.verdict(estimate.low - 1, estimate.high - 1, self.systems)

    def cell(self, key: Key) -> list[dict[str, Any]]:
        """Every policy of one cell against the base, and its rank among the competitors."""
        means = self.means[key]
        rivals = [policy for policy in means if policy != ORACLE]
        places = rankdata([self.logs[key][policy].mean() for policy in rivals])
        rank = dict(zip(rivals, places.tolist(), strict=True))
        best = min(rank, key=lambda policy: rank[policy])
        rows = []
        for policy, values in means.items():
            geometric = self.geometric(policy, [key])
            ratio = ratio_of_sums(values, means[BASE], self.counts[key[0]])
            floor = _floor(values, means[BASE], means[CEILING])
            behind = self.verdict(self.geometric(policy, [key], against=best))
            rows.append(
                {
                    "family": key[0],
                    "setting": key[1],
                    "policy": policy,
                    "regret": _rounded(values.mean()),
                    "geometric": geometric.rounded(),
                    "ratio": ratio.rounded(),
                    "verdict": "" if policy == BASE else self.verdict(geometric),
                    "floored": int((np.minimum(values, means[BASE]) < floor).sum()),
                    "rank": rank.get(policy),
                    "lowest": policy == best,
                    "level": policy in rank and behind != statistics.WORSE,
                }
            )
        return rows

    def overall(self, policy: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """One policy over all cells it plays, given their rows."""
        mine = [row for row in rows if row["policy"] == policy]
        ranks = [row["rank"] for row in mine if row["rank"] is not None]
        return {
            "policy": policy,
            "geometric": self.geometric(policy, self.logs).rounded(),
            "rank": _rounded(np.mean(ranks)) if ranks else None,
            "cells": len(mine),
            "better": sum(row["verdict"] == statistics.BETTER for row in mine),
            "worse": sum(row["verdict"] == statistics.WORSE for row in mine),
            "lowest": sum(row["lowest"] for row in mine),
            "level": sum(row["level"] for row in mine),
        }

    def pooled(self, policies: list[str], place: int) -> list[dict[str, Any]]:
        """Every policy over the cells of each family (place 0) or setting (place 1)."""
        kind = ("family", "setting")[place]
        rows = []
        for group in dict.fromkeys(key[place] for key in self.logs):
            keys = [key for key in self.logs if key[place] == group]
            for policy in policies:
                if any(policy in self.logs[key] for key in keys):
                    found = self.geometric(policy, keys).rounded()
                    rows.append({kind: group, "policy": policy, "geometric": found})
        return rows


def document(outcome: Outcome) -> dict[str, Any]:
    """Rows by cell and policy, and their averages: by setting, by family, overall."""
    study, results = outcome.specification, outcome.results()
    settings = {cell.label: setting_of(cell) for cell in study.cells}
    means = {}
    for cell in study.cells:
        regret = results[cell.label].regret
        key = cell.family, settings[cell.label].name
        means[key] = {policy: values.mean(axis=1) for policy, values in regret.items()}
    board = Board(means, study.seed)
    rows = [row for key in means for row in board.cell(key)]
    policies = list(dict.fromkeys(policy for found in means.values() for policy in found))
    overall = [board.overall(policy, rows) for policy in policies]
    absent = {make(label).name for cell in study.cells for label in cell.absent}
    return {
        "base": BASE,
        # What --policies named, with parameters; none if all play.
        "policies": [] if set(study.policies) == set(available()) else list(study.policies),
        "setups": {s.name: [s.heading, s.meaning] for s in settings.values()},
        "sits_out": {
            policy: [list(settings), reason]
            for policy, (settings, reason) in SITS_OUT.items()
            if policy in absent
        },
        "overall": sorted(overall, key=lambda row: row["geometric"][0]),
        "by_setting": board.pooled(policies, 1),
        "by_family": board.pooled(policies, 0),
        "rows": rows,
    }
