"""One arm that pays a price per play: the dynamic program behind `whittle` and its lower bound.

An arm whose value is v = μ + s x, x an AR(1) process of variance one, x(t+1) = ρ x(t) + ξ(t), is
played or rests. A play earns v − λ, λ its price, and shows v + η, η ~ N(0, σ²). With unit s the
belief about x is N(m, P), and

    rest:  m ↦ ρm,             P ↦ ρ²P + 1 − ρ²
    play:  m ↦ ρm + τ(P) ω,    P ↦ ρ²Pσ²/(P + σ²) + 1 − ρ²,    τ(P) = ρP/√(P + σ²),  ω ~ N(0, 1)

**Coordinates.** The prediction m has variance 1 − P. Let c = √(1 − P) and z = m/c. Since
1 − P′ = ρ²(1 − P) + τ², the rules are

    rest:  z ↦ z,                      c ↦ ρc
    play:  z ↦ αz + √(1 − α²) ω,       c ↦ c′ = √(1 − P′),    α = ρc/c′ ≥ 0

So a rest moves nothing but c, and a play keeps z standard normal. Every belief has c ≤ c₀, that of
an arm that was always played; c = 0 is an arm of which nothing is known.

**Grid.** The relative value h(z, c) is linear between nodes in z. Between nodes in c it is linear
in log c, along which a rest is a shift; near c = 0, where an arm is played at any z, it is linear
in c. Beyond the last node in z it has the slope of an arm that is always played, before the first
it is flat. The mean of a piecewise linear function of a normal variable is a finite sum, so the
equations at the nodes,

    h + g = max(z c − λ + E h(play), h(rest)),

are exact for the interpolated h. Policy iteration solves them, with one sparse matrix per step.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np
import scipy
from scipy import sparse

from driftbandit import errors
from driftbandit.model import LGDS, checked_arms

__all__ = ["Arms", "Grid", "Solution", "independent_arms", "played", "steady_scale"]

FARTHEST = 5.0  # |z| of the outermost nodes
LINEAR = 0.1  # below this share of c₀, h is linear in c between nodes
STRAIGHT = 3  # cells there
BUNCH = 2.0  # how much closer together nodes are near c₀ than far from it, in factors of e
SLOWEST = 0.9999  # the largest ρ: grids for longer memories would take minutes


class Arms(NamedTuple):
    """Independent AR(1) arms: k numbers each.

    Example:
        >>> model = LGDS(np.diag([0.5, 0.9]), np.diag([3.0, 0.19]), reward_std=2.0)
        >>> arms = independent_arms(model, [[0.0, 3.0], [1.0, 0.0]])
        >>> arms.decay.tolist(), arms.scale.round(9).tolist(), arms.noise.round(6).tolist()
        ([0.9, 0.5], [3.0, 2.0], [0.666667, 1.0])
    """

    decay: np.ndarray  # ρ
    scale: np.ndarray  # s, standard deviation of the arm's value
    offset: np.ndarray  # μ, its mean
    noise: np.ndarray  # σ/s


def independent_arms(model: LGDS, arms: Any, wanted_by: str = "this") -> Arms:
    """The arms as independent AR(1) processes, each with a state of its own, or a refusal.

    Args:
        model: Γ, Q, σ.
        arms: k × d; each row reads one moving state, which no other row reads, and constants.
        wanted_by: what the message says needs them.

    Raises:
        InvalidInput: two arms share a state, states push each other or have correlated noise, or
            a state has no stationary distribution.
    """
    rows = checked_arms(arms, model)
    rest = f"{wanted_by} needs independent arms; `reach` and `idea` play any"
    moving = model.without_offsets(rows)
    reads = moving != 0
    for arm, reading in enumerate(reads):
        if reading.sum() != 1:
            problem = f"row {arm} reads {reading.sum()} states that move"
            raise errors.InvalidInput("arms", f"{problem}, not one of its own", rest)
    state = reads.argmax(axis=1)
    numbers, counts = np.unique(state, return_counts=True)
    if counts.max() > 1:
        shared = np.flatnonzero(state == numbers[counts.argmax()])
        problem = f"rows {shared[0]} and {shared[1]} both read state {numbers[counts.argmax()]}"
        raise errors.InvalidInput("arms", problem, rest)
    off = ~np.eye(model.n_states, dtype=bool)
    named = {"transition": model.transition, "process_cov": model.process_cov}
    if model.initial_cov is not None:
        named["initial_cov"] = model.initial_cov
    for name, matrix in named.items():
        bad = np.argwhere((matrix != 0) & off & np.isin(np.arange(len(matrix)), state)[:, None])
        if bad.size:
            i, j = (int(place) for place in bad[0])
            problem = f"has {matrix[i, j]:g} in row {i}, column {j}: states {i} and {j} are coupled"
            raise errors.InvalidInput(name, problem, rest)
    decay = np.diag(model.transition)[state]
    for arm in np.flatnonzero((decay < 0) | (decay > SLOWEST)).tolist():
        problem = f"has {decay[arm]:.6g} for the state of arm {arm}"
        remedy = f"{wanted_by} needs a decay from 0 to {SLOWEST:g}; `reach` and `idea` play any"
        raise errors.InvalidInput("transition", problem, remedy)
    variance = np.diag(model.process_cov)[state] / (1 - decay**2)
    for arm in np.flatnonzero(variance == 0).tolist():
        problem = f"has 0 for the state of arm {arm}, which then never moves"
        raise errors.InvalidInput("process_cov", problem, rest)
    scale = np.abs(moving[np.arange(len(rows)), state]) * np.sqrt(variance)
    constant = np.where(model.constants, model.start_mean(), 0.0)
    return Arms(decay, scale, rows @ constant, float(model.reward_std) / scale)


def played(scale: Any, decay: float, noise: float) -> tuple[Any, Any, Any]:
    """α, √(1 − α²) and c′ of a play at c; c′ and α grow with c, √(1 − α²) falls.

    1 − α² = P²/(P + σ² − σ²P) and c′² = ρ² (P + σ² − σ²P)/(P + σ²), P = 1 − c².
    """
    variance = noise * noise
    P = 1 - scale * scale
    total = P + variance * (scale * scale)
    surprise = P / np.sqrt(total)
    kept = scale * np.sqrt((P + variance) / total)
    return kept, surprise, decay * np.sqrt(total / (P + variance))


def steady_scale(decay: float, noise: float) -> float:
    """c₀ = √(1 − P), P the steady Riccati solution of an arm that is always played.

    Example:
        >>> c = steady_scale(0.9, 1.0)
        >>> bool(abs(played(c, 0.9, 1.0)[2] - c) < 1e-15)
        True
    """
    variance, shock = noise * noise, 1 - decay * decay
    half = (shock - variance * shock) / 2
    root = math.hypot(half, math.sqrt(shock * variance))
    P = half + root if half > 0 else shock * variance / (root - half)
    return math.sqrt(max(1 - P, 0.0))


class Solution(NamedTuple):
    """The best that an arm can earn at one price; arrays are scales × z, the last scale is 0."""

    gain: float  # g, what it earns per round in the long run
    value: np.ndarray  # h at the nodes, zero where c = 0
    plays: np.ndarray  # where it is played
    lead: np.ndarray  # by how much a play is better than a rest


class Rules(NamedTuple):
    """What a play and a rest do to the unknowns: h at c > 0, scale by scale, and h at c = 0."""

    reward: np.ndarray  # of a play, without its price
    play: Any  # sparse matrices: the mean of h after a play and after a rest
    rest: Any
    if_played: Any  # the left sides of the equations h + g = …, g in the last column
    if_rested: Any


class Grid:
    """The nodes of an arm of mean zero and variance one, and its equations.

    Args:
        decay: ρ, above 0 and below 1.
        noise: σ, relative to the arm's standard deviation.
        z: nodes in z, increasing.
        scales: how many cells in c.
        exact: whether to integrate h as it is, piecewise linear, which is above a smooth convex
            function; False: reduce the noise of a play by what interpolation adds.

    Example:
        A price at which a play never pays, and one at which it always does.

        >>> grid = Grid(0.9, 1.0, np.linspace(-5, 5, 41), scales=12)
        >>> abs(grid.solve(50.0).gain) < 1e-9, round(grid.solve(-50.0).gain, 6)
        (True, 50.0)
    """

    def __init__(
        self,
        decay: float,
        noise: float,
        z: np.ndarray,
        scales: int = 20,
        *,
        exact: bool = False,
    ) -> None:
        self.decay, self.noise, self.z = decay, noise, z
        first = steady_scale(decay, noise)
        # Nodes are closest together near c₀, where an arm stays that is often played.
        self.bent = scales - STRAIGHT
        """From this node on, h is linear in c."""
        steps = np.expm1(np.linspace(0, BUNCH, self.bent + 1)) / math.expm1(BUNCH)
        straight = np.linspace(LINEAR, 0, STRAIGHT + 1)[1:]
        self.scale = first * np.append(LINEAR**steps, straight)
        self.kept, self.surprise, after = played(self.scale, decay, noise)
        after[0] = first  # up to rounding
        self.after = self.place(after)
        self.rested = self.place(decay * self.scale)
        self.slope = self.slopes(np.zeros(len(self.scale)))
        """∂h/∂z beyond the last z."""
        self.exact = exact

    def place(self, scale: Any) -> Any:
        """Where c is among the nodes: j plus the share of the way from node j to node j + 1."""
        scale, nodes, last = np.asarray(scale), self.scale, len(self.scale) - 2
        cell = np.clip(np.searchsorted(-nodes, -scale, side="right") - 1, 0, last)
        near, far = nodes[cell], nodes[cell + 1]
        with np.errstate(divide="ignore", invalid="ignore"):
            logs = np.log(near / scale) / np.log(near / far)
        share = np.where(cell < self.bent, logs, (near - scale) / (near - far))
        return cell + np.clip(share, 0, 1)

    def scale_at(self, place: Any) -> Any:
        """The c of a place."""
        cell, share = self.cells(place)
        near, far = self.scale[cell], self.scale[cell + 1]
        curved = cell < self.bent
        return np.where(
            curved, near * np.where(curved, far / near, 1) ** share, near + share * (far - near)
        )

    def cells(self, place: Any) -> tuple[Any, Any]:
        """The cell of a place, and the share of the way through it."""
        cell = np.minimum(np.floor(place).astype(int), len(self.scale) - 2)
        return cell, place - cell

    def weights(self, mean: np.ndarray, spread: Any) -> tuple[np.ndarray, np.ndarray]:
        """E h(mean + spread ω) as n × z weights of h, and n weights of its slope beyond the last z.

        Args:
            mean: n numbers.
            spread: n numbers, or one.
        """
        spread = np.reshape(spread, (-1, 1))
        d = (mean[:, None] - self.z) / spread
        density = np.exp(-0.5 * d * d) / math.sqrt(2 * math.pi)
        above = spread * (density + d * scipy.special.ndtr(d))  # E(mean + spread ω − z)⁺
        passed = (above[:, :-1] - above[:, 1:]) / np.diff(self.z)
        passed = np.pad(passed, ((0, 0), (1, 1)), constant_values=((0, 0), (1, 0)))
        return passed[:, :-1] - passed[:, 1:], above[:, -1]

    def slopes(self, gift: np.ndarray) -> np.ndarray:
        """Slopes of an arm that is always played: b = c + α b(play) + a gift at each node in c."""
        n = np.arange(len(self.scale))
        cell, share = self.cells(self.after)
        matrix = np.eye(len(n))
        np.add.at(matrix, (n, cell), -self.kept * (1 - share))
        np.add.at(matrix, (n, cell + 1), -self.kept * share)
        return np.asarray(np.linalg.solve(matrix, self.scale + gift))

    @functools.cached_property
    def rules(self) -> Rules:
        """The reward of a play, and where a play and a rest lead."""
        cells = np.pad(np.diff(self.z), 1, mode="edge")
        added = np.minimum(cells[1:], cells[:-1]) ** 2 / 6  # variance, by interpolation
        after, rested = self.cells(self.after), self.cells(self.rested)
        rewards, plays, rests = [], [], []
        for j, scale in enumerate(self.scale):
            at = self.z if scale > 0 else self.z[:1]  # c = 0: one unknown, whatever z
            spread = np.full(len(at), self.surprise[j])
            if not self.exact:
                variance = spread**2
                spread = np.sqrt(np.maximum(variance - added[: len(at)], variance / 16))
            weight, beyond = self.weights(self.kept[j] * at, spread)
            weight[np.abs(weight) < 1e-15] = 0
            cell, share = after[0][j], after[1][j]
            slope = (1 - share) * self.slope[cell] + share * self.slope[cell + 1]
            rewards.append(scale * at + slope * beyond)
            plays.append(self._rows(weight, cell, share))
            rests.append(self._rows(np.eye(len(at), len(self.z)), rested[0][j], rested[1][j]))
        play, rest = (sparse.vstack(rows, format="csr") for rows in (plays, rests))
        eye = sparse.identity(play.shape[0], format="csr")
        ones = sparse.csr_matrix(np.ones((play.shape[0], 1)))
        # h(c = 0) is zero: its column stands for g.
        left = (sparse.hstack([(eye - rule)[:, :-1], ones], format="csr") for rule in (play, rest))
        return Rules(np.concatenate(rewards), play, rest, *left)

    def _rows(self, weight: np.ndarray, cell: int, share: float) -> Any:
        """Weights of h(·, c) as weights of all unknowns: h at c > 0, scale by scale, and at 0."""
        n, last = len(self.z), len(self.scale) - 1
        parts = [
            sparse.csr_matrix((len(weight), cell * n)),
            sparse.csr_matrix((1 - share) * weight),
        ]
        if cell + 1 < last:
            parts.append(sparse.csr_matrix(share * weight))
            parts.append(sparse.csr_matrix((len(weight), (last - cell - 2) * n + 1)))
        else:
            parts.append(sparse.csr_matrix(share * weight.sum(axis=1, keepdims=True)))
        return sparse.hstack(parts, format="csr")

    def solve(
        self,
        price: float,
        plays: np.ndarray | None = None,
        gifts: np.ndarray | None = None,
    ) -> Solution:
        """When to play at a price, by policy iteration.

        Args:
            price: λ.
            plays: where it is played at first.
            gifts: added to the rewards of a play and of a rest, one number per scale each.
        """
        rules = self.rules
        n = len(rules.reward)
        earned, rested = rules.reward - price, np.zeros(n)
        if gifts is not None:
            scales = np.repeat(np.arange(len(self.scale)), len(self.z))[:n]
            earned, rested = earned + gifts[0][scales], gifts[1][scales]
        if plays is None:
            acts = earned > 0
            acts[-1] = True
        else:
            acts = plays.ravel()[:n]
        for _ in range(100):
            right = np.concatenate([earned[acts], rested[~acts]])
            value = self._factors(acts).solve(right)
            gain, value[-1] = float(value[-1]), 0.0
            lead = earned - rested + rules.play @ value - rules.rest @ value
            better = np.where(np.abs(lead) < 1e-10 * (1 + np.abs(value).max()), acts, lead > 0)
            if (better == acts).all():
                break
            # An arm that is not worth a play where nothing is known of it earns nothing in the end.
            acts = better if better[-1] or not acts[-1] else np.zeros(n, dtype=bool)
        return Solution(gain, *map(self._table, (value, acts, lead)))

    def lead_slope(self, solution: Solution) -> np.ndarray:
        """How much a play's lead grows with the price, for the same way to play: scales × z."""
        rules = self.rules
        acts = solution.plays.ravel()[: len(rules.reward)]
        value = self._factors(acts).solve(np.repeat([-1.0, 0.0], [acts.sum(), (~acts).sum()]))
        value[-1] = 0.0
        return self._table(rules.play @ value - rules.rest @ value - 1.0)

    def landings(self, solution: Solution) -> np.ndarray:
        """How often a play leads to each node in the long run, scales × z."""
        acts = solution.plays.ravel()[: len(self.rules.reward)]
        last = np.zeros(len(acts))
        last[-1] = 1.0
        often = np.empty(len(acts))
        order = np.concatenate([np.flatnonzero(acts), np.flatnonzero(~acts)])
        often[order] = self._factors(acts).solve(last, trans="T")
        return self._table((often * acts) @ self.rules.play)

    def _factors(self, acts: np.ndarray) -> Any:
        """The equations of one way to play; rows of plays first."""
        rows = [self.rules.if_played[acts], self.rules.if_rested[~acts]]
        return sparse.linalg.splu(sparse.vstack(rows, format="csc"))

    def _table(self, values: np.ndarray) -> np.ndarray:
        """The unknowns as scales × z."""
        n = len(self.z)
        return np.append(values, np.repeat(values[-1:], n - 1)).reshape(len(self.scale), n)
