"""What a study computes: a small specification, split into chunks that are pure functions of it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.resources
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib import metadata
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftbandit import errors, families, policies
from driftbandit.result import LEAST, Timing
from driftbandit.theory import metric_intervals

MEASURES = ("regret", "metric")
"""Regret of every policy in every run (P21), or intervals of the metric φ of every system (P17)."""


@dataclasses.dataclass(frozen=True)
class Cell:
    """One kind of random systems. A subclass may draw others, and change what the learners assume.

    Args:
        family: gaussian, cauchy, uniform, bernoulli or exponential.
        n_states, n_arms: d and k; None: the specification's.
        absent: policies of the study that do not play here.

    Example:
        >>> cell = Cell("gaussian", n_arms=100)
        >>> cell.label
        'gaussian.k-100'
        >>> cell.check_shape(n_states=3, n_arms=100)  # refuses nothing; subclasses may
        >>> systems, assumed = cell.systems(range(2), n_states=3, n_arms=100, seed=0)
        >>> [round(model.spectral_radius, 6) for model, arms in systems], systems[0][1].shape
        ([0.9, 0.9], (100, 3))
        >>> assumed, cell.simulation_options()  # the learners know the truth
        (None, {})
        >>> cell.runs_and_rounds(5, 80, n_states=3, n_arms=100), cell.least_regret(systems, 80)
        ((5, 80), None)
    """

    family: str
    n_states: int | None = None  # None: the specification's
    n_arms: int | None = None  # None: the specification's
    absent: tuple[str, ...] = ()  # policies of the study that do not play here

    FAMILIES: ClassVar[Mapping[str, Any]] = families.FAMILIES
    """What ``family`` may be, by name."""
    SOURCES: ClassVar[tuple[str, ...]] = ()
    """Source files of the package that a subclass draws its systems with."""

    def __post_init__(self) -> None:
        errors.closest(self.family, "family", self.FAMILIES)
        checked: dict[str, Any] = {"absent": tuple(self.absent)}
        for name in ("n_states", "n_arms"):
            if (value := getattr(self, name)) is not None:
                checked[name] = errors.whole_number(value, name, low=1, high=2**31)
        set_fields(self, checked)

    @property
    def label(self) -> str:
        """A short name, also used in file names: "gaussian", "gaussian.k-100"."""
        sizes = {"d": self.n_states, "k": self.n_arms}
        return ".".join([self.family, *(f"{x}-{size}" for x, size in sizes.items() if size)])

    def check_shape(self, n_states: int, n_arms: int) -> None:
        """Raise `InvalidInput` if the cell cannot have systems of this shape."""

    def systems(
        self, numbers: range, n_states: int, n_arms: int, seed: int
    ) -> tuple[Sequence[Any], list[Any] | None]:
        """The true systems with these numbers, and what learners assume (None: the truth)."""
        size = (len(numbers), n_states, n_arms)
        return families.sample(self.family, *size, seed, first=numbers.start), None

    def runs_and_rounds(
        self, runs: int, rounds: int, n_states: int, n_arms: int
    ) -> tuple[int, int]:
        """Runs per system and rounds per run, given those of the study; subclasses may differ."""
        return runs, rounds

    def least_regret(self, systems: Sequence[Any], rounds: int) -> Sequence[float] | None:
        """The least regret per round that a policy can have on each system; None: not known.

        ``rounds`` are the study's. A subclass may compute it; it becomes a column of its own.
        """
        return None

    def simulation_options(self) -> dict[str, Any]:
        """Further arguments of `simulate`, as `simulation.Options` takes them."""
        return {}


def set_fields(frozen: Any, values: Mapping[str, Any]) -> None:
    """Store the checked values, so that equal specifications have the same identity."""
    for name, value in values.items():
        object.__setattr__(frozen, name, value)


class Chunk(NamedTuple):
    """All runs of some systems of one cell: the unit of work and of storage.

    Example:
        >>> study = Specification((Cell("gaussian"),), ("idea",), systems=120)
        >>> *_, last = study.chunks()
        >>> last.name, last.numbers, last.cell.family
        ('gaussian-000100', range(100, 120), 'gaussian')
    """

    cell: Cell
    first: int
    systems: int

    @property
    def name(self) -> str:
        """Unique within its study."""
        return f"{self.cell.label}-{self.first:06d}"

    @property
    def numbers(self) -> range:
        """Numbers of its systems."""
        return range(self.first, self.first + self.systems)


@dataclasses.dataclass(frozen=True)
class Specification:
    """Everything that the numbers of a study depend on.

    Args:
        cells: the kinds of random systems.
        policies: their names, as `policies.make` reads them.
        systems, runs, rounds: per cell; per system; per run. A cell may have other runs and rounds.
        seed: of all random numbers.
        n_states, n_arms: d and k of cells that do not set their own.
        measure: "regret" (P21), or "metric", the intervals of φ (P17).
        dtype, platform: "float64" or "float32"; "cpu", or "gpu", which rounds differently.
        chunk: systems per chunk.

    Example:
        >>> cells = Cell("gaussian"), Cell("cauchy", n_arms=3, absent=("random",))
        >>> specification = Specification(cells, ("idea", "random"), systems=120, n_states=2)
        >>> [chunk.name for chunk in specification.chunks()][:4]
        ['gaussian-000000', 'gaussian-000050', 'gaussian-000100', 'cauchy.k-3-000000']
        >>> specification.shape(cells[1]), specification.players(cells[1])
        ((2, 3), ('idea',))
        >>> specification.runs_and_rounds(cells[1])
        (10, 1000)
        >>> *_, last = specification.chunks()
        >>> len(specification.systems_of(last)[0])
        20

        It can be stored, and has an identity, which names its folder:

        >>> stored = json.loads(json.dumps(specification.as_dict()))
        >>> again = Specification.from_dict(stored)
        >>> again == specification, again.identity == specification.identity
        (True, True)
        >>> dataclasses.replace(specification, seed=1).identity == specification.identity
        False
    """

    cells: tuple[Cell, ...]
    policies: tuple[str, ...]
    systems: int = 1000  # per cell
    runs: int = 10  # per system
    rounds: int = 1000
    seed: int = 0
    n_states: int = 10  # of cells that do not set their own
    n_arms: int = 10
    measure: str = "regret"
    dtype: str = "float64"
    platform: str = "cpu"  # or "gpu", which rounds differently
    chunk: int = 50  # systems per chunk

    def __post_init__(self) -> None:
        checked: dict[str, Any] = {"cells": tuple(self.cells), "policies": tuple(self.policies)}
        for name in ("systems", "runs", "rounds", "n_states", "n_arms", "chunk"):
            checked[name] = errors.whole_number(getattr(self, name), name, low=1, high=2**31)
        checked["seed"] = errors.whole_number(self.seed, "seed", low=0, high=2**63 - 1)
        set_fields(self, checked)
        errors.closest(self.measure, "measure", MEASURES)
        errors.closest(self.dtype, "dtype", ("float64", "float32"))
        errors.closest(self.platform, "platform", ("cpu", "gpu"))
        self._check_policies()
        if not all(isinstance(cell, Cell) for cell in self.cells):
            raise errors.InvalidInput("cells", f"are {self.cells!r:.60}", "give Cell objects")
        labels = [cell.label for cell in self.cells]
        if not labels or len(set(labels)) < len(labels):
            raise errors.InvalidInput("cells", f"are {labels}", "give at least one, each once")
        for cell in self.cells:
            cell.check_shape(*self.shape(cell))
            for name in cell.absent:
                errors.closest(name, "absent", self.policies)
            if not self.players(cell):
                problem = f"leaves no policy to play {cell.label}"
                raise errors.InvalidInput("absent", problem, "keep one policy")

    def _check_policies(self) -> None:
        if not self.policies:
            raise errors.InvalidInput("policies", "is empty", "name at least one policy")
        policy: Any
        for policy in self.policies:
            if not isinstance(policy, str):
                problem = f"has one of type {type(policy).__name__}, which cannot be stored"
                raise errors.InvalidInput("policies", problem, "register it and give its name")
            policies.make(policy)
            if self.measure == "metric" and not hasattr(getattr(policies, policy, None), "bonus"):
                problem = f"{policy!r} has no bonus to measure"
                raise errors.InvalidInput("policies", problem, "name idea or kalman_ucb")
        if len(set(self.policies)) < len(self.policies):
            raise errors.InvalidInput("policies", f"are {self.policies}", "name each once")

    def shape(self, cell: Cell) -> tuple[int, int]:
        """States and arms of a cell's systems."""
        return cell.n_states or self.n_states, cell.n_arms or self.n_arms

    def runs_and_rounds(self, cell: Cell) -> tuple[int, int]:
        """Runs per system of a cell, and rounds per run."""
        return cell.runs_and_rounds(self.runs, self.rounds, *self.shape(cell))

    def players(self, cell: Cell) -> tuple[str, ...]:
        """The policies that play a cell."""
        return tuple(policy for policy in self.policies if policy not in cell.absent)

    def chunks(self) -> Iterator[Chunk]:
        """Every chunk, in order."""
        for cell in self.cells:
            for first in range(0, self.systems, self.chunk):
                yield Chunk(cell, first, min(self.chunk, self.systems - first))

    def systems_of(self, chunk: Chunk) -> tuple[Sequence[Any], list[Any] | None]:
        """A chunk's true systems, and what learners assume (None: the truth)."""
        return chunk.cell.systems(chunk.numbers, *self.shape(chunk.cell), self.seed)

    def as_dict(self) -> dict[str, Any]:
        """The stored form, which JSON can hold."""
        return dataclasses.asdict(self)

    @classmethod
    def from_dict(
        cls, stored: Mapping[str, Any], cell: Callable[..., Cell] = Cell
    ) -> Specification:
        """The specification that `as_dict` stored; ``cell`` is the class of its cells."""
        return cls(**{**stored, "cells": tuple(cell(**fields) for fields in stored["cells"])})

    @property
    def identity(self) -> str:
        """Sixteen hex digits; a change of the specification or of the code changes them."""
        code = code_fingerprint(tuple(sorted({s for cell in self.cells for s in cell.SOURCES})))
        return _identity(self, code)


