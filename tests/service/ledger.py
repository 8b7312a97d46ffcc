"""What a server acknowledged, and whether it is still true afterwards."""

from __future__ import annotations

import collections
import dataclasses
import json
from pathlib import Path
from typing import Any

import driftbandit
from driftbandit.io.model_file import from_document
from service.connection import get

SCORES = ("mean", "bonus", "uncertainty")


@dataclasses.dataclass
class Ledger:
    """Every acknowledged answer, in memory and, if ``path`` is given, in a file of JSON lines."""

    path: Path | None = None
    decisions: dict[int, dict[str, Any]] = dataclasses.field(default_factory=dict)
    batches: dict[int, list[int]] = dataclasses.field(default_factory=dict)  # by their first id
    rewards: dict[int, float] = dataclasses.field(default_factory=dict)
    unsure: dict[int, float] = dataclasses.field(default_factory=dict)
    """Rewards told without a key whose answer was lost, and that are too late by now."""
    problems: list[str] = dataclasses.field(default_factory=list)
    counts: collections.Counter[str] = dataclasses.field(default_factory=collections.Counter)

    def __post_init__(self) -> None:
        self._file = None if self.path is None else self.path.open("a", encoding="utf-8")

    def note_decisions(self, made: list[dict[str, Any]], is_batch: bool) -> None:
        """Note the decisions of one answer."""
        for decision in made:
            if decision["decision"] in self.decisions:
                self.problems.append(f"decision {decision['decision']} was made twice")
            self.decisions[decision["decision"]] = decision
        if is_batch:
            ids = [decision["decision"] for decision in made]
            if len({decision["round"] for decision in made}) != 1:
                self.problems.append(f"the batch {ids} is in several rounds")
            self.batches[ids[0]] = ids
        self._write({"decisions": made})

    def note_reward(self, decision: int, reward: float) -> None:
        """Note a reward that was learned."""
        if self.rewards.setdefault(decision, reward) != reward:
            self.problems.append(f"decision {decision} learned two rewards")
        self._write({"decision": decision, "reward": reward})

    def _write(self, document: dict[str, Any]) -> None:
        if self._file is not None:
            print(json.dumps(document), file=self._file, flush=True)

    def close(self) -> None:
        """Close its file."""
        if self._file is not None:
            self._file.close()


def all_events(url: str, experiment: str) -> list[dict[str, Any]]:
    """Every event of an experiment, the oldest first."""
    found: list[dict[str, Any]] = []
    while True:
        page = f"{url}/v1/experiments/{experiment}/events?after={len(found)}&limit=10000"
        events = get(page)["events"]
        if not events:
            return found
        found += events


@dataclasses.dataclass
class Checked:
    """How many acknowledged answers are gone, or are there more than once."""

    events: int
    lost: int
    twice: int
    unexplained: int
    problems: list[str]


def check(url: str, settings: dict[str, Any], ledger: Ledger) -> Checked:
    """Compare a server's events and state with a ledger in which nothing waits for an answer.

    Args:
        url: of the server.
        settings: the document that made the experiment.
        ledger: of all requests that were ever sent to it.
    """
    events = all_events(url, settings["id"])
    gaps = [event for place, event in enumerate(events, 1) if event["number"] != place]
    assert not gaps, gaps[0]
    assert events[0]["kind"] == "created"
    assert {event["kind"] for event in events[1:]} <= {"decided", "rewarded"}
    decided = [event for event in events if event["kind"] == "decided"]
    rewarded = [event for event in events if event["kind"] == "rewarded"]
    ids = collections.Counter(event["decision"] for event in decided)
    told = collections.Counter(event["decision"] for event in rewarded)
    checked = Checked(
        events=len(events),
        lost=len(ledger.decisions.keys() - ids) + len(ledger.rewards.keys() - told),
        twice=sum(ids.values()) - len(ids) + sum(told.values()) - len(told),
        unexplained=len(ids.keys() - ledger.decisions.keys())
        + len(told.keys() - ledger.rewards.keys() - ledger.unsure.keys()),
        problems=ledger.problems[:5],
    )
    assert checked == Checked(len(events), 0, 0, 0, []), checked
    assert list(ids) == list(range(len(decided))), "the decisions are not numbered in order"
    for event in decided:
        same = ("decision", "arm", "round", *SCORES)
        acknowledged = ledger.decisions[event["decision"]]
        differs = [name for name in same if event[name] != acknowledged[name]]
        assert not differs, (differs, event, acknowledged)
    rewards = ledger.unsure | ledger.rewards
    for event in rewarded:
        assert event["reward"] == rewards[event["decision"]], event
    state = get(f"{url}/v1/experiments/{settings['id']}/state")
    counted = (state["decisions"], state["rewards"])
    assert counted == (len(decided), len(rewarded)), counted
    compare(state, folded(events, ledger))
    return checked


def folded(events: list[dict[str, Any]], ledger: Ledger) -> driftbandit.Agent:
    """A plain agent that went through the events; it must have decided the same, bit for bit."""
    created = events[0]["settings"]
    agent = driftbandit.Agent(
        from_document(created["system"]),
        **{name: created[name] for name in ("policy", "seed", "window", "rounds", "memory")},
    )
    place = 1
    while place < len(events):
        event = events[place]
        if event["kind"] == "rewarded":
            assert agent.tell(event["decision"], event["reward"]) == "learned", event
            place += 1
            continue
        ids = ledger.batches.get(event["decision"])
        asked = {"arms": event.get("offered"), "round": event["round"]}
        made = [agent.ask(**asked)] if ids is None else agent.ask_many(len(ids), **asked)
        for decision, found in zip(made, events[place : place + len(made)], strict=True):
            plain = decision.to_dict()
            plain["decision"] = plain.pop("id")
            assert {name: found.get(name) for name in plain} == plain, (found, plain)
        place += len(made)
    return agent


def compare(state: dict[str, Any], agent: driftbandit.Agent) -> None:
    """Assert that a state document shows the scores of a plain agent, bit for bit."""
    shown = {arm["arm"]: tuple(arm[name] for name in SCORES) for arm in state["arms"]}
    scores = [score.to_dict() for score in agent.scores()]
    plain = {score["arm"]: tuple(score[name] for name in SCORES) for score in scores}
    assert shown == plain, (shown, plain)
    assert state["round"] == agent.round, (state["round"], agent.round)
