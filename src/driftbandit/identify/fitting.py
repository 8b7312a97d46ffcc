"""`fit`: from a log of decisions to a model."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from driftbandit import errors
from driftbandit.identify.progress import Progress
from driftbandit.identify.structured.fitting import ITERATIONS, Fit
from driftbandit.identify.structured.selection import SIZES, can_compare, fit_components, recent
from driftbandit.io.log_reader import log_and_features
from driftbandit.io.logs import Log
from driftbandit.model import LGDS
from driftbandit.structure import Structure, constant, factors, parse
from driftbandit.structure.kinds import FORMS, Form
from driftbandit.system import Name

FALLBACK = "constant(arm) + level(arm, memory=free)"
FEW = "Too few rewards to compare models: each arm is assumed to drift on its own."
FEW_FACTORS = "Too few rewards to choose the number of states: there is one."


def fit(
    log: Any,
    arms: Any = None,
    n_states: int | None = None,
    *,
    structure: Any = None,
    groups: Mapping[Name, Any] | None = None,
    periods: Sequence[float] | None = None,
    offsets: bool = True,
    starts: int = 3,
    iterations: int = ITERATIONS,
    prior: float = 1.0,
    start: LGDS | None = None,
    progress: Callable[[float], None] | None = None,
) -> Fit:
    """Learn what drifts, how noisy rewards are and what arms pay on average from a log.

    Every model is a sum of components, learned by maximum likelihood with wide priors. Without
    features, a number of states or a structure, it is the sum that best predicts later rewards
    (`structured.selection`): constant arms, a level for each arm, a shared level, unequal noise,
    seasons, context features, or states that arms share. `Fit.drift` says whether arms drift, as
    `advise` does.

    Args:
        log: a `Log`; or a path or a table, as `read_log` reads it by default.
        arms: k × d features of arms that the log numbers: row i belongs to arm i or, if the k arms
            have other numbers, to the i-th by size; or `Arms`, as `read_arms` gives. The state then
            is what the features weigh: constant(arm) + factors(d) with known weights.
        n_states: d of constant(arm) + factors(d), whose weights are learned; with as many states as
            arms, each arm has a state of its own.
        structure: what rewards are made of, as "level(arm) + season(7)" or a `Structure`; several
            of them, or "auto", of which the one that predicts best is taken. Or the form of the
            factors' Γ: "free", "diagonal" or "scalar". None: what predicts best, or "free" if
            features or states are given.
        groups: the group of each arm by name, for components such as level(group).
        periods: of the seasons that "auto" tries; None: of all up to 200 rounds, those that a
            quick test finds, at most two.
        offsets: whether each arm pays a mean of its own beside the factors, as real rewards do.
        starts: how many searches for the maximum begin, from different points.
        iterations: most of each search.
        prior: how strong the prior of the parameters is; 0: maximum likelihood.
        start: a stable model of the states that ``arms`` read, from which a search begins.
        progress: called with the share of the work that is done, 0 to 1.

    Returns:
        The learned model, its parameters, and what it was compared with.

    Example:
        >>> import numpy as np
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
    iterations = errors.whole_number(iterations, "iterations", low=1)
    prior = errors.number(prior, "prior", low=0)
    form = structure if isinstance(structure, str) and structure in FORMS else None
    if arms is None and n_states is None and form is None:
        if start is not None:
            raise errors.InvalidInput("start", "was given without arms", "give both or neither")
        if groups is not None and structure is None:
            raise errors.InvalidInput("groups", "was given without components", "give components")
        if isinstance(structure, str) and structure != "auto":
            structure = parse(structure, (*FORMS, "auto"))
        read, _ = log_and_features(log)
        how = prior, starts, Progress(progress), None, iterations
        return _components(read, structure, groups, periods, *how)
    refused = {"groups": groups, "periods": periods, "structure": None if form else structure}
    for name, value in refused.items():
        if value is not None:
            problem, remedy = "was given together with factors", "give only one of the two"
            raise errors.InvalidInput(name, problem, remedy)
    read, features = log_and_features(log, arms)
    k, work = len(read.names), Progress(progress)
    if n_states is not None:
        most = k if features is None else None
        n_states = errors.whole_number(n_states, "n_states", low=1, high=most)
    if features is not None and n_states not in (None, features.shape[1]):
        remedy = f"the arms have {features.shape[1]} features: give {features.shape[1]}"
        raise errors.InvalidInput("n_states", f"is {n_states}", remedy)
    if features is None and start is not None:
        raise errors.InvalidInput("start", "was given without arms", "give both or neither")
    sizes = _sizes(n_states, k) if features is None else [features.shape[1]]
    sums = [_factors(form or "free", features, d, k, bool(offsets)) for d in sizes]
    notes = [FEW_FACTORS] if len(sums) > 1 and not can_compare(read) else []
    tried: Any = sums if len(sums) > 1 and not notes else sums[0]
    found = fit_components(read, tried, None, None, prior, starts, work, start, iterations)
    return dataclasses.replace(found, warnings=(*found.warnings, *notes))


def _sizes(n_states: int | None, k: int) -> list[int]:
    """The numbers of factors to compare."""
    return [d for d in (1, *SIZES) if d <= k] if n_states is None else [n_states]


def _factors(form: Form, features: Any, d: int, k: int, offsets: bool) -> Structure:
    """Factors of known weights, if there are features; a state for each arm, if d = k."""
    reads = features
    if features is None and d == k > 1:
        reads = [[float(i == j) for j in range(d)] for i in range(k)]
    moving = factors(d, form, reads)
    return constant("arm") + moving if offsets else Structure((moving,))


def _components(
    log: Log,
    structure: Any,
    groups: Mapping[Name, Any] | None,
    periods: Sequence[float] | None,
    *how: Any,
) -> Fit:
    """A structure that was given, or the one that predicts best: None and "auto" try all."""
    if structure is not None and structure != "auto":
        return fit_components(log, structure, groups, periods, *how)
    log, notes = recent(log)
    tried = "auto"
    if structure is None and periods is None and not can_compare(log):
        notes.append(FEW)
        tried = FALLBACK
    found = fit_components(log, tried, groups, periods, *how)
    return dataclasses.replace(found, warnings=(*notes, *found.warnings))
