"""`monitor`: from a model and a log to a verdict on the model, in plain words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import scipy

from driftbandit import errors
from driftbandit.io.log_reader import log_of_system
from driftbandit.model import LGDS
from driftbandit.monitoring import charts, checks, report, words
from driftbandit.monitoring.disturbances import Jumps
from driftbandit.monitoring.findings import ArmHealth, Change, Findings, Test
from driftbandit.monitoring.parts import PartHealth, checked_parts, smoothed
from driftbandit.monitoring.surprises import Surprises, surprises_of
from driftbandit.report import Report
from driftbandit.system import Name

FEWEST = 20  # surprises that can be judged
LAGS = 10  # of autocorrelations, at most
SUMS = (0, 1, 4)  # within arms, lag 1, lags 2 to 4 and lags from 5 on are tested
LEVEL = 0.01


class Health(Findings):
    """Whether a model holds, which test says so, and which arm is off since when.

    `monitor` and `Agent.health` return it. `print` shows the `summary`; `report` has tables and a
    figure.

    Attributes:
        surprises: of all rewards: ``values``, ``arms`` (numbers), ``rounds``, ``sequences``.
        level: the chance that a true model does not hold here.
        tests: by name: mean square, rounds, arms, outliers, changes, jumps.
        changes: the earliest first; then jumps, the largest first.
        arms: those that have surprises.
        parts: what `monitor` found of the ``parts`` it was given.
        correlations: autocorrelations by lag and their standard deviations: of rounds, and within
            arms.
        limits: of the charts, by kind.

    Example:
        The first arm pays 2 more from round 60 on, which the model did not expect.

        >>> from driftbandit import LGDS, System
        >>> model = LGDS(0.5 * np.eye(2), 0.01 * np.eye(2), reward_std=1.0)
        >>> system = System(model, np.eye(2), ["red", "blue"])
        >>> rewards = np.random.default_rng(0).standard_normal(120)
        >>> rewards[60::2] += 2.0
        >>> log = {"round": range(120), "arm": ["red", "blue"] * 60, "reward": rewards}
        >>> health = monitor(system, log, parts={"red": [0], "blue": [1]})
        >>> health.holds, health.off, [part.name for part in health.off_parts()]
        (False, ('red',), ['red'])
        >>> health.tests["mean square"].holds, health.tests["outliers"].holds
        (False, True)
        >>> "Arm red pays more than predicted since round 60." in health.summary()
        True
        >>> health.report("shop.csv").title
        'Does the model hold on shop.csv?'
    """

    def summary(self) -> str:
        """The verdict in plain words."""
        return words.summary(self)

    def report(self, name: str = "log") -> Report:
        """Verdict, tests, arms, parts and a figure.

        Args:
            name: of the log, for the title.

        Returns:
            A `Report`; ``driftbandit.report.html.page`` makes an HTML page of it.
        """
        return report.report(self, name)

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"Health(holds={self.holds}, rewards={len(self.surprises.values)}, off={self.off})"


def monitor(
    system: Any,
    log: Any,
    *,
    parts: Mapping[str, Any] | None = None,
    level: float = LEVEL,
) -> Health:
    """Does the model still hold on this log?

    The surprises (`surprises`) are tested for being standard normal and independent: their mean
    square, their autocorrelation over rounds and within arms, outliers, changes (`charts`), and
    jumps of the state in hindsight (`disturbances`).
    A true model passes all tests together with probability 1 − ``level``, or more.

    Args:
        system: a `System`, or what `fit` returned: then the model before any reward. The state of
            a system with a ``first_round`` moves on from there to the log's first round; that of
            any other starts in the first round of each sequence.
        log: of the same arms, best one that the model was not learned from: a `Log`, or what
            `read_log` reads. Times are counted by the system's clock, if it has one. Rounds before
            ``first_round`` are refused: the model contains them.
        parts: names of groups of states, as {"season": [2, 3]}: says which of them is off. None:
            the components of a fit that has some.
        level: the chance that a true model is called wrong.

    Returns:
        `Health`; ``print`` says it in words.

    Example:
        >>> from driftbandit import LGDS, System
        >>> system = System(LGDS([[0.9]], [[1.0]], 1.0), [[1.0]], ["a"])
        >>> noise = np.random.default_rng(1).standard_normal((2, 300))
        >>> rewards, z = [], 0.0
        >>> for drift, error in noise.T:
        ...     z = 0.9 * z + drift
        ...     rewards.append(z + error)
        >>> log = {"round": range(300), "arm": ["a"] * 300, "reward": rewards}
        >>> print(monitor(system, log))
        The model holds.
        >>> print(monitor(System(LGDS([[0.9]], [[0.1]], 1.0), [[1.0]], ["a"]), log).off)
        ('a',)
    """
    if not all(hasattr(system, name) for name in ("model", "arms", "names")):
        problem = f"has type {type(system).__name__}"
        if isinstance(system, LGDS):
            problem += ", which has no arms"
        raise errors.InvalidInput("system", problem, "give a System, or what fit returned")
    if hasattr(system, "start_system"):  # what fit returned; its module would load JAX
        layout = getattr(system, "layout", None)
        parts = layout.parts if parts is None and layout is not None else parts
        system = system.start_system
    level = errors.number(level, "level", low=0, high=1, strict=True)
    groups = checked_parts(parts, system.model.n_states)
    read = log_of_system(system, log)
    found = surprises_of(system, read)
    if len(found.values) < FEWEST:
        problem = f"has {len(found.values)} rewards that surprise"
        raise errors.InvalidInput("log", problem, f"give at least {FEWEST}")
    labels = tuple(one.label for one in read.sequences)
    jumps, scored = smoothed(system, read, groups)
    return health_of(found, system.names, level, labels, jumps, scored)


def health_of(
    found: Surprises,
    names: tuple[Name, ...],
    level: float = LEVEL,
    labels: tuple[str, ...] = ("",),
    jumps: Jumps | None = None,
    parts: tuple[PartHealth, ...] = (),
) -> Health:
    """The health that surprises show, and jumps that were seen in hindsight, if they are given.

    Each test has an eighth of the level; the charts have what is left. ``labels`` are the names of
    the sequences.
    """
    u, n = found.values, len(found.values)
    share = level / 8
    low, high = checks.mean_square_band(n, share)
    p_value = checks.mean_square_p_value(u)
    tests = {
        "mean square": Test("mean square", float(u @ u) / n, low, high, p_value, p_value > share)
    }
    correlations = _correlations(found)
    for name, own in correlations.items():
        most = own.limit(share)
        tests[name] = Test(name, own.explained, 0.0, most, own.p_value, own.p_value > share)
    count = checks.far_out(u)
    p_value, most = checks.far_out_p_value(count, n), checks.most_far_out(n, share)
    tests["outliers"] = Test("outliers", count, 0, most, p_value, count <= most)
    limits = charts.limits(n, (4 if jumps is None else 3) * share)
    changes, largest = _changes(found, names, labels, limits)
    tests["changes"] = Test("changes", largest, 0.0, 1.0, None, not changes)
    if jumps is not None and jumps.tries:
        most = float(-scipy.special.ndtri(share / 2 / jumps.tries))
        size = float(jumps.sizes.max())
        p_value = min(1.0, jumps.tries * 2 * float(scipy.special.ndtr(-size)))
        tests["jumps"] = Test("jumps", size, 0.0, most, p_value, size <= most)
        changes += _jumped(jumps, names, labels, most)
    arms = tuple(_arm(found, arm, names[arm], changes) for arm in np.unique(found.arms).tolist())
    by_lag = {name: (own.values, own.spread) for name, own in correlations.items()}
    return Health(found, level, tests, changes, arms, parts, by_lag, limits)


def _correlations(found: Surprises) -> dict[str, checks.Correlation]:
    n = len(found.values)
    lags = min(LAGS, n // 4)
    when = np.unique(np.stack([found.sequences, found.rounds]), axis=1, return_inverse=True)[1]
    sums, starts = checks.round_sums(found.values, when)
    groups = found.sequences * (int(found.arms.max()) + 1) + found.arms
    tested = {"rounds": checks.correlation(sums, lags, found.sequences[starts])}
    if len(np.unique(found.arms)) > 1 or len(sums) < n:  # else both are the same
        tested["arms"] = checks.correlation(found.values, lags, groups, SUMS)
    return tested


def _changes(
    found: Surprises,
    names: tuple[Name, ...],
    labels: tuple[str, ...],
    limits: dict[str, float],
) -> tuple[tuple[Change, ...], float]:
    """Charts that passed their limits, and the largest height, in limits."""
    changes: list[tuple[int, Change]] = []
    largest = 0.0
    everything = np.arange(len(found.values))
    streams = [(None, everything)]
    streams += [(arm, everything[found.arms == arm]) for arm in np.unique(found.arms).tolist()]
    for arm, places in streams:
        u = found.values[places]
        largest = max(largest, float(charts.highest(u, limits).max()))
        for kind, since, alarm in charts.crossings(u, limits):
            if kind == "peak" and arm is None:
                continue  # it is its arm's
            begin, end = places[since], places[alarm]
            label = labels[found.sequences[begin]] if len(labels) > 1 else ""
            name = None if arm is None else names[arm]
            rounds = int(found.rounds[begin]), int(found.rounds[end])
            changes.append((int(end), Change(name, kind, *rounds, label)))
    changes.sort(key=lambda one: one[0])
    return tuple(change for _, change in changes), largest


def _jumped(
    jumps: Jumps, names: tuple[Name, ...], labels: tuple[str, ...], most: float
) -> tuple[Change, ...]:
    """Arms that jumped by more than so many standard deviations, the largest jump first."""
    found = []
    for arm in np.argsort(-jumps.sizes)[: np.count_nonzero(jumps.sizes > most)].tolist():
        label = labels[jumps.sequences[arm]] if len(labels) > 1 else ""
        when = int(jumps.rounds[arm])
        found.append(Change(names[arm], "jump", when, when, label))
    return tuple(found)


def _arm(found: Surprises, arm: int, name: Name, changes: tuple[Change, ...]) -> ArmHealth:
    u = found.values[found.arms == arm]
    n = len(u)
    first = next((one for one in changes if one.arm == name), None)
    band = checks.mean_square_band(n, 0.05)
    return ArmHealth(name, n, float(u.mean()), float(u @ u) / n, *band, first)
