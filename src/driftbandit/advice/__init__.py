"""Advice: which policy to play on a system, or whether a log is worth a policy at all.

`advise` computes it; ``advice.report`` and, for a log, ``advice.log_report`` say it in sentences,
tables and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from driftbandit import errors
from driftbandit.advice import facts, report
from driftbandit.advice.facts import Advice
from driftbandit.model import LGDS
from driftbandit.system import System, checked_system

if TYPE_CHECKING:
    from driftbandit.advice.from_log import LogAdvice

__all__ = ["STAGES", "Advice", "LogAdvice", "advise"]

STAGES = ("arms", "lower bound", "metric", "simulation")
LARGEST = 10**7
__getattr__ = errors.lazy(__name__, {"LogAdvice": "from_log"})


@overload
def advise(
    model: LGDS | System,
    arms: Any = None,
    *,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    policies: Iterable[str] | None = None,
    progress: Callable[..., None] | None = None,
) -> Advice: ...
@overload
def advise(
    model: Any,
    arms: None = None,
    *,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    policies: Iterable[str] | None = None,
    seasons: Sequence[float] | None = None,
    chances: str | None = None,
    columns: Mapping[str, str] | None = None,
    every: str | None = None,
    zone: str | None = None,
    progress: Callable[..., None] | None = None,
) -> LogAdvice: ...
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
    columns: Mapping[str, str] | None = None,
    every: str | None = None,
    zone: str | None = None,
    progress: Callable[..., None] | None = None,
) -> Advice | LogAdvice:
    """Say which policy to play on a system, or what a log says about drift and policies.

    Of a system: facts about arms, the lower bound on regret, a simulation and a recommendation.
    Of a log: whether arms drift, how fast, how predictable that is, what policies would have
    earned, what a fixed choice loses, and a recommendation by fixed rules
    (`log_rules.recommend`); see `docs/do/advise_log.md`.

    Facts: what each arm pays and shows of the state (P3, P14), the lower bound on regret (P11),
    the interval of the metric φ for IDEA, KODE and Kalman-UCB (P17). Then a short paired
    simulation of the policies that know the model, and a recommendation by fixed rules
    (`report.recommend`). Equal input gives equal advice; 10 states and 10 arms take seconds, most
    of it compiling.

    Args:
        model: a `System`, whose arm names the advice uses; or Γ, Q, σ, Σ0; or a log: the path of a
            CSV or Parquet file, a `Log`, or columns as `read_log` reads them.
        arms: k × d, if a model is given.
        runs: of the simulation; by default chosen from d and k; of a log's forecast, 200.
        rounds: of each run; by default chosen from d, k and ρ(Γ); of a log's forecast, as many as
            its test part has.
        seed: whole number ≥ 0.
        policies: which to play: any of ``policies.available()`` that sees one reward a round,
            with parameters if need be. By default those that know the model.
        seasons: of a log: periods of the seasons to look for, in rounds; None: of 7, 12, 24, 52
            and 168, those that a quick test finds, at most two.
        chances: of a log without a column ``chance``: as in `replay`.
        columns, every, zone: how a log is read, as in `read_log`.
        progress: called with a stage's name (one of `STAGES`, or of `from_log.STAGES`) and the
            share of it that is done.

    Returns:
        `Advice`, or `LogAdvice` of a log: plain numbers; ``print`` shows the recommendation,
        ``to_document()`` is for JSON.

    Example:
        >>> from driftbandit import families
        >>> model, arms = families.sample("exponential", n_states=3, n_arms=3)[0]
        >>> advice = advise(model, arms, runs=128, rounds=100)
        >>> advice.recommendation.choice, advice.system.stable
        ('reach', True)
    """
    errors.require("advise", "jax")
    options: dict[str, Any] = {"seasons": seasons, "chances": chances}
    options |= {"columns": columns, "every": every, "zone": zone}
    if arms is None and not isinstance(model, LGDS | System):
        from driftbandit.advice.from_log import advise_log

        same: dict[str, Any] = {"runs": runs, "rounds": rounds, "seed": seed}
        return advise_log(model, policies=policies, progress=progress, **same, **options)
    for option, value in options.items():
        if value is not None:
            raise errors.InvalidInput(option, "was given with a system", "give it with a log")
    given = checked_system(model, arms)
    model, rows = given.model, given.arms
    model.start_cov()  # an error if there is none
    sizes = facts.sizes(model.n_states, len(rows), model.spectral_radius)
    runs = errors.whole_number(runs if runs is not None else sizes[0], "runs", low=1, high=LARGEST)
    rounds = sizes[1] if rounds is None else rounds
    rounds = errors.whole_number(rounds, "rounds", low=1, high=LARGEST)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)
    players = facts.players(policies, len(rows))

    def stage(name: str, work: Callable[[Callable[[float], None]], Any]) -> Any:
        tell = progress or (lambda *_: None)
        tell(name, 0)
        found = work(lambda share: tell(name, share))
        tell(name, 1)
        return found

    def simulated(tell: Callable[[float], None]) -> facts.Simulation | None:
        if (rows == rows[0]).all():
            return None  # nothing to decide
        return facts.play(model, rows, players, runs, rounds, seed, tell)

    system = facts.system_facts(model, rows)
    each = stage("arms", lambda _: facts.arm_facts(model, rows, given.names, rounds))
    bound = stage("lower bound", lambda _: facts.lower_bound(model, rows, rounds))
    metric = stage("metric", lambda _: facts.metric(model, rows))
    played = stage("simulation", simulated)
    recommended = report.recommend(system, each, bound, metric, played)
    return Advice(system, each, bound, metric, played, recommended)
