"""The Whittle index: the price per play at which a play of an arm alone just pays (Whittle 1988).

    a = argmax λ_a(m_a, P_a),   λ = m + u(m, P)

Plays only independent arms: each reads an AR(1) state of its own, so that a play teaches nothing
about other arms. If a play of one arm cost λ, there is a best time to play it and a best time to
let it rest (`priced_arm`). λ(m, P) is the highest price at which a play is right, now that its
reward has mean m and variance P. `theory.least_regret` is how little regret any policy can have.

**Table.** λ depends on ρ and on σ in units of the arm's standard deviation s. It is computed once
for each such pair: the dynamic program is solved for prices from high to low, and what a play is
ahead of a rest is interpolated between prices. The table has u on a grid of m and √P, which is
interpolated bilinearly.

**Long run.** λ is for the average over an endless run: with fewer rounds left than the state
remembers, it explores too much. A state that never forgets (ρ = 1) has no such average.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import numpy as np

from driftbandit.arrays import Array, dots, namespace, times
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies.base import Policy, Problem, highest
from driftbandit.policies.optimistic import filtering
from driftbandit.priced_arm import Grid, independent_arms, steady_scale

__all__ = ["index_bonus", "policy"]

MEANS, SPREADS = 65, 25  # of the table: nodes in m and in √P
FARTHEST = 4.0  # |m| of the outermost nodes, in units of s; of the grid, |z|
PRICES = np.array([4, 3.5, 3, 2.5, *np.arange(2, -1.3, -0.25), -1.5, -2, -2.5, -3, -4])
NODES = 81, 161  # in z: for arms that forget fast and slowly
SCALES = 16
UNSEEN = 1e-3  # c₀ of an arm of which a play tells next to nothing


@functools.lru_cache(maxsize=256)
def index_bonus(decay: float, noise: float) -> np.ndarray:
    """u(m, √P) = λ − m of an arm of variance one, on a grid: √P from its least value to 1, by m.

    Args:
        decay: ρ.
        noise: σ.

    Example:
        >>> bonus = index_bonus(0.9, 1.0)
        >>> bonus.shape, bool((bonus >= 0).all())
        ((25, 65), True)
    """
    known = steady_scale(decay, noise)
    if known < UNSEEN:
        return np.zeros((SPREADS, MEANS))
    width = 2.35 * math.sqrt(1 - decay * decay)  # of cells in z that a play's noise crosses
    nodes = int(np.clip(2 * FARTHEST / width, *NODES))
    grid = Grid(decay, noise, np.linspace(-FARTHEST, FARTHEST, nodes), SCALES)
    bonus = np.maximum(_index(grid) - grid.scale[:, None] * grid.z, 0)  # a reward tells something
    spread = np.linspace(math.sqrt(1 - known * known), 1, SPREADS)
    mean = np.linspace(-FARTHEST, FARTHEST, MEANS)
    scale = np.sqrt(np.maximum(1 - spread * spread, 0))
    cell, share = grid.cells(grid.place(np.minimum(scale, known)))
    share = share[:, None]
    between = (1 - share) * bonus[cell] + share * bonus[cell + 1]
    z = mean / np.maximum(scale, 1e-9)[:, None]  # beyond the last z, the bonus stays as there
    found = np.stack([np.interp(*row) for row in zip(z, [grid.z] * SPREADS, between, strict=True)])
    found.setflags(write=False)
    return found


def _index(grid: Grid) -> np.ndarray:
    """λ at the nodes: where a play's lead, as a cubic function of the price, is zero."""
    leads, slopes = [], []
    plays = np.zeros((len(grid.scale), len(grid.z)), dtype=bool)
    for price in PRICES:
        solution = grid.solve(float(price), plays)
        plays = solution.plays
        leads.append(solution.lead)
        slopes.append(grid.lead_slope(solution))
    lead, slope = np.stack(leads), np.stack(slopes)
    right = lead > 0  # from some price on, as prices fall
    below = np.where(right.any(axis=0), right.argmax(axis=0), len(PRICES) - 1).clip(1)
    rows, columns = np.indices(below.shape)
    width = PRICES[below - 1] - PRICES[below]
    ends = [(lead[j, rows, columns], width * slope[j, rows, columns]) for j in (below, below - 1)]
    (low, low_slope), (high, high_slope) = ends
    start, stop = np.zeros(below.shape), np.ones(below.shape)
    for _ in range(30):
        x = (start + stop) / 2
        value = (1 - x) ** 2 * ((1 + 2 * x) * low + x * low_slope)
        value += x**2 * ((3 - 2 * x) * high - (1 - x) * high_slope)
        start, stop = np.where(value > 0, x, start), np.where(value > 0, stop, x)
    return np.asarray(PRICES[below] + width * start)


def constants(model: LGDS, arms: Array, rounds: int) -> dict[str, np.ndarray]:
    """Each arm's table, and what turns its belief into a place there."""
    found = independent_arms(model, arms, "whittle")
    tables = [
        index_bonus(float(rho), float(sigma))
        for rho, sigma in zip(found.decay, found.noise, strict=True)
    ]
    known = [steady_scale(*pair) for pair in zip(found.decay, found.noise, strict=True)]
    least = np.sqrt(1 - np.square(known))
    return {
        "bonus": np.stack(tables),
        "scale": found.scale,
        "offset": found.offset,
        "least": least,
        "steps": (SPREADS - 1) / np.maximum(1 - least, 1e-12),  # per unit of √P
    }


def scores(belief: Belief, problem: Problem) -> tuple[Array, Array]:
    """⟨a, ẑ⟩ and s u((⟨a, ẑ⟩ − μ)/s, √(aᵀPa)/s)."""
    _, arms, constants = problem
    xp = namespace(belief.cov)
    scale, table = constants["scale"], constants["bonus"]
    expected = arms @ belief.mean
    variance = xp.maximum(dots(times(arms, belief.cov), arms), xp.zeros((), dtype=belief.cov.dtype))
    k = arms.shape[0]
    row = (xp.sqrt(variance) / scale - constants["least"]) * constants["steps"]
    column = ((expected - constants["offset"]) / scale + FARTHEST) * ((MEANS - 1) / (2 * FARTHEST))
    row = xp.clip(row, 0.0, SPREADS - 1.0)
    column = xp.clip(column, 0.0, MEANS - 1.0)
    above = xp.minimum(xp.floor(row), xp.asarray(SPREADS - 2.0, dtype=row.dtype))
    left = xp.minimum(xp.floor(column), xp.asarray(MEANS - 2.0, dtype=row.dtype))
    down, right = row - above, column - left
    place = xp.arange(k, dtype=xp.int32) * (SPREADS * MEANS) + xp.astype(
        above * MEANS + left, xp.int32
    )
    flat = xp.reshape(table, (-1,))
    upper = (1 - right) * flat[place] + right * flat[place + 1]
    lower = (1 - right) * flat[place + MEANS] + right * flat[place + (MEANS + 1)]
    return expected, scale * ((1 - down) * upper + down * lower)


def policy() -> Policy:
    """Whittle index, for independent arms; it has no parameters."""
    made = filtering("whittle", highest(scores), constants)
    # A new arm would need a table of its own.
    return dataclasses.replace(made, agent=made.agent._replace(reads_features=False))
