"""Screening of huge arm sets: which arms can be the best, found in single precision with proof.

    rough(a) = ⟨a, ẑ⟩ + √(Σ λ_i y_i²) / q,    |rough(a) − score(a)| ≤ doubt(a),

with y = (F V)ᵀ a, Mᵀ M = V Λ Vᵀ, and q = √(Σ y_i² + σ²), or 1 if the bonus has no divisor; F, M and
σ are the policy's `LengthRatio`. An arm whose rough + doubt is below another's rough − doubt is not
the best. The policy itself scores the few that remain, so the decision is the same as if every arm
were scored. docs/understand/screening.md has the proof.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.arrays import TIED, dots
from driftbandit.policies import LengthRatio, Policy, Problem

EPSILON = 2.0**-24  # relative rounding error of single precision
SHORTEST, WIDEST, LOUDEST = 2.0**-29, 2.0**20, 2.0**20
"""The error bounds are proven for ‖a‖, ‖a‖ / q and σ within these limits."""
TIE = 4 * TIED * 2.0**-52  # largest difference of the scores of tied arms, in the unit of scores
MOST = 64  # if more than one arm in so many remains, screening is no faster than scoring all arms
WORK = 10**6  # multiplications per product: too few for BLAS to start threads, slow if busy
CACHE = 2**17  # numbers processed at a time


class Screen:
    """A set of arms, ready to be screened.

    Args:
        arms: k × d; the screen keeps a copy in single precision, and eight bytes per arm.
    """

    def __init__(self, arms: np.ndarray) -> None:
        self.arms = arms
        self._rest = self._failed = 0
        with np.errstate(over="ignore"):
            lengths = np.sqrt(dots(arms, arms))
        longest = float(lengths.max())
        usable = 2.0**-400 < longest < 2.0**400
        self.unit = 2.0 ** math.ceil(math.log2(longest)) if usable else math.inf
        """Unit of lengths; a power of two, so that no digit is lost."""
        self.usable = bool(lengths.min() >= SHORTEST * self.unit)
        """Whether the arms' lengths are similar enough."""
        if self.usable:
            self.rows = np.empty(arms.shape[::-1], np.float32)
            np.multiply(arms.T, 1 / self.unit, out=self.rows, casting="same_kind")
            self.lengths = (lengths * ((1 + 2 * EPSILON) / self.unit)).astype(np.float32)
            """‖a‖, rounded up."""
            self._highest = np.empty(len(arms), np.float32)

    def blocks(
        self, policy: Policy, problem: Problem, state: Any, size: int
    ) -> Sequence[int] | None:
        """Where the blocks of ``size`` arms begin that may hold the best; None: score all of them.

        Screening cannot separate equally good arms. After it fails it pauses, longer every time.
        """
        if not self.usable:
            return None
        if self._rest:
            self._rest -= 1
            return None
        leaders = self.remaining(policy, problem, state)
        begins = None if leaders is None else np.unique(leaders // size * size).tolist()
        if begins is None or len(begins) * size > len(self.arms) // 2:
            self._rest, self._failed = 2 * self._failed, min(1 + 2 * self._failed, 31)
            return None
        self._failed = 0
        return begins

    def remaining(self, policy: Policy, problem: Problem, state: Any) -> np.ndarray | None:
        """The arms that may have the highest score, the first of equal ones; None: any may."""
        assert policy.actions.length_ratio is not None
        assert policy.scores is not None
        try:
            scaled = _scaled(*policy.actions.length_ratio(state, problem), self.unit)
        except np.linalg.LinAlgError:  # the belief is not finite
            return None
        if scaled is None:
            return None
        leaders = self._leaders(scaled)
        if len(leaders) * MOST > len(self.arms):
            return None
        if len(leaders) > 1:
            part = problem._replace(arms=self.arms[leaders])
            expected, bonuses = policy.scores(state, part)
            scores = expected + bonuses
            doubts = self._doubts(leaders, scaled)
            floor = (scores - doubts).max() - TIE * scaled.top
            leaders = leaders[scores + doubts >= floor]
        return leaders

    def _leaders(self, scaled: _Scaled) -> np.ndarray:
        """The arms that may be the best as far as single precision can tell."""
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

    def _doubts(self, leaders: np.ndarray, scaled: _Scaled) -> np.ndarray:
        """Error bounds of these arms' scores in double precision."""
        lengths = self.lengths[leaders].astype(float)
        y = self.arms[leaders] @ (scaled.root / self.unit)
        y = np.sqrt(np.vecdot(y, y))
        q = np.sqrt(y**2 + scaled.noise**2) if scaled.divided else 1.0
        with np.errstate(divide="ignore"):
            of_bonus = scaled.of_size / q * (1 + lengths / y)
        return 2.0**-29 * scaled.top * lengths * (scaled.of_mean + of_bonus)


def _rounded(count: int) -> int:
    """Rounded down to a multiple of the processor's vectors."""
    return max(64, count // 64 * 64)


class _Scaled(NamedTuple):
    """A score in units in which arms, F and the score itself are at most about 1."""

    mean: np.ndarray  # ẑ
    root: np.ndarray  # F V, d × r; ‖F V‖ = 1
    weights: np.ndarray  # λ, the largest of them 1
    gain: float  # factor of the bonus that makes it so
    divided: bool
    noise: float  # σ; 0 if the bonus is not divided
    top: float  # the unit of scores
    of_mean: float  # doubt of ⟨a, ẑ⟩ for ‖a‖ = 1
    of_bonus: float  # doubt of the bonus for ‖a‖ = q = 1
    of_size: float  # the same with `LengthRatio.size` for √λ_max


def _scaled(mean: np.ndarray, ratio: LengthRatio, unit: float) -> _Scaled | None:
    """The score of arms in units of ``unit``; None: its doubts are not proven."""
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
    if not of_bonus < 1:  # no two arms could be separated
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
