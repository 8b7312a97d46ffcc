"""What a study plays: a small specification, cut into chunks that are pure functions of it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.resources
import json
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any, NamedTuple

from driftbandit import errors, families, policies
from driftbandit.study import perturbation, readings

__all__ = ["MEASURES", "Cell", "Chunk", "Specification"]

MEASURES = ("regret", "metric")
"""What is measured of every system: policies' regret in every run (P21), or the intervals of the
metric φ (P17)."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One kind of random systems, and what the learners take them to be."""

    family: str
    reading: readings.Reading = readings.PLAIN
    perturbed: str = ""
    """What the learners have wrong: "transition", "arms", "process_cov", or nothing (P24)."""
    strength: float = 0.0
    """ν of the perturbation."""
    n_states: int | None = None
    """d; None: as many as the specification says."""
    n_arms: int | None = None
    """k; None: as many as the specification says."""
    radius: float = families.SPECTRAL_RADIUS
    """ρ(Γ)."""
    noise_scale: float = 1.0
    """σ in units of what was drawn."""
    absent: tuple[str, ...] = ()
    """Policies of the study that do not play here."""

    def __post_init__(self) -> None:
        errors.closest(self.family, "family", families.FAMILIES)
        if self.perturbed:
            errors.closest(self.perturbed, "perturbed", perturbation.TARGETS)
        plain: dict[str, Any] = {
            "strength": errors.number(self.strength, "strength"),
            "radius": errors.number(self.radius, "radius", low=0, high=1, strict=True),
            "noise_scale": errors.number(self.noise_scale, "noise_scale", low=0),
            "absent": tuple(self.absent),
        }
        for name in ("n_states", "n_arms"):
            if (value := getattr(self, name)) is not None:
                plain[name] = errors.whole_number(value, name, low=1, high=2**31)
        _set(self, plain)

    @property
    def label(self) -> str:
        """A short name, also of its files: "gaussian", "gaussian.arms-10", "gaussian.k-100"."""
        parts = [self.family]
        if self.n_states is not None:
            parts.append(f"d-{self.n_states}")
        if self.n_arms is not None:
            parts.append(f"k-{self.n_arms}")
        if self.radius != families.SPECTRAL_RADIUS:
            parts.append(f"radius-{self.radius:g}")
        if self.noise_scale != 1:
            parts.append(f"noise-{self.noise_scale:g}")
        if self.perturbed:
            parts.append(f"{self.perturbed}-{self.strength:g}")
        return ".".join(parts)


