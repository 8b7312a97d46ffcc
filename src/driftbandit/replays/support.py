"""Warnings when a log cannot tell what a policy would have earned, one plain line each."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from scipy import special

from driftbandit.replays.decisions import Decisions
from driftbandit.replays.estimates import Shown, effective, largest_share
from driftbandit.report.numbers import percent
from driftbandit.system import label

FEWEST = 50  # effective rounds, below which intervals are not to be trusted
HEAVIEST = 0.1  # share of the weights that one round may carry
LIGHTEST = 0.75  # mean of the weights 1[a = π]/p, whose expectation is 1
LEVEL = 1e-4  # of the tests: they run on every log, and sums of weights have long tails


def doubts(named: Mapping[str, np.ndarray], shown: Shown, decisions: Decisions) -> Iterator[str]:
    """Warnings about policies, whose shares q are n × k, and about the chances of the log."""
    counted = {who: shown.of_played(q) for who, q in named.items()}
    few = {who: effective(c, shown) for who, c in counted.items()}
    few = {who: size for who, size in few.items() if size < FEWEST}
    if few:
        sizes = _listed({who: f"{size:.0f}" for who, size in few.items()})
        yield (
            f"The log seldom plays what these policies name. Effective rounds: {sizes}. With "
            f"fewer than {FEWEST} the intervals are too short to be trusted."
        )
    heavy = {who: largest_share(c, shown) for who, c in counted.items()}
    heavy = {who: share for who, share in heavy.items() if share > HEAVIEST}
    if heavy:
        sizes = _listed({who: percent(share) for who, share in heavy.items()})
        yield f"A single round of small chance decides. Its share of all weights: {sizes}."
    light = {who: float((c / shown.chances).mean()) for who, c in counted.items()}
    light = {who: mean for who, mean in light.items() if mean < LIGHTEST and who not in few}
    if light:
        sizes = _listed({who: percent(mean) for who, mean in light.items()})
        yield (
            "The log lacks rare plays of arms that these policies name, so their intervals are too "
            f"short. Sum of weights, as a share of the rounds: {sizes}."
        )
    out = {who: unsupported(q, shown) for who, q in named.items()}
    out = {who: share for who, share in out.items() if share > 0}
    if out:
        sizes = _listed({who: percent(share) for who, share in out.items()})
        yield (
            "The log cannot show what these policies would have earned where it never plays the "
            f"arm they name. Share of such rounds: {sizes}."
        )
    unknown = int(np.isnan(decisions.chances).sum())
    if unknown:
        yield (
            f"{unknown} of {len(decisions)} decisions have no chance: policies learn from them, "
            "but they do not count."
        )
    yield from _miscounted(decisions)


def unsupported(named: np.ndarray, shown: Shown) -> float:
    """Share of rounds in which the named arm had no chance, as far as the log tells.

    That is so if another arm had chance 1, or if the arm is never played in all these rounds.

    Example:
        >>> log = Shown(np.array([0, 0]), np.zeros(2), np.array([1.0, 0.5]), np.zeros((2, 3)))
        >>> unsupported(np.array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]), log)
        0.5
    """
    never = np.bincount(shown.arms, minlength=named.shape[1]) == 0
    other = 1 - shown.of_played(named)
    return float(np.where(shown.chances == 1, other, named[:, never].sum(axis=1)).mean())


def _miscounted(decisions: Decisions) -> Iterator[str]:
    known = np.isfinite(decisions.chances)
    arms, chances = decisions.arms[known], decisions.chances[known]
    scores = calibration(arms, chances, len(decisions.names))
    worst = int(np.argmax(np.abs(scores)))
    if len(scores) * special.erfc(abs(scores[worst]) / math.sqrt(2)) < LEVEL:
        own = chances[arms == worst]
        mean = len(own) / float((1 / own).sum())
        yield (
            f"The chances do not fit the log: arm {label(decisions.names[worst])} was played "
            f"{len(own)} times in {len(arms)} rounds, and about {mean * len(arms):.0f} times would "
            "fit. They are wrong, or the arm was not available in all rounds."
        )


def calibration(arms: np.ndarray, chances: np.ndarray, n_arms: int) -> np.ndarray:
    """For every arm, how far its plays are from what the chances say, in standard deviations.

    If an arm has a chance p in each of n rounds, S = Σ 1/p over the rounds that play it has the
    expectation n and the variance Σ (1/p − 1) over all rounds, which is estimated from the rounds
    that play it, n/S Σ (1/p − 1)/p. If all p are equal, the square of the score is Pearson's
    chi-square of this arm against the others. Arms that were never played have the score 0:
    `unsupported` is about them.

    Example:
        >>> calibration(np.array([0] * 60 + [1] * 40), np.full(100, 0.5), 2)
        array([ 2., -2.])
    """
    n = len(arms)
    plays = np.bincount(arms, minlength=n_arms)
    sums = np.bincount(arms, 1 / chances, minlength=n_arms)
    spread = np.bincount(arms, (1 / chances - 1) / chances, minlength=n_arms)
    seen = plays > 0
    deviation = np.sqrt(n * spread / np.where(seen, sums, 1.0))
    apart = np.where(seen, sums - n, 0.0)
    # With chances of 1 nothing may deviate at all.
    exact = np.where(apart == 0, 0.0, np.copysign(math.inf, apart))
    return np.where(deviation > 0, apart / np.where(deviation > 0, deviation, 1.0), exact)


def dependence(shown: Shown) -> float:
    """How far play follows what a filter predicts, in standard deviations.

    With f(a) the share of an arm's plays and m the predictions, Σ_t m(a_t) − Σ_a f(a) m(a) has the
    mean zero if arms are drawn with constant chances. Predictions count as deviations from their
    mean over time: an arm that always pays more and is always played more is no sign of dependence.
    """
    frequency = np.bincount(shown.arms, minlength=shown.predicted.shape[1]) / len(shown.arms)
    apart = shown.predicted - shown.predicted.mean(axis=0)
    mean = apart @ frequency
    variance = float((apart**2 @ frequency - mean**2).sum())
    total = float((shown.of_played(apart) - mean).sum())
    return total / math.sqrt(variance) if variance > 0 else 0.0


def about_estimated(shown: Shown) -> Iterator[str]:
    """Warnings about chances that were estimated as frequencies; m: predictions of a model."""
    yield (
        "Chances are the frequencies of the arms: the means are right only if every round drew "
        "its arm with the same chances, whatever had happened before."
    )
    score = dependence(shown)
    if special.erfc(abs(score) / math.sqrt(2)) < LEVEL:
        yield (
            f"Play depends on past rewards: arms were chosen {'more' if score > 0 else 'less'} "
            f"often when they were expected to pay more ({abs(score):.1f} standard deviations). "
            "So the estimated chances are wrong, and the means are biased."
        )


def _listed(values: Mapping[str, str]) -> str:
    return ", ".join(f"{who} {value}" for who, value in values.items())
