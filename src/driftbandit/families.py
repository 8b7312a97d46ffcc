"""The five families of random systems of Table I (P20).

All entries of T, R, r and the arms are drawn i.i.d. from one distribution; Γ = 0.9 T/ρ(T),
Q = RRᵀ, σ = |r|. Draws with ρ(T) = 0 and arms that are zero vectors (Bernoulli has both) are
redrawn and counted. σ = 0 is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS, unit_rows

__all__ = ["FAMILIES", "Draw", "Systems", "draw", "draw_arms", "generator", "sample"]

Entries = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]
"""Draws an array of this shape."""

FAMILIES: dict[str, Entries] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "cauchy": lambda rng, shape: rng.standard_normal(shape) / rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "bernoulli": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "exponential": lambda rng, shape: rng.standard_exponential(shape),
}
"""Each family's name and the distribution of its entries, in the order of Table II."""

SPECTRAL_RADIUS = 0.9  # the table's ρ(Γ)


class Systems(list[tuple[LGDS, np.ndarray]]):
    """Random systems of one family: a list of (model, arms); ``redraws`` counts rejected draws.

    `sample` returns it, and `simulate` takes it.

    Args:
        family: its name.
        systems: pairs of (model, arms).
        redraws: how many draws were rejected.

    Example:
        >>> systems = sample("bernoulli", systems=3, n_states=2, n_arms=4, seed=1)
        >>> len(systems), systems.family, systems.redraws > 0
        (3, 'bernoulli', True)
        >>> [arms.shape for model, arms in systems]
        [(4, 2), (4, 2), (4, 2)]
    """

    def __init__(
        self, family: str, systems: Iterable[tuple[LGDS, np.ndarray]] = (), redraws: int = 0
    ) -> None:
        super().__init__(systems)
        self.family, self.redraws = family, redraws

    def __repr__(self) -> str:
        return f"Systems({self.family!r}, {len(self)} systems, {self.redraws} redraws)"


def sample(
    family: str,
    systems: int = 1,
    n_states: int = 10,
    n_arms: int = 10,
    seed: int = 0,
    unit_arms: bool = False,
    first: int = 0,
    radius: float = SPECTRAL_RADIUS,
    noise_scale: float = 1.0,
    *,
    states: int | None = None,
    arms: int | None = None,
) -> Systems:
    """Draw random systems of one of Table I's families (P20).

    System i depends on (seed, family, i) alone, not on how many are drawn. Changing ``radius`` or
    ``noise_scale`` changes only Γ or σ of the same draw.

    Args:
        family: gaussian, cauchy, uniform, bernoulli or exponential.
        systems, first: how many, and the number of the first one.
        n_states, n_arms: d and k; ``states`` and ``arms`` are other names of them.
        seed: any whole number ≥ 0.
        unit_arms: scale arms to length one (Assumption 1); the table uses them as drawn.
        radius, noise_scale: ρ(Γ), between 0 and 1, and σ in units of |r|; 0.9 and 1 in the table.

    Returns:
        `Systems`, a list of (model, arms).

    Example:
        >>> model, arms = sample("gaussian", n_states=3, n_arms=5)[0]
        >>> round(model.spectral_radius, 6), arms.shape
        (0.9, (5, 3))
    """
    family = errors.closest(family, "family", FAMILIES)
    systems = errors.whole_number(systems, "systems", low=1)
    n_states = errors.whole_number(n_states if states is None else states, "n_states", low=1)
    n_arms = errors.whole_number(n_arms if arms is None else arms, "n_arms", low=1)
    seed = errors.whole_number(seed, "seed", low=0)
    first = errors.whole_number(first, "first", low=0)
    radius = errors.number(radius, "radius", low=0, high=1, strict=True)
    noise_scale = errors.number(noise_scale, "noise_scale", low=0)
    rngs = [generator(family, seed, number) for number in range(first, first + systems)]
    raw = draw(FAMILIES[family], rngs, n_states, n_arms)
    models = LGDS.many(
        (radius / raw.radius)[:, None, None] * raw.transition,
        raw.process_root @ raw.process_root.mT,
        noise_scale * np.abs(raw.reward_root),
    )
    rows = unit_rows(raw.arms) if unit_arms else raw.arms
    return Systems(family, zip(models, rows, strict=True), raw.redraws)


