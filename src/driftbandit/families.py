"""The five families of random systems of Table I (P20).

Every entry of T, R, r and the arms is drawn i.i.d. from one law; Γ = 0.9 T/ρ(T), Q = RRᵀ, σ = |r|.
Draws that make no bandit are redrawn and counted: ρ(T) = 0, and arms that are zero vectors
(Bernoulli makes both). σ = 0 stays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple, overload

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS, unit_rows

__all__ = ["FAMILIES", "Draw", "Systems", "draw", "draw_arms", "generator", "sample"]

Law = Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]

FAMILIES: dict[str, Law] = {
    "gaussian": lambda rng, shape: rng.standard_normal(shape),
    "cauchy": lambda rng, shape: rng.standard_normal(shape) / rng.standard_normal(shape),
    "uniform": lambda rng, shape: rng.random(shape),
    "bernoulli": lambda rng, shape: rng.integers(0, 2, shape).astype(float),
    "exponential": lambda rng, shape: rng.standard_exponential(shape),
}
"""Name of each family and the law of its entries, in the order of Table II."""

SPECTRAL_RADIUS = 0.9
"""The table's ρ(Γ)."""


class Systems(Sequence[tuple[LGDS, np.ndarray]]):
    """Random systems of one family: a sequence of (model, arms)."""

    def __init__(self, family: str, systems: list[tuple[LGDS, np.ndarray]], redraws: int) -> None:
        self.family = family
        self.redraws = redraws
        """How many draws were thrown away because they made no bandit."""
        self._systems = systems

    def __len__(self) -> int:
        return len(self._systems)

    def __iter__(self) -> Iterator[tuple[LGDS, np.ndarray]]:
        return iter(self._systems)

    @overload
    def __getitem__(self, index: int) -> tuple[LGDS, np.ndarray]: ...
    @overload
    def __getitem__(self, index: slice) -> list[tuple[LGDS, np.ndarray]]: ...
    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        """One (model, arms), or a list of them."""
        return self._systems[index]

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

    System i depends on (seed, family, i) alone, however many are drawn beside it; another radius
    or noise changes Γ or σ of the same draw.

    Args:
        family: gaussian, cauchy, uniform, bernoulli or exponential.
        systems: how many.
        n_states: d.
        n_arms: k.
        seed: any whole number ≥ 0.
        unit_arms: scale arms to length one (Assumption 1); the table uses them as drawn.
        first: number of the first system.
        radius: ρ(Γ), between 0 and 1; the table's is 0.9.
        noise_scale: σ in units of |r|; the table's is 1.
        states: the name of ``n_states`` in version 0.1, which still works.
        arms: likewise of ``n_arms``.

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
    drawn, redraws = [], 0
    for number in range(first, first + systems):
        raw = draw(FAMILIES[family], generator(family, seed, number), n_states, n_arms)
        model = LGDS(
            radius / raw.radius * raw.transition,
            raw.process_root @ raw.process_root.T,
            noise_scale * abs(raw.reward_root),
        )
        drawn.append((model, unit_rows(raw.arms) if unit_arms else raw.arms))
        redraws += raw.redraws
    return Systems(family, drawn, redraws)


class Draw(NamedTuple):
    """What Table I draws, before it is made a system."""

    transition: np.ndarray
    """T, d × d."""
    radius: float
    """ρ(T) > 0."""
    process_root: np.ndarray
    """R, d × d."""
    reward_root: float
    """r."""
    arms: np.ndarray
    """k × d, none of them zero."""
    redraws: int


def generator(family: str, seed: int, number: int) -> np.random.Generator:
    """The random numbers of system ``number`` of a family."""
    place = list(FAMILIES).index(family)
    return np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, place, number])))


def draw(law: Law, rng: np.random.Generator, n_states: int, n_arms: int) -> Draw:
    """Draw T, R, r and the arms, in this order, redrawing what makes no bandit."""
    redraws = 0
    while True:
        transition = law(rng, (n_states, n_states))
        radius = float(np.abs(np.linalg.eigvals(transition)).max())
        if radius > 0:  # LAPACK's balancing gives a nilpotent 0/1 matrix exactly zero
            break
        redraws += 1
    root = law(rng, (n_states, n_states))
    reward_root = float(law(rng, ()))
    rows, thrown = draw_arms(law, rng, n_states, n_arms)
    return Draw(transition, radius, root, reward_root, rows, redraws + thrown)


def draw_arms(
    law: Law, rng: np.random.Generator, n_states: int, n_arms: int
) -> tuple[np.ndarray, int]:
    """K × d arms, and how many zero vectors were redrawn."""
    redraws = 0
    rows = law(rng, (n_arms, n_states))
    while (silent := ~rows.any(axis=1)).any():
        rows[silent] = law(rng, (int(silent.sum()), n_states))
        redraws += int(silent.sum())
    return rows, redraws
