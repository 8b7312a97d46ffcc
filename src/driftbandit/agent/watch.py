"""An agent's watch on its own model: the surprises of settled rewards, and what an alarm leads to.

A reward is settled when its round leaves the window. Then no reward before it can change any more,
so that surprises, charts and alarms do not depend on the order in which rewards came.
"""

from __future__ import annotations

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
REMEDY = "give what Agent.to_json or Agent.save wrote"


class Watch:
    """The newest surprises of an agent and, if it acts on alarms, the charts."""

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
        other = object.__new__(Watch)
        vars(other).update(vars(self), surprises=self.surprises.copy(), alarms=self.alarms.copy())
        other.charts = None if self.charts is None else self.charts.copy()
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
        assert self.charts is not None
        round_, arm, value = self.surprises[-1]
        found = self.charts.add(arm, value, round_)
        if found is None or (self.on_alarm == "widen" and found.kind == "smaller"):
            return None
        since = found.chart.since
        self.alarms.append(Change(found.arm, found.kind, since, round_))  # type: ignore[arg-type]
        if self.on_alarm == "refit":
            self.refit_since = since
            return None
        return min(max(found.mean_square, 1.0), WIDEST)

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
        found = Surprises(np.array(values), places, np.array(rounds), np.zeros_like(places))
        return health_of(found, tuple(numbers), level)

    # Stored as JSON.

    def as_json(self) -> dict[str, Any]:
        """Everything, as lists and numbers."""
        state = {} if self.charts is None else self.charts.state
        return {
            "surprises": [list(one) for one in self.surprises],
            "charts": [[*owner, *chart] for owner, chart in state.items()],
            "alarms": [list(one) for one in self.alarms],
            "refit_since": self.refit_since,
        }

    def restore(self, stored: Any) -> None:
        """Take back what `as_json` gave."""
        self.surprises.extend(
            (_whole(round_), _name(arm), errors.number(value, "surprise"))
            for round_, arm, value in stored["surprises"]
        )
        for arm, kind, since, alarm, label in stored["alarms"]:
            name = None if arm is None else _name(arm)
            kind = errors.closest(kind, "alarm", charts.KINDS)
            if label != "":
                raise errors.InvalidInput("alarm", f"has the sequence {label!r:.60}", REMEDY)
            self.alarms.append(Change(name, kind, _whole(since), _whole(alarm)))
        since = stored["refit_since"]
        self.refit_since = None if since is None else _whole(since)
        for arm, kind, height, since, rewards, squares in stored["charts"]:
            if self.charts is None:
                raise errors.InvalidInput("charts", "are there, without on_alarm", REMEDY)
            owner = None if arm is None else _name(arm)
            count = errors.whole_number(rewards, "chart", low=1)
            sizes = [errors.number(size, "chart", low=0) for size in (height, squares)]
            chart = charts.Chart(sizes[0], _whole(since), count, sizes[1])
            self.charts.state[owner, errors.closest(kind, "chart", charts.KINDS)] = chart


def _whole(round_: Any) -> int:
    return errors.whole_number(round_, "round", low=-(2**53), high=2**53)


def _name(arm: Any) -> Name:
    if isinstance(arm, bool) or not isinstance(arm, int | str):
        raise errors.InvalidInput("arm", f"is {arm!r:.60}", REMEDY)
    return arm


def checked_on_alarm(on_alarm: Any, never_refits: bool) -> OnAlarm | None:
    """The argument of an agent, None or one of two words."""
    if on_alarm is None:
        return None
    found: OnAlarm = errors.closest(on_alarm, "on_alarm", ("refit", "widen"))  # type: ignore
    if found == "refit" and never_refits:
        remedy = "give refit=Refit(…), too"
        raise errors.InvalidInput("on_alarm", "is 'refit', and refit is None", remedy)
    return found


def widened(model: LGDS, factor: float) -> LGDS:
    """The model with Q times ``factor``: everything moves faster, and older rewards count less."""
    cov, mean = model.initial_cov, model.initial_mean
    return LGDS(model.transition, factor * model.process_cov, model.reward_std, cov, mean)
