"""What the paper leaves open about Table II, as choices that can be played (P20, P21).

The text says how Γ, Q and σ come from i.i.d. draws, but not where the arms come from, nor what the
regret of a round is held against, and not everything it says fits its numbers. A `Reading` is one
choice for every such question; `PLAIN` takes the text by its word.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import errors, families
from driftbandit.model import LGDS, unit_rows

__all__ = ["CHOICES", "NAMED", "PLAIN", "Reading", "beliefs", "named", "sample", "search"]

CHOICES: Mapping[str, Mapping[str, str]] = {
    "interval": {
        "0..1": "Uniform on [0, 1]",
        "-1..1": "Uniform on [−1, 1]",
        "-0.5..0.5": "Uniform on [−½, ½]",
    },
    "arms": {
        "drawn": "arms drawn from the family's law",
        "unit": "drawn, then scaled to length one",
        "bounded": "drawn, then all scaled by one factor until the longest has length one",
        "common": "one draw of arms for all systems of a family",
        "gaussian": "arms drawn from N(0, 1)",
        "identity": "one arm per state",
    },
    "transition": {
        "scaled": "Γ = 0.9 T/ρ(T)",
        "capped": "Γ = T, scaled only where ρ(T) > 0.9",
        "norm": "Γ = 0.9 T/‖T‖",
        "symmetric": "Γ = 0.9 S/ρ(S), S = T + Tᵀ",
    },
    "process": {
        "full": "Q = R Rᵀ",
        "mean": "Q = R Rᵀ/d",
        "diagonal": "Q = diag(R)²",
        "identity": "Q = I",
    },
    "noise": {
        "drawn": "σ = |r|",
        "squared": "σ = r²",
        "root": "σ = √|r|",
        "one": "σ = 1",
        "vector": "σ = ‖r‖, r a vector of d draws",
        "common": "σ = |r|, one noise for all arms of a round",
    },
    "regret": {
        "mean": "against the best mean reward, free of noise",
        "noisy": "against the same arm's reward with its noise",
        "hindsight": "against the highest reward drawn, noise included",
    },
    "belief": {
        "stationary": "the filter starts from the stationary covariance",
        "identity": "the filter starts from P = I",
        "process": "the filter starts from P = Q",
    },
    "start": {"stationary": "the state starts stationary", "zero": "the state starts at zero"},
    "medians": {"runs": "medians over all runs", "systems": "medians over systems of their means"},
}
"""Every question, its answers, and what they mean; the first answer is the text's."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """One answer to every question of `CHOICES`."""

    interval: str = "0..1"
    arms: str = "drawn"
    transition: str = "scaled"
    process: str = "full"
    noise: str = "drawn"
    regret: str = "mean"
    belief: str = "stationary"
    start: str = "stationary"
    medians: str = "runs"

    def __post_init__(self) -> None:
        for question, answers in CHOICES.items():
            errors.closest(getattr(self, question), f"reading.{question}", answers)

    def __str__(self) -> str:
        """Where it departs from the text: "arms=unit, noise=one", or "plain"."""
        changed = (f"{question}={answer}" for question, answer in self.changes().items())
        return ", ".join(changed) or "plain"

    def changes(self) -> dict[str, str]:
        """The answers that are not the text's."""
        mine = dataclasses.asdict(self)
        return {
            question: mine[question] for question in CHOICES if mine[question] != _FIRST[question]
        }


_FIRST = {question: next(iter(answers)) for question, answers in CHOICES.items()}
PLAIN = Reading()

NAMED: Mapping[str, Reading] = {
    "plain": PLAIN,
    "closest": Reading(interval="-0.5..0.5", noise="vector", regret="hindsight"),
    "unit": Reading(arms="unit"),
}
"""Readings with a name: the text's own, the one found closest to Table II, Assumption 1's arms."""


def named(text: str) -> Reading:
    """A reading from its name, or from its changes as in "arms=unit, noise=one".

    Example:
        >>> named("arms=unit").arms
        'unit'
        >>> named("plain") == PLAIN
        True
    """
    if not isinstance(text, str):
        raise errors.InvalidInput("reading", f"is {text!r}", f"valid: {', '.join(NAMED)}")
    if "=" not in text:
        return NAMED[errors.closest(text.strip(), "reading", NAMED)]
    answers = {}
    for part in text.split(","):
        question, _, answer = (word.strip() for word in part.partition("="))
        question = errors.closest(question, "reading", CHOICES)
        if question in answers:
            raise errors.InvalidInput("reading", f"answers {question} twice", "answer it once")
        answers[question] = errors.closest(answer, f"reading.{question}", CHOICES[question])
    return Reading(**answers)


