"""From θ to the numbers a filter needs, and from slopes by these numbers to a gradient by θ.

Γ and Q are block-diagonal. A filter takes them as m × d numbers, m the size of the largest block:

    C_ji = Γ_i,π(j, i),     (Γ z)_i = Σ_j C_ji z_π(j, i)

π(j, i) is the j-th state of i's block, counted from i itself and around: the first state of a block
follows its last. m and d are padded, so that structures of about the same size share a compiled
filter. Nothing here is compiled for a structure, only once for each kind of component: compiling
takes longer than most searches.
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

STATES = (4, 12, 24)  # sizes to which states are padded; above, multiples of 16


class Moves(NamedTuple):
    """The u kinds of moves between plays, and how arms read the state.

    If no two arms share a state, there is an axis of arms in front of all but σ².
    """

    weights: Any  # C of every kind, u × m × d
    process: Any  # Q of every kind in the same form, u × m × d
    start: Any  # covariance before the first play in the same form, m × d
    reads: Any  # k × d
    reward_var: Any  # σ²


class Pattern(NamedTuple):
    """Where the blocks are. If no two arms share a state, it is the same for all arms."""

    partners: np.ndarray  # π, m × d
    sizes: np.ndarray  # of each state's block, d
    features: np.ndarray | None  # (1 + J) × d: read as it is, or times each feature; None: J = 0


class Places(NamedTuple):
    """Where the numbers of a filter come from."""

    entries: np.ndarray  # in the flattened distinct blocks, m × d or k × m × d
    inside: np.ndarray  # 1 where there is such a number
    reads: tuple[np.ndarray, np.ndarray]  # arm and state, k × d; of single arms, k × 1 × d
    there: np.ndarray  # 1 where there is such a state, d

    def taken(self, blocks: np.ndarray) -> np.ndarray:
        """From distinct blocks, … × s × m × m, to the form of a filter; the arms come first."""
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
        [4, 12, 24, 48, 112]
    """
    return next((size for size in STATES if size >= count), -(-count // 16) * 16)


@functools.lru_cache(maxsize=256)
def pattern_of(layout: Layout, apart: bool = True) -> tuple[Pattern, Places]:
    """The pattern of a layout, and where its numbers come from.

    Args:
        apart: whether arms that share no state are taken one by one.
    """
    own = layout.apart if apart else None
    apart = own is not None
    own = np.arange(layout.n_states)[None] if own is None else own
    block, row = layout.block_of[own], layout.place_in_block[own]  # k × d each
    count, sizes = own.shape[1], layout.sizes[block]
    d, m = padded_states(count), max(2, 1 << (int(layout.sizes.max()) - 1).bit_length())
    turns = np.arange(m)[:, None]
    column = (row[:, None] + turns) % sizes[:, None]  # k × m × d
    entries = (layout.set_of_block[block][:, None] * m + row[:, None]) * m + column
    names = layout.structure.features
    features = [[layout.state_features[i] == name for i in own[0]] for name in (None, *names)]

    def filled(values: np.ndarray, fill: Any = 0) -> np.ndarray:
        return np.concatenate([values, np.broadcast_to(fill, (*values.shape[:-1], d - count))], -1)

    def alone(values: np.ndarray) -> np.ndarray:
        return values if apart else values[0]

    pattern = Pattern(
        filled(np.arange(count) - row[0] + column[0], np.arange(count, d)).astype(np.int32),
        filled(sizes[0], 1).astype(np.int32),
        filled(np.array(features, float)) if names else None,
    )
    inside = (turns < sizes[:, None]).astype(float)
    arms, states = np.arange(len(layout.names))[:, None], filled(own)
    reads = (arms[:, None], states[:, None]) if apart else (arms, states)
    return pattern, Places(
        alone(filled(entries)), alone(filled(inside)), reads, filled(np.ones(count))
    )


def moves_of(
    layout: Layout, theta: np.ndarray, units: Units, kinds: Rows | Apart, apart: bool = True
) -> tuple[Moves, Callable[[Moves], np.ndarray]]:
    """What a filter needs of a θ; and a function from slopes by that to the gradient by θ.

    Args:
        kinds: the gaps and resets between plays.
        apart: whether arms that share no state are taken one by one.
    """
    pattern, places = pattern_of(layout, apart)
    blocks, by_numbers = _distinct_blocks(layout, theta, units, len(pattern.partners))
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
def _blocks(component: Component, numbers: Any, start: Start, scale: Any) -> Any:
    """Those of a component, 3 × sets × blocks × b × b, from its numbers in θ, sets × parameters."""

    def of_a_set(row: Any) -> Any:
        return blocks_of(component, row, start, scale, jnp)

    return jax.vmap(of_a_set, out_axes=1)(numbers)


@functools.partial(jax.jit, static_argnums=0)
def _by_numbers(component: Component, numbers: Any, start: Start, scale: Any, slopes: Any) -> Any:
    return jax.vjp(lambda each: _blocks(component, each, start, scale), numbers)[1](slopes)[0]


def _distinct_blocks(
    layout: Layout, theta: np.ndarray, units: Units, m: int
) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
    given, stacks = [], []
    for index, component in enumerate(layout.structure.components):
        numbers = layout.numbers_of(index, theta)
        options = component, numbers, layout.start_of(index, units), units.scale
        blocks = np.asarray(_blocks(*options))
        shrunk = layout.per_feature(component, units)
        given.append((options, blocks.shape, shrunk))
        more = (0, m - blocks.shape[-1])
        blocks = np.pad(blocks * shrunk, (*((0, 0),) * 3, more, more))
        stacks.append(blocks.reshape(3, -1, m, m))

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
            power, noise = power @ power, _around(power, noise) + noise
        there = np.flatnonzero((gaps >> bit) & 1)
        steps.append((power, noise, there, A[there], B[there]))
        B[there] = _around(power, B[there]) + noise
        A[there] = power @ A[there]
    # Between sequences, states that never move are turned to the new round, perhaps backwards: they
    # are rotations. The others are drawn anew.
    A[back] = A[back].mT
    weights, process = np.where(anew, 0.0, A), np.where(anew, start, B)

    def gradient(by_A: np.ndarray, by_B: np.ndarray, by_start: np.ndarray) -> np.ndarray:
        by_start = by_start + np.where(anew, by_B, 0.0).sum(axis=0)
        by_A, by_B = np.where(anew, 0.0, by_A), np.where(anew, 0.0, by_B)
        by_A[back] = by_A[back].mT
        by_power, by_noise = np.zeros((2, *power.shape))
        for power_, noise_, there, A, B in reversed(steps):
            if there is not steps[-1][2]:  # by what the next step's are computed from
                square, around = by_power, by_noise
                by_power = square @ power_.mT + power_.mT @ square
                by_power += _by_power(power_, noise_, around)
                by_noise = around + power_.mT @ around @ power_
            a, b = by_A[there], by_B[there]
            by_power = by_power + (a @ A.mT + _by_power(power_, B, b)).sum(axis=0)
            by_noise = by_noise + b.sum(axis=0)
            by_A[there], by_B[there] = power_.mT @ a, power_.mT @ b @ power_
        return np.stack([by_power, by_noise, by_start])

    return weights, process, gradient


def _around(power: np.ndarray, cov: np.ndarray) -> np.ndarray:
    return np.asarray(power @ cov @ power.mT)


def _by_power(power: np.ndarray, cov: np.ndarray, slopes: np.ndarray) -> np.ndarray:
    """Slopes by A of those by A P Aᵀ, P symmetric."""
    return np.asarray(slopes @ power @ cov + slopes.mT @ power @ cov)


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
