"""The likelihood of a log, its gradient, and the filter and smoother behind them.

Γ and Q are block-diagonal. A product with Γ costs m·d numbers for a vector and m·d² for a matrix,
m the size of the largest block, not d² and d³:

    (Γ z)_i = Σ_j C_ji z_π(j, i),     π(j, i): the j-th state of i's block, counted from i itself

The gradient is that of Koopman and Shephard (1992): with r and N of the smoother, the derivatives
of log p are r by the mean and ½ (r rᵀ − N) by the covariance of a belief. So the pass backwards
keeps d numbers per play, and covariances only if Γ or the read-outs are learned. Derivation:

    update    u = e/s − Kᵀr,  D = 1/s + KᵀNK;  r ← r + h u,  N ← (I − hKᵀ) N (I − Khᵀ) + h hᵀ/s
              ∂/∂σ² = ½ (u² − D);   ∂/∂h = S P h + u ẑ + P g,  S = ½ (u² − D),
              g = NK − r (Kᵀr) + r e/s + S h
    move      ∂/∂Q = ½ (r rᵀ − N),  ∂/∂Γ = r ẑᵀ + (r rᵀ − N) Γ P;   r ← Γᵀr,  N ← ΓᵀNΓ

If no two arms share a state, each arm has a filter of its own, and all are computed side by side:
an arm's states move over the rounds in which others are played in one step.

K is the gain P h/s, e the innovation, s its variance, h the read-out; ẑ and P those before the
update or before the move.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.identify.structured.rows import Rows
from driftbandit.structure import Layout
from driftbandit.structure.layout import Matrices, Units


class Moves(NamedTuple):
    """The u kinds of moves between plays, and how arms read the state."""

    weights: Any  # C of every kind, u × m × d
    process: Any  # Q of every kind in the same form, u × m × d
    start: Any  # covariance before the first play in the same form, m × d
    reads: Any  # k × d
    reward_var: Any  # σ²


class Pattern(NamedTuple):
    """Where the blocks are, as numbers that are known before anything is computed."""

    partners: tuple[tuple[int, ...], ...]  # π, m × d
    learns_transition: bool
    learns_reads: bool

    @staticmethod
    def of(layout: Layout) -> Pattern:
        """The pattern of a layout."""
        sizes, block, place = layout.sizes, layout.block_of, layout.place_in_block
        first = np.arange(layout.n_states) - place
        shifts = range(int(sizes.max()))
        partners = tuple(tuple((first + (place + j) % sizes[block]).tolist()) for j in shifts)
        return Pattern(partners, layout.learns_transition, layout.learns_reads)

    @staticmethod
    def of_each_arm(layout: Layout) -> Pattern:
        """The pattern of every arm's states, if no two arms share any."""
        assert layout.apart is not None
        own, found = layout.apart[0], Pattern.of(layout)
        partners = np.searchsorted(own, found.table[:, own])
        return found._replace(partners=tuple(map(tuple, partners.tolist())))

    @property
    def table(self) -> np.ndarray:
        """π as an array."""
        return np.array(self.partners)


def in_weights(layout: Layout, blocks: Any) -> Any:
    """Blocks, … × n × m × m, as C, … × m × d: zero where a block is smaller than m."""
    sizes, block, place = layout.sizes, layout.block_of, layout.place_in_block
    found = []
    for j in range(int(sizes.max())):
        there = (j < sizes[block]).astype(float)
        found.append(blocks[..., block, place, (place + j) % sizes[block]] * there)
    return jnp.stack(found, axis=-2)


def moves_of(layout: Layout, found: Matrices, rows: Rows, longest: int) -> Moves:
    """Γ^g and the noise that gathers in g rounds, for every kind of move.

    Args:
        longest: at least the number of binary digits of the longest gap.
    """
    # (A, B) stands for z ↦ A z + noise of covariance B; powers by repeated squaring.
    power, noise = found.transition, found.process_cov
    n, m, _ = power.shape
    gaps = jnp.abs(rows.gaps)
    inside = (jnp.arange(m) < layout.sizes[:, None]).astype(float)
    A = jnp.broadcast_to(inside[:, :, None] * jnp.eye(m), (len(gaps), n, m, m))
    B = jnp.zeros_like(A)

    def double(carry: Any, bit: Any) -> Any:
        A, B, power, noise = carry
        there = ((gaps >> bit) & 1 == 1)[:, None, None, None]
        B = jnp.where(there, power @ B @ power.mT + noise, B)
        A = jnp.where(there, power @ A, A)
        return (A, B, power @ power, power @ noise @ power.mT + noise), None

    (A, B, _, _), _ = jax.lax.scan(double, (A, B, power, noise), jnp.arange(longest))
    # Between sequences, blocks that never move are turned to the new round, perhaps backwards: they
    # are rotations. The others are drawn anew.
    A = jnp.where((rows.gaps < 0)[:, None, None, None], A.mT, A)
    anew = rows.resets[:, None, None, None] * (1.0 - layout.persistent)[:, None, None]
    A, B = (1 - anew) * A, (1 - anew) * B + anew * found.start_cov
    start = in_weights(layout, found.start_cov)
    parts = in_weights(layout, A), in_weights(layout, B), start
    return Moves(*parts, found.reads, found.reward_var)


