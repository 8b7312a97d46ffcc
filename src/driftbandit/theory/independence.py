"""The least possible regret per round on independent arms, by a price per play.

**Relaxation.** A policy plays one arm per round. If it only has to play one on average, a price λ
per play splits its problem into one per arm (Whittle 1988). So no policy earns more per round, in
the long run, than

    λ + Σ_i g_i(λ)   for any λ,

where g_i(λ) is the most that arm i earns alone if each play costs λ (`priced_arm`). The best bound
has the price at which the arms alone are played once per round in total.

**A bound in spite of the grid.** Let T h(x) = max(z c − λ + E h(play of x), h(rest of x)) be the
step of dynamic programming. Any function h with E|h| bounded proves g ≤ sup_x T h(x) − h(x). Here h
is the solution at the nodes, and the supremum is over all beliefs, not only over nodes:

- In z: h(·, c) is convex, so T h(·, c) is a maximum of convex functions. Between two nodes h is
  linear, so T h − h is convex there and highest at a node. Beyond the last node h has the slope
  b(c), and c + α b(c′) ≤ b(c), so that T h − h falls; before the first h is flat, and it rises.
- In c, for a rest: along one cell h is linear in log c (in c near 0), a rest shifts log c (scales
  c), so T h − h is piecewise linear. It is highest where either point crosses a node.
- In c, for a play: cut cells into pieces in which c′ stays within one cell, with share w of the way
  from h₀ to h₁. G_i(μ, τ) = E h_i(μ + τω) is convex in (μ, τ) and grows with both. Along a piece,
  μ = αz, τ = √(1 − α²), w and c deviate from straight lines by at most some ε. With μ and τ raised
  by ε, G_i is below the line through its values at both ends; E h = G₀ + w (G₁ − G₀) is below such
  a line plus ε |G₁ − G₀| plus a quarter of Δw Δ(G₁ − G₀) if these have opposite signs.

ε is bounded through samples: α, τ, c and c′ are monotone, so between two samples they stay between
their values. What T h − h exceeds g by inside a piece is added to the rewards of the scales
around it, and h is solved again; so g pays for it only as often as an arm is there. What
is left after that is added to g.

**What it misses.** The relaxation may play several good arms in one round and none in the next.
This gains little if regret is large, and more than the whole regret if states are known
well: then the regret of the Kalman Oracle, which sees all rewards, is the higher bound. Both are
computed. Neither applies to arms that share states or noise.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

from driftbandit.model import LGDS
from driftbandit.priced_arm import (
    Arms,
    Grid,
    Solution,
    independent_arms,
    played,
    steady_scale,
)
from driftbandit.system import takes_system
from driftbandit.theory.bounds import Bound

Z_RANGE = -4.0, 5.0  # nodes in z; rare beyond, and a rest below
PARTS = 4  # pieces of a cell
SAMPLES = 16_000  # of a piece
ROUNDING = 1e-9  # relative to h, what rounding may add to T h − h
PASSES = 8  # solutions, each with the excess of the one before as gifts
CLOSE = 1e-6  # excess that is not worth another pass
COARSE, FINE = (81, 161), 150  # nodes in z: to find the price (fast, slow arms), and for the bound
SCALES = 20, 40  # cells in c, likewise
TOLERANCE = 2e-3  # of the price, in units of the largest arm's standard deviation
UNSEEN = 1e-4  # c₀ of an arm of which a play tells next to nothing


class _Pieces:
    """Pieces of the scales' range, in which both rules stay within one cell."""

    def __init__(self, grid: Grid) -> None:
        self.grid = grid
        n = len(grid.scale) - 1
        cuts = np.concatenate(
            [
                np.linspace(0, n, n * PARTS + 1),
                _reached(self._after, n),
                _reached(self._rested, n),
            ]
        )
        cuts = np.unique(cuts)
        cuts = cuts[np.append(True, np.diff(cuts) > 1e-9)]
        cuts[-1] = n
        self.ends = cuts[:-1], cuts[1:]
        found = [self._sampled(*piece) for piece in zip(*self.ends, strict=True)]
        self.cell, self.lands, self.rests, ends, bows = map(np.array, zip(*found, strict=True))
        self.scale, self.kept, self.surprise, self.share, self.rest_share = ends.transpose(1, 0, 2)
        self.bows = bows.T

    def _sampled(self, start: float, stop: float) -> tuple[int, int, int, Any, list[float]]:
        """The cells of a piece and of where it leads; values at its ends, and their ε."""
        grid, n = self.grid, len(self.grid.scale) - 1
        places = np.linspace(start, stop, SAMPLES + 1)
        scale = grid.scale_at(places)
        kept, surprise, _ = played(scale, grid.decay, grid.noise)
        after, rested = self._after(places), self._rested(places)
        cell, lands, rests = (min(int((v[0] + v[-1]) / 2), n - 1) for v in (places, after, rested))
        values = scale, kept, surprise, after - lands, rested - rests
        bows = [_bow(v) for v in values]
        if (cell < grid.bent) == (rests < grid.bent):  # a rest is a shift, or a multiplication
            bows[-1] = 0.0
        return cell, lands, rests, [[v[0], v[-1]] for v in values], bows

    def _after(self, place: Any) -> Any:
        grid = self.grid
        after = played(grid.scale_at(place), grid.decay, grid.noise)[2]
        return grid.place(np.minimum(after, grid.scale[0]))

    def _rested(self, place: Any) -> Any:
        return self.grid.place(self.grid.decay * self.grid.scale_at(place))

    def slopes(self) -> np.ndarray | None:
        """Slopes b that grow with c, with c + α b(c′) ≤ b(c) everywhere; None: found none."""
        gift = np.zeros(len(self.grid.scale))
        for _ in range(5 * PASSES):
            b = self.grid.slopes(gift)
            more = self._slope_excess(b)
            if more.max() <= 0:
                return b
            gift = _given(gift, 1.02 * more + ROUNDING)
        return None

    def _slope_excess(self, b: np.ndarray) -> np.ndarray:
        """The most by which c + α b(c′) exceeds b(c) in each cell."""
        grid, cell, lands = self.grid, self.cell, self.lands
        found = np.where(np.diff(b) > 0, np.inf, -np.inf)
        fall = b[lands] - b[lands + 1]
        for end in (0, 1):
            here = b[cell] + (self.ends[end] - cell) * (b[cell + 1] - b[cell])
            there = b[lands] - (self.share[:, end] - self.bows[3]) * fall
            most = self.scale[:, end] + self.bows[0]
            most += (self.kept[:, end] + self.bows[1]) * there
            np.maximum.at(found, cell, most * (1 + 1e-13) - here)
        # Beside c = 0 all terms are proportional to c, and α/c is highest there.
        last = cell == len(found) - 1
        ratio = played(1e-9, grid.decay, grid.noise)[0] / 1e-9
        highest = (b[lands] - self.share.min(axis=1) * fall)[last].max()
        found[-1] = grid.scale[-2] * (1 + ratio * highest) - b[-2]
        return np.asarray(found)

    def _convex(self, h: np.ndarray) -> bool:
        """Whether h and its slopes beyond the nodes are convex and grow with z, up to rounding."""
        slopes = np.diff(h, axis=1) / np.diff(self.grid.z)
        slopes = np.column_stack([np.zeros(len(h)), slopes, self.grid.slope])
        return bool((np.diff(slopes, axis=1) >= -ROUNDING * (1 + self.grid.slope[0])).all())

    def excess(self, solution: Solution, price: float) -> np.ndarray:
        """The most by which T h − h exceeds g in each cell, 2 × cells: for a play and a rest."""
        grid, h, b = self.grid, solution.value, self.grid.slope
        z = grid.z
        if not self._convex(h):
            return np.full((2, len(grid.scale) - 1), np.inf)
        found = np.full((2, len(grid.scale) - 1), -np.inf)
        for i, (cell, lands, rests) in enumerate(
            zip(self.cell, self.lands, self.rests, strict=True)
        ):
            scale_bow, kept_bow, surprise_bow, share_bow, rest_bow = self.bows[:, i]
            plays, waits, steps = [], [], []
            for end in (0, 1):
                here = h[cell] + (self.ends[end][i] - cell) * (h[cell + 1] - h[cell])
                mean = z * self.kept[i, end] + np.abs(z) * kept_bow
                weight, beyond = grid.weights(mean, self.surprise[i, end] + surprise_bow)
                first, second = (weight @ h[j] + beyond * b[j] for j in (lands, lands + 1))
                steps.append(second - first)
                earned = z * self.scale[i, end] - price
                plays.append(earned + first + self.share[i, end] * steps[-1] - here)
                ahead = h[rests] + self.rest_share[i, end] * (h[rests + 1] - h[rests])
                waits.append(ahead - here)
            bend = np.diff(self.share[i]) * (steps[0] - steps[1])
            slack = np.abs(z) * scale_bow + np.maximum(bend, 0) / 4
            slack += share_bow * np.maximum(*np.abs(steps))
            wait_slack = rest_bow * np.abs(h[rests + 1] - h[rests])
            highest = (np.maximum(*plays) + slack).max(), (np.maximum(*waits) + wait_slack).max()
            found[:, cell] = np.maximum(found[:, cell], highest)
        return np.asarray(found - solution.gain + ROUNDING * (1 + np.abs(h).max()))


