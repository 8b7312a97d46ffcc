"""Clients that load a server as a careful application would, and note what it acknowledged.

Every decision has an Idempotency-Key. A request without an answer is sent again, with the same key,
until there is one: to the same server, or to another replica. Rewards come at once, late, several
in one request, twice, or never. What must be refused is tried, too.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import random
import time
from collections.abc import Coroutine, Sequence
from typing import Any

import driftbandit
from driftbandit.io.model_file import to_document
from service.connection import Answer, Connection, Lost
from service.ledger import Ledger, check, compare, folded

__all__ = ["Ledger", "Load", "check", "compare", "folded", "settings"]
TRY_AGAIN = {429, 503}


def settings(name: str, size: int = 3, window: int = 150, **changed: Any) -> dict[str, Any]:
    """The document of an experiment with as many states as arms, which are called a, b, ….

    Example:
        >>> document = settings("one")
        >>> document["system"]["names"], document["policy"]
        (['a', 'b', 'c'], 'idea')
    """
    model, arms = driftbandit.families.sample("gaussian", n_states=size, n_arms=size, seed=1)[0]
    names = [chr(ord("a") + number) for number in range(size)]
    system = to_document(driftbandit.System(model, arms, names))
    plain = {"policy": "idea", "seed": 5, "window": window, "time": "rounds"}
    return {"id": name, "system": system} | plain | changed


@dataclasses.dataclass
class Load:
    """A load of so many requests or rewards, and its ledger."""

    urls: Sequence[str]
    document: dict[str, Any]  # the experiment's
    clients: int = 8
    seed: int = 0
    requests: float = float("inf")  # stop after so many answers
    rewards: float = float("inf")  # stop after so many learned rewards
    seconds: float = 60.0  # fail after so long
    doubled: float = 0.02  # share of the requests that are sent twice at the same time
    late: int = 3  # rewards that a client keeps back
    batch: int = 4  # rewards that a client collects before it tells them together
    ledger: Ledger = dataclasses.field(default_factory=Ledger)

    @property
    def is_done(self) -> bool:
        """Whether the clients may stop."""
        answered = self.ledger.counts["answered"] >= self.requests
        return answered or len(self.ledger.rewards) >= self.rewards

    async def run(self, *others: Coroutine[Any, Any, Any]) -> None:
        """Run the clients until everything is answered, and ``others`` beside them."""
        self.deadline = time.monotonic() + self.seconds
        clients = [Client(self, number) for number in range(self.clients)]
        async with asyncio.TaskGroup() as group:
            for other in others:
                group.create_task(other)
            for client in clients:
                group.create_task(client.run())


class Client:
    """One client, which sends one request after the other, over one connection to each URL."""

    def __init__(self, load: Load, number: int) -> None:
        self.load, self.ledger, self.number = load, load.ledger, number
        self.rng = random.Random(f"{load.seed} {number}")
        self.path = f"/v1/experiments/{load.document['id']}"
        self.names = load.document["system"]["names"]
        self.connections = [Connection(url) for url in load.urls]
        self.others = [Connection(url) for url in load.urls]
        self.keys = 0
        self.late: list[dict[str, Any]] = []
        self.batch: list[dict[str, Any]] = []

    async def run(self) -> None:
        """Play until the load is done, then tell what was kept back."""
        try:
            while not self.load.is_done:
                await self.play()
            for decision in self.late:
                await self.tell(decision)
            if self.batch:
                await self.tell_batch()
        finally:
            for connection in (*self.connections, *self.others):
                await connection.close()

    async def play(self) -> None:
        """Ask for one decision or several, and tell some rewards."""
        for decision in await self.decide():
            fate = self.rng.random()
            if fate < 0.04:
                continue  # its reward never comes
            if fate < 0.2:
                self.late.append(decision)
            elif fate < 0.5:
                self.batch.append(decision)
            else:
                await self.tell(decision)
        if len(self.late) > self.load.late:
            await self.tell(self.late.pop(self.rng.randrange(len(self.late))))
        if len(self.batch) >= self.load.batch:
            await self.tell_batch()

    async def decide(self) -> list[dict[str, Any]]:
        """Ask, with a key; sometimes again, and sometimes with another body, which is refused."""
        document: dict[str, Any] = {}
        if self.rng.random() < 0.15:
            document["count"] = self.rng.randint(1, len(self.names))
        if self.rng.random() < 0.1:
            least = document.get("count", 1)
            document["arms"] = self.rng.sample(self.names, self.rng.randint(least, len(self.names)))
        key = self.new_key()
        answer, _ = await self.send("/decisions", document, key)
        if not self.expect(answer, 201):
            return []
        found = answer.document
        made: list[dict[str, Any]] = found["decisions"] if "count" in document else [found]
        self.ledger.note_decisions(made, "count" in document)
        again = self.rng.random()
        if again < 0.03:
            repeated, _ = await self.send("/decisions", document, key)
            if repeated[::2] != answer[::2] or not repeated.is_replayed:
                self.problem("the repeated request got another answer", repeated)
        elif again < 0.04:
            other, _ = await self.send("/decisions", {"count": 2, "distinct": False}, key)
            self.expect(other, 422)
        return made

    async def tell(self, decision: dict[str, Any]) -> None:
        """Tell one reward."""
        kind, id_ = self.rng.random(), decision["decision"]
        if kind < 0.03:
            answer, _ = await self.send("/rewards", {"decision": id_, "reward": None})
            self.outcome(answer, {"missing", "too late"})
        value = self.value()
        key = self.new_key() if self.rng.random() < 0.5 else None
        answer, certain = await self.send("/rewards", {"decision": id_, "reward": value}, key)
        expected = {"learned", "too late"} | (set() if certain or key else {"duplicate"})
        outcome = self.outcome(answer, expected)
        self.note(id_, value, outcome, certain or key is not None)
        if outcome not in ("learned", "duplicate"):
            return
        if kind > 0.95:
            answer, _ = await self.send("/rewards", {"decision": id_, "reward": value})
            self.outcome(answer, {"duplicate", "too late"})
        elif kind > 0.94:
            other = {"decision": id_, "reward": float(value) + 1}
            answer, _ = await self.send("/rewards", other)
            if answer.status != 409:
                self.outcome(answer, {"too late"})

    async def tell_batch(self) -> None:
        """Tell several rewards in one request; sometimes first with one that cannot be."""
        batch, self.batch = self.batch, []
        told = [{"decision": one["decision"], "reward": self.value()} for one in batch]
        if self.rng.random() < 0.1:
            never = {"decision": 10**9, "reward": 0.5}
            answer, _ = await self.send("/rewards", {"rewards": [*told, never]})
            self.expect(answer, 404)
        key = self.new_key() if self.rng.random() < 0.5 else None
        answer, certain = await self.send("/rewards", {"rewards": told}, key)
        if not self.expect(answer, 200):
            return
        expected = {"learned", "too late"} | (set() if certain or key else {"duplicate"})
        outcomes = answer.document["outcomes"]
        if len(outcomes) != len(told) or not expected.issuperset(outcomes):
            self.problem(f"outcomes other than {expected}", answer)
        for one, outcome in zip(told, outcomes, strict=False):
            self.note(one["decision"], one["reward"], outcome, certain or key is not None)

    def value(self) -> float | bool:
        """A reward."""
        return self.rng.random() < 0.5 if self.rng.random() < 0.1 else self.rng.gauss(0, 1)

    def note(self, id_: int, value: float, outcome: str | None, is_certain: bool) -> None:
        """Note what became of a reward."""
        if outcome in ("learned", "duplicate"):
            self.ledger.note_reward(id_, float(value))
        elif outcome == "too late":
            self.ledger.counts["too late"] += 1
            if not is_certain:
                self.ledger.unsure[id_] = float(value)

    def new_key(self) -> str:
        """A key that no other request has."""
        self.keys += 1
        return f"{self.load.seed}-{self.number}-{self.keys}"

    async def send(
        self, path: str, document: dict[str, Any], key: str | None = None
    ) -> tuple[Answer, bool]:
        """The answer to a request, and whether it was sent only once."""
        body = json.dumps(document).encode()
        if key is None or self.rng.random() >= self.load.doubled:
            answer, tries = await self.until_answered(self.connections, path, body, key)
            return answer, tries == 1
        (first, _), (second, _) = await asyncio.gather(
            self.until_answered(self.connections, path, body, key),
            self.until_answered(self.others, path, body, key),
        )
        self.ledger.counts["doubled"] += 1
        if first[::2] != second[::2]:
            self.problem(f"two answers to the key {key}: {first.body!r}", second)
        if first.status < 300 and not (first.is_replayed or second.is_replayed):
            self.problem(f"both answers to the key {key} say that they are the first", second)
        return first, False

    async def until_answered(
        self, connections: list[Connection], path: str, body: bytes, key: str | None
    ) -> tuple[Answer, int]:
        """Send a request until there is an answer; also how often it was sent."""
        counts, tries = self.ledger.counts, 0
        while True:
            tries += 1
            counts["sent"] += 1
            try:
                connection = self.rng.choice(connections)
                answer = await connection.request("POST", self.path + path, body, key)
                if answer.status not in TRY_AGAIN:
                    counts["answered"] += 1
                    return answer, tries
                counts[f"status {answer.status}"] += 1
            except Lost:
                counts["lost answers"] += 1
            if time.monotonic() > self.load.deadline:
                raise TimeoutError(f"not done in {self.load.seconds} s: {dict(counts)}")
            await asyncio.sleep(self.rng.uniform(0.01, 0.05))

    def expect(self, answer: Answer, status: int) -> bool:
        """Note a problem unless the answer has this status; return whether it has."""
        if answer.status != status:
            self.problem(f"not the status {status}", answer)
        return answer.status == status

    def outcome(self, answer: Answer, expected: set[str]) -> str | None:
        """The outcome of one reward; a problem is noted if it is none of the expected."""
        if not self.expect(answer, 200):
            return None
        found: str = answer.document["outcome"]
        if found not in expected:
            self.problem(f"an outcome other than {sorted(expected)}", answer)
        return found

    def problem(self, what: str, answer: Answer) -> None:
        """Note what must not happen."""
        self.ledger.problems.append(f"{what}: {answer.status} {answer.body[:300]!r}")
