"""The five families of random systems of Table I (P20).

All entries of T, R, r and the arms are drawn i.i.d. from one distribution; Γ = 0.9 T/ρ(T),
Q = RRᵀ, σ = |r|. Draws with ρ(T) = 0 and arms that are zero vectors (Bernoulli has both) are
redrawn and counted. σ = 0 is kept.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
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
    """Random systems of one family: a list of (model, arms); ``redraws`` counts rejected draws."""

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
    drawn = Systems(family)
    for number in range(first, first + systems):
        raw = draw(FAMILIES[family], generator(family, seed, number), n_states, n_arms)
        transition = radius / raw.radius * raw.transition
        noise = noise_scale * abs(raw.reward_root)
        model = LGDS(transition, raw.process_root @ raw.process_root.T, noise)
        drawn.append((model, unit_rows(raw.arms) if unit_arms else raw.arms))
        drawn.redraws += raw.redraws
    return drawn


class Draw(NamedTuple):
    """The numbers of Table I before they are scaled to a system."""

    transition: np.ndarray  # T, d × d
    radius: float  # ρ(T) > 0
    process_root: np.ndarray  # R, d × d
    reward_root: float  # r
    arms: np.ndarray  # k × d, none of them zero
    redraws: int


def generator(family: str, seed: int, number: int) -> np.random.Generator:
    """The random numbers of system ``number`` of a family."""
    place = list(FAMILIES).index(family)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, place, number])))


def draw(entries: Entries, rng: np.random.Generator, n_states: int, n_arms: int) -> Draw:
    """Draw T, R, r and the arms, in this order; redraw T while ρ(T) = 0, and zero arms."""
    redraws = 0
    while True:
        transition = entries(rng, (n_states, n_states))
        radius = float(np.abs(np.linalg.eigvals(transition)).max())
        if radius > 0:  # exactly zero for a nilpotent 0/1 matrix, thanks to LAPACK's balancing
            break
        redraws += 1
    root = entries(rng, (n_states, n_states))
    reward_root = float(entries(rng, ()))
    rows, rejected = draw_arms(entries, rng, n_states, n_arms)
    return Draw(transition, radius, root, reward_root, rows, redraws + rejected)


def draw_arms(
    entries: Entries, rng: np.random.Generator, n_states: int, n_arms: int
) -> tuple[np.ndarray, int]:
    """The arms, k × d, and how many zero vectors were redrawn."""
    redraws = 0
    rows = entries(rng, (n_arms, n_states))
    while (zero := ~rows.any(axis=1)).any():
        rows[zero] = entries(rng, (int(zero.sum()), n_states))
        redraws += int(zero.sum())
    return rows, redraws