@takes_system
def least_regret(model: LGDS, arms: Any) -> Bound:
    """Lower bound on the regret per round of any policy on independent arms, in the long run.

        E max_i v_i − min(min_λ λ + Σ_i g_i(λ), E max_i ṽ_i)

    v_i is the value of arm i and ṽ_i its prediction by the Kalman Oracle, which sees all rewards;
    the second term is `finite_lower_bound`. The first one also counts what it costs to see only the
    played arm: it is the higher bound unless arms are nearly known. Its error, ``error``, is that
    of rounding. At the start nothing is known, so that regret per round is higher in a short run.

    Does not apply to coupled arms, whose rewards tell of each other: use `finite_lower_bound`.

    Args:
        model: Γ, Q, σ; the states that arms read do not push each other and share no noise.
        arms: k × d; each row reads one state that no other row reads, and constants.

    Example:
        >>> model = LGDS(0.9 * np.eye(2), 0.19 * np.eye(2), reward_std=1.0)
        >>> bound = least_regret(model, np.eye(2))
        >>> round(bound.value, 2)
        0.14
    """
    found = independent_arms(model, arms, "least_regret")
    if len(found.scale) == 1:
        return Bound(0.0, 0.0)
    best = expected_max(found.offset, found.scale)
    known = [steady_scale(rho, sigma) for rho, sigma in zip(found.decay, found.noise, strict=True)]
    oracle = expected_max(found.offset, found.scale * known)
    reward = min(oracle, most_reward(found))
    return Bound(max(float(best - reward), 0.0), 1e-12 * abs(best))


