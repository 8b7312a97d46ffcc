"""From a structure and named arms to the matrices of a linear Gaussian system.

Γ, Q and the covariance at the start consist of small blocks along the diagonal. θ holds all
parameters that are learned, one real number each:

    a size or a time: log;   a share: logit;   a correlation: arc tangent;   a loading: as it is
"""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS
from driftbandit.structure.base import FREE, SCOPES, Component, Parameter, Start, Structure
from driftbandit.structure.kinds import NOISE
from driftbandit.structure.text import parse
from driftbandit.system import Name, System, checked_names

WIDE = Start(level=3.0, slope=0.3)  # at the start, in units of the rewards' spread
APART = 0.7  # prior spread of copies' own parameters around the common one
MOST_STATES = 1000


class Copy(NamedTuple):
    """One copy of a component."""

    component: int
    label: str  # of the arm or group it belongs to; "" if it is shared
    arms: tuple[int, ...]  # which arms read it


class Free(NamedTuple):
    """One number of θ."""

    name: str  # as "level(arm).drift", "level(arm).drift[left]", "season(7).loading[left]"
    parameter: Parameter
    center: float  # of its prior
    spread: float
    component: int | None  # None: σ
    copy: int | None = None  # index into the component's copies: how far it is from the common one
    arm: int | None = None  # a loading of this arm


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


def transformed(value: float, kind: str) -> float:
    """A parameter's value as a real number."""
    if kind == "share":
        return math.log(value / (1 - value))
    if kind == "correlation":
        return math.atanh(value)
    return math.log(value)


