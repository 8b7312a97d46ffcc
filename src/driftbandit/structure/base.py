"""What all components of a reward have in common, and their sum.

    reward = Σ components + noise,    e.g. level(arm) + season(7) + level(shared)

A component is a small linear Gaussian system, made of blocks (`Block`). Its scope says who has a
copy of it: every arm, every group of arms, or all arms together.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any, ClassVar, Literal, NamedTuple, get_args

from driftbandit import errors

Scope = Literal["arm", "group", "shared"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
FREE = "free"


class Parameter(NamedTuple):
    """A number to be learned, and its prior."""

    name: str
    kind: Literal["size", "time", "share", "correlation", "real"]
    """A standard deviation in units of rewards; rounds; between 0 and 1; between −1 and 1; any."""
    median: float  # of the prior; sizes in units of the rewards' spread
    spread: float  # of the prior: standard deviation of the logarithm, logit, arc tangent or number
    drift: bool = False  # whether it says how fast things drift
    unit: str = "reward per √round"


SIZE = Parameter("size", "size", 0.5, 1.5, unit="reward")
"""How far copies are apart at the start."""


class Start(NamedTuple):
    """Standard deviations at the start."""

    level: Any  # zero if another component holds the mean of the rewards
    slope: Any


class Block(NamedTuple):
    """States that move together: z ← Γ z + ξ, ξ ~ N(0, Q)."""

    transition: Any  # Γ, b × b
    process_cov: Any  # Q, b × b
    start_cov: Any  # of z(0), b × b
    reads: tuple[float, ...]  # how a reward reads the states, b
    labels: tuple[str, ...]  # of the states
    feature: str | None = None  # the context feature that multiplies ``reads``


@dataclasses.dataclass(frozen=True, kw_only=True)
class Component:
    """What all components have.

    Args:
        scope: who has a copy of it: "arm", "group" or "shared".
        own: whether each copy has parameters of its own, which are shrunk toward common ones.
        loadings: how strongly each arm reads it: None: all the same; "free": learned, with a mean
            square of 1; or one number per arm.
        start: standard deviation of the state at the start. None: learned as the parameter size;
            for levels and trends three times the rewards' spread, or zero if another component
            holds the arms' means.
        fixed: values of parameters that are known, by name.

    Example:
        >>> import numpy as np
        >>> from driftbandit.structure import Layout, constant, level
        >>> part = level("shared", memory="free", drift=0.1)
        >>> [one.name for one in part.all_parameters()], [one.name for one in part.parameters()]
        (['drift', 'memory'], ['memory'])
        >>> part.loadings_per_arm, level("shared", loadings="free").loadings_per_arm
        (0, 1)
        >>> part.turned(np.random.default_rng(0))
        {}
        >>> part.holds_mean, level("arm").holds_mean, constant("arm").persists
        (False, True, True)
        >>> part.options()
        ['scope', 'own', 'loadings', 'start', 'memory']
        >>> (block,) = part.blocks({"drift": 0.1, "memory": 20.0}, Start(level=3.0, slope=0.3), np)
        >>> block.transition.round(4).tolist()  # e^(−1/20)
        [[0.9512]]

        A kind of your own, a pattern +w, −w, +w, … for each arm:

        >>> @dataclasses.dataclass(frozen=True, kw_only=True)
        ... class Alternating(Component):
        ...     kind = "alternating"
        ...
        ...     def all_parameters(self):
        ...         return self.size_parameter()
        ...
        ...     def blocks(self, values, start, xp):
        ...         one = xp.eye(1)
        ...         return [Block(-one, 0 * one, self.size_var(values) * one, (1.0,), ("",))]
        >>> system = Layout(level() + Alternating(), ["left", "right"]).system()
        >>> np.diag(system.model.transition).tolist(), system.arms.tolist()
        ([1.0, 1.0, -1.0, -1.0], [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    """

    scope: Scope = "arm"
    own: bool = False
    loadings: Literal["free"] | tuple[float, ...] | None = None
    start: float | None = None
    fixed: Mapping[str, float] = dataclasses.field(default_factory=dict, hash=False)

    kind: ClassVar[str] = ""
    first: ClassVar[str | None] = None
    """The option that is written first, without its name."""
    features: tuple[str, ...] = dataclasses.field(default=(), init=False)
    """Names of the context features that it needs."""

    def __post_init__(self) -> None:
        if self.scope not in SCOPES:
            raise self.wrong("scope", f"is {self.scope!r}", f"give one of {', '.join(SCOPES)}")
        errors.boolean(self.own, f"{self.kind}: own")
        self._check_loadings()
        if self.start is not None:
            self.number("start", self.start, low=0)
        known = {parameter.name: parameter for parameter in self.all_parameters()}
        for name, value in self.fixed.items():
            if name not in known:
                valid = ", ".join([*self.options(), *known])
                raise self.wrong(name, "is not one of its options", f"valid: {valid}")
            self.check_value(known[name], value)

    @classmethod
    def options(cls) -> list[str]:
        """Names of the options that are not parameters."""
        return [one.name for one in dataclasses.fields(cls) if one.init and one.name != "fixed"]

    def _check_loadings(self) -> None:
        if isinstance(self.loadings, tuple) and self.loadings:
            for value in self.loadings:
                self.number("loadings", value)
            if not any(self.loadings):
                raise self.wrong("loadings", "are all zero", "give one that is not")
        elif self.loadings not in (None, FREE):
            raise self.wrong("loadings", f"is {self.loadings!r}", "give free, or one per arm")
        if self.loadings is not None and self.scope == "arm":
            problem = "were given, and every arm has a copy of its own"
            raise self.wrong("loadings", problem, "say shared or group")

    def check_value(self, parameter: Parameter, value: Any) -> None:
        """Refuse a value that the parameter cannot have.

        Args:
            parameter, value: one of `all_parameters`, and a number for it.

        Example:
            >>> from driftbandit.structure import level
            >>> part = level()
            >>> part.check_value(part.parameters()[0], -0.1)
            Traceback (most recent call last):
            driftbandit.errors.InvalidInput: level: drift: is -0.1; ...
        """
        name, kind = parameter.name, parameter.kind
        low = -1 if kind == "correlation" else 0
        found = self.number(name, value, low=-math.inf if kind == "real" else low)
        if kind == "real":
            return
        inside = kind == "size" or (found > low and (kind == "time" or found < 1))
        if not inside:
            ends = "above 0" if kind == "time" else f"between {low} and 1"
            raise self.wrong(name, f"is {found:g}", f"give a number {ends}")

    def number(self, name: str, value: Any, low: float = -math.inf) -> float:
        """The value of an option that must be a finite number.

        Args:
            name, value, low: of the option; the least value allowed.

        Example:
            >>> from driftbandit.structure import level
            >>> level().number("start", 2, low=0)
            2.0
        """
        return errors.number(value, f"{self.kind}: {name}", low=low)

    def wrong(self, name: str, problem: str, remedy: str) -> errors.InvalidInput:
        """An error that names the component and its option.

        Example:
            >>> from driftbandit.structure import level
            >>> print(level().wrong("memory", "is 0", "give a number above 0"))
            level: memory: is 0; give a number above 0
        """
        return errors.InvalidInput(f"{self.kind}: {name}", problem, remedy)

    def all_parameters(self) -> tuple[Parameter, ...]:
        """The parameters of one copy, fixed or not."""
        return ()

    @property
    def loadings_per_arm(self) -> int:
        """How many loadings of each arm are learned."""
        return 1 if self.loadings == FREE else 0

    def parameters(self) -> tuple[Parameter, ...]:
        """Those that are learned."""
        return tuple(one for one in self.all_parameters() if one.name not in self.fixed)

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        """The blocks of one copy.

        Args:
            values: every parameter's value, by name.
            start: standard deviations at the start that are neither given nor learned.
            xp: numpy or jax.numpy.

        Returns:
            Blocks of states that move together; their read-outs add up to the component.
        """
        raise NotImplementedError

    def turned(self, rng: Any) -> dict[str, float]:
        """Parameters at which another search begins, if sizes alone do not tell searches apart."""
        return {}

    @property
    def holds_mean(self) -> bool:
        """Whether it can hold the mean of the rewards, because nothing pulls it to zero."""
        return False

    @property
    def persists(self) -> bool:
        """Whether sequences share its states, because they never move."""
        return False

    def size_parameter(self) -> tuple[Parameter, ...]:
        """The standard deviation at the start, where it is learned; none if it is given."""
        return (SIZE,) if self.start is None else ()

    def size_var(self, values: Mapping[str, Any]) -> Any:
        """The variance at the start, where it is learned."""
        return (values["size"] if self.start is None else self.start) ** 2

    def start_var(self, start: Start) -> Any:
        """The variance at the start of a level.

        Example:
            >>> from driftbandit.structure import level
            >>> level().start_var(Start(level=3.0, slope=0.3)), level(start=2).start_var(None)
            (9.0, 4)
        """
        return (start.level if self.start is None else self.start) ** 2

    def __add__(self, other: Any) -> Structure:
        return Structure((self,)) + other

    def __str__(self) -> str:
        parts = [] if self.first is None else [_written(getattr(self, self.first))]
        parts += self.features
        if self.scope != type(self).scope or not parts:
            parts.append(self.scope)
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            hidden = field.name in ("scope", "fixed", "features", "reads", self.first)
            if hidden or value is None or value == field.default:
                continue
            parts.append(field.name if value is True else f"{field.name}={_written(value)}")
        parts += [f"{name}={_written(value)}" for name, value in self.fixed.items()]
        return f"{self.kind}({', '.join(parts)})"


def _written(value: Any) -> str:
    if isinstance(value, tuple):
        return f"[{', '.join(map(_written, value))}]"
    return value if isinstance(value, str) else repr(float(value)).removesuffix(".0")


@dataclasses.dataclass(frozen=True)
class Structure:
    """A sum of components.

    Args:
        components: one or more, all different.

    Example:
        >>> from driftbandit.structure import level, regression, season
        >>> structure = level("arm") + season(7) + regression(["x_price", "x_rain"])
        >>> str(structure), len(structure.components)
        ('level(arm) + season(7) + regression(x_price, x_rain)', 3)
        >>> structure.features
        ('x_price', 'x_rain')
    """

    components: tuple[Component, ...]

    def __post_init__(self) -> None:
        if not self.components:
            raise errors.InvalidInput("structure", "has no component", "give one, as level(arm)")
        texts = list(map(str, self.components))
        for text in texts:
            if texts.count(text) > 1:
                raise errors.InvalidInput("structure", f"has {text} twice", "give each once")

    def __add__(self, other: Any) -> Structure:
        others = other.components if isinstance(other, Structure) else (other,)
        if not all(isinstance(one, Component) for one in others):
            return NotImplemented
        return Structure((*self.components, *others))

    def __str__(self) -> str:
        return " + ".join(map(str, self.components))

    @property
    def features(self) -> tuple[str, ...]:
        """The context features that it needs, in order."""
        return tuple(dict.fromkeys(name for one in self.components for name in one.features))
