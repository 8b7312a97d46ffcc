"""Whether a log can tell what a policy or reference strategy would have earned; warnings if not.

The interval of a mean is normal. So it needs that the log gives every named arm a chance, and that
enough rounds carry the variance. Say the squared errors of n rounds have the weights l in it
(`leverages`), and rewards have the kurtosis κ about their median, which stands for that of errors:
no prediction makes a rare reward common. Then about

    K = n_l / κ,   n_l = (Σ l)² / Σ l²

of them carry it. If a share q of rewards differs from the usual one, κ = 1/q, and K = n q is the
number of those; for normal rewards κ = 3. The skewness of the mean is at most 1/√K, because the
square of a skewness is at most the kurtosis: K bounds how far the mean is from normal. `OUTCOMES`
is the textbook rule for shares, n q ≥ 5. Two things keep luck out of it. κ comes from rewards
without their weights: a rare reward that is missing where weights are large would hide itself. And
κ is the larger one of the row's own rewards and those of the whole log: an arm that was played
seldom has not shown all it can pay.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np
from scipy import special

from driftbandit.replays import estimates
from driftbandit.replays.decisions import Decisions
from driftbandit.replays.estimates import Shown
from driftbandit.report.numbers import percent, short
from driftbandit.system import label

FEWEST = 50  # effective rounds, below which there is no interval
OUTCOMES = 5  # rounds that carry the variance, K
HEAVIEST = 0.1  # share of the weights that one round may carry
LIGHTEST = 0.75  # mean of the weights 1[a = π]/p, whose expectation is 1
NEGLIGIBLE = 0.1  # a bias, in standard errors: 95% intervals cover 94.9%; Cochran (1977), 1.8
LEVEL = 1e-4  # of the tests: they run on every log, and sums of weights have long tails
ALIKE = "too few rounds show where the two differ"  # a doubt about a difference


CARRIED = (
    "rare or very large rewards decide: {} effective rounds carry their variance; an interval "
    f"takes {OUTCOMES}"
)
# Of each condition: why a row has no interval, and the warning about policies; {} are its figures.
CONDITIONS = {
    "no chance": (
        "in {} of the rounds the log gives what it names no chance",
        "The log cannot show what these policies would have earned where it never plays the arm "
        "they name. Share of such rounds: {}.",
    ),
    "few": (
        f"{{}} effective rounds; an interval takes {FEWEST}",
        "The log seldom plays what these policies name. Effective rounds: {}. With fewer than "
        f"{FEWEST} there is no interval.",
    ),
    "heavy": (
        "a single round has {} of all weights",
        "A single round of small chance decides. Its share of all weights: {}.",
    ),
    "light": (
        "rare plays are missing: weights add up to {} of the rounds",
        "The log lacks rare plays of arms that these policies name, so their intervals would be "
        "too short. Sum of weights, as a share of the rounds: {}.",
    ),
    "rare": (
        CARRIED,
        "Rare or very large rewards decide what these policies earn. Effective rounds that carry "
        f"the variance: {{}}. With fewer than {OUTCOMES} there is no interval.",
    ),
}


def failures(
    counted: np.ndarray, unsupported: float, shown: Shown, bias: float = NEGLIGIBLE
) -> dict[str, str]:
    """The conditions that fail if a log is to show a strategy, with the figures of `CONDITIONS`.

    Args:
        counted: q(a) of the arm that was played, n shares.
        unsupported: share of rounds without a chance, as `unsupported` returns it.
        shown: the log.
        bias: how much these rounds may cause, in standard errors.
    """
    leverages, weights = estimates.leverages(counted, shown), counted / shown.chances
    effective, mean = estimates.effective_size(weights), float(weights.mean())
    heaviest = float(weights.max()) / (float(weights.sum()) or 1.0)
    missing = -float(special.ndtri(LEVEL / 2)) * math.sqrt(leverages.sum()) / len(counted)
    light = mean < max(LIGHTEST, 1 - missing) - 1e-9  # less the rounding of a sum
    carrying = outcomes(leverages, shown)
    enough = effective >= FEWEST
    conditions = {
        "no chance": (_bias(unsupported, leverages, shown) > bias, percent(unsupported)),
        "few": (not enough, f"{effective:.0f}"),
        "heavy": (heaviest > HEAVIEST, percent(heaviest)),
        "light": (enough and light, percent(mean)),
        "rare": (enough and carrying < OUTCOMES, short(carrying, 2)),
    }
    return {name: figure for name, (fails, figure) in conditions.items() if fails}


def doubt(counted: np.ndarray, unsupported: float, shown: Shown) -> str:
    """Why a log cannot tell what a strategy earns, see `failures`; empty if it can."""
    failed = failures(counted, unsupported, shown)
    return next((CONDITIONS[name][0].format(figure) for name, figure in failed.items()), "")


def doubt_of_difference(
    counted: np.ndarray, other: np.ndarray, unsupported: float, shown: Shown
) -> str:
    """Why a log cannot tell two strategies apart, of which it shows enough; empty if it can.

    Args:
        counted, other: q(a) of the arm that was played, n shares each.
        unsupported: the sum of both.
        shown: the log.
    """
    leverages = estimates.leverages(counted, shown, other)
    if not leverages.any() or outcomes(leverages, shown) < OUTCOMES:
        return ALIKE
    if _bias(unsupported, leverages, shown) > NEGLIGIBLE:
        return "the log gives what they name no chance where they differ"
    return ""


def outcomes(leverages: np.ndarray, shown: Shown) -> float:
    """K, of the module's text: rounds that carry the variance; infinite if nothing is uncertain."""
    uncertain = leverages > 0
    if not uncertain.any():
        return math.inf
    own = estimates.kurtosis(shown.rewards[uncertain])
    return estimates.effective_size(leverages) / max(own, estimates.kurtosis(shown.rewards))


def _bias(unsupported: float, leverages: np.ndarray, shown: Shown) -> float:
    """The bias if predictions err in one direction, as far as elsewhere, where nothing is shown."""
    if unsupported == 0:
        return 0.0
    squares = shown.residuals**2
    spread = math.sqrt(float(leverages @ squares)) / len(leverages)
    most = unsupported * math.sqrt(float(squares.mean()))
    return most / spread if spread > 0 else math.inf


def doubts(
    rows: Mapping[str, tuple[np.ndarray, float]], shown: Shown, decisions: Decisions
) -> Iterator[str]:
    """Warnings about policies and about the chances of the log.

    Args:
        rows: by policy, what `failures` takes first.
        shown: the decisions that count, of all ``decisions``.
    """
    failed = {who: failures(*row, shown, bias=0.0) for who, row in rows.items()}
    for name, (_, warning) in CONDITIONS.items():
        figures = [f"{who} {own[name]}" for who, own in failed.items() if name in own]
        if figures:
            yield warning.format(", ".join(figures))
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
