"""Advice: what a system is like, its lower bound on regret, and which policy to play on it.

`advise` computes it; ``advice.report`` says it in sentences, tables and figures.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from driftbandit import errors
from driftbandit.advice import facts, report
from driftbandit.advice.facts import Advice
from driftbandit.model import LGDS
from driftbandit.system import System, checked_system

__all__ = ["STAGES", "Advice", "advise"]

STAGES = ("arms", "lower bound", "metric", "simulation")
LARGEST = 10**7


def advise(
    model: LGDS | System,
    arms: Any = None,
    *,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    policies: Iterable[str] | None = None,
    progress: Callable[[str, float], None] | None = None,
) -> Advice:
    """Say what a system is like, its lower bound on regret, and which policy to play on it.

    Facts: what each arm pays and shows of the state (P3, P14), the lower bound on regret (P11),
    the interval of the metric φ for IDEA, KODE and Kalman-UCB (P17). Then a short paired
    simulation of the policies that know the model, and a recommendation by fixed rules
    (`report.recommend`). Equal input gives equal advice; 10 states and 10 arms take seconds, most
    of it compiling.

    Args:
        model: a `System`, whose arm names the advice uses; or Γ, Q, σ, Σ0.
        arms: k × d, if a model is given.
        runs: of the simulation; by default chosen from d and k.
        rounds: of each run; by default chosen from d, k and ρ(Γ).
        seed: whole number ≥ 0.
        policies: which to play: any of ``policies.available()`` that sees one reward a round,
            with parameters if need be. By default those that know the model, except the slow
            rollout.
        progress: called with a stage's name (one of `STAGES`) and the share of it that is done.

    Returns:
        `Advice`: plain numbers; ``print`` shows the recommendation, ``to_document()`` is for JSON.

    Example:
        >>> from driftbandit import families
        >>> model, arms = families.sample("exponential", n_states=3, n_arms=3)[0]
        >>> advice = advise(model, arms, runs=128, rounds=100)
        >>> advice.recommendation.choice, advice.system.stable
        ('kode', True)
    """
    errors.require("advise", "jax")
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
