"""An experiment: an agent whose whole life is a list of events.

A command (`decide`, `reward`, …) changes the experiment and notes what happened as events in
``new``. `apply` makes the same change from a stored event. So the fold of all events gives the same
experiment, bit for bit. Events hold decisions, not only questions: a fold chooses nothing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from driftbandit import errors
from driftbandit.agent import Agent, Decision
from driftbandit.agent.history import never_made
from driftbandit.agent.ledger import room_for
from driftbandit.agent.stored import checksum
from driftbandit.io import model_file
from driftbandit.service import settings as reading
from driftbandit.service.problems import Problem
from driftbandit.service.tally import Tally
from driftbandit.system import Name

Event = dict[str, Any]
FORMAT = 1  # of snapshots
REFIT_LEASE = 60.0  # seconds without a sign of life after which a refit counts as abandoned
MOST_LOST = 3  # refits that may end with their servers, in a row, before the next waits
MOST_SKIPPED = 10**8  # rounds that a request may be ahead: three years of seconds
MOST_NOTED = 20_000  # names or numbers that the events of one request repeat
FEWEST = 10  # rewards that a model can be learned from
OTHER_DECISION = "give the id that came with the decision, to the experiment that made it"
QUIET = ("refit_started", "refit_continues", "refit_failed", "paused", "resumed")
"""Kinds of events that are counted, and leave the agent as it is."""


class Experiment:
    """The state of an experiment after its events.

    Args:
        id: its name.
        settings: what the event ``created`` holds; see `settings.checked`.
        created: when, in Unix seconds.
        agent: None: a new one.
    """

    def __init__(
        self, id: str, settings: Mapping[str, Any], created: float, agent: Agent | None = None
    ) -> None:
        self.id, self.settings, self.created = id, settings, created
        self.agent = reading.agent_of(settings) if agent is None else agent
        self.refit = reading.refit_of(settings)
        self.tally = Tally()
        self.version = 0
        self.view: tuple[Any, dict[str, Any]] | None = None  # what readers were told last
        self.last: Event | None = None  # the last decision, if this process has seen it
        self.new: list[Event] = []  # not stored yet
        self._room: tuple[Any, int] = None, 0  # the agent's problem, and `room_for` its states

    @classmethod
    def create(cls, id: str, settings: Mapping[str, Any], now: float) -> Experiment:
        """A new experiment, whose first event says how it was made."""
        made = cls(id, settings, now)
        made._note("created", now, settings=dict(settings))
        return made

    @classmethod
    def of_event(cls, id: str, event: Event) -> Experiment:
        """The experiment that its first event made."""
        made = cls(id, event["settings"], event["time"])
        made._count(event)
        return made

    # Snapshots.

    def to_snapshot(self) -> tuple[str, str]:
        """The agent and everything else, as two JSON texts."""
        rest = {"format": FORMAT, "created": self.created, "settings": self.settings}
        rest |= {"version": self.version, "tally": self.tally.as_json()}
        text = json.dumps(rest, allow_nan=False)
        return self.agent.to_json(), f'{{"checksum": "{checksum(text)}", "rest": {text}}}'

    @classmethod
    def from_snapshot(cls, id: str, agent: str, rest: str) -> Experiment:
        """The experiment of a snapshot."""
        whole = json.loads(rest)
        stored = whole["rest"]
        if checksum(json.dumps(stored)) != whole["checksum"]:
            raise errors.InvalidInput("snapshot", "is damaged", "its checksum does not match")
        if stored["format"] != FORMAT:
            problem = f"has format {stored['format']!r}"
            raise errors.InvalidInput("snapshot", problem, f"this version reads {FORMAT}")
        made = cls(id, stored["settings"], stored["created"], Agent.from_json(agent))
        made.version, made.tally = stored["version"], Tally.from_json(stored["tally"])
        return made

    # Time.

    def round_at(self, now: float) -> int | None:
        """The round of a decision made now; None: the next one, since rounds are explicit.

        Rounds that follow the clock begin at multiples of their length in UTC, the first one when
        the experiment was made. A clock that goes back does not take rounds back.
        """
        if self.settings["time"] == "rounds":
            return None
        seconds = self.settings["time"]["seconds"]
        passed = math.floor(now / seconds) - math.floor(self.created / seconds)
        return max(0, passed, self.tally.last_round)

    # Commands.

    def decide(
        self,
        now: float,
        *,
        arms: Sequence[Name] | None = None,
        features: Sequence[Sequence[float]] | None = None,
        context: Mapping[str, Any] | None = None,
        round: int | None = None,
        count: int | None = None,
        distinct: bool = True,
        most_open: int,
    ) -> list[Decision]:
        """Make one decision, or ``count`` in one round; see `Agent.ask` and `Agent.ask_many`."""
        if self.tally.paused is not None:
            reason = self.tally.paused and f" ({self.tally.paused})"
            raise Problem(409, f"the experiment is paused{reason}; resume it first", "id")
        round = self._round_for(now, round)
        self._check_room(count or 1, round, most_open)
        if features is not None and self._by_arm:
            problem = "were given, and refits learn what belongs to the experiment's own arms"
            raise errors.InvalidInput("features", problem, "name its arms")
        _check_size(count or 1, arms, context)
        offer = _offer(arms, features)
        given: dict[str, Any] = {"round": round}
        given["context"] = reading.context_of(context, self.agent)
        if count is None:
            found = [self.agent.ask(offer, **given)]
        else:
            found = self.agent.ask_many(count, offer, **given, distinct=distinct)
        for decision in found:
            played: dict[str, Any] = {}
            if features is not None:
                place = decision.arm if arms is None else list(arms).index(decision.arm)
                played["features"] = list(features[place])
            elif arms is not None:
                played["offered"] = list(arms)
            if context is not None:
                played["context"] = dict(context)
            self._note("decided", now, **answer_of(decision), **played)
        return found

    def _round_for(self, now: float, round: int | None) -> int | None:
        """The round of a decision, from the clock or the request; None: the next one."""
        by_clock = self.round_at(now)
        if by_clock is not None and round is not None:
            raise Problem(422, "rounds follow the clock in this experiment; leave it out", "round")
        if round is None:
            return by_clock  # which may be far ahead, if nobody asked for long
        if self.tally.decisions and round > self.agent.round + MOST_SKIPPED:
            problem = f"is {round}, more than {MOST_SKIPPED:,} rounds ahead"
            raise errors.InvalidInput("round", problem, "rounds cannot be taken back")
        reading.check_round(round, "round")
        return round

    @property
    def kept(self) -> int:
        """How many decisions the agent keeps, with two states each: they are not settled yet."""
        return self.tally.decisions - self.agent.settled

    def _check_room(self, count: int, round: int | None, most_open: int) -> None:
        """Refuse decisions if too many wait for their rewards, or memory does not hold more."""
        if self._room[0] is not self.agent.problem:
            self._room = self.agent.problem, room_for(self.agent.state)
        room, waiting = self._room[1], self.agent.waiting(round)
        if waiting + count > min(most_open, room):
            detail = f"{waiting:,} decisions wait for their rewards, and with {count:,} more they "
            detail += f"would be more than {min(most_open, room):,}, the most here"
            raise Problem(409, f"{detail}; send rewards, or let rounds pass", "id")
        if self.kept + count > room and self.agent.window > room:
            detail = f"{self.kept:,} decisions are kept, and there is memory for {room:,}"
            raise Problem(409, f"{detail}; make an experiment with a smaller window", "id")

    def reward(self, now: float, rewards: Sequence[Mapping[str, Any]]) -> list[str]:
        """Learn the rewards of decisions, all or none; see `Agent.tell_many`."""
        pairs = []
        for place, told in enumerate(rewards):
            id_, where = told["decision"], f"rewards[{place}].decision" if len(rewards) > 1 else ""
            if not 0 <= id_ < self.tally.decisions:
                detail = f"{never_made(id_, self.tally.decisions)}; {OTHER_DECISION}"
                raise Problem(404, detail, where or "decision")
            decision: Decision | int = id_
            made_round, made_arm = self.tally.waiting.get(id_, (None, None))
            arm = made_arm if told.get("arm") is None else told["arm"]
            round_ = made_round if told.get("round") is None else told["round"]
            if arm is not None and round_ is not None:
                decision = Decision(id_, arm, round_, None, None, None)
            pairs.append((decision, told["reward"]))
        try:
            outcomes = self.agent.tell_many(pairs)
        except errors.InvalidInput as error:
            field = error.argument.replace("] ", "].")
            field = field.removeprefix("rewards[0].") if len(rewards) == 1 else field
            raise type(error)(field, error.problem, error.remedy) from None
        for outcome, told in zip(outcomes, rewards, strict=True):
            if outcome == "learned":
                reward = told["reward"]
                reward = float(reward) if isinstance(reward, bool) else reward
                fields = {"decision": told["decision"], "reward": reward}
                round_, arm = self.tally.waiting.get(told["decision"], (None, None))
                self._note("rewarded", now, **fields, arm=arm, round=round_)
        return list(outcomes)

    def add_arm(self, now: float, arm: Name, features: Sequence[float] | None) -> None:
        """See `Agent.add_arm`."""
        self._check_arms_can_change("be added")
        if features is not None and self._by_arm:
            problem = "were given, and refits learn components for each arm"
            raise errors.InvalidInput("features", problem, "leave them out")
        reading.check_states(self.agent.model.n_states + 2 * (features is None), "arm")
        self.agent.add_arm(arm, features)
        given = None if features is None else list(features)
        self._note("arm_added", now, arm=arm, features=given)

    def retire_arm(self, now: float, arm: Name) -> None:
        """See `Agent.remove_arm`."""
        self._check_arms_can_change("be retired")
        self.agent.remove_arm(arm)
        self._note("arm_retired", now, arm=arm)

    @property
    def _by_arm(self) -> bool:
        """Whether refits learn something for each arm, so that features do not say what it pays."""
        return self.refit is not None and self.refit.by_arm

    def _check_arms_can_change(self, what: str) -> None:
        if self.refit is not None and self.refit.keeps_arms:
            problem = f"cannot {what}: refits learn offsets, or components that arms share"
            remedy = "make a new experiment; if arms share no component, they can change"
            raise errors.InvalidInput("arm", problem, remedy)

    def replace_model(self, now: float, system: Mapping[str, Any]) -> None:
        """See `Agent.replace_model`."""
        found = model_file.from_document(system)
        reading.check_states(found.model.n_states, "system")
        self.agent.replace_model(found)
        self._note("model_replaced", now, system=dict(system))

    def refit_in_progress(self, now: float) -> bool:
        """Whether a worker learns the model, and its server has said so lately."""
        tally = self.tally
        return tally.refit_started is not None and now < tally.refit_seen + REFIT_LEASE

    def rewards_until_refit(self) -> int | None:
        """How many more rewards until the next scheduled refit; None: none is scheduled."""
        if self.refit is None:
            return None
        before = self.tally.rewards_at_refit
        return max(0, before + self.refit.pause(before) - self.tally.rewards)

    def refit_is_due(self) -> bool:
        """Whether a worker should learn the model now; one that was abandoned is taken over."""
        enough = self.rewards_until_refit() == 0 and self.tally.rewards >= FEWEST
        return enough and self.tally.refit_started is None

    def start_refit(self, now: float) -> float:
        """Note that a worker begins to learn the model; its start is also its name."""
        if self.refit_in_progress(now):
            raise Problem(409, "a refit is in progress; wait until it is done", "id")
        if self.agent.contexts:
            raise Problem(422, "a model with contexts cannot be learned here; replace it", "id")
        if self.tally.rewards < FEWEST:
            detail = f"there are {self.tally.rewards} rewards, and a refit takes {FEWEST}"
            raise Problem(409, f"{detail}; let more come", "id")
        if self.tally.refit_started is not None:
            self._note("refit_failed", now, reason="its server ended", lost=True)
        self._note("refit_started", now)
        return now

    def continue_refit(self, now: float, started: float) -> None:
        """Note that the refit that began at ``started`` is still being worked on."""
        self._check_refit(started)
        self._note("refit_continues", now)

    def take_over_refit(self, now: float, started: float, *, ended: bool) -> float | None:
        """Begin again the refit that began at ``started``, whose server has ended.

        ``ended``: this is certain; else the lease decides. Returns the new start; None: it does not
        begin again, since it may be what ended its servers, or cannot.
        """
        self._check_refit(started)
        if not ended and self.refit_in_progress(now):
            raise Problem(409, "its server goes on with the refit; wait until it is done", "id")
        reason = "its server ended"
        if self.tally.refits_lost + 1 >= MOST_LOST:
            reason += f", {MOST_LOST} times in a row; the next refit waits for more rewards"
            self._note("refit_failed", now, reason=reason)
            return None
        self._note("refit_failed", now, reason=reason, lost=True)
        try:
            return self.start_refit(now)
        except Problem:  # the model has got contexts since
            return None

    def _check_refit(self, started: float) -> None:
        if self.tally.refit_started != started:
            raise Problem(409, "another server has taken over the refit, or has ended it", "id")

    def finish_refit(self, now: float, found: Mapping[str, Any], started: float) -> None:
        """Go on with the model that a worker learned, or note why it could not.

        ``started`` says which refit it was: what comes late, after another server has taken over,
        is refused.
        """
        self._check_refit(started)
        if "reason" not in found and self.tally.changed_since_refit:
            found = {"reason": "the model or the arms were changed meanwhile"}
        if "reason" not in found:
            try:
                reading.check_states(len(found["system"]["transition"]), "the learned model")
                self._adopt(found)
            except (ArithmeticError, ValueError) as error:  # it fits neither arms nor rewards
                found = {"reason": " ".join(str(error).split())[:500]}
        kind = "refit_failed" if "reason" in found else "refitted"
        self._note(kind, now, **found)

    def _adopt(self, found: Mapping[str, Any]) -> None:
        system = model_file.from_document(found["system"])
        self.agent.replace_model(system, start=found["start"])

    def pause(self, now: float, reason: str) -> None:
        """Refuse decisions from now on."""
        if self.tally.paused is None:
            self._note("paused", now, reason=reason)

    def resume(self, now: float) -> None:
        """Decide again."""
        if self.tally.paused is not None:
            self._note("resumed", now)

    # The fold.

    def apply(self, event: Event) -> None:
        """Make the change that a stored event tells of."""
        kind, agent = event["kind"], self.agent
        if event["number"] != self.version + 1:
            problem = f"{event['number']} follows {self.version}"
            raise errors.InvalidInput("event", problem, "the store lacks events, or has one twice")
        if kind == "decided":
            context = reading.context_of(event.get("context"), agent)
            played = {"features": event.get("features"), "context": context}
            offered = event.get("offered")
            agent.record(decision_of(event), arms=offered, explain=False, **played)
        elif kind == "rewarded":
            outcome = agent.tell(event["decision"], event["reward"])
            if outcome != "learned":
                problem = f"{event['number']} is {outcome}"
                raise errors.InvalidInput("event", problem, "the store has events out of order")
        elif kind == "arm_added":
            agent.add_arm(event["arm"], event["features"])
        elif kind == "arm_retired":
            agent.remove_arm(event["arm"])
        elif kind == "model_replaced":
            agent.replace_model(model_file.from_document(event["system"]))
        elif kind == "refitted":
            self._adopt(event)
        elif kind not in QUIET:
            problem = f"{event['number']} has the unknown kind {kind!r:.40}"
            raise errors.InvalidInput("event", problem, "it was stored by a newer version")
        self._count(event)

    def _note(self, kind: str, now: float, **fields: Any) -> None:
        event = {"number": self.version + 1, "kind": kind, "time": now, **fields}
        self._count(event)
        self.new.append(event)

    def _count(self, event: Event) -> None:
        self.version = event["number"]
        if event["kind"] == "decided":
            self.last = event
        model, window = self.agent.model, self.settings["window"]
        self.tally.add(event, window, model.n_states, float(model.reward_std))


def _offer(arms: Sequence[Name] | None, features: Any) -> Any:
    """What `Agent.ask` takes: names, rows of features, or a mapping from names to rows."""
    if arms is None or features is None:
        return features if arms is None else list(arms)
    if len(arms) != len(features):
        problem = f"has {len(features)} rows for {len(arms)} arms"
        raise errors.InvalidInput("features", problem, "give one row for each arm")
    if len(set(map(str, arms))) < len(arms):
        raise errors.InvalidInput("arms", "has a name twice", "give each name once")
    return dict(zip(arms, features, strict=True))


def _check_size(count: int, arms: Sequence[Name] | None, context: Any) -> None:
    """Refuse a batch whose events would be far larger than its request."""
    noted = len(arms or ())
    for value in (context or {}).values():
        noted += len(value) if isinstance(value, Mapping | Sequence) else 1
    if count > 1 and count * noted > MOST_NOTED:
        problem = f"is {count}, each with {noted} names or numbers"
        raise errors.InvalidInput("count", problem, f"{MOST_NOTED:,} in all are the most")


def answer_of(decision: Decision) -> dict[str, Any]:
    """A decision as the wire and the events write it."""
    found = decision.to_dict()
    return {"decision": found.pop("id"), **found}


def decision_of(event: Mapping[str, Any]) -> Decision:
    """The decision of an event."""
    fields = [event[name] for name in ("decision", "arm", "round", "mean", "bonus", "uncertainty")]
    return Decision(*fields)
