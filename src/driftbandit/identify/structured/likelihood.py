"""The likelihood of a log, its gradient, and the filter and smoother behind them.

Γ and Q are block-diagonal and come as bands C_oi = Γ_i,i+o (`moves`). So a product with Γ costs m·d
numbers for a vector and m·d² for a matrix, m the size of the largest block, not d² and d³:

    (Γ z)_i = Σ_o C_oi z_i+o,     (Γᵀ)_oi = C_−o,i+o

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
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.identify.structured.moves import Moves
from driftbandit.identify.structured.rows import Rows

MOST_BANDS = 7  # of more, products of dense matrices are faster


class Keeps(NamedTuple):
    """Which covariances the pass forwards keeps, for gradients by Γ and by the read-outs."""

    transition: bool = False
    reads: bool = False


def _shifted(values: Any, count: int) -> list[Any]:
    """z_i+o for each of the bands, zero beyond the ends; along the first axis."""
    m, d = (count + 1) // 2, len(values)
    if m == 1:
        return [values]
    wide = jnp.pad(values, ((m - 1, m - 1), *((0, 0),) * (values.ndim - 1)))
    return [wide[o : o + d] for o in range(count)]


def _transposed(C: Any) -> Any:
    """The bands of Γᵀ, (2m − 1) × d."""
    count = len(C)
    return jnp.stack([_shifted(band, count)[o] for o, band in enumerate(C[::-1])])


def _dense(C: Any) -> Any:
    """The d × d matrix."""
    count, d = C.shape
    columns = jnp.arange(d) + jnp.arange(count)[:, None] - (count - 1) // 2
    return jnp.zeros((d, d)).at[jnp.arange(d), columns].add(C, mode="drop")


def _operators(C: Any) -> Any:
    """What multiplies: the bands of each Γ or, where blocks are large, the matrix."""
    return C if C.shape[1] <= MOST_BANDS else jax.vmap(_dense)(C)


def _times(C: Any, right: Any) -> Any:
    """Γ times a vector or a matrix."""
    if len(C) == len(right):  # a matrix: bands are an odd number, and states are not
        return C @ right
    wide = C.reshape(*C.shape, *(1,) * (right.ndim - 1))
    parts = zip(wide, _shifted(right, len(C)), strict=True)
    return functools.reduce(jnp.add, (band * values for band, values in parts))


def _after(left: Any, C: Any) -> Any:
    """A matrix times Γᵀ."""
    if len(C) == len(left):
        return left @ C.T
    return _times(C, left.T).T if len(C) > 1 else left * C[0]


def _diagonals(G: Any, count: int) -> Any:
    """G_i,i+o, zero outside the matrix."""
    d = len(G)
    columns = np.arange(d) + np.arange(count)[:, None] - (count - 1) // 2
    inside = ((columns >= 0) & (columns < d)).astype(float)
    return inside * G[np.arange(d), np.clip(columns, 0, d - 1)]


def _features(mask: Any, row: Rows) -> Any:
    """By what read-outs are multiplied: features, for the states that belong to them."""
    return 1.0 if mask is None else mask[0] + row.features @ mask[1:]


def _read_out(mask: Any, moves: Moves, row: Rows) -> Any:
    """How the play's reward reads the state."""
    return moves.reads[row.arms] * _features(mask, row)


class Kept(NamedTuple):
    """What the pass forwards keeps of every play."""

    gain: Any  # K, n × d; zero if the reward was not observed
    surprise: Any  # e, n
    variance: Any  # s, n
    moved: Any  # ẑ before the move and P Γᵀ, if Γ is learned
    read: Any  # ẑ and P before the update, if read-outs are learned


def _forward(
    keeps: Keeps, mask: Any, moves: Moves, rows: Rows, start: Any = None
) -> tuple[Any, Kept]:
    """Filter all plays: the belief after the last one, and what is kept of each."""
    noises, operators = jax.vmap(_dense)(moves.process), _operators(moves.weights)

    def moved(mean: Any, cov: Any, kind: Any) -> Any:
        weights = operators[kind]
        turned = _after(cov, weights)
        cov = _times(weights, turned) + noises[kind]
        return _times(weights, mean), cov, turned if keeps.transition else ()

    def unmoved(mean: Any, cov: Any, kind: Any) -> Any:
        return mean, cov, cov if keeps.transition else ()

    def step(belief: Any, row: Any) -> Any:
        before = belief[0]
        mean, cov, turned = jax.lax.cond(row.moves > 0, moved, unmoved, *belief, row.moves)
        read = _read_out(mask, moves, row)
        cross = cov @ read
        variance = read @ cross + moves.reward_var
        surprise = row.rewards - read @ mean
        gain = cross * (row.seen / variance)
        left = (before, turned) if keeps.transition else ()
        kept = Kept(gain, surprise, variance, left, (mean, cov) if keeps.reads else ())
        return (mean + gain * surprise, cov - cross[:, None] * gain), kept

    if start is None:
        start = jnp.zeros(moves.start.shape[1]), _dense(moves.start)
    return jax.lax.scan(step, start, rows.plays)