def original(number: Any, kind: str, xp: Any) -> Any:
    """The inverse of `transformed`."""
    if kind == "share":
        return 1 / (1 + xp.exp(-number))
    return xp.tanh(number) if kind == "correlation" else xp.exp(number)


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
            for copy in _copies(one, index, self.names, groups)
        ]
        self._lay_out()
        self.free = self._free()
        self._key = str(self.structure), tuple(copy.arms for copy in self.copies)

    def __eq__(self, other: object) -> bool:
        """Whether programs for one are right for the other: names do not matter."""
        return isinstance(other, Layout) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def _lay_out(self) -> None:
        """Places of blocks and states, which do not depend on values."""
        states, features, parts = [], [], []
        sizes, blocks = [], []  # of every block: its size; its copy and place in it
        for number, copy in enumerate(self.copies):
            component = self.structure.components[copy.component]
            example = {one.name: one.median for one in component.all_parameters()}
            for place, block in enumerate(component.blocks(example, WIDE, np)):
                sizes.append(len(block.reads))
                blocks.append((number, place))
                for label in block.labels:
                    words = [str(component), copy.label, label]
                    states.append(" ".join(word for word in words if word))
                    features.append(block.feature)
                    parts.append(copy.component)
        if len(states) > MOST_STATES:
            problem = f"has {len(states)} states for {len(self.names)} arms"
            remedy = f"{MOST_STATES} are the most: use fewer harmonics, or share components"
            raise errors.InvalidInput("structure", problem, remedy)
        self.states: tuple[str, ...] = tuple(states)
        """The name of every state."""
        self.state_features: tuple[str | None, ...] = tuple(features)
        """The context feature with which a state is read."""
        self.parts = {
            str(one): np.flatnonzero(np.array(parts) == index)
            for index, one in enumerate(self.structure.components)
        }
        """The states of each component."""
        self.sizes, self._blocks = np.array(sizes), blocks
        owners = np.repeat([number for number, _ in blocks], sizes)
        self.copy_states = [np.flatnonzero(owners == n) for n in range(len(self.copies))]
        """The states of each copy."""
        starts = np.cumsum(self.sizes) - self.sizes
        self.block_of = np.repeat(np.arange(len(sizes)), self.sizes)
        self.place_in_block = np.arange(len(states)) - starts[self.block_of]

    @property
    def n_states(self) -> int:
        """d, the number of states."""
        return len(self.states)

    @functools.cached_property
    def persistent(self) -> np.ndarray:
        """Which blocks never move, so that sequences share them."""
        components = self.structure.components
        return np.array([components[self.copies[c].component].persists for c, _ in self._blocks])

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

    @property
    def learns_transition(self) -> bool:
        """Whether Γ has parameters."""
        return any(free.parameter.kind != "size" and free.arm is None for free in self.free)

    @property
    def learns_reads(self) -> bool:
        """Whether loadings are learned."""
        return any(free.arm is not None for free in self.free)

    def _free(self) -> list[Free]:
        found = []
        for index, component in enumerate(self.structure.components):
            copies = [copy for copy in self.copies if copy.component == index]
            for one in component.parameters():
                name, center = f"{component}.{one.name}", transformed(one.median, one.kind)
                found.append(Free(name, one, center, one.spread, index))
                if component.own and len(copies) > 1:
                    for number, copy in enumerate(copies):
                        label = f"{name}[{copy.label}]"
                        found.append(Free(label, one, 0.0, APART, index, number))
            if component.loadings == FREE:
                loading = Parameter("loading", "size", 1.0, 1.0, unit="")
                for arm, label in enumerate(self.names):
                    name = f"{component}.loading[{label}]"
                    found.append(Free(name, loading, 1.0, 1.0, index, None, arm))
        center = transformed(NOISE.median, NOISE.kind)
        return [*found, Free("noise", NOISE, center, NOISE.spread, None)]

    # θ → matrices

    def matrices(self, theta: Any, units: Units = UNIT, xp: Any = np) -> Matrices:
        """The blocks, read-outs and σ² of a θ."""
        made: list[Any] = []
        for index, component in enumerate(self.structure.components):
            number = sum(copy.component == index for copy in self.copies)
            if component.own and number > 1:
                made += [
                    self._copy_blocks(component, index, theta, n, units, xp) for n in range(number)
                ]
            else:
                made += [self._copy_blocks(component, index, theta, None, units, xp)] * number
        blocks = [made[number][place] for number, place in self._blocks]
        size = int(self.sizes.max())

        def stacked(field: str) -> Any:
            parts = [getattr(block, field) for block in blocks]
            return xp.stack([xp.pad(part, (0, size - len(part))) for part in parts])

        return Matrices(
            stacked("transition"),
            stacked("process_cov"),
            stacked("start_cov"),
            self._reads(blocks, theta, xp),
            (units.scale * xp.exp(theta[len(self.free) - 1])) ** 2,
        )

    def _copy_blocks(
        self,
        component: Component,
        index: int,
        theta: Any,
        copy: int | None,
        units: Units,
        xp: Any,
    ) -> list[Any]:
        values = self._values(component, index, theta, copy, units, xp)
        holds = self.mean_component in (None, index)
        start = Start(WIDE.level * units.scale * holds, WIDE.slope * units.scale)
        found = component.blocks(values, start, xp)
        if not component.features or not len(units.features):
            return found
        # A weight is large if its feature is small. Numbers that users give stay as they are.
        sizes = dict(zip(self.structure.features, units.features, strict=True))
        for place, block in enumerate(found):
            square = sizes[block.feature or ""] ** 2
            known = component.start is not None or "size" in component.fixed
            found[place] = block._replace(
                start_cov=block.start_cov / (1.0 if known else square),
                process_cov=block.process_cov / (1.0 if "change" in component.fixed else square),
            )
        return found

    def _values(
        self,
        component: Component,
        index: int,
        theta: Any,
        copy: int | None,
        units: Units,
        xp: Any,
    ) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for one in component.all_parameters():
            if one.name in component.fixed:
                found[one.name] = component.fixed[one.name]
                continue
            number = sum(
                theta[place]
                for place, free in enumerate(self.free)
                if free.component == index
                and free.parameter.name == one.name
                and free.copy in (None, copy)
            )
            unit = units.scale if one.kind == "size" else 1.0
            found[one.name] = unit * original(number, one.kind, xp)
        return found

    def _reads(self, blocks: list[Any], theta: Any, xp: Any) -> Any:
        """How arms read the states, k × d."""
        columns = []
        for (number, _), block in zip(self._blocks, blocks, strict=True):
            copy = self.copies[number]
            component = self.structure.components[copy.component]
            there = np.array([arm in copy.arms for arm in range(len(self.names))], float)
            weights = there * self._loadings(component, copy.component, theta, xp)
            columns += [weights * read for read in block.reads]
        return xp.stack(columns, axis=1)

    def _loadings(self, component: Component, index: int, theta: Any, xp: Any) -> Any:
        if component.loadings is None:
            return np.ones(len(self.names))
        if component.loadings != FREE:
            return np.array(component.loadings, float)
        places = [
            place
            for place, free in enumerate(self.free)
            if free.component == index and free.arm is not None
        ]
        found = xp.stack([theta[place] for place in places])
        return found * xp.sqrt(len(places) / xp.sum(found**2))

    # Values by name

    def theta_of(self, values: Mapping[str, float], scale: float = 1.0) -> np.ndarray:
        """θ from values by name; what is not given has the median of its prior.

        Example:
            >>> layout = Layout("level(arm)", ["left", "right"])
            >>> layout.theta_of({"level(arm).drift": 1.0, "noise": 1.0}).tolist()
            [0.0, 0.0]
        """
        names = [free.name for free in self.free]
        theta = np.array([free.center for free in self.free])
        for name, value in values.items():
            place = names.index(errors.closest(name, "values", names))
            free = self.free[place]
            if free.copy is not None or free.arm is not None:
                theta[place] = value
                continue
            unit = scale if free.parameter.kind == "size" else 1.0
            try:
                theta[place] = transformed(value / unit, free.parameter.kind)
            except (ValueError, ZeroDivisionError):
                problem = f"{name} is {value:g}"
                raise errors.InvalidInput("values", problem, "give a possible value") from None
        return theta

    def value(self, place: int, number: float, scale: float = 1.0) -> float:
        """The value that a number at that place of θ stands for."""
        free = self.free[place]
        if free.copy is not None or free.arm is not None:
            return number
        unit = scale if free.parameter.kind == "size" else 1.0
        return float(unit * original(number, free.parameter.kind, np))

    # θ → system

    def model(
        self,
        theta: Any,
        mean: Any = None,
        cov: Any = None,
        units: Units = UNIT,
    ) -> LGDS:
        """The model of a θ; mean and covariance of z(0) if they are not those of the structure."""
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
        """A d × d matrix from its blocks."""
        same = self.block_of[:, None] == self.block_of
        rows, columns = self.place_in_block[:, None], self.place_in_block[None]
        return np.where(same, np.asarray(blocks)[self.block_of[:, None], rows, columns], 0.0)


def _copies(component: Component, index: int, names: Sequence[Name], groups: Any) -> list[Copy]:
    k = len(names)
    if isinstance(component.loadings, tuple) and len(component.loadings) != k:
        problem = f"has {len(component.loadings)} numbers for {k} arms"
        raise component.wrong("loadings", problem, "give one per arm, in the order of the names")
    if component.scope == "arm":
        return [Copy(index, str(name), (arm,)) for arm, name in enumerate(names)]
    if component.scope == "shared":
        return [Copy(index, "", tuple(range(k)))]
    if groups is None:
        raise component.wrong("scope", "is group, and no groups are known", "give groups")
    if not isinstance(groups, Mapping):
        problem = f"has type {type(groups).__name__}"
        raise errors.InvalidInput("groups", problem, "give a mapping from arms to groups")
    known = {str(name): str(group) for name, group in groups.items()}  # 1 and "1" are one arm
    for name in names:
        if str(name) not in known:
            raise errors.InvalidInput("groups", f"lack the arm {name!r}", "give each arm's group")
    of = [known[str(name)] for name in names]
    return [
        Copy(index, label, tuple(arm for arm in range(k) if of[arm] == label))
        for label in dict.fromkeys(of)
    ]
