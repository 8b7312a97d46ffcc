"""From a structure and named arms to the matrices of a linear Gaussian system.

Γ, Q and the covariance at the start consist of small blocks along the diagonal. They are functions
of θ, the parameters that are learned (`parameters`).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS
from driftbandit.structure.base import FREE, SCOPES, Block, Component, Start, Structure
from driftbandit.structure.copies import copies_of
from driftbandit.structure.kinds import Factors
from driftbandit.structure.parameters import free_parameters, original
from driftbandit.structure.text import parse
from driftbandit.system import Name, System, checked_names, names_and_number

WIDE = Start(level=3.0, slope=0.3)  # at the start, in units of the rewards' spread
MOST_STATES = 1000


class Units(NamedTuple):
    """What sizes are measured in."""

    scale: Any = 1.0  # the rewards' spread
    features: Any = ()  # the typical size of each context feature; (): 1


UNIT = Units()


class Matrices(NamedTuple):
    """A system as blocks: n blocks, padded to the size m of the largest; d states; k arms."""

    transition: Any  # n × m × m
    process_cov: Any  # n × m × m
    start_cov: Any  # n × m × m
    reads: Any  # k × d; those of a context feature are multiplied by its value
    reward_var: Any  # σ²


class Layout:
    """A structure for given arms: its states, its parameters, its matrices.

    Args:
        structure: a `Structure`, a `Component` or text.
        names: of the arms.
        groups: the group of each arm by name, if a component has one copy per group.

    Example:
        >>> layout = Layout("level(arm) + season(4) + level(shared)", ["left", "right"])
        >>> layout.states[:3], layout.n_states
        (('level(arm) left', 'level(arm) right', 'season(4) wave 1'), 6)
        >>> [free.name for free in layout.free][:2]
        ['level(arm).drift', 'season(4).size']

        Values of parameters, as one vector θ, and back:

        >>> theta = layout.theta_of({"level(arm).drift": 0.1, "noise": 0.5})
        >>> round(layout.value(0, theta[0]), 6), layout.learns_transition, layout.learns_reads
        (0.1, False, False)

        The system that a θ stands for:

        >>> model, (arms, contexts) = layout.model(theta), layout.arms(theta)
        >>> round(float(model.reward_std), 6), arms[0].tolist(), contexts
        (0.5, [1.0, 0.0, 1.0, 0.0, 1.0, 1.0], {})
        >>> blocks = layout.matrices(theta).transition  # 5 of them, the largest is 2 × 2
        >>> blocks.shape, bool((layout.dense(blocks) == model.transition).all())
        ((5, 2, 2), True)

        The component that holds the arms' means, its states, and what never moves:

        >>> layout.mean_component, layout.mean_states.tolist(), layout.persistent.any().tolist()
        (0, [True, True, False, False, False, False], False)

        What gradients need: a component's numbers in θ, where their slopes go, its standard
        deviations at the start, how arms read the states, and what never moves:

        >>> layout.numbers_of(0, theta).round(3).tolist(), layout.persistent_sets.any().tolist()
        ([[-2.303]], False)
        >>> layout.blocks_of(0, theta, UNIT).round(3).ravel().tolist()  # Γ, Q, start
        [1.0, 0.01, 9.0]
        >>> gradient = np.zeros(len(theta))
        >>> layout.add_slopes(0, np.ones((1, 1)), gradient)
        >>> gradient[:2].tolist(), layout.start_of(0, UNIT).level, layout.start_of(1, UNIT).level
        ([1.0, 0.0], 3.0, 0.0)
        >>> reads, by_theta = layout.loaded_reads(theta)
        >>> reads[0].tolist(), by_theta(reads).any().tolist()  # no weight is learned
        ([1.0, 0.0, 1.0, 0.0, 1.0, 1.0], False)
        >>> layout.per_feature(layout.structure.components[0], UNIT).tolist()  # it has none
        [[[[[1.0]]]]]
    """

    def __init__(
        self,
        structure: Structure | Component | str,
        names: Collection[Name],
        groups: Mapping[Name, Any] | None = None,
    ) -> None:
        self.structure = parse(structure)
        if not isinstance(names, Collection) or isinstance(names, str) or not len(names):
            raise errors.InvalidInput("names", f"is {names!r}", "give a list with each arm's name")
        self.names = checked_names(names, len(names))
        self.groups = groups
        self.copies = [
            copy
            for index, one in enumerate(self.structure.components)
            for copy in copies_of(one, index, self.names, groups)
        ]
        self._lay_out()
        self.free = free_parameters(self.structure, self.copies, self.names)
        self._places = {
            (one.component, one.parameter.name, one.copy): place
            for place, one in enumerate(self.free)
            if one.arm is None
        }
        self._numbers = [self._places_of(index) for index in range(len(self.structure.components))]
        reads, _ = self.loaded_reads(self.theta_of({}))
        if silent := np.flatnonzero(~reads.any(axis=1)).tolist():
            problem = f"has nothing for arm {self.names[silent[0]]!r}, whose loadings are zero"
            raise errors.InvalidInput("structure", problem, "add constant(arm), or leave it out")
        known = [one.reads for one in self.structure.components if isinstance(one, Factors)]
        self._key = str(self.structure), tuple(copy.arms for copy in self.copies), tuple(known)

    def __eq__(self, other: object) -> bool:
        """Whether programs for one are right for the other: names do not matter."""
        return isinstance(other, Layout) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return f"Layout({self.structure}: {self.n_states} states, {names_and_number(self.names)})"

    def _lay_out(self) -> None:
        """Places of blocks and states, and how arms read them, which do not depend on values."""
        structure = self.structure
        shapes = [_shape(one) for one in structure.components]
        sums = [sum(len(block.reads) for block in shape) for shape in shapes]
        count = sum(sums[copy.component] for copy in self.copies)
        if count > MOST_STATES:
            problem = f"has {count} states for {len(self.names)} arms"
            remedy = f"{MOST_STATES} are the most: use fewer harmonics, or share components"
            raise errors.InvalidInput("structure", problem, remedy)
        # Copies without parameters of their own share one set of blocks.
        firsts: list[int] = []  # of every set, the place of its first block among all sets'
        states, sizes, owners, which, reads = [], [], [], [], []
        total = 0
        for number, copy in enumerate(self.copies):
            index = copy.component
            component, shape = structure.components[index], shapes[index]
            before = sum(other.component == index for other in self.copies[:number])
            if component.own or not before:
                firsts.append(total)
                total += len(shape)
            for place, block in enumerate(shape):
                sizes.append(len(block.reads))
                owners.append(number)
                which.append(firsts[-1] + place)
                for label, read in zip(block.labels, block.reads, strict=True):
                    words = [str(component), copy.label, label]
                    name = " ".join(word for word in words if word)
                    states.append((name, block.feature, index))
                    reads.append([read * (arm in copy.arms) for arm in range(len(self.names))])
        names, features, parts = zip(*states, strict=True)
        self.states: tuple[str, ...] = names
        """The name of every state."""
        self.state_features: tuple[str | None, ...] = features
        """The context feature with which a state is read."""
        self._components = np.array(parts)  # the component of every state
        self.set_of_block = np.array(which)
        """The place of every block among the distinct ones."""
        self._reads = np.array(reads, float).T  # with loadings of 1, k × d
        self.parts = {
            str(one): np.flatnonzero(self._components == index)
            for index, one in enumerate(structure.components)
        }
        """The states of each component."""
        self.sizes = np.array(sizes)
        self._owners = np.array(owners)  # the copy of every block
        self.block_of = np.repeat(np.arange(len(sizes)), self.sizes)
        self.place_in_block = np.arange(len(states)) - (np.cumsum(sizes) - sizes)[self.block_of]
        of_states = self._owners[self.block_of]
        self.copy_states = [np.flatnonzero(of_states == n) for n in range(len(self.copies))]
        """The states of each copy."""

    def _places_of(self, index: int) -> tuple[np.ndarray, np.ndarray | None]:
        """Where a component's numbers stand in θ: common ones; what each copy has of its own."""
        component = self.structure.components[index]
        names = [parameter.name for parameter in component.parameters()]
        count = sum(copy.component == index for copy in self.copies)

        def of(copy: int | None) -> list[int]:
            return [self._places[index, name, copy] for name in names]

        own = [of(copy) for copy in range(count)] if component.own and count > 1 else None
        return np.array(of(None), int), None if own is None else np.array(own, int)

    @property
    def n_states(self) -> int:
        """d, the number of states."""
        return len(self.states)

    @functools.cached_property
    def persistent(self) -> np.ndarray:
        """Which blocks never move, so that sequences share them."""
        components = self.structure.components
        return np.array([components[self.copies[c].component].persists for c in self._owners])

    @functools.cached_property
    def persistent_sets(self) -> np.ndarray:
        """Which distinct blocks never move."""
        first = np.unique(self.set_of_block, return_index=True)[1]
        return self.persistent[first]

    @functools.cached_property
    def mean_component(self) -> int | None:
        """The component that holds the rewards' mean, the one with the most copies that can."""
        holds = [
            (SCOPES.index(one.scope), index)
            for index, one in enumerate(self.structure.components)
            if one.holds_mean and one.loadings is None
        ]
        return min(holds)[1] if holds else None

    @functools.cached_property
    def mean_states(self) -> np.ndarray:
        """Which states hold the rewards' mean: exactly one for each arm, or none at all."""
        found = np.zeros(self.n_states, bool)
        for copy, states in zip(self.copies, self.copy_states, strict=True):
            if copy.component == self.mean_component:
                found[states[0]] = True
        return found

    def means_of(self, centers: Any) -> np.ndarray:
        """The mean at the start of every state, d, if arms' rewards have these means, k.

        Example:
            >>> Layout("level(arm) + season(4)", ["left", "right"]).means_of([3.0, 5.0]).tolist()
            [3.0, 5.0, 0.0, 0.0, 0.0]
        """
        found = np.zeros(self.n_states)
        for copy, states in zip(self.copies, self.copy_states, strict=True):
            if copy.component == self.mean_component:
                found[states[0]] = np.mean([centers[arm] for arm in copy.arms])
        return found

    @functools.cached_property
    def apart(self) -> np.ndarray | None:
        """The states of each arm, k × d/k, if no two arms share any; None if they do, or k = 1.

        Example:
            >>> Layout("constant(arm) + level(arm)", ["left", "right"]).apart.tolist()
            [[0, 2], [1, 3]]
            >>> Layout("constant(arm) + level(shared)", ["left", "right"]).apart is None
            True
        """
        if len(self.names) == 1 or any(len(copy.arms) > 1 for copy in self.copies):
            return None
        own = enumerate(self.copies)
        pairs = sorted((copy.arms[0], number) for number, copy in own)
        states = [self.copy_states[number] for _, number in pairs]
        return np.concatenate(states).reshape(len(self.names), -1)

    @property
    def learns_transition(self) -> bool:
        """Whether Γ has parameters."""
        return any(free.parameter.kind != "size" and free.arm is None for free in self.free)

    @property
    def learns_reads(self) -> bool:
        """Whether loadings are learned."""
        return any(free.arm is not None for free in self.free)

    @functools.cached_property
    def begin(self) -> np.ndarray:
        """Where a search for θ begins: the medians of the priors, and loadings that differ.

        Example:
            >>> layout = Layout("factors(2)", ["left", "right"])
            >>> layout.begin[-5:].round(3).tolist()  # their weights; noise
            [1.0, 0.707, 1.0, -0.707, -0.357]
        """
        return np.array([one.center if one.begin is None else one.begin for one in self.free])

    @property
    def learns_factors(self) -> bool:
        """Whether factors have weights that are learned: they can turn into each other.

        Example:
            >>> Layout("factors(2)", ["left", "right"]).learns_factors
            True
        """
        return any(free.begin is not None for free in self.free)

    # θ → matrices

    def matrices(self, theta: Any, units: Units = UNIT) -> Matrices:
        """The blocks, read-outs and σ² of a θ.

        Args:
            theta: one number for each of ``free``.
            units: what sizes are measured in.
        """
        theta, size, parts = np.asarray(theta), int(self.sizes.max()), []
        for index in range(len(self.structure.components)):
            blocks = self.blocks_of(index, theta, units)
            more = (0, size - blocks.shape[-1])
            blocks = np.pad(blocks, ((0, 0), (0, 0), (0, 0), more, more))
            parts.append(blocks.reshape(3, -1, size, size))
        transition, process, start_cov = np.concatenate(parts, axis=1)[:, self.set_of_block]
        variance = (units.scale * np.exp(theta[len(self.free) - 1])) ** 2
        return Matrices(transition, process, start_cov, self.loaded_reads(theta)[0], variance)

    def blocks_of(self, index: int, theta: np.ndarray, units: Units) -> np.ndarray:
        """Γ, Q and the covariance at the start of a component's distinct blocks.

        Returns:
            3 × sets × blocks × b × b: a set for each copy with numbers of its own, else one set.
        """
        component, start = self.structure.components[index], self.start_of(index, units)
        rows = self.numbers_of(index, theta)
        sets = [blocks_of(component, row, start, units.scale, np) for row in rows]
        return np.stack(sets, axis=1) * self.per_feature(component, units)

    def numbers_of(self, index: int, theta: np.ndarray) -> np.ndarray:
        """A component's numbers in θ: a row for each copy with numbers of its own, else one row."""
        common, own = self._numbers[index]
        return theta[common][None] if own is None else theta[common] + theta[own]

    def add_slopes(self, index: int, slopes: np.ndarray, gradient: np.ndarray) -> None:
        """Add slopes by `numbers_of` to a gradient by θ."""
        common, own = self._numbers[index]
        gradient[common] += slopes.sum(axis=0)
        if own is not None:
            gradient[own] += slopes

    def start_of(self, index: int, units: Units) -> Start:
        """Standard deviations at the start that are neither given nor learned."""
        holds = self.mean_component in (None, index)
        return Start(WIDE.level * units.scale * holds, WIDE.slope * units.scale)

    def per_feature(self, component: Component, units: Units) -> np.ndarray:
        """Factors of the blocks of `blocks_of`, 3 × 1 × blocks × 1 × 1 or 1: of weights.

        A weight is large if its feature is small. Numbers that users give stay as they are.
        """
        if not component.features or not len(units.features):
            return np.ones((1,) * 5)
        sizes = dict(zip(self.structure.features, units.features, strict=True))
        square = np.array([float(sizes[name]) ** 2 for name in component.features])
        known = component.start is not None or "size" in component.fixed
        drift = np.ones_like(square) if "change" in component.fixed else 1 / square
        start = np.ones_like(square) if known else 1 / square
        return np.stack([np.ones_like(square), drift, start])[:, None, :, None, None]

    def loaded_reads(
        self, theta: np.ndarray
    ) -> tuple[np.ndarray, Callable[[np.ndarray], np.ndarray]]:
        """How arms read the states, k × d; and a function from slopes by that to those by θ."""
        k, loadings = len(self.names), np.ones((len(self.names), self.n_states))
        learned = []
        for index, (component, states) in enumerate(
            zip(self.structure.components, self.parts.values(), strict=True)
        ):
            if isinstance(component, Factors) and component.reads is not None:
                loadings[:, states] = component.reads
            elif isinstance(component.loadings, tuple):
                loadings[:, states] = np.array(component.loadings)[:, None]
            elif component.loadings_per_arm:
                places = [
                    i
                    for i, free in enumerate(self.free)
                    if free.component == index and free.arm is not None
                ]
                raw = theta[np.array(places)].reshape(k, -1)
                # The mean square of an arm's loading is 1; of several factors, the sum over arms.
                square = k if component.loadings == FREE else raw.shape[1]
                scale = math.sqrt(square / (raw**2).sum())
                loadings[:, states] = raw * scale
                learned.append((places, raw, scale, states))

        def gradient(slopes: np.ndarray) -> np.ndarray:
            found = np.zeros(len(self.free))
            for places, raw, scale, states in learned:
                own = slopes[:, states] * self._reads[:, states]
                own = own if raw.shape[1] > 1 else own.sum(axis=1, keepdims=True)
                own = own - raw * ((own * raw).sum() / (raw**2).sum())
                found[places] = scale * own.ravel()
            return found

        return loadings * self._reads, gradient

    # Values by name

    def theta_of(self, values: Mapping[str, float], scale: float = 1.0) -> np.ndarray:
        """θ from values by name; what is not given has the median of its prior.

        Args:
            values: by name, as in ``free``.
            scale: the rewards' spread, in which sizes are measured.

        Example:
            >>> layout = Layout("level(arm)", ["left", "right"])
            >>> layout.theta_of({"level(arm).drift": 1.0, "noise": 1.0}).tolist()
            [0.0, 0.0]
        """
        names = [free.name for free in self.free]
        theta = self.begin.copy()
        for name, value in values.items():
            place = names.index(errors.closest(name, "values", names))
            try:
                theta[place] = self.free[place].number(value, scale)
            except (ValueError, ZeroDivisionError):
                problem = f"{name} is {value:g}"
                raise errors.InvalidInput("values", problem, "give a possible value") from None
        return theta

    def value(self, place: int, number: float, scale: float = 1.0) -> float:
        """The value that a number at that place of θ stands for.

        Args:
            place, number: in θ.
            scale: the rewards' spread, in which sizes are measured.
        """
        return self.free[place].value(number, scale)

    # θ → system

    def model(
        self,
        theta: Any,
        mean: Any = None,
        cov: Any = None,
        units: Units = UNIT,
    ) -> LGDS:
        """The model of a θ.

        Args:
            theta: one number for each of ``free``.
            mean, cov: of z(0); None: those of the structure.
            units: what sizes are measured in.
        """
        found = self.matrices(theta, units)
        start = self.dense(found.start_cov) if cov is None else cov
        transition, process = self.dense(found.transition), self.dense(found.process_cov)
        return LGDS(transition, process, math.sqrt(found.reward_var), start, mean)

    def arms(self, theta: Any) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """A, k × d, and B_j, k × d by feature: in context x an arm reads A + Σ_j x_j B_j."""
        reads = self.matrices(theta).reads
        features = np.array([name or "" for name in self.state_features])
        contexts = {n: np.where(features == n, reads, 0.0) for n in self.structure.features}
        return np.where(features == "", reads, 0.0), contexts

    def system(self, values: Mapping[str, float] | None = None, mean: float = 0.0) -> System:
        """The system with given parameters, in rounds before any reward is seen.

        Args:
            values: parameters by name, as in ``free``; others have the median of their prior.
            mean: of the rewards, which constants, random walks and trends start around.

        Example:
            >>> layout = Layout("level(arm) + season(7)", ["left", "right"])
            >>> system = layout.system({"level(arm).drift": 0.1, "noise": 0.5}, mean=3.0)
            >>> system.model.n_states, system.model.initial_mean[:3].tolist()
            (8, [3.0, 3.0, 0.0])
        """
        theta = self.theta_of(values or {})
        arms, contexts = self.arms(theta)
        start = np.where(self.mean_states, mean, 0.0)
        return System(self.model(theta, start), arms, self.names, contexts)

    def dense(self, blocks: Any) -> np.ndarray:
        """A d × d matrix from its blocks, n × m × m."""
        same = self.block_of[:, None] == self.block_of
        rows, columns = self.place_in_block[:, None], self.place_in_block[None]
        return np.where(same, np.asarray(blocks)[self.block_of[:, None], rows, columns], 0.0)


def blocks_of(component: Component, numbers: Any, start: Start, scale: Any, xp: Any) -> Any:
    """Γ, Q and the covariance at the start of a copy's blocks, 3 × blocks × b × b.

    Args:
        component: of a structure.
        numbers: in θ, one for each of its parameters.
        start: as `Layout.start_of` returns it.
        scale: the rewards' spread, in which sizes are measured.
        xp: numpy or jax.numpy.
    """
    values: dict[str, Any] = dict(component.fixed)
    for place, parameter in enumerate(component.parameters()):
        unit = scale if parameter.kind == "size" else 1.0
        values[parameter.name] = unit * original(numbers[place], parameter.kind, xp)
    blocks = component.blocks(values, start, xp)
    size = max(len(block.reads) for block in blocks)

    def stacked(field: str) -> Any:
        parts = [getattr(block, field) for block in blocks]
        return xp.stack([xp.pad(part, (0, size - len(part))) for part in parts])

    return xp.stack([stacked(field) for field in ("transition", "process_cov", "start_cov")])


def _shape(component: Component) -> list[Block]:
    """The blocks of one copy with parameters at the medians of their priors."""
    example = {one.name: one.median for one in component.all_parameters()}
    return component.blocks(example, WIDE, np)
