"""From θ to the numbers a filter needs, and from slopes by these numbers to a gradient by θ.

Γ and Q are block-diagonal. A filter takes their bands, 2m − 1 rows of d numbers, m the size of the
largest block:

    C_oi = Γ_i,i+o,     (Γ z)_i = Σ_o C_oi z_i+o,     o from 1 − m to m − 1

m and d are padded, so that structures of about the same size share a compiled filter. Nothing here
is compiled for a structure, only once for each kind of component: compiling takes longer than most
searches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit.identify.structured.rows import Apart, Rows
from driftbandit.structure import Component, Layout
from driftbandit.structure.base import Start
from driftbandit.structure.layout import Units, blocks_of

STATES = (4, 8, 12, 16, 24, 32)  # sizes to which states are padded; above, multiples of 8


class Moves(NamedTuple):
    """The u kinds of moves between plays, and how arms read the state.

    If no two arms share a state, there is an axis of arms in front of all but σ².
    """

    weights: Any  # bands of Γ of every kind, u × (2m − 1) × d
    process: Any  # of Q
    start: Any  # of the covariance before the first play, (2m − 1) × d
    reads: Any  # k × d
    reward_var: Any  # σ²


class Places(NamedTuple):
    """Where the numbers of a filter come from."""

    entries: np.ndarray  # in the flattened distinct blocks, (2m − 1) × d; of single arms, k × …
    inside: np.ndarray  # 1 where there is such a number
    reads: tuple[np.ndarray, np.ndarray]  # arm and state, k × d; of single arms, k × 1 × d
    there: np.ndarray  # 1 where there is such a state, d

    def taken(self, blocks: np.ndarray) -> np.ndarray:
        """From distinct blocks, … × s × m × m, to bands; the arms come first."""
        values = blocks.reshape(*blocks.shape[:-3], -1)[..., self.entries] * self.inside
        return values if self.entries.ndim == 2 else np.moveaxis(values, -3, 0)

    def put_back(self, slopes: np.ndarray, blocks: np.ndarray) -> np.ndarray:
        """From slopes by what `taken` returned to slopes by the distinct blocks."""
        slopes = np.asarray(slopes)
        slopes = slopes if self.entries.ndim == 2 else np.moveaxis(slopes, 0, -3)
        rows = (slopes * self.inside).reshape(-1, self.entries.size)
        sums = np.zeros((len(rows), blocks.size // len(rows)))
        np.add.at(sums.T, self.entries.ravel(), rows.T)
        return sums.reshape(blocks.shape)


def padded_states(count: int) -> int:
    """The size to which so many states are padded.

    Example:
        >>> [padded_states(count) for count in (1, 9, 17, 33, 100)]
        [4, 12, 24, 40, 104]
    """
    return next((size for size in STATES if size >= count), -(-count // 8) * 8)


@functools.lru_cache(maxsize=256)
def places_of(layout: Layout, apart: bool = True) -> tuple[Places, np.ndarray | None]:
    """Where the numbers of a filter come from, and how its states are read.

    Args:
        apart: whether arms that share no state are taken one by one.

    Returns:
        The places; (1 + J) × d: 1 if a state is read as it is, or times each feature; None: J = 0.
    """
    own = layout.apart if apart else None
    apart = own is not None
    own = np.arange(layout.n_states)[None] if own is None else own
    block, row = layout.block_of[own][:, None], layout.place_in_block[own][:, None]  # k × 1 × d
    m, more = padded_block(layout), padded_states(own.shape[1]) - own.shape[1]
    column = row + np.arange(1 - m, m)[:, None]
    inside = (column >= 0) & (column < layout.sizes[block])
    entries = (layout.set_of_block[block] * m + row) * m + np.where(inside, column, 0)
    names = layout.structure.features
    features = [[layout.state_features[i] == name for i in own[0]] for name in (None, *names)]

    def filled(values: Any) -> np.ndarray:
        values = np.asarray(values)
        return np.pad(values, (*((0, 0),) * (values.ndim - 1), (0, more)))

    arms, states = np.arange(len(layout.names))[:, None], filled(own)
    reads = (arms[:, None], states[:, None]) if apart else (arms, states)
    entries, inside = (
        x if apart else x[0] for x in (filled(entries), filled(inside.astype(float)))
    )
    places = Places(entries, inside, reads, filled(np.ones(own.shape[1])))
    return places, filled(np.array(features, float)) if names else None


def padded_block(layout: Layout) -> int:
    """m: the size of the largest block, as a power of 2."""
    return 1 << (int(layout.sizes.max()) - 1).bit_length()


def moves_of(
    layout: Layout, theta: np.ndarray, units: Units, kinds: Rows | Apart, apart: bool = True
) -> tuple[Moves, Callable[[Moves], np.ndarray]]:
    """What a filter needs of a θ; and a function from slopes by that to the gradient by θ.

    Args:
        kinds: the gaps and resets between plays.
        apart: whether arms that share no state are taken one by one.
    """
    places, _ = places_of(layout, apart)
    blocks, by_numbers = _distinct_blocks(layout, theta, units)
    weights, process, by_blocks = _of_kinds(blocks, layout.persistent_sets, kinds)
    reads, by_loadings = layout.loaded_reads(theta)
    variance = float(units.scale * np.exp(theta[-1])) ** 2
    moves = Moves(
        places.taken(weights),
        places.taken(process),
        places.taken(blocks[2]),
        reads[places.reads] * places.there,
        variance,
    )

    def gradient(slopes: Moves) -> np.ndarray:
        by_weights = places.put_back(slopes.weights, weights)
        by_process = places.put_back(slopes.process, process)
        by_start = places.put_back(slopes.start, blocks[2])
        total = by_numbers(by_blocks(by_weights, by_process, by_start))
        by_reads = np.zeros_like(reads)
        np.add.at(by_reads, places.reads, np.asarray(slopes.reads) * places.there)
        total += by_loadings(by_reads)
        total[-1] += 2 * variance * float(np.sum(slopes.reward_var))
        return total

    return moves, gradient


# The distinct blocks: Γ, Q and the covariance at the start, 3 × s × m × m


@functools.partial(jax.jit, static_argnums=0)
def _by_numbers(component: Component, numbers: Any, start: Start, scale: Any, slopes: Any) -> Any:
    """Slopes by a component's numbers in θ, from those by its blocks, 3 × sets × blocks × b × b."""

    def blocks(row: Any) -> Any:
        return blocks_of(component, row, start, scale, jnp)

    return jax.vjp(jax.vmap(blocks, out_axes=1), numbers)[1](slopes)[0]


