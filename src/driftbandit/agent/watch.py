"""An agent's watch on its own model: the surprises of settled rewards, and what an alarm leads to.

A reward is settled when its round leaves the window. Then no reward before it can change any more,
so that surprises, charts and alarms do not depend on the order in which rewards came.
"""

from __future__ import annotations

import copy
import dataclasses
import math
from collections import deque
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS
from driftbandit.monitoring import charts
from driftbandit.monitoring.findings import Change
from driftbandit.system import Name

if TYPE_CHECKING:
    from driftbandit.monitoring.health import Health

OnAlarm = Literal["widen", "refit"]
MEMORY = 1000  # surprises that are kept, the newest
CHANCE = 0.01  # of a false alarm in as many rewards
WIDEST = 2.0  # the largest factor of one alarm
LARGEST = 1e50  # surprise: sums of squares of larger ones could not be stored


class Watch:
    """The newest surprises of an agent and, if it acts on alarms, the charts.

    Agents of older versions are stored without; theirs begin again.
    """

    def __init__(self, model: LGDS, on_alarm: OnAlarm | None) -> None:
        self.on_alarm = on_alarm
        # Round, arm and surprise of settled rewards, the newest last.
        self.surprises: deque[tuple[int, Name, float]] = deque(maxlen=MEMORY)
        self.charts = charts.Charts(charts.limits(MEMORY, CHANCE)) if on_alarm else None
        self.alarms: deque[Change] = deque(maxlen=100)
        self.refit_since: int | None = None  # the round from which a refit is due to learn
        self.restart(model)

    def restart(self, model: LGDS) -> None:
        """Begin again, with another model; only the alarms stay."""
        self.noise, self.least = float(model.reward_std) ** 2, 0.0
        if self.noise == 0:  # rewards may be known in advance, but for rounding errors
            from driftbandit.monitoring.surprises import KNOWN

            self.least = KNOWN * float(np.diag(model.start_cov() + model.process_cov).max())
        self.surprises.clear()
        self.refit_since = None
        if self.charts is not None:
            self.charts.state.clear()

    def copy(self) -> Watch:
        """An independent copy."""
        other = copy.copy(self)
        other.surprises, other.alarms = self.surprises.copy(), self.alarms.copy()
        other.charts = self.charts and self.charts.copy()
        return other

    def surprise(self, row: np.ndarray, state: Any, reward: float) -> float | None:
        """(x − ⟨a, ẑ⟩) / √(aᵀPa + σ²) in a belief; None: the reward was known in advance."""
        mean, cov = state.mean, state.cov
        variance = float(row.dot(cov).dot(row)) + self.noise
        if variance <= self.least:
            return None
        value = (reward - float(row.dot(mean))) / math.sqrt(variance)
        return value if -LARGEST < value < LARGEST else math.copysign(LARGEST, value)

    def alarm(self) -> float | None:
        """Take the newest surprise into the charts; the factor by which to widen Q, if any.

        The factor is the mean square of the surprises since the change, between 1 and `WIDEST`.
        """
        if self.charts is None:
            return None
        round_, arm, value = self.surprises[-1]
        alarm = self.charts.add(arm, value, round_)
        if alarm is None or (self.on_alarm == "widen" and alarm.kind == "smaller"):
            return None
        since = alarm.chart.since
        self.alarms.append(Change(alarm.arm, alarm.kind, since, round_))  # type: ignore[arg-type]
        if self.on_alarm == "refit":
            self.refit_since = since
            return None
        return min(max(alarm.mean_square, 1.0), WIDEST)

    def health(self, level: float) -> Health:
        """The verdict on the newest surprises."""
        from driftbandit.monitoring.health import FEWEST, health_of
        from driftbandit.monitoring.surprises import Surprises

        level = errors.number(level, "level", low=0, high=1, strict=True)
        if len(self.surprises) < FEWEST:
            problem = f"has {len(self.surprises)} settled rewards since it has its model"
            remedy = f"it takes {FEWEST}, each older than the window; play on"
            raise errors.InvalidInput("agent", problem, remedy)
        numbers: dict[Name, int] = {}
        rounds, arms, values = zip(*self.surprises, strict=True)
        places = np.array([numbers.setdefault(arm, len(numbers)) for arm in arms])
        newest = Surprises(np.array(values), places, np.array(rounds), np.zeros_like(places))
        return health_of(newest, tuple(numbers), level)


def checked_on_alarm(on_alarm: Any, never_refits: bool) -> OnAlarm | None:
    """The argument of an agent, None or one of two words."""
    if on_alarm is not None:
        errors.closest(on_alarm, "on_alarm", ("refit", "widen"))
    if on_alarm == "refit" and never_refits:
        problem = "is 'refit', and refit is None"
        raise errors.InvalidInput("on_alarm", problem, "give refit=Refit(…), too")
    return on_alarm


def widened(model: LGDS, factor: float) -> LGDS:
    """The model with Q times ``factor``: everything moves faster, and older rewards count less."""
    return dataclasses.replace(model, process_cov=factor * model.process_cov)