class Kept(NamedTuple):
    """What the pass forwards keeps of every play."""

    gain: Any  # K, n × d; zero if the reward was not observed
    surprise: Any  # e, n
    variance: Any  # s, n
    moved: Any  # ẑ before the move and (Γ P)ᵀ, if Γ is learned
    read: Any  # ẑ and P before the update, if read-outs are learned


def dense(partners: np.ndarray, weights: Any) -> Any:
    """The d × d matrix of weights in the form of `Moves`."""
    m, d = partners.shape
    found = jnp.zeros((d, d))
    for j in range(m):
        found = found.at[jnp.arange(d), partners[j]].add(weights[j])
    return found


def _product(partners: np.ndarray, weights: Any, right: Any) -> Any:
    """Γ times a vector or a matrix."""
    shape = (-1,) + (1,) * (right.ndim - 1)
    found = 0.0
    for j in range(len(partners)):
        found = found + weights[j].reshape(shape) * right[partners[j]]
    return found


def _transposed_product(partners: np.ndarray, weights: Any, right: Any) -> Any:
    """Γᵀ times a vector or a matrix."""
    shape = (-1,) + (1,) * (right.ndim - 1)
    found = 0.0
    for j in range(len(partners)):
        found = found + (weights[j].reshape(shape) * right)[np.argsort(partners[j])]
    return found


def _read_out(moves: Moves, row: Rows, mask: Any) -> Any:
    """How the play's reward reads the state: features multiply the states that belong to them."""
    arm = moves.reads[row.arms]
    return arm if mask is None else arm * (mask[0] + row.features @ mask[1:])


def forward(
    pattern: Pattern, moves: Moves, rows: Rows, mask: Any, start: Any = None
) -> tuple[Any, Kept]:
    """Filter all plays: the belief after the last one, and what is kept of each."""
    partners = pattern.table
    noises = jax.vmap(functools.partial(dense, partners))(moves.process)

    def moved(mean: Any, cov: Any, kind: Any) -> Any:
        weights = moves.weights[kind]
        turned = _product(partners, weights, cov)
        cov = _product(partners, weights, turned.T) + noises[kind]
        return _product(partners, weights, mean), cov, turned if pattern.learns_transition else ()

    def unmoved(mean: Any, cov: Any, kind: Any) -> Any:
        return mean, cov, cov if pattern.learns_transition else ()

    def step(belief: Any, row: Any) -> Any:
        before = belief[0]
        mean, cov, turned = jax.lax.cond(row.moves > 0, moved, unmoved, *belief, row.moves)
        read = _read_out(moves, row, mask)
        cross = cov @ read
        variance = read @ cross + moves.reward_var
        surprise = row.rewards - read @ mean
        gain = cross * (row.seen / variance)
        left = (before, turned.T) if pattern.learns_transition else ()
        seen = (mean, cov) if pattern.learns_reads else ()
        kept = Kept(gain, surprise, variance, left, seen)
        return (mean + gain * surprise, cov - cross[:, None] * gain), kept

    if start is None:
        start = jnp.zeros(partners.shape[1]), dense(partners, moves.start)
    return jax.lax.scan(step, start, rows.plays)


def log_densities(rows: Rows, kept: Kept) -> Any:
    """The log-density of each reward given those before it; zero where none was observed."""
    logs = jnp.log(2 * math.pi * kept.variance) + kept.surprise**2 / kept.variance
    return -0.5 * rows.seen * logs


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def log_likelihood(pattern: Pattern, moves: Moves, rows: Rows, mask: Any) -> Any:
    """Log-density of all rewards."""
    return log_densities(rows, forward(pattern, moves, rows, mask)[1]).sum()


def _value(pattern: Pattern, moves: Moves, rows: Rows, mask: Any) -> Any:
    _, kept = forward(pattern, moves, rows, mask)
    return log_densities(rows, kept).sum(), (moves, rows, mask, kept)


