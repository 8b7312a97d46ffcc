"""Experiments in a store without HTTP, and a server's answers whatever their status is."""

from __future__ import annotations

import contextlib
import json
import queue
import sqlite3
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

from driftbandit import cli
from driftbandit.service.problems import Problem
from driftbandit.service.settings import checked
from driftbandit.service.store import Store
from driftbandit.service.writer import Job, Result, Writer, parsed

SYSTEM = {
    "transition": [[0.9, 0.1], [-0.1, 0.8]],
    "process_cov": [[0.2, 0.0], [0.0, 0.1]],
    "reward_std": 0.5,
    "arms": [[1.0, 0.0], [0.0, 1.0], [0.7, 0.7]],
    "names": ["left", "right", "both"],
}
MANY = 10**6


def sqlite_url(folder: Path) -> str:
    """The URL of a store in a folder."""
    return f"sqlite:///{folder / 'decisions.db'}"


class Desk:
    """A writer on a store, with the calls that tests make."""

    def __init__(self, store: Store, **options: Any) -> None:
        self.store, self.writer = store, Writer(store, **options)

    def create(self, id: str = "one", **options: Any) -> dict[str, Any]:
        """Make an experiment."""
        done: queue.SimpleQueue[Result | Problem] = queue.SimpleQueue()
        settings = checked({"system": SYSTEM, **options}, MANY)
        self.writer.submit(Job(id, None, done.put, settings=settings))
        found = done.get(timeout=30)
        if isinstance(found, Problem):
            raise found
        return parsed(found)

    def decide(self, id: str = "one", **options: Any) -> dict[str, Any]:
        """Make a decision."""
        return parsed(self.writer.run(id, decision, **options))

    def reward(self, decision: int, value: float, id: str = "one", **options: Any) -> str:
        """Tell a reward."""
        told = [{"decision": decision, "reward": value}]
        work = lambda one, now: (200, one.reward(now, told))  # noqa: E731
        return parsed(self.writer.run(id, work, early=True, **options))[0]

    def play(self, rounds: int, id: str = "one") -> None:
        """Decide and reward so often."""
        for number in range(rounds):
            self.reward(self.decide(id)["decision"], number / 7 % 1, id)

    def snapshot(self, id: str = "one") -> tuple[str, str]:
        """The whole state, as two texts."""
        return tuple(parsed(self.writer.run(id, _snapshot, writes=False)))

    def events(self, id: str = "one") -> list[dict[str, Any]]:
        """All events."""
        with self.store.read() as transaction:
            return list(transaction.events(id, 0))


def decision(experiment: Any, now: float) -> tuple[int, Any]:
    """A job that makes a decision."""
    (found,) = experiment.decide(now, most_open=MANY)
    return 201, {"decision": found.id, "arm": found.arm, "round": found.round}


def _snapshot(experiment: Any, _: float) -> tuple[int, Any]:
    return 200, experiment.to_snapshot()


@contextlib.contextmanager
def desk(url: str | Store, **options: Any) -> Iterator[Desk]:
    """A writer on a store of its own, closed in good order."""
    store = url if isinstance(url, Store) else Store(url)
    try:
        made = Desk(store, **options)
        try:
            yield made
        finally:
            made.writer.close()
    finally:
        store.close()


@contextlib.contextmanager
def rows(folder: Path) -> Iterator[sqlite3.Connection]:
    """The database by hand; what is changed is kept."""
    connection = sqlite3.connect(folder / "decisions.db", isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


class Ran(NamedTuple):
    """What a command left."""

    code: int
    out: str
    err: str


def ran(capsys: Any, *words: Any) -> Ran:
    """Run the program in this process."""
    with mock.patch.object(sys, "argv", ["driftbandit", *map(str, words)]):
        try:
            cli.main()
            code = 0
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return Ran(code, *capsys.readouterr())


class Answer(NamedTuple):
    """What a server answered."""

    status: int
    headers: dict[str, str]  # their names in lower case
    document: Any


def call(url: str, document: Any = None, timeout: float = 30.0, **headers: str) -> Answer:
    """GET a URL, or POST a document to it; an error's answer is returned, too."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = None if document is None else json.dumps(document).encode()
    if body is not None:
        named["Content-Type"] = "application/json"
    request = urllib.request.Request(url, body, named)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            return Answer(answer.status, _lower(answer.headers), json.load(answer))
    except urllib.error.HTTPError as error:
        with error:
            return Answer(error.code, _lower(error.headers), json.load(error))


def _lower(headers: Any) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}
