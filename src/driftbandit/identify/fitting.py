"""`fit`: from a log of decisions to a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.identify import em
from driftbandit.identify.restarts import Progress, Share
from driftbandit.identify.shared_states import TOLERANCE, Fit, continued, of_states
from driftbandit.identify.structured.candidates import Factors, read_factors
from driftbandit.identify.structured.comparison import Comparison
from driftbandit.identify.structured.fitting import StructuredFit
from driftbandit.identify.structured.selection import can_compare, fit_components, recent
from driftbandit.io.log_reader import as_log, log_and_features
from driftbandit.io.logs import Log
from driftbandit.model import LGDS
from driftbandit.structure import parse
from driftbandit.system import Name

FALLBACK = "constant(arm) + level(arm, memory=free)"
FEW = "Too few rewards to compare models: each arm is assumed to drift on its own."


def fit(
    log: Any,
    arms: Any = None,
    n_states: int | None = None,
    *,
    structure: Any = None,
    groups: Mapping[Name, Any] | None = None,
    periods: Sequence[float] | None = None,
    stable: bool = True,
    offsets: bool = True,
    starts: int = 3,
    iterations: int = 200,
    tolerance: float = TOLERANCE,
    prior: float | None = None,
    seed: int = 0,
    start: LGDS | None = None,
    columns: Mapping[str, str] | None = None,
    every: str | None = None,
    zone: str | None = None,
    progress: Callable[[Share], None] | None = None,
) -> Fit | StructuredFit:
    """Learn what drifts, how noisy rewards are and the arms' offsets from a log.

    Without features, a number of states or a structure, the model is chosen by how well it predicts
    later rewards (`structured.selection`): constant arms, a level for each arm, a shared level,
    seasons and context features, or states that arms share, learned by expectation maximization
    (`em`). `Fit.drift` says whether arms drift, as `advise` does.

    Args:
        log: a path (CSV or Parquet), a table, a mapping of columns, or a `Log`.
        arms: k × d features of arms that the log numbers: row i belongs to arm i or, if the k arms
            have other numbers, to the i-th by size; or `Arms`, as `read_arms` gives. None:
            read-outs are estimated too or, with as many states as arms, each arm has a state of
            its own.
        n_states: d; None: the number of features or, without arms, what predicts best.
        structure: what rewards are made of, as "level(arm) + season(7)" or a `Structure`, learned
            by maximum likelihood (`structured`); several of them, or "auto", of which the one that
            predicts best is taken. Or the form of Γ: "free"; "diagonal" or "scalar", which come
            with a diagonal Q. None: what predicts best, or "free" if features or states are given.
        groups: the group of each arm by name, for components such as level(group).
        periods: of the seasons that "auto" tries; None: of 7, 12, 24, 52 and 168, those that a
            quick test finds, at most two.
        stable: keep ρ(Γ) below 1.
        offsets: whether each arm pays an offset of its own, as real rewards do.
        starts: EM restarts; the most likely fit is kept.
        iterations: most iterations of an EM run; with fewer than 3 the starting point is returned.
        tolerance: EM stops when two steps and an extrapolation gain less than this per reward.
        prior: its strength in pseudo-rounds, which keep a free Γ from fitting the noise of a short
            log (`em.Prior`); None: d² / 5; 0: maximum likelihood. With components: how strong the
            prior of their parameters is; None: 1.
        seed: of the restarts.
        start: a model from an earlier fit, from which the first EM run starts.
        columns: the log's own column names, as {"round": "day"}; see `read_log`.
        every: the length of a round if the log has times, as "15 minutes"; see `read_log`.
        zone: whose clocks the rounds count if the log has times, as "Europe/Berlin".
        progress: called with the share of the work done, 0 to 1, a `Share`.

    Returns:
        `Fit`; `StructuredFit`, if ``structure`` has components.

    Example:
        >>> drift, noise = np.random.default_rng(0).standard_normal((2, 100))
        >>> rewards = 5 + np.cumsum(0.3 * drift) + 0.5 * noise
        >>> log = {"round": range(100), "arm": ["a"] * 100, "reward": rewards}
        >>> found = fit(log)
        >>> found.summary()
        'level(arm); level(arm).drift 0.25... per round.'
        >>> round(float(found.model.reward_std), 1), found.drift.verdict
        (0.5, 'yes')
    """
    starts = errors.whole_number(starts, "starts", low=1)
    limits = (
        errors.whole_number(iterations, "iterations", low=1),
        errors.number(tolerance, "tolerance", low=0),
    )
    seed = errors.whole_number(seed, "seed", low=0)
    free = all(one is None for one in (arms, n_states, structure, start, groups))
    free = free and offsets and stable
    if read_factors(structure) is not None:
        n_states, structure = read_factors(structure).n_states, None  # type: ignore[union-attr]
    elif free or (structure is not None and structure not in em.STRUCTURES):
        for name, value in (("arms", arms), ("n_states", n_states), ("start", start)):
            if value is not None:
                said = "was given together with components"
                raise errors.InvalidInput(name, said, "give only one of the two")
        if isinstance(structure, str) and structure != "auto":
            structure = parse(structure, (*em.STRUCTURES, "auto"))
        read = as_log(log, columns=columns, every=every, zone=zone)
        work = Progress(progress)
        found = _of_components(read, structure, groups, periods, prior, starts, work)
        if not isinstance(found, tuple):
            return found
        factors, comparison = found
        made = of_states(
            recent(read)[0], None, factors.n_states, "free", True, True, starts, limits, None,
            seed, None, work, doubtful=True,
        )  # fmt: skip
        return dataclasses.replace(
            made, comparison=comparison, continued=continued(made.start_system, recent(read)[0])
        )
    for name, value in (("groups", groups), ("periods", periods)):
        if value is not None:
            remedy = "give components" if name == "groups" else "leave the rest out"
            raise errors.InvalidInput(name, "was given without components", remedy)
    read, features, n_states = _read(log, arms, n_states, columns, every, zone)
    return of_states(
        read, features, n_states, structure or "free", stable, offsets,
        starts, limits, prior, seed, start, Progress(progress),
    )  # fmt: skip


def _of_components(
    log: Log,
    structure: Any,
    groups: Mapping[Name, Any] | None,
    periods: Sequence[float] | None,
    prior: float | None,
    starts: int,
    work: Progress,
) -> StructuredFit | tuple[Factors, Comparison]:
    """A structure that was given, or the one that predicts best: None and "auto" try all."""
    if structure is not None and structure != "auto":
        return fit_components(log, structure, groups, periods, prior, starts, work)
    log, notes = recent(log)
    if structure is None and periods is None and not can_compare(log):
        notes.append(FEW)
        found = fit_components(log, FALLBACK, groups, None, prior, starts, work)
    else:
        found = fit_components(log, "auto", groups, periods, prior, starts, work)
    if isinstance(found, tuple):
        return found
    return dataclasses.replace(found, warnings=(*notes, *found.warnings))


def _read(
    log: Any, arms: Any, n_states: int | None, columns: Any, every: Any, zone: Any
) -> tuple[Log, np.ndarray | None, int | None]:
    """The log, and the arms' features and the number of states if they are given."""
    read, features = log_and_features(log, arms, columns, every, zone)
    if n_states is not None:
        high = len(read.names) if features is None else None
        n_states = errors.whole_number(n_states, "n_states", low=1, high=high)
    if features is None:
        return read, None, n_states
    d = features.shape[1]
    if n_states not in (None, d):
        remedy = f"the arms have {d} features: give {d}"
        raise errors.InvalidInput("n_states", f"is {n_states}", remedy)
    return read, features, d