def expected_max(means: np.ndarray, stds: np.ndarray) -> float:
    """E max of independent normal variables: ∫ (1 − Π F_i) over x > a, less ∫ Π F_i below.

    Example:
        >>> round(expected_max(np.zeros(2), np.ones(2)) * math.sqrt(math.pi), 12)
        1.0
    """
    width = 9 * float(stds.max())
    low, high = float(means.max()) - width, float(means.max()) + width
    kinks = means[(stds <= 1e-3 * width) & (means > low)]
    edges = np.unique(np.concatenate([np.linspace(low, high, 200), kinks]))
    points, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, None] / 2
    x = edges[:-1, None] + half * (1 + points)
    with np.errstate(divide="ignore", invalid="ignore"):
        steps = np.where(stds > 0, (x[..., None] - means) / stds, np.inf * (x[..., None] - means))
    below = np.exp(scipy.special.log_ndtr(steps).sum(axis=-1))
    return high - float((half * weights * below).sum())


def most_reward(arms: Arms) -> float:
    """A certified λ + Σ_i g_i(λ), at a price λ close to the best one."""
    kinds, kind = np.unique(np.stack([arms.decay, arms.noise], axis=1), axis=0, return_inverse=True)
    alone = [_Alone(*map(float, one)) for one in kinds]
    lots = np.unique(np.stack([kind, arms.scale, arms.offset], axis=1), axis=0, return_counts=True)
    each = [
        (alone[int(which)], scale, offset, count)
        for (which, scale, offset), count in zip(*lots, strict=True)
    ]

    def total(price: float, certified: bool = False) -> float:
        gains = (
            count * scale * one.gain((price - offset) / scale, certified)
            for one, scale, offset, count in each
        )
        return price + sum(gains)

    scale = float(arms.scale.max())
    ends = float(arms.offset.min()) - 3 * scale, float(arms.offset.max()) + 3 * scale
    options = {"xatol": TOLERANCE * scale}
    price = scipy.optimize.minimize_scalar(total, bounds=ends, method="bounded", options=options).x
    return total(float(price), certified=True)