def _log_density(rows: Rows, kept: Kept) -> Any:
    """The sum of the log-densities of the rewards, each given those before it."""
    logs = jnp.log(2 * math.pi * kept.variance) + kept.surprise**2 / kept.variance
    return -0.5 * (rows.seen * logs).sum()


@functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
def _log_likelihood(keeps: Keeps, mask: Any, moves: Moves, rows: Rows) -> Any:
    """Log-density of all rewards."""
    return _log_density(rows, _forward(Keeps(), mask, moves, rows)[1])


def _value(keeps: Keeps, mask: Any, moves: Moves, rows: Rows) -> Any:
    _, kept = _forward(keeps, mask, moves, rows)
    return _log_density(rows, kept), (mask, moves, rows, kept)


def _gradient(keeps: Keeps, saved: Any, unit: Any) -> Any:
    mask, moves, rows, kept = saved
    count, d = moves.start.shape
    back = _operators(jax.vmap(_transposed)(moves.weights))

    def step(carry: Any, play: Any) -> Any:
        r, N, slopes = carry
        row, kept = play
        read = _read_out(mask, moves, row)
        K, precision = kept.gain, row.seen / kept.variance
        NK = N @ K
        D = precision + K @ NK
        u = kept.surprise * precision - K @ r
        S = 0.5 * (u**2 - D)
        slopes = slopes._replace(reward_var=slopes.reward_var + row.seen * S)
        if keeps.reads:
            mean, cov = kept.read
            g = NK - r * (K @ r) + kept.surprise * precision * r + S * read
            slope = row.seen * (S * K * kept.variance + u * mean + cov @ g)
            slope = slope * _features(mask, row)
            slopes = slopes._replace(reads=slopes.reads.at[row.arms].add(slope))
        r, N = r + read * u, _downdated(N, NK, D, read)
        r, N, by = jax.lax.cond(row.moves > 0, moved, unmoved, r, N, row.moves, kept.moved)
        slopes = slopes._replace(process=slopes.process.at[row.moves].add(by[0]))
        if keeps.transition:
            slopes = slopes._replace(weights=slopes.weights.at[row.moves].add(by[1]))
        return (r, N, slopes), None

    def moved(r: Any, N: Any, kind: Any, kept: Any) -> Any:
        G = r[:, None] * r - N
        by = [0.5 * _diagonals(G, count)]
        if keeps.transition:
            before, turned = kept
            if count > MOST_BANDS:
                by.append(_diagonals(r[:, None] * before + G @ turned.T, count))
            else:
                pairs = zip(_shifted(before, count), _shifted(turned, count), strict=True)
                by.append(jnp.stack([r * z + jnp.sum(G * rows, axis=1) for z, rows in pairs]))
        return *_carried_back(back[kind], r, N), by

    def unmoved(r: Any, N: Any, kind: Any, kept: Any) -> Any:
        return r, N, [jnp.zeros((count, d))] * (1 + keeps.transition)

    begin = jnp.zeros(d), jnp.zeros((d, d)), jax.tree.map(jnp.zeros_like, moves)
    (r, N, slopes), _ = jax.lax.scan(step, begin, (rows.plays, kept), reverse=True)
    G = r[:, None] * r - N
    slopes = slopes._replace(start=0.5 * _diagonals(G, count))
    return None, jax.tree.map(lambda slope: unit * slope, slopes), None


def _downdated(N: Any, NK: Any, D: Any, read: Any) -> Any:
    """N before an update."""
    return N - read[:, None] * NK - NK[:, None] * read + D * read[:, None] * read


def _carried_back(back: Any, r: Any, N: Any) -> tuple[Any, Any]:
    """Γᵀr and ΓᵀNΓ."""
    return _times(back, r), _times(back, _after(N, back))


_log_likelihood.defvjp(_value, _gradient)


