"""`advise`: all facts about one system, a short simulation, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from driftbandit import errors
from driftbandit.advice import facts, played, words
from driftbandit.advice.parts import Advice
from driftbandit.model import LGDS
from driftbandit.system import System, checked_system

__all__ = ["STAGES", "Progress", "advise"]

Progress = Callable[[str, float], None]
STAGES = ("arms", "floor", "metric", "simulation")


def advise(
    model: LGDS | System,
    arms: Any = None,
    *,
    runs: int | None = None,
    rounds: int | None = None,
    seed: int = 0,
    policies: Iterable[str] | None = None,
    progress: Progress | None = None,
) -> Advice:
    """Say what a system is like, its lower bound on regret, and which policy to play on it.

    Facts: what each arm pays and teaches (P3, P14), the lower bound on regret (P11), the
    interval of the metric φ for IDEA, KODE and Kalman-UCB (P17). Then a short paired simulation of
    the policies that know the model, and a recommendation by fixed rules (`words.recommend`).
    Equal input gives equal advice; 10 states and 10 arms take seconds, most of it compiling.

    Args:
        model: a `System`, whose arms the advice calls by their names; or Γ, Q, σ, Σ0.
        arms: k × d, beside a model.
        runs: of the simulation; None: chosen from d and k.
        rounds: of each run; None: chosen from d, k and ρ(Γ).
        seed: whole number ≥ 0.
        policies: which to play, any of ``policies.available()`` that sees one reward a round,
            with parameters if need be; None: those that know the model, except the slow rollout.
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
    model.start_cov()  # says so if there is none
    usual = played.sizes(model.n_states, len(rows), model.spectral_radius)
    most = 10**7
    runs = errors.whole_number(usual[0] if runs is None else runs, "runs", low=1, high=most)
    rounds = errors.whole_number(usual[1] if rounds is None else rounds, "rounds", low=1, high=most)
    seed = errors.whole_number(seed, "seed", low=0, high=2**63 - 1)

    players = played.players(policies, len(rows))

    def stage(name: str, share: float) -> None:
        if progress is not None:
            progress(name, share)

    stage("arms", 0)
    system = facts.system_facts(model, rows)
    each = facts.arm_facts(model, rows, given.names, rounds)
    stage("arms", 1)
    stage("floor", 0)
    floor = facts.floor(model, rows, rounds)
    stage("floor", 1)
    stage("metric", 0)
    metric = facts.metric(model, rows)
    stage("metric", 1)
    stage("simulation", 0)
    simulation = None
    if (rows != rows[0]).any():
        simulation = played.play(
            model, rows, players, runs, rounds, seed, lambda share: stage("simulation", share)
        )
    stage("simulation", 1)
    said = words.recommend(system, each, floor, metric, simulation)
    return Advice(system, each, floor, metric, simulation, said)
