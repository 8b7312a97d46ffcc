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
    """One test: a figure, where it lies under the true model, and whether it does.

    `Health.tests` has one for each test by its name.

    Example:
        >>> from driftbandit import LGDS, System, monitor
        >>> system = System(LGDS([[0.9]], [[0.01]], reward_std=0.1), [[1.0]])
        >>> log = {"round": range(60), "arm": [0] * 60, "reward": [2.0, -2.0] * 30}
        >>> test = monitor(system, log).tests["mean square"]
        >>> test.holds, test.value > test.high > 1 > test.low, test.p_value < 0.001
        (False, True, True)
    """

    name: str
    value: float
    low: float
    high: float
    p_value: float | None  # None: the charts have a limit and no p-value
    holds: bool


class Change(NamedTuple):
    """A chart that passed its limit (see `charts`), or a jump seen in hindsight.

    `Health.changes` and `Agent.alarms` hold them.

    Example:
        >>> from driftbandit import LGDS, System, monitor
        >>> system = System(LGDS([[0.5]], [[0.01]], reward_std=1.0), [[1.0]], ["blue"])
        >>> rewards = [0.5, -0.5] * 20 + [3.0] * 20  # from round 40 on it pays more
        >>> log = {"round": range(60), "arm": ["blue"] * 60, "reward": rewards}
        >>> change = next(one for one in monitor(system, log).changes if one.arm == "blue")
        >>> change.kind, change.since, change.alarm > 40
        ('higher', 40, True)
    """

    arm: Name | None  # None: all arms together
    kind: str  # higher, lower (than predicted); larger, smaller (surprises); peak (one); jump
    since: int  # the round in which it began, estimated
    alarm: int  # the round in which the chart passed its limit
    sequence: str = ""  # the label, if the log has several


class ArmHealth(NamedTuple):
    """The surprises of one arm; `Health.arms` has one for each arm that was played.

    Example:
        >>> from driftbandit import LGDS, System, monitor
        >>> system = System(LGDS([[0.5]], [[0.01]], 1.0), [[1.0], [1.0]], ["red", "blue"])
        >>> rewards = [1.0, 0.5, -1.0, -0.5] * 15  # both arms, in turns
        >>> log = {"round": range(60), "arm": ["red", "blue"] * 30, "reward": rewards}
        >>> for arm in monitor(system, log).arms:
        ...     print(arm.name, arm.rewards, arm.low < arm.mean_square < arm.high, arm.change)
        red 30 True None
        blue 30 False None
    """

    name: Name
    rewards: int
    mean: float  # of u; 0 under the model
    mean_square: float  # of u²; 1 under the model
    low: float  # where the mean square lies in 95% of all cases
    high: float
    change: Change | None  # its first


@dataclasses.dataclass(frozen=True, eq=False)
class Findings:
    """What the tests of a model's surprises found; `Health` explains the fields."""

    surprises: Surprises
    level: float
    tests: Mapping[str, Test]
    changes: tuple[Change, ...]
    arms: tuple[ArmHealth, ...]
    parts: tuple[PartHealth, ...] = ()
    correlations: Mapping[str, tuple[np.ndarray, np.ndarray]] = dataclasses.field(
        default_factory=dict
    )
    limits: Mapping[str, float] = dataclasses.field(default_factory=dict)

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
