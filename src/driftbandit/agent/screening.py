"""Which of very many arms can be the best: found in single precision, with proof.

Scoring k arms of d numbers takes two products k × d × d in double precision. A screen looks at all
arms in single precision, with one such product, and knows by how much it may be wrong:

    |rough(a) − score(a)| ≤ doubt(a)

An arm whose rough + doubt is below another's rough − doubt is not the best. Few arms remain. They
alone are scored by the policy itself, so the decision is the one that scoring all arms gives.

**One product.** The policy's `LengthRatio` has F and M. With Mᵀ M = V Λ Vᵀ and y = (F V)ᵀ a,

    rough(a) = ⟨a, ẑ⟩ + √(Σ λ_i y_i²) / q,    q = √(Σ y_i² + σ²), or q = 1 where nothing is divided.

**Its doubt.** Let ε = 2⁻²⁴ and ‖F‖ = 1 (Frobenius). A sum of d products, in any order, errs by at
most γ_d Σ |x_j w_j|, γ_n = nε / (1 − nε) (Higham, Accuracy and Stability of Numerical Algorithms,
3.1); rounding a and F V to single precision makes it γ_{d+2}. So y errs by at most γ_{d+2} ‖a‖ in
length, and ⟨a, ẑ⟩ by γ_{d+2} ‖a‖ ‖ẑ‖. Numerator and q are lengths themselves: they err by √λ_max
and 1 times that, and their quotient, never above √λ_max, by 2 √λ_max γ_{d+2} ‖a‖ / q. Sums of
squares, quotient and roots add a relative error of γ_{d+5} at most, of a bonus of √λ_max ‖a‖ / q at
most, and a last sum adds ε. Together, to first order,

    |rough(a) − score(a)| ≤ (d + 6)ε ‖a‖ (‖ẑ‖ + 3 √λ_max / q).

The doubt is twice that, with d + 10. Its other half covers the rounding of the policy's own double
precision, where aᵀPa errs by some d 2⁻⁵³ ‖a‖² and q by that over q, as long as ‖a‖ ≤ 2²⁰ q; the
factors F and V, which are exact for a matrix as near to P as LAPACK promises; the doubt's own
rounding; and underflow, as long as arms, scaled to lengths of at most 1, are no shorter than 2⁻²⁹
and σ is at most 2²⁰. Where one of these conditions fails, all arms are scored.

**Near ties.** What remains may be a thousand arms: they are scored in double precision, and
compared within what two such scores of one arm can differ by,

    2 (d + 10) 2⁻⁵³ ‖a‖ (‖ẑ‖ + 3 (size / q) (1 + ‖a‖ / ‖y‖)),

derived likewise. One or two are left. They are looked up among the policy's scores of the whole
block they are in, as if every block were scored: a product of matrices rounds a row differently
from place to place.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.arrays import TIED, dots
from driftbandit.policies import LengthRatio, Policy, Problem

__all__ = ["Screen"]

EPSILON = 2.0**-24
"""Relative rounding error of single precision."""
SHORTEST, WIDEST, LOUDEST = 2.0**-29, 2.0**20, 2.0**20
"""Bounds of ‖a‖, of ‖a‖ / q, and of σ, within which doubts are proven."""
TIE = 4 * TIED * 2.0**-52
"""By how much at most the scores of tied arms differ, in the unit of scores."""
MOST = 64
"""Of so many arms at most one may remain, or it is no faster than scoring them all."""
WORK = 10**6
"""Multiplications of one product, fewer than those for which a BLAS library starts threads, which
would wait for each other wherever the processor has something else to do."""
CACHE = 2**17
"""Numbers looked at together."""


class Screen:
    """A set of arms, ready to be screened.

    Args:
        arms: k × d; a copy in single precision is kept, half the memory of the arms again, and
            eight bytes an arm.
    """

    def __init__(self, arms: np.ndarray) -> None:
        self.arms = arms
        self._rest = self._failed = 0
        with np.errstate(over="ignore"):
            lengths = np.sqrt(dots(arms, arms))
        longest = float(lengths.max())
        usable = 2.0**-400 < longest < 2.0**400
        self.unit = 2.0 ** math.ceil(math.log2(longest)) if usable else math.inf
        """Of lengths; a power of two, so that no digit is lost."""
        self.usable = bool(lengths.min() >= SHORTEST * self.unit)
        """Whether arms are not too different in length."""
        if self.usable:
            self.rows = np.empty(arms.shape[::-1], np.float32)
            np.multiply(arms.T, 1 / self.unit, out=self.rows, casting="same_kind")
            self.lengths = (lengths * ((1 + 2 * EPSILON) / self.unit)).astype(np.float32)
            """‖a‖, rounded up."""
            self._highest = np.empty(len(arms), np.float32)

    def blocks(
        self, policy: Policy, problem: Problem, state: Any, size: int
    ) -> Sequence[int] | None:
        """Where the blocks of ``size`` arms begin that hold the best; None: score all of them.

        Arms that are equal, or equally good, cannot be told apart. Where that goes on for rounds,
        the screen rests for longer and longer, since it only adds to the work.
        """
        if not self.usable:
            return None
        if self._rest:
            self._rest -= 1
            return None
        found = self.remaining(policy, problem, state)
        begins = None if found is None else np.unique(found // size * size).tolist()
        if begins is None or len(begins) * size > len(self.arms) // 2:
            self._rest, self._failed = 2 * self._failed, min(1 + 2 * self._failed, 31)
            return None
        self._failed = 0
        return begins

    def remaining(self, policy: Policy, problem: Problem, state: Any) -> np.ndarray | None:
        """The arms among which the first of the highest scores is; None: nothing can be said."""
        assert policy.actions.length_ratio is not None
        assert policy.scores is not None
        try:
            scaled = _scaled(*policy.actions.length_ratio(state, problem), self.unit)
        except np.linalg.LinAlgError:  # a belief that is not finite
            return None
        if scaled is None:
            return None
        found = self._leaders(scaled)
        if len(found) * MOST > len(self.arms):
            return None
        if len(found) > 1:
            part = problem._replace(arms=self.arms[found])
            expected, bonuses = policy.scores(state, part)
            scores = expected + bonuses
            doubts = self._doubts(found, scaled)
            floor = (scores - doubts).max() - TIE * scaled.top
            found = found[scores + doubts >= floor]
        return found

    def _leaders(self, scaled: _Scaled) -> np.ndarray:
        """The arms that single precision cannot tell from the best."""
        floor = np.float32(self._rough(scaled, self._highest) - TIE)
        return np.flatnonzero(self._highest >= np.nextafter(floor, np.float32(-np.inf)))

    def _rough(self, scaled: _Scaled, highest: np.ndarray) -> float:
        """Fill in rough + doubt of every arm; return the highest rough − doubt seen."""
        d, r = scaled.root.shape
        block = _rounded(min(8192, CACHE // (r + 1)))
        step = _rounded(min(block, WORK // (d * (r + 1))))
        product = np.vstack([scaled.root.T, scaled.mean]).astype(np.float32)
        weights = np.vstack([np.ones(r), scaled.weights]).astype(np.float32)
        gain, noise, of_mean, of_bonus = (
            np.float32(x) for x in (scaled.gain, scaled.noise**2, scaled.of_mean, scaled.of_bonus)
        )
        both, sums = np.empty((r + 1, block), np.float32), np.empty((2, block), np.float32)
        floor = -np.inf
        for begin in range(0, len(highest), block):
            end = min(begin + block, len(highest))
            n = end - begin
            y, rough, (below, bonus) = both[:r, :n], both[r, :n], sums[:, :n]
            doubt = highest[begin:end]
            for at in range(0, n, step):
                part = slice(at, min(at + step, n))
                np.matmul(product, self.rows[:, begin:end][:, part], out=both[:, part])
            np.multiply(y, y, out=y)
            np.matmul(weights, y, out=sums[:, :n])
            if scaled.divided:
                below += noise
                bonus /= below
                np.sqrt(below, out=below)
                np.divide(of_bonus, below, out=doubt)
                doubt += of_mean
                doubt *= self.lengths[begin:end]
            else:
                np.multiply(self.lengths[begin:end], of_mean + of_bonus, out=doubt)
            np.sqrt(bonus, out=bonus)
            bonus *= gain
            rough += bonus
            first = int(rough.argmax())
            floor = max(floor, float(rough[first] - doubt[first]))
            doubt += rough
        return floor

    def _doubts(self, found: np.ndarray, scaled: _Scaled) -> np.ndarray:
        """By how much double precision scores of these arms may be wrong."""
        lengths = self.lengths[found].astype(float)
        y = self.arms[found] @ (scaled.root / self.unit)
        y = np.sqrt(np.vecdot(y, y))
        q = np.sqrt(y**2 + scaled.noise**2) if scaled.divided else 1.0
        with np.errstate(divide="ignore"):
            of_bonus = scaled.of_size / q * (1 + lengths / y)
        return 2.0**-29 * scaled.top * lengths * (scaled.of_mean + of_bonus)


def _rounded(count: int) -> int:
    """Down to whole vectors of the processor."""
    return max(64, count // 64 * 64)


class _Scaled(NamedTuple):
    """A score in units in which arms, F and the score itself are at most about 1."""

    mean: np.ndarray
    """ẑ."""
    root: np.ndarray
    """F V, d × r; ‖F V‖ = 1."""
    weights: np.ndarray
    """λ, the highest of them 1."""
    gain: float
    """What the bonus is multiplied with for that."""
    divided: bool
    noise: float
    """σ; 0 where nothing is divided."""
    top: float
    """The unit of scores."""
    of_mean: float
    """Doubt of ⟨a, ẑ⟩, for ‖a‖ = 1."""
    of_bonus: float
    """Doubt of the bonus, for ‖a‖ = q = 1."""
    of_size: float
    """The same with `LengthRatio.size` for √λ_max."""


def _scaled(mean: np.ndarray, ratio: LengthRatio, unit: float) -> _Scaled | None:
    """The score of arms in units of ``unit``; None where its doubts are not proven."""
    factor, stretch, noise, size = ratio
    values, turn = np.linalg.eigh(stretch.T @ stretch)
    most = math.sqrt(max(values[-1], 0.0))
    length = unit * float(np.linalg.norm(factor))
    divided = noise is not None
    scale = 1.0 if divided else length
    far = unit * float(np.linalg.norm(mean))
    top = max(far, scale * most)
    if not (length > 0 and 0 < top < math.inf):
        return None
    root = factor @ turn * (unit / length)
    loud = 0.0 if noise is None else noise / length
    if divided:
        narrowest = 0.0 if loud * WIDEST >= 1 else np.linalg.eigvalsh(root @ root.T)[0]
        if loud > LOUDEST or (narrowest + loud**2) * WIDEST**2 < 1:
            return None
    part = 2 * (len(mean) + 10) * EPSILON / top
    of_bonus = 3 * part * scale * (most + EPSILON * size)
    if not of_bonus < 1:  # nothing would be told apart
        return None
    return _Scaled(
        mean * (unit / top),
        root,
        np.maximum(values, 0) / (most**2 or 1.0),
        scale * most / top,
        divided,
        loud,
        top,
        part * far,
        of_bonus,
        3 * part * scale * size,
    )