class Draw(NamedTuple):
    """The numbers of Table I for n systems, before they are scaled; `draw` returns it.

    Example:
        Γ of `sample` is T scaled to spectral radius 0.9.

        >>> raw = draw(FAMILIES["uniform"], [generator("uniform", seed=0, number=0)], 3, 5)
        >>> model, arms = sample("uniform", n_states=3, n_arms=5)[0]
        >>> np.allclose(0.9 * raw.transition[0] / raw.radius[0], model.transition)
        True
    """

    transition: np.ndarray  # T, n × d × d
    radius: np.ndarray  # ρ(T) > 0, n numbers
    process_root: np.ndarray  # R, n × d × d
    reward_root: np.ndarray  # r, n numbers
    arms: np.ndarray  # n × k × d, none of them zero
    redraws: int  # of all systems


def generator(family: str, seed: int, number: int) -> np.random.Generator:
    """The random numbers of system ``number`` of a family.

    Args:
        family: a name in `FAMILIES`.
        seed: of the study, ≥ 0.
        number: of the system, ≥ 0.

    Example:
        >>> again = [generator("gaussian", seed=7, number=2).random() for _ in range(2)]
        >>> again[0] == again[1], again[0] == generator("gaussian", seed=7, number=3).random()
        (True, False)
    """
    place = list(FAMILIES).index(family)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, place, number])))


def draw(entries: Entries, rngs: Sequence[np.random.Generator], n_states: int, n_arms: int) -> Draw:
    """Draw T, R, r and the arms of each system from its own generator, in this order.

    T is redrawn while ρ(T) = 0, which is exact for a nilpotent 0/1 matrix, thanks to LAPACK's
    balancing; arms are redrawn while they are zero.

    Args:
        entries: the distribution of all entries, such as ``FAMILIES["gaussian"]``.
        rngs: one generator for each of n systems.
        n_states, n_arms: d and k.

    Returns:
        `Draw`, before Γ is scaled and Q = RRᵀ is formed.

    Example:
        >>> rngs = [generator("bernoulli", 0, number) for number in range(20)]
        >>> raw = draw(FAMILIES["bernoulli"], rngs, n_states=2, n_arms=3)
        >>> raw.transition.shape, bool((raw.radius > 0).all()), raw.redraws > 0
        ((20, 2, 2), True, True)
    """
    transition = np.array([entries(rng, (n_states, n_states)) for rng in rngs])
    radius = _radii(transition)
    redraws = 0
    while nilpotent := np.flatnonzero(radius == 0).tolist():
        transition[nilpotent] = [entries(rngs[i], (n_states, n_states)) for i in nilpotent]
        radius[nilpotent] = _radii(transition[nilpotent])
        redraws += len(nilpotent)
    root = np.array([entries(rng, (n_states, n_states)) for rng in rngs])
    reward_root = np.array([entries(rng, ()) for rng in rngs])
    rows, rejected = draw_arms(entries, rngs, n_states, n_arms)
    return Draw(transition, radius, root, reward_root, rows, redraws + rejected)


def _radii(matrices: np.ndarray) -> np.ndarray:
    return np.abs(np.linalg.eigvals(matrices)).max(axis=-1)


def draw_arms(
    entries: Entries, rngs: Sequence[np.random.Generator], n_states: int, n_arms: int
) -> tuple[np.ndarray, int]:
    """The arms of each system, n × k × d, and how many zero vectors were redrawn.

    Args:
        entries, rngs, n_states, n_arms: as in `draw`.

    Example:
        >>> rngs = [generator("bernoulli", 0, number) for number in range(20)]
        >>> arms, redraws = draw_arms(FAMILIES["bernoulli"], rngs, n_states=2, n_arms=3)
        >>> arms.shape, bool(arms.any(axis=2).all()), redraws > 0
        ((20, 3, 2), True, True)
    """
    redraws = 0
    arms = np.array([entries(rng, (n_arms, n_states)) for rng in rngs])
    for i in np.unique(np.nonzero(~arms.any(axis=2))[0]).tolist():
        while (zero := ~arms[i].any(axis=1)).any():
            arms[i, zero] = entries(rngs[i], (int(zero.sum()), n_states))
            redraws += int(zero.sum())
    return arms, redraws