def _gradient(pattern: Pattern, saved: Any, unit: Any) -> Any:
    moves, rows, mask, kept = saved
    partners = pattern.table
    m, d = partners.shape

    def step(carry: Any, given: Any) -> Any:
        r, N, slopes = carry
        row, kept = given
        read = _read_out(moves, row, mask)
        K, precision = kept.gain, row.seen / kept.variance
        NK = N @ K
        D = precision + K @ NK
        u = kept.surprise * precision - K @ r
        S = 0.5 * (u**2 - D)
        slopes = slopes._replace(reward_var=slopes.reward_var + row.seen * S)
        if pattern.learns_reads:
            mean, cov = kept.read
            g = NK - r * (K @ r) + kept.surprise * precision * r + S * read
            slope = row.seen * (S * K * kept.variance + u * mean + cov @ g)
            slope = slope if mask is None else slope * (mask[0] + row.features @ mask[1:])
            slopes = slopes._replace(reads=slopes.reads.at[row.arms].add(slope))
        r = r + read * u
        N = N - read[:, None] * NK - NK[:, None] * read + D * read[:, None] * read
        r, N, by = jax.lax.cond(row.moves > 0, moved, unmoved, r, N, row.moves, kept.moved)
        slopes = slopes._replace(process=slopes.process.at[row.moves].add(by[0]))
        if pattern.learns_transition:
            slopes = slopes._replace(weights=slopes.weights.at[row.moves].add(by[1]))
        return (r, N, slopes), None

    def moved(r: Any, N: Any, kind: Any, kept: Any) -> Any:
        weights, G = moves.weights[kind], r[:, None] * r - N
        by = [0.5 * jnp.stack([G[np.arange(d), partners[j]] for j in range(m)])]
        if pattern.learns_transition:
            before, turned = kept
            by.append(jnp.stack([r * before[p] + jnp.sum(G * turned[p], axis=1) for p in partners]))
        r = _transposed_product(partners, weights, r)
        N = _transposed_product(partners, weights, N)
        return r, _transposed_product(partners, weights, N.T), by

    def unmoved(r: Any, N: Any, kind: Any, kept: Any) -> Any:
        return r, N, [jnp.zeros((m, d))] * (1 + pattern.learns_transition)

    begin = jnp.zeros(d), jnp.zeros((d, d)), jax.tree.map(jnp.zeros_like, moves)
    (r, N, slopes), _ = jax.lax.scan(step, begin, (rows.plays, kept), reverse=True)
    G = r[:, None] * r - N
    by_start = jnp.stack([0.5 * G[np.arange(d), partners[j]] for j in range(m)])
    slopes = slopes._replace(start=by_start)
    return jax.tree.map(lambda slope: unit * slope, slopes), None, None


log_likelihood.defvjp(_value, _gradient)


def backward_reads(
    pattern: Pattern, moves: Moves, rows: Rows, mask: Any, kept: Kept, reads: Any
) -> Any:
    """Means and variances of ⟨h, z⟩ given all rewards, plays × c; h the c rows of ``reads``."""
    # ẑ(t|n) = ẑ + P r,  P(t|n) = P − P N P, with ẑ and P before the update.
    partners = pattern.table

    def step(carry: Any, given: Any) -> Any:
        r, N = carry
        row, kept = given
        weights, read, K = moves.weights[row.moves], _read_out(moves, row, mask), kept.gain
        precision, NK = row.seen / kept.variance, N @ K
        u, D = kept.surprise * precision - K @ r, precision + K @ NK
        r = r + read * u
        N = N - read[:, None] * NK - NK[:, None] * read + D * read[:, None] * read
        mean, cov = kept.read
        cross = reads @ cov
        shown = reads @ mean + cross @ r, jnp.sum(cross * (reads - cross @ N), axis=1)
        r = _transposed_product(partners, weights, r)
        N = _transposed_product(partners, weights, N)
        return (r, _transposed_product(partners, weights, N.T)), shown

    d = partners.shape[1]
    begin = jnp.zeros(d), jnp.zeros((d, d))
    return jax.lax.scan(step, begin, (rows.plays, kept), reverse=True)[1]


def feature_mask(layout: Layout) -> np.ndarray | None:
    """(1 + J) × d: whether a state is read as it is, or multiplied by each feature; None: J = 0."""
    names = layout.structure.features
    if not names:
        return None
    return np.array(
        [[one == name for one in layout.state_features] for name in (None, *names)], float
    )