def _distinct_blocks(
    layout: Layout, theta: np.ndarray, units: Units
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    given, stacks, m = [], [], padded_block(layout)
    for index, component in enumerate(layout.structure.components):
        numbers = layout.numbers_of(index, theta)
        options = component, numbers, layout.start_of(index, units), units.scale
        blocks = layout.blocks_of(index, theta, units)
        given.append((options, blocks.shape, layout.per_feature(component, units)))
        more = (0, m - blocks.shape[-1])
        stacks.append(np.pad(blocks, (*((0, 0),) * 3, more, more)).reshape(3, -1, m, m))

    def gradient(slopes: np.ndarray) -> np.ndarray:
        total, first = np.zeros(len(theta)), 0
        for index, (options, shape, shrunk) in enumerate(given):
            last, b = first + shape[1] * shape[2], shape[-1]
            by_blocks = slopes[:, first:last, :b, :b].reshape(shape) * shrunk
            layout.add_slopes(index, np.asarray(_by_numbers(*options, by_blocks)), total)
            first = last
        return total

    return np.concatenate(stacks, axis=1), gradient


def _of_kinds(
    blocks: np.ndarray, persistent: np.ndarray, kinds: Rows | Apart
) -> tuple[np.ndarray, np.ndarray, Callable[..., np.ndarray]]:
    """Γ^g and the noise that gathers in g rounds, u × s × m × m, for every kind of move.

    (A, B) stands for z ↦ A z + noise of covariance B; powers by repeated squaring.
    """
    gaps, anew = np.abs(kinds.gaps), kinds.resets[:, None] * ~persistent
    anew, back = anew[:, :, None, None], kinds.gaps < 0
    power, noise, start = blocks
    A = np.broadcast_to(np.eye(power.shape[-1]), (len(gaps), *power.shape)).copy()
    B = np.zeros_like(A)
    steps: list[tuple[np.ndarray, ...]] = []
    for bit in range(int(gaps.max(initial=0)).bit_length()):
        if steps:
            power, noise = _times(power, power), _around(power, noise) + noise
        there = np.flatnonzero((gaps >> bit) & 1)
        steps.append((power, noise, there, A[there], B[there]))
        B[there] = _around(power, B[there]) + noise
        A[there] = _times(power, A[there])
    # Between sequences, states that never move are turned to the new round, perhaps backwards: they
    # are rotations. The others are drawn anew.
    A[back] = A[back].mT
    weights, process = np.where(anew, 0.0, A), np.where(anew, start, B)

    def gradient(by_A: np.ndarray, by_B: np.ndarray, by_start: np.ndarray) -> np.ndarray:
        by_start = by_start + np.where(anew, by_B, 0.0).sum(axis=0)
        by_A, by_B = np.where(anew, 0.0, by_A), np.where(anew, 0.0, by_B)
        by_A[back] = by_A[back].mT
        by_power, by_noise = np.zeros((2, *start.shape))
        for place, (power, noise, there, A, B) in reversed(list(enumerate(steps))):
            if place + 1 < len(steps):  # by what the next step's are computed from
                square, around = by_power, by_noise
                by_power = _times(square, power.mT) + _times(power.mT, square)
                by_power += _by_power(power, noise, around)
                by_noise = around + _around(power.mT, around)
            a, b = by_A[there], by_B[there]
            by_power = by_power + (_times(a, A.mT) + _by_power(power, B, b)).sum(axis=0)
            by_noise = by_noise + b.sum(axis=0)
            by_A[there], by_B[there] = _times(power.mT, a), _around(power.mT, b)
        return np.stack([by_power, by_noise, by_start])

    return weights, process, gradient


def _times(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Products of matrices, which are single numbers most of the time."""
    return np.asarray(left * right if left.shape[-1] == 1 else left @ right)


def _around(power: np.ndarray, cov: np.ndarray) -> np.ndarray:
    return _times(_times(power, cov), power.mT)


def _by_power(power: np.ndarray, cov: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Slopes by A of those by A P Aᵀ, P symmetric."""
    return _times(_times(slopes + slopes.mT, power), cov)


def whole(layout: Layout, mean: Any, cov: Any) -> tuple[np.ndarray, np.ndarray]:
    """A belief of all states, d and d × d, from one of padded states, perhaps arm by arm."""
    d, apart = layout.n_states, layout.apart
    mean, cov = np.asarray(mean), np.asarray(cov)
    if apart is None:
        return mean[:d], cov[:d, :d]
    size = apart.shape[1]
    means, covs = np.zeros(d), np.zeros((d, d))
    means[apart] = mean[:, :size]
    covs[apart[:, :, None], apart[:, None]] = cov[:, :size, :size]
    return means, covs