def sample(
    reading: Reading,
    family: str,
    systems: int,
    *,
    n_states: int,
    n_arms: int,
    seed: int,
    first: int = 0,
    radius: float = families.SPECTRAL_RADIUS,
    noise_scale: float = 1.0,
) -> families.Systems:
    """Random systems of a family as this reading makes them; plainly read, `families.sample`."""
    law = families.FAMILIES[errors.closest(family, "family", families.FAMILIES)]
    if family == "uniform" and reading.interval != "0..1":
        low, high = (float(end) for end in reading.interval.split(".."))

        def law(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
            return low + (high - low) * rng.random(shape)

    # The arms of a system that is never played.
    common, _ = families.draw_arms(law, families.generator(family, seed, 2**32), n_states, n_arms)
    drawn, redraws = [], 0
    for number in range(first, first + systems):
        rng = families.generator(family, seed, number)
        raw = families.draw(law, rng, n_states, n_arms)
        # Drawn after all that the text asks for, so that it stays the same in every reading.
        more, normal = law(rng, (n_states,)), rng.standard_normal((n_arms, n_states))
        model = LGDS(
            _transition(reading, raw, radius),
            _process_cov(reading, raw.process_root),
            noise_scale * _reward_std(reading, raw, more),
            np.zeros((n_states, n_states)) if reading.start == "zero" else None,
        )
        drawn.append((model, _arms(reading, raw.arms, common, normal)))
        redraws += raw.redraws
    return families.Systems(family, drawn, redraws)


def _transition(reading: Reading, raw: families.Draw, radius: float) -> np.ndarray:
    T, size = raw.transition, raw.radius
    if reading.transition == "norm":
        size = float(np.linalg.norm(T, 2))
    elif reading.transition == "symmetric":
        T = T + T.T
        size = float(np.abs(np.linalg.eigvalsh(T)).max())
    elif reading.transition == "capped":
        size = max(size, radius)
    return radius / size * T


def _process_cov(reading: Reading, root: np.ndarray) -> np.ndarray:
    if reading.process == "mean":
        return root @ root.T / len(root)
    if reading.process == "diagonal":
        return np.diag(np.diag(root) ** 2)
    if reading.process == "identity":
        return np.eye(len(root))
    return root @ root.T


def _reward_std(reading: Reading, raw: families.Draw, more: np.ndarray) -> float:
    root = raw.reward_root
    if reading.noise == "vector":
        return float(np.linalg.norm(more))
    return {"squared": root**2, "root": abs(root) ** 0.5, "one": 1.0}.get(reading.noise, abs(root))


def _arms(
    reading: Reading, drawn: np.ndarray, common: np.ndarray, normal: np.ndarray
) -> np.ndarray:
    if reading.arms == "unit":
        return unit_rows(drawn)
    if reading.arms == "bounded":
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1).max())
    others = {"common": common, "gaussian": normal, "identity": np.eye(*drawn.shape)}
    return others.get(reading.arms, drawn)


def beliefs(reading: Reading, systems: Sequence[Any]) -> list[Any] | None:
    """What the learners believe, where they start elsewhere than the state does."""
    if reading.belief == reading.start == "stationary":
        return None
    learned = []
    for model, arms in systems:
        start = {"stationary": None, "identity": np.eye(model.n_states)}
        cov = start.get(reading.belief, model.process_cov)
        learned.append((dataclasses.replace(model, initial_cov=cov), arms))
    return learned


def search() -> list[Reading]:
    """The readings that were tried: every single change, and every mixture of those that matter."""
    singles = [
        dataclasses.replace(PLAIN, **{question: answer})
        for question, answers in CHOICES.items()
        for answer in answers
    ]
    mixed = [
        Reading(interval, arms, transition, process, noise, regret)
        for interval, arms, transition, process, noise, regret in itertools.product(
            CHOICES["interval"],
            ("drawn", "unit", "bounded", "common"),
            ("scaled", "capped"),
            ("full", "mean", "diagonal"),
            ("drawn", "one", "vector"),
            ("mean", "hindsight"),
        )
    ]
    return list(dict.fromkeys([*singles, *mixed]))