@functools.partial(jax.jit, static_argnums=(0, 4))
def objective(layout: Layout, theta: Any, rows: Rows, units: Units, longest: int) -> Any:
    """The log-likelihood of θ."""
    return _objective(layout, theta, rows, units, longest)


def _objective(layout: Layout, theta: Any, rows: Rows, units: Units, longest: int) -> Any:
    found, mask = layout.matrices(theta, units, jnp), feature_mask(layout)
    if layout.apart is None:
        moves = moves_of(layout, found, rows, longest)
        return log_likelihood(Pattern.of(layout), moves, rows, mask)
    given = _each_arm(layout, found, rows, mask, longest)
    each = functools.partial(log_likelihood, Pattern.of_each_arm(layout))
    return jax.vmap(each, SIDE_BY_SIDE)(*given).sum()


BY_STATE = ("weights", "process", "start", "reads")  # their last axis is that of the states
SIDE_BY_SIDE = (0, Rows(0, 0, 0, 0, 0, None, None), 0)  # the axis of the arms in moves, rows, mask


def _each_arm(layout: Layout, found: Matrices, rows: Rows, mask: Any, longest: int) -> Any:
    """The moves, the plays and the mask of each arm alone, with an axis of arms in front."""
    own, apart = layout.apart, rows.apart
    assert own is not None
    assert apart is not None

    def there(values: Any) -> Any:
        return jnp.asarray(values).at[apart.order].get(mode="fill", fill_value=0)

    plays = {name: there(getattr(rows, name)) for name in ("arms", "rewards", "seen", "features")}
    rows = Rows(moves=apart.moves, gaps=apart.gaps, resets=apart.resets, **plays)
    moves = moves_of(layout, found, rows, longest)
    parts = {name: jnp.moveaxis(getattr(moves, name)[..., own], -2, 0) for name in BY_STATE}
    variances = jnp.broadcast_to(moves.reward_var, len(own))
    masks = None if mask is None else jnp.moveaxis(mask[:, own], -2, 0)
    return Moves(**parts, reward_var=variances), rows, masks


objective_and_gradient = jax.jit(jax.value_and_grad(_objective, argnums=1), static_argnums=(0, 4))
"""log p(rewards | θ) and its derivatives by θ."""


@functools.partial(jax.jit, static_argnums=(0, 4))
def predicted(layout: Layout, theta: Any, rows: Rows, units: Units, longest: int) -> Any:
    """The belief after the last play; each reward's mean and variance given earlier rounds only.

    A decision is made before its round shows anything, so plays of the same round do not help.
    """
    found, mask = layout.matrices(theta, units, jnp), feature_mask(layout)
    if layout.apart is None:
        return _predicted(Pattern.of(layout), moves_of(layout, found, rows, longest), rows, mask)
    given = _each_arm(layout, found, rows, mask, longest)
    each = functools.partial(_predicted, Pattern.of_each_arm(layout))
    (mean, cov), *known = jax.vmap(each, SIDE_BY_SIDE)(*given)
    own, order, d = layout.apart, rows.apart.order, layout.n_states  # type: ignore[union-attr]
    mean = jnp.zeros(d).at[own].set(mean)
    cov = jnp.zeros((d, d)).at[own[:, :, None], own[:, None]].set(cov)
    means, variances = (jnp.zeros(len(rows.seen)).at[order].set(k, mode="drop") for k in known)
    return (mean, cov), means, variances


def _predicted(pattern: Pattern, moves: Moves, rows: Rows, mask: Any) -> Any:
    partners = pattern.table
    noises = jax.vmap(functools.partial(dense, partners))(moves.process)

    def moved(carry: Any, kind: Any) -> Any:
        (mean, cov), weights = carry[0], moves.weights[kind]
        turned = _product(partners, weights, cov)
        cov = _product(partners, weights, turned.T) + noises[kind]
        belief = _product(partners, weights, mean), cov
        return belief, belief

    def unmoved(carry: Any, kind: Any) -> Any:
        return carry

    def step(carry: Any, row: Any) -> Any:
        (mean, cov), ahead = jax.lax.cond(row.moves > 0, moved, unmoved, carry, row.moves)
        read = _read_out(moves, row, mask)
        known = read @ ahead[0], read @ ahead[1] @ read + moves.reward_var
        cross = cov @ read
        gain = cross * (row.seen / (read @ cross + moves.reward_var))
        after = mean + gain * (row.rewards - read @ mean), cov - cross[:, None] * gain
        return (after, ahead), known

    start = jnp.zeros(partners.shape[1]), dense(partners, moves.start)
    (belief, _), (means, variances) = jax.lax.scan(step, (start, start), rows.plays)
    return belief, means, variances
