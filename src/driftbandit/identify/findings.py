"""What a log shows of drift and seasons: one finding, which `fit` and `advise` print alike."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy import special

from driftbandit.identify.structured.comparison import BLOCKS, Comparison, drifts
from driftbandit.structure import Structure

Verdict = Literal["yes", "no", "cannot tell"]
LEVEL = 0.05  # two-sided, of held-out scores: all structures tried together
NEGLIGIBLE = 0.02  # log-likelihood per reward: a model that predicts 4% of the variance gains it

DRIFT = {
    "yes": "Yes: what arms pay drifts.",
    "no": "No: what arms pay does not drift, as far as this log shows.",
    "cannot tell": "Cannot tell: models with and without drift predict about equally well.",
}


class Answer(NamedTuple):
    """Whether structures with a kind of component predict later rewards better than those without.

    ``gain`` is the difference of the best scores, log-likelihood per held-out reward.
    """

    verdict: Verdict
    gain: float | None  # None: no structure with it was worth trying
    error: float | None
    best_with: str | None
    best_without: str | None
    p_value: float | None = None  # of the test for drift


def sentence(drift: Answer) -> str:
    """Whether arms drift, and how sure that is.

    Example:
        >>> sentence(UNKNOWN._replace(verdict="yes", p_value=0.005))
        'Yes: what arms pay drifts (p = 0.005).'
    """
    said = DRIFT[drift.verdict]
    return said if drift.p_value is None else f"{said[:-1]} (p = {drift.p_value:.3g})."


UNKNOWN = Answer("cannot tell", None, None, None, None)


def drift_of(comparison: Comparison | None) -> Answer:
    """Whether arms drift, by a comparison of structures; None: nothing could be compared.

    "yes" if the test for drift says so (`structured.ordered`), or the held-out rewards; "no" if
    neither does and drift cannot help to predict them.
    """
    if comparison is None:
        return UNKNOWN
    held_out = answer(comparison, drifts)
    if comparison.shows_drift:
        held_out = held_out._replace(verdict="yes")
    return held_out._replace(p_value=comparison.p_value)


def answer(comparison: Comparison, has: Callable[[Structure], bool]) -> Answer:
    """Compare the best structure that has something with the best that does not.

    "yes" if the gain exceeds its error by a t quantile with Bonferroni's correction for all those
    that have it and were tried; "no" if it is below `NEGLIGIBLE` even at the upper end of its
    interval.
    """
    order = np.argsort(np.array(comparison.scores), kind="stable")[::-1]
    structures = comparison.structures
    best = next((int(i) for i in order if has(structures[i])), None)
    other = next((int(i) for i in order if not has(structures[i])), None)
    if best is None or other is None:
        return Answer("no" if best is None else "yes", None, None, None, None)
    gain, error = comparison.difference(best, other)
    tail = LEVEL / 2
    tried = sum(map(has, structures))
    sure = float(special.stdtrit(BLOCKS - 1, 1 - tail / tried))
    usual = float(special.stdtrit(BLOCKS - 1, 1 - tail))
    verdict: Verdict = "cannot tell"
    if gain > sure * error:
        verdict = "yes"
    elif gain + usual * error < NEGLIGIBLE:
        verdict = "no"
    return Answer(verdict, gain, error, str(structures[best]), str(structures[other]))