class _Alone:
    """The most that one arm of variance one earns at a price."""

    def __init__(self, decay: float, noise: float) -> None:
        self.decay, self.noise = decay, noise
        self.known = steady_scale(decay, noise)
        self.plays: np.ndarray | None = None

    @functools.cached_property
    def coarse(self) -> Grid:
        """The grid that finds the price."""
        return Grid(self.decay, self.noise, np.linspace(*Z_RANGE, _nodes(self.decay)), SCALES[0])

    def gain(self, price: float, certified: bool) -> float:
        """g(λ): nearly, or at most."""
        if self.known < UNSEEN:  # whoever knew m in every round would earn E(m − λ)⁺
            d = price / self.known if self.known else math.copysign(math.inf, price)
            if math.isinf(d) or abs(d) > 30:
                return max(-price, 0.0)
            density = math.exp(-d * d / 2) / math.sqrt(2 * math.pi)
            return float(self.known * density - price * scipy.special.ndtr(-d))
        if not certified:
            solution = self.coarse.solve(price, self.plays)
            self.plays = solution.plays
            return max(solution.gain, -price, 0.0)
        return self._certified(price)

    def _certified(self, price: float) -> float:
        coarse = self.coarse.solve(price, self.plays)
        grid = Grid(self.decay, self.noise, _where_bent(self.coarse, coarse), SCALES[1], exact=True)
        rows = self.coarse.place(grid.scale).round().astype(int)
        columns = np.abs(grid.z[:, None] - self.coarse.z).argmin(axis=1)
        return most_gain(grid, price, coarse.plays[np.ix_(rows, columns)])[0]


def most_gain(
    grid: Grid, price: float, plays: np.ndarray | None = None
) -> tuple[float, Solution | None]:
    """An upper bound on g(λ), and the h that proves it: T h − h is nowhere higher.

    Args:
        grid: with ``exact``, and not solved before; gets the slopes of h beyond its last z.
        price: λ.
        plays: where the arm is played at first.

    Example:
        >>> grid = Grid(0.9, 1.0, np.linspace(-4, 5, 60), scales=16, exact=True)
        >>> most, proof = most_gain(grid, price=0.5)
        >>> 0 <= most - Grid(0.9, 1.0, np.linspace(-4, 5, 120), scales=32).solve(0.5).gain < 0.003
        True
    """
    pieces = _Pieces(grid)
    slope = pieces.slopes()
    if slope is None:
        return math.inf, None
    grid.slope = slope
    gifts = np.zeros((2, len(grid.scale)))
    best: tuple[float, Solution | None] = math.inf, None
    for _ in range(PASSES):
        solution = grid.solve(price, plays, gifts)
        plays = solution.plays
        excess = pieces.excess(solution, price)
        most = solution.gain + max(float(excess.max()), 0.0)
        if most < best[0]:
            best = most, solution
        if excess.max() < CLOSE:
            break
        gifts = np.array([_given(*pair) for pair in zip(gifts, excess, strict=True)])
    return best


def _nodes(decay: float) -> int:
    """Nodes in z, so that cells are narrower than the noise of a play."""
    width = 1.6 * math.sqrt(1 - decay * decay)
    return int(np.clip((Z_RANGE[1] - Z_RANGE[0]) / width, *COARSE))


def _where_bent(grid: Grid, solution: Solution) -> np.ndarray:
    """Nodes in z that are closest together where plays land and h is bent."""
    z = grid.z
    often = grid.landings(solution)[:-1, 1:-1].clip(0)
    bend = np.diff(np.diff(solution.value[:-1], axis=1), axis=1).clip(0)
    weight = np.cbrt(np.convolve((often * bend).sum(axis=0), np.full(5, 0.2), mode="same"))
    density = np.pad(weight / max(weight.max(), 1e-300), 1, mode="edge") + 0.1
    filled = np.append(0.0, np.cumsum((density[1:] + density[:-1]) / 2))
    return np.interp(np.linspace(0, 1, FINE), filled / filled[-1], z)


def _given(gift: np.ndarray, excess: np.ndarray) -> np.ndarray:
    """Gifts that also pay for what is in excess in the cells between nodes."""
    wanted = np.where(excess > 0, excess + np.maximum(gift[:-1], gift[1:]), 0.0)
    return np.maximum(gift, np.maximum(np.append(wanted, 0.0), np.append(0.0, wanted)))


def _reached(rule: Callable[[Any], Any], n: int) -> np.ndarray:
    """Where a monotone rule leads to a node, by bisection."""
    nodes = np.arange(n, dtype=float)
    low, high = np.zeros(n), np.full(n, float(n))
    for _ in range(60):
        middle = (low + high) / 2
        below = rule(middle) < nodes
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return np.asarray(high[(high < n) & (rule(high) >= nodes - 1e-9)])


def _bow(values: np.ndarray) -> float:
    """The most by which a monotone function leaves the line through its ends, from samples."""
    line = np.linspace(values[0], values[-1], len(values))
    apart = np.abs(values[1:] - line[:-1]).max(), np.abs(values[:-1] - line[1:]).max()
    return float(max(apart))
