"""What an experiment counts beside its agent: plays, rewards, models, refits, pauses."""

from __future__ import annotations

import dataclasses
from typing import Any

from driftbandit.system import Name

MODELS = 20  # newest models that are remembered
REMEMBERED = ("created", "model_replaced", "refitted", "arm_added", "arm_retired")
"""Events that change the model or the arms."""


@dataclasses.dataclass
class Tally:
    """Counts of an experiment's events."""

    decisions: int = 0
    rewards: int = 0
    last_round: int = -(2**53)
    paused: str | None = None  # why, perhaps empty; None: the experiment decides
    plays: dict[Name, list[float]] = dataclasses.field(default_factory=dict)
    """For each arm: how often it was played, how many rewards came, their sum."""
    waiting: dict[int, tuple[int, Name]] = dataclasses.field(default_factory=dict)
    """Round and arm of the decisions inside the window that have no reward yet."""
    retired: list[Name] = dataclasses.field(default_factory=list)
    models: list[dict[str, Any]] = dataclasses.field(default_factory=list)
    refit_started: float | None = None  # when the refit in progress began
    refit_seen: float = 0.0  # the newest sign of life of its server
    refits_lost: int = 0  # in a row, each with its server
    refit_failure: str | None = None
    rewards_at_refit: int = 0  # how many rewards there were when the last finished refit began
    rewards_at_start: int = 0  # the same for the refit in progress
    changed_since_refit: bool = False  # whether the model or the arms changed since it began

    def add(self, event: dict[str, Any], window: int, n_states: int, reward_std: float) -> None:
        """Count an event, after which the model has so many states and so much noise."""
        kind = event["kind"]
        if kind == "decided":
            self.decisions += 1
            self.last_round = max(self.last_round, event["round"])
            if "features" not in event:  # others are not the experiment's own arms
                self.plays.setdefault(event["arm"], [0, 0, 0.0])[0] += 1
                self.waiting[event["decision"]] = event["round"], event["arm"]
            while self.waiting and next(iter(self.waiting.values()))[0] < self.last_round - window:
                del self.waiting[next(iter(self.waiting))]
        elif kind == "rewarded":
            self.rewards += 1
            waited = self.waiting.pop(event["decision"], None)
            if waited is not None and isinstance(event["reward"], float | int):
                counted = self.plays[waited[1]]
                counted[1] += 1
                counted[2] += event["reward"]
        elif kind == "paused":
            self.paused = event["reason"]
        elif kind == "resumed":
            self.paused = None
        elif kind == "refit_started":
            self.refit_started = self.refit_seen = event["time"]
            self.rewards_at_start = self.rewards
            self.changed_since_refit = False
        elif kind == "refit_continues":
            self.refit_seen = event["time"]
        elif kind in ("refitted", "refit_failed"):
            self.refit_started = None
            self.refit_failure = event.get("reason")
            self.refits_lost = self.refits_lost + 1 if event.get("lost") else 0
            if not event.get("lost"):  # a lost one is due again
                self.rewards_at_refit = self.rewards_at_start
        if kind == "arm_retired":
            self.retired.append(event["arm"])
        elif kind == "arm_added" and event["arm"] in self.retired:
            self.retired.remove(event["arm"])
        if kind in REMEMBERED:
            self.changed_since_refit = True
            said = {"number": event["number"], "kind": kind, "time": event["time"]}
            said |= {"n_states": n_states, "reward_std": reward_std}
            said |= {key: event[key] for key in ("arm", "rewards") if key in event}
            self.models = [*self.models, said][-MODELS:]

    def as_json(self) -> dict[str, Any]:
        """All counts, as JSON values."""
        found = dict(vars(self))
        found["plays"] = [[arm, *counts] for arm, counts in self.plays.items()]
        found["waiting"] = [[id_, *play] for id_, play in self.waiting.items()]
        return found

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> Tally:
        """Counts from `as_json`."""
        given = dict(stored)
        given["plays"] = {arm: counts for arm, *counts in stored["plays"]}
        given["waiting"] = {id_: (round_, arm) for id_, round_, arm in stored["waiting"]}
        return cls(**given)