@functools.lru_cache  # every chunk asks for it
def _identity(study: Specification, code: str) -> str:
    text = json.dumps({"study": study.as_dict(), "code": code}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


Columns = dict[str, np.ndarray]
"""Columns of equal length by name; ``system`` and ``run`` number the rows."""


def compute(
    specification: Specification, chunk: Chunk, progress: Callable[[float], None] | None = None
) -> tuple[Columns, Timing]:
    """The columns of a chunk, a pure function of (specification, chunk), and the time they took.

    Regret has one row per run; the metric has one row per system, with both ends of every policy's
    intervals of φ. Uses one core: an engine computes several chunks at once.
    """
    begin = time.perf_counter()
    cell, players = chunk.cell, specification.players(chunk.cell)
    systems, assumed = specification.systems_of(chunk)
    runs, rounds = specification.runs_and_rounds(cell)
    runs = runs if specification.measure == "regret" else 1
    columns = {
        "system": np.repeat(chunk.numbers, runs),
        "run": np.tile(np.arange(runs), chunk.systems),
    }
    if specification.measure == "metric":
        bonuses = {name: getattr(policies, name).bonus for name in players}
        intervals = metric_intervals(assumed or systems, bonuses, progress, workers=1)
        for name, found in intervals.items():
            for form in ("printed", "squared"):
                for end, values in zip(("low", "high"), getattr(found, form).T, strict=True):
                    columns[f"{name}.{form}.{end}"] = values
        return columns, Timing(0.0, 0.0, time.perf_counter() - begin, "cpu")

    if (least := cell.least_regret(systems, specification.rounds)) is not None:
        columns[LEAST] = np.repeat(np.multiply(least, rounds), runs)

    from driftbandit.simulation import Options, simulate  # loads JAX

    # All cells of a family see the same noise, so they are paired.
    part: dict[str, Any] = {"stream": cell.family, "first_system": chunk.first}
    result = simulate(
        systems,
        policies=players,
        rounds=rounds,
        runs=runs,
        seed=specification.seed,
        assumed=assumed,
        device=specification.platform,
        dtype=specification.dtype,
        options=Options(checkpoints=1, workers=1, **part, **cell.simulation_options()),
        progress=progress,
    )
    return columns | {p: regret.ravel() for p, regret in result.regret.items()}, result.timing


SOURCES_OF_NUMBERS = (
    *("arrays.py", "contexts.py", "errors.py", "families.py", "kalman.py", "model.py"),
    *("priced_arm.py", "program_cache.py", "riccati.py", "steady_state.py"),
    *("actions", "gaussian", "lanes"),
    *("policies", "simulation"),
    *("studies/specification.py", "theory/checks.py", "theory/metric.py"),
)
"""Sources that the numbers come from: results of different code are never mixed.

The checks in errors.py make covariances symmetric.
"""


@functools.cache
def code_fingerprint(more: tuple[str, ...] = ()) -> str:
    """Sixteen hex digits; a change of the code or libraries behind the numbers changes them.

    The code is `SOURCES_OF_NUMBERS` and ``more``. Computed once: a process runs what it has loaded,
    not what is edited later.
    """
    root = importlib.resources.files("driftbandit")
    digest = hashlib.sha256()
    for package in ("jax", "jaxlib", "numpy", "scipy"):
        digest.update(f"{package} {metadata.version(package)}\n".encode())
    for place in (*SOURCES_OF_NUMBERS, *more):
        found = root.joinpath(place)
        files = [found] if found.is_file() else sorted(found.iterdir(), key=lambda f: f.name)
        for file in files:
            if file.name.endswith(".py"):
                digest.update(file.name.encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]