def _set(frozen: Any, values: Mapping[str, Any]) -> None:
    """One form for each value, so that what is equal has one identity."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


class Chunk(NamedTuple):
    """Some systems of one cell, all runs of them: the unit of work and of storage."""

    cell: Cell
    first: int
    """Number of the first system."""
    systems: int

    @property
    def name(self) -> str:
        """Unique within its study."""
        return f"{self.cell.label}-{self.first:06d}"


@dataclasses.dataclass(frozen=True)
class Specification:
    """All that the numbers of a study depend on.

    Example:
        >>> specification = Specification((Cell("gaussian"),), ("idea", "random"), systems=120)
        >>> [chunk.name for chunk in specification.chunks()]
        ['gaussian-000000', 'gaussian-000050', 'gaussian-000100']
    """

    cells: tuple[Cell, ...]
    policies: tuple[str, ...]
    systems: int = 1000
    """Per cell."""
    runs: int = 10
    """Per system."""
    rounds: int = 1000
    seed: int = 0
    n_states: int = 10
    n_arms: int = 10
    """These two of cells that do not say theirs."""
    measure: str = "regret"
    dtype: str = "float64"
    platform: str = "cpu"
    """"cpu" or "gpu": they round differently."""
    chunk: int = 50
    """Systems per chunk."""

    def __post_init__(self) -> None:
        plain: dict[str, Any] = {"cells": tuple(self.cells), "policies": tuple(self.policies)}
        for name in ("systems", "runs", "rounds", "n_states", "n_arms", "chunk"):
            plain[name] = errors.whole_number(getattr(self, name), name, low=1, high=2**31)
        plain["seed"] = errors.whole_number(self.seed, "seed", low=0, high=2**63 - 1)
        _set(self, plain)
        errors.closest(self.measure, "measure", MEASURES)
        errors.closest(self.dtype, "dtype", ("float64", "float32"))
        errors.closest(self.platform, "platform", ("cpu", "gpu"))
        if not self.policies:
            raise errors.InvalidInput("policies", "is empty", "name at least one policy")
        for policy in self.policies:
            if not isinstance(policy, str):
                raise errors.InvalidInput(
                    "gaussian",
                    "policies",
                    f"has one of type {type(policy).__name__}, which cannot be stored",
                    "register it, and give its name",
                )
            policies.make(policy)
            if self.measure == "metric" and not hasattr(getattr(policies, policy, None), "bonus"):
                raise errors.InvalidInput(
                    "policies", f"{policy!r} has no bonus to measure", "name idea or kalman_ucb"
                )
        if len(set(self.policies)) < len(self.policies):
            raise errors.InvalidInput("policies", f"are {self.policies}", "name each once")
        if not all(isinstance(cell, Cell) for cell in self.cells):
            raise errors.InvalidInput("cells", f"are {self.cells!r:.60}", "give Cell objects")
        labels = [cell.label for cell in self.cells]
        if not labels or len(set(labels)) < len(labels):
            raise errors.InvalidInput("cells", f"are {labels}", "give at least one, each once")
        for cell in self.cells:
            self._check(cell)

    def _check(self, cell: Cell) -> None:
        states, arms = self.shape(cell)
        if cell.perturbed == "arms" and arms != states:
            raise errors.InvalidInput(
                "n_arms",
                f"is {arms} with {states} states, and T⁻¹CT needs as many arms as states",
                "make the two equal, or perturb something else",
            )
        for name in cell.absent:
            errors.closest(name, "absent", self.policies)
        if not self.players(cell):
            raise errors.InvalidInput("absent", f"leaves nobody to play {cell.label}", "keep one")

    def shape(self, cell: Cell) -> tuple[int, int]:
        """States and arms of a cell's systems."""
        return cell.n_states or self.n_states, cell.n_arms or self.n_arms

    def players(self, cell: Cell) -> tuple[str, ...]:
        """Who plays a cell."""
        return tuple(policy for policy in self.policies if policy not in cell.absent)

    def chunks(self) -> Iterator[Chunk]:
        """Every chunk, in order."""
        for cell in self.cells:
            for first in range(0, self.systems, self.chunk):
                yield Chunk(cell, first, min(self.chunk, self.systems - first))

    def as_dict(self) -> dict[str, Any]:
        """What is stored of it, as JSON can hold it."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Specification:
        """The specification that `as_dict` stored."""
        cells = tuple(
            Cell(**{**cell, "reading": readings.Reading(**cell["reading"])})
            for cell in stored["cells"]
        )
        return cls(**{**stored, "cells": cells, "policies": tuple(stored["policies"])})

    @property
    def identity(self) -> str:
        """Sixteen digits that change with the specification and with the code that plays it."""
        text = json.dumps({"study": self.as_dict(), "code": code_fingerprint()}, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


PLAYED_BY = (
    "actions",
    "arrays.py",
    "errors.py",  # its checks make covariances symmetric
    "families.py",
    "kalman.py",
    "model.py",
    "riccati.py",
    "steady_state.py",
    "gaussian",
    "policies",
    "simulation",
    "study/chunks.py",
    "study/perturbation.py",
    "study/readings.py",
    "theory/checks.py",
    "theory/metric.py",
)
"""Sources that the numbers come from: results of other code are never mixed in."""


@functools.cache
def code_fingerprint() -> str:
    """Sixteen digits that change when the code behind a study's numbers does, libraries included.

    Taken once: a process plays what it has loaded, not what is edited meanwhile.
    """
    root = importlib.resources.files("driftbandit")
    digest = hashlib.sha256()
    for package in ("jax", "jaxlib", "numpy", "scipy"):
        digest.update(f"{package} {metadata.version(package)}\n".encode())
    for place in PLAYED_BY:
        found = root.joinpath(place)
        files = [found] if found.is_file() else sorted(found.iterdir(), key=lambda f: f.name)
        for file in files:
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
