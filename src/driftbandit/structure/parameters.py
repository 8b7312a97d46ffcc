"""The parameters that are learned, as one vector θ of real numbers.

a size or a time: log;   a share: logit;   a correlation: arc tangent;   all else: as it is
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit.structure.base import FREE, Component, Parameter, Structure
from driftbandit.structure.copies import Copy
from driftbandit.structure.kinds import NOISE
from driftbandit.system import Name

APART = 0.7  # prior spread of copies' own parameters around the common one
LOADING = Parameter("loading", "size", 1.0, 1.0, unit="")


def transformed(value: float, kind: str) -> float:
    """A parameter's value as a real number."""
    if kind == "share":
        return math.log(value / (1 - value))
    if kind == "correlation":
        return math.atanh(value)
    return value if kind == "real" else math.log(value)


def original(number: Any, kind: str, xp: Any) -> Any:
    """The inverse of `transformed`."""
    if kind == "share":
        return 1 / (1 + xp.exp(-number))
    if kind == "real":
        return number
    return xp.tanh(number) if kind == "correlation" else xp.exp(number)


class Free(NamedTuple):
    """One number of θ."""

    name: str  # as "level(arm).drift", "level(arm).drift[left]", "season(7).loading[left]"
    parameter: Parameter
    center: float  # of its prior
    spread: float
    component: int | None  # None: σ
    copy: int | None = None  # index into the component's copies: how far it is from the common one
    arm: int | None = None  # a loading of this arm
    begin: float | None = None  # where a search begins; None: at the center

    @property
    def is_value(self) -> bool:
        """Whether it stands for a value by itself: no loading, no distance from a common one."""
        return self.copy is None and self.arm is None

    def number(self, value: float, scale: float) -> float:
        """The number in θ of a value; sizes in units of ``scale``."""
        if not self.is_value:
            return value
        return transformed(value / self._unit(scale), self.parameter.kind)

    def value(self, number: float, scale: float) -> float:
        """The inverse of `number`."""
        if not self.is_value:
            return number
        return float(self._unit(scale) * original(number, self.parameter.kind, np))

    def _unit(self, scale: float) -> float:
        return scale if self.parameter.kind == "size" else 1.0


def free_parameters(
    structure: Structure, copies: Sequence[Copy], names: Sequence[Name]
) -> list[Free]:
    """All of θ: component by component, the noise of rewards last."""
    found = []
    for index, component in enumerate(structure.components):
        own = [copy for copy in copies if copy.component == index]
        for one in component.parameters():
            name, center = f"{component}.{one.name}", transformed(one.median, one.kind)
            found.append(Free(name, one, center, one.spread, index))
            if component.own and len(own) > 1:
                for number, copy in enumerate(own):
                    label = f"{name}[{copy.label}]"
                    found.append(Free(label, one, 0.0, APART, index, number))
        found += _loadings(component, index, names)
    center = transformed(NOISE.median, NOISE.kind)
    return [*found, Free("noise", NOISE, center, NOISE.spread, None)]


def _loadings(component: Component, index: int, names: Sequence[Name]) -> list[Free]:
    """The loadings of every arm, on one state or on several."""
    count, k = component.loadings_per_arm, len(names)
    if count == 1 and component.loadings == FREE:
        name = f"{component}.loading"
        return [
            Free(f"{name}[{of}]", LOADING, 1.0, 1.0, index, None, a) for a, of in enumerate(names)
        ]
    # A search begins with columns that are orthogonal: a cosine transform.
    return [
        Free(
            f"{component}.loading{state + 1}[{of}]", LOADING, 0.0, 1.0, index, None, arm,
            math.cos(math.pi * state * (arm + 0.5) / k),
        )
        for arm, of in enumerate(names)
        for state in range(count)
    ]  # fmt: skip
