"""What a watch on a model finds: tests, changes, and the health of arms."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from driftbandit.system import Name

if TYPE_CHECKING:
    from driftbandit.monitoring.parts import PartHealth
    from driftbandit.monitoring.surprises import Surprises


class Test(NamedTuple):
    """One test: a figure, where it lies under the true model, and whether it does."""

    name: str
    value: float
    low: float
    high: float
    p_value: float | None  # None: the charts have a limit and no p-value
    holds: bool


class Change(NamedTuple):
    """A chart that passed its limit (see `charts`), or a jump seen in hindsight."""

    arm: Name | None  # None: all arms together
    kind: str  # higher, lower (than predicted); larger, smaller (surprises); peak (one); jump
    since: int  # the round in which it began, estimated
    alarm: int  # the round in which the chart passed its limit
    sequence: str = ""  # the label, if the log has several


class ArmHealth(NamedTuple):
    """The surprises of one arm."""

    name: Name
    rewards: int
    mean: float  # of u; 0 under the model
    mean_square: float  # of u²; 1 under the model
    low: float  # where the mean square lies in 95 % of all cases
    high: float
    change: Change | None  # its first


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """What the tests of a model's surprises found."""

    surprises: Surprises
    level: float  # the chance that a true model does not hold here
    tests: Mapping[str, Test]  # mean square, rounds, arms, outliers, changes, jumps
    changes: tuple[Change, ...]  # the earliest first; then jumps, the largest first
    arms: tuple[ArmHealth, ...]  # those that have surprises
    parts: tuple[PartHealth, ...] = ()
    correlations: Mapping[str, tuple[np.ndarray, np.ndarray]] = dataclasses.field(
        default_factory=dict
    )
    """Autocorrelations by lag and their standard deviations: of rounds, and within arms."""
    limits: Mapping[str, float] = dataclasses.field(default_factory=dict)
    """Of the charts, by kind."""

    @property
    def holds(self) -> bool:
        """Whether every test does."""
        return all(test.holds for test in self.tests.values())

    @property
    def off(self) -> tuple[Name, ...]:
        """The arms that changed, in the order of ``changes``."""
        return tuple(dict.fromkeys(one.arm for one in self.changes if one.arm is not None))

    def off_parts(self) -> tuple[PartHealth, ...]:
        """The parts that move more or less than the model says, or jumped."""
        least = self.level / max(2 * len(self.parts), 1)
        return tuple(p for p in self.parts if min(p.speed_p_value, p.jump_p_value) <= least)
