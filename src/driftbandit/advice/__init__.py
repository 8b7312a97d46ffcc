"""Advice: which policy to play on a system, or whether a log is worth a policy at all."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from driftbandit import errors
from driftbandit.advice.finding import Advice, Finding, Request
from driftbandit.model import LGDS
from driftbandit.system import System, checked_system

__all__ = ["Advice", "Finding", "advise"]


def advise(
    model: Any,
    arms: Any = None,
    *,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    policies: Iterable[str] | None = None,
    seasons: Sequence[float] | None = None,
    chances: str | None = None,
    budget: float | None = None,
    progress: Callable[..., None] | None = None,
    ready: Callable[[Finding], None] | None = None,
) -> Advice:
    """Say which policy to play on a system, or what a log says about drift and policies.

    Of a system: what each arm pays and shows of the state (P3, P14), the lower bound on regret
    (P11), the interval of the metric φ for IDEA, KODE and Kalman-UCB (P17), and a short paired
    simulation of the policies that know the model. Fixed rules turn them into a recommendation
    (`from_system.recommend`). Equal input gives equal advice; 10 states and 10 arms take seconds,
    most of it compiling.

    Of a log: whether arms drift, how fast, how predictable that is, what policies would have
    earned, what a fixed choice loses, and a recommendation by fixed rules
    (`from_log.recommend`); see `docs/do/advise_log.md`.

    Args:
        model: a `System`, whose arm names the advice uses; or Γ, Q, σ, Σ0; or a `Log`, or what
            `read_log` reads without options: the path of a CSV or Parquet file, or columns.
        arms: k × d, if a model is given.
        runs: of the simulation; by default chosen from d and k; of a log's forecast, 200, or
            down to 32 with many states and arms.
        rounds: of each run; by default chosen from d, k and ρ(Γ); of a log's forecast, as many as
            its test part has.
        seed: whole number ≥ 0.
        policies: which to play: any of ``policies.available()`` that sees one reward a round,
            with parameters if need be. By default those that know the model.
        seasons: of a log: periods of the seasons to look for, in rounds; None: of all up to 200,
            those that a quick test finds, at most two.
        chances: of a log without a column ``chance``: as in `replay`.
        budget: seconds. Questions that there is no time for are answered "not asked"; one that
            was begun ends at its next progress report, so this may take some seconds more.
        progress: called with a stage's name (one of `from_system.STAGES` or `from_log.STAGES`) and
            the share of it that is done; also with "time" and the share of the budget.
        ready: called with each `Finding` as soon as it is there.

    Example:
        >>> from driftbandit import families
        >>> model, arms = families.sample("exponential", n_states=3, n_arms=3)[0]
        >>> advice = advise(model, arms, runs=128, rounds=100)
        >>> advice.recommendation.choice, advice["system"].stable
        ('reach', True)
    """
    errors.require("advise", "jax")
    request = Request(runs, rounds, seed, policies, budget, progress, ready)
    if arms is None and not isinstance(model, LGDS | System):
        from driftbandit.advice.from_log import advise_log

        return advise_log(model, seasons, chances, request)
    for option, value in {"seasons": seasons, "chances": chances}.items():
        if value is not None:
            raise errors.InvalidInput(option, "was given with a system", "give it with a log")
    from driftbandit.advice.from_system import advise_system

    return advise_system(checked_system(model, arms), request)