def _smoothed(mask: Any, moves: Moves, rows: Rows, kept: Kept, reads: Any) -> Any:
    """Means and variances of ⟨h, z⟩ given all rewards, plays × c; h the c rows of ``reads``."""
    # ẑ(t|n) = ẑ + P r,  P(t|n) = P − P N P, with ẑ and P before the update.
    back = _operators(jax.vmap(_transposed)(moves.weights))

    def step(carry: Any, play: Any) -> Any:
        r, N = carry
        row, kept = play
        read, K = _read_out(mask, moves, row), kept.gain
        precision, NK = row.seen / kept.variance, N @ K
        u, D = kept.surprise * precision - K @ r, precision + K @ NK
        r, N = r + read * u, _downdated(N, NK, D, read)
        mean, cov = kept.read
        cross = reads @ cov
        shown = reads @ mean + cross @ r, jnp.sum(cross * (reads - cross @ N), axis=1)
        return _carried_back(back[row.moves], r, N), shown

    d = reads.shape[1]
    begin = jnp.zeros(d), jnp.zeros((d, d))
    return jax.lax.scan(step, begin, (rows.plays, kept), reverse=True)[1]


def _predicted(mask: Any, moves: Moves, rows: Rows) -> Any:
    """The belief after the last play; each reward's mean and variance, from earlier rounds only."""
    noises, operators = jax.vmap(_dense)(moves.process), _operators(moves.weights)

    def moved(carry: Any, kind: Any) -> Any:
        (mean, cov), weights = carry[0], operators[kind]
        cov = _times(weights, _after(cov, weights)) + noises[kind]
        belief = _times(weights, mean), cov
        return belief, belief

    def unmoved(carry: Any, kind: Any) -> Any:
        return carry

    def step(carry: Any, row: Any) -> Any:
        (mean, cov), ahead = jax.lax.cond(row.moves > 0, moved, unmoved, carry, row.moves)
        read = _read_out(mask, moves, row)
        known = read @ ahead[0], read @ ahead[1] @ read + moves.reward_var
        cross = cov @ read
        gain = cross * (row.seen / (read @ cross + moves.reward_var))
        after = mean + gain * (row.rewards - read @ mean), cov - cross[:, None] * gain
        return (after, ahead), known

    start = jnp.zeros(moves.start.shape[1]), _dense(moves.start)
    (belief, _), (means, variances) = jax.lax.scan(step, (start, start), rows.plays)
    return belief, means, variances


# Programs: one for each size of the arrays


def _side_by_side(each: Callable[..., Any], moves: Moves, rows: Rows) -> Any:
    """A function of moves and rows for every arm alone, if none share a state; else for all."""
    apart = rows.apart
    if apart is None:
        return each(moves, rows)

    def there(values: Any) -> Any:
        return jnp.asarray(values).at[apart.order].get(mode="fill", fill_value=0)

    plays = {name: there(getattr(rows, name)) for name in ("rewards", "seen", "features")}
    arms = jnp.zeros_like(apart.moves)  # the read-outs of an arm are a matrix of one row
    alone = Rows(moves=apart.moves, arms=arms, gaps=None, resets=None, **plays)
    axes = Moves(0, 0, 0, 0, None), Rows(0, 0, 0, 0, 0, None, None)
    return jax.vmap(each, axes)(moves, alone)


def _objective(moves: Moves, mask: Any, rows: Rows, keeps: Keeps) -> Any:
    each = functools.partial(_log_likelihood, keeps, mask)
    return _side_by_side(each, moves, rows).sum()


objective = jax.jit(_objective, static_argnums=3)
"""log p(rewards)."""
objective_and_slopes = jax.jit(jax.value_and_grad(_objective), static_argnums=3)
"""log p(rewards) and its derivatives by what moves."""


@jax.jit
def predicted(moves: Moves, mask: Any, rows: Rows) -> Any:
    """The belief after the last play; each reward's mean and variance given earlier rounds only.

    A decision is made before its round shows anything, so plays of the same round do not help. The
    belief has an axis of arms in front if they share no state.
    """
    belief, *known = _side_by_side(functools.partial(_predicted, mask), moves, rows)
    if rows.apart is not None:
        order, none = rows.apart.order, jnp.zeros(len(rows.seen))
        known = [none.at[order].set(part, mode="drop") for part in known]
    return belief, *known


@functools.partial(jax.jit, static_argnums=4)
def smoothed(moves: Moves, mask: Any, rows: Rows, reads: Any, last: int) -> Any:
    """⟨h, z⟩ given all rewards, at the last plays: means and variances, plays × c.

    Args:
        reads: h, c × d.
        last: how many plays, counted from the end.
    """
    early, late = rows.split(len(rows.seen) - last)
    belief, _ = _forward(Keeps(), mask, moves, early)
    _, kept = _forward(Keeps(reads=True), mask, moves, late, belief)
    return _smoothed(mask, moves, late, kept, reads)
