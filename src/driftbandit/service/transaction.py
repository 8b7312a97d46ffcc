"""What a transaction of a store reads and writes."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from driftbandit.service.tables import answers, events, experiments, keys, samples, snapshots

KEPT = 2  # newest snapshots of each experiment
PAGE = 5000  # events read at a time

# Statements that every request needs. Making one anew takes as long as running it.
_VERSION = sa.select(experiments.c.version).where(experiments.c.id == sa.bindparam("one"))
_LOCKED_VERSION = _VERSION.with_for_update()
_NEW_EVENTS = sa.insert(events)
_NEW_VERSION = (
    sa.update(experiments)
    .where(experiments.c.id == sa.bindparam("one"))
    .values(version=sa.bindparam("last"), summary=sa.bindparam("said"))
)
_ANSWERS = sa.select(answers.c.key, answers.c.fingerprint, answers.c.status, answers.c.body).where(
    answers.c.experiment == sa.bindparam("one"),
    answers.c.key.in_(sa.bindparam("wanted", expanding=True)),
)
_NEW_ANSWERS = sa.insert(answers)


class StoreError(Exception):
    """The store cannot do its work now; nothing of the transaction was kept."""

    remedy = "try again"


class Damaged(StoreError):
    """What is stored is not what was written."""

    remedy = "restore the store from a backup; driftbandit verify says more"


class Answer(NamedTuple):
    """What was answered to a request with an idempotency key."""

    fingerprint: str
    status: int
    body: str


class Snapshot(NamedTuple):
    """An experiment after its event ``number``, as two texts."""

    number: int
    agent: str
    rest: str


class Transaction:
    """Reads and writes that are kept together, or not at all."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    # Experiments.

    def version(self, id: str, *, lock: bool = False) -> int | None:
        """The number of the experiment's last event; None: there is no such experiment."""
        # SQLite has no such lock and needs none: its writers are alone in the whole file.
        query = _LOCKED_VERSION if lock else _VERSION
        found: int | None = self._connection.scalar(query, {"one": id})
        return found

    def ids(self) -> list[str]:
        """The names of all experiments, in order."""
        return list(self._connection.scalars(sa.select(experiments.c.id).order_by("id")))

    def experiments(self) -> list[dict[str, Any]]:
        """The summary of every experiment, in the order of names."""
        columns = experiments.c
        rows = self._connection.execute(
            sa.select(columns.id, columns.created, columns.version, columns.summary).order_by(
                columns.id
            )
        )
        return [
            {"id": id_, "created": created, "version": version}
            | _read(summary, f"the summary of experiment {id_}")
            for id_, created, version, summary in rows
        ]

    def refits(self) -> list[tuple[str, float]]:
        """The experiments with a refit that has not ended, and when it began."""
        found = []
        for id_, text in self._connection.execute(
            sa.select(experiments.c.id, experiments.c.summary)
        ):
            try:  # a damaged summary is no reason to lose sight of the others
                started = _read(text, "the summary").get("refit_started")
            except Damaged:
                continue
            if isinstance(started, float | int):
                found.append((id_, started))
        return found

    def totals(self) -> tuple[int, int]:
        """How many experiments there are, and how many events they have."""
        version = experiments.c.version
        query = sa.select(sa.func.count(), sa.func.coalesce(sa.func.sum(version), 0))
        count, events_ = self._connection.execute(query.select_from(experiments)).one()
        return int(count), int(events_)

    def add_experiment(self, id: str, created: float) -> bool:
        """Make room for a new experiment; False: the name is taken."""
        if self.version(id) is not None:
            return False
        row = {"id": id, "version": 0, "created": created, "summary": "{}"}
        self._connection.execute(sa.insert(experiments), [row])
        return True

    # Events.

    def events(self, id: str, after: int, limit: int | None = None) -> Iterator[dict[str, Any]]:
        """The events of an experiment after a number, in order.

        Raises `Damaged` if one is missing before the last, or is not what was written.
        """
        columns = events.c
        stored = (columns.number, columns.kind, columns.time, columns.data, columns.checksum)
        while limit is None or limit > 0:
            size = PAGE if limit is None else min(PAGE, limit)
            query = (
                sa.select(*stored)
                .where(columns.experiment == id, columns.number > after)
                .order_by(columns.number)
                .limit(size)
            )
            rows = self._connection.execute(query).all()
            for number, kind, time, data, checksum in rows:
                what = f"event {number} of experiment {id}"
                if number != after + 1:
                    raise Damaged(f"event {after + 1} of experiment {id} is missing")
                after = number
                if checksum != checksum_of(id, number, kind, time, data):
                    raise Damaged(f"{what} is not what was stored: its checksum does not match")
                yield {"number": number, "kind": kind, "time": time} | _read(data, what)
            if len(rows) < size:
                return
            limit = None if limit is None else limit - size

    def append(self, id: str, new: Sequence[dict[str, Any]], summary: dict[str, Any]) -> None:
        """Add events; the caller holds the experiment's lock."""
        rows = []
        for event in new:
            row = {key: event[key] for key in ("number", "kind", "time")}
            row["data"] = written({key: event[key] for key in event if key not in row})
            rows.append({"experiment": id, **row, "checksum": checksum_of(id, **row)})
        self._connection.execute(_NEW_EVENTS, rows)
        change = {"one": id, "last": new[-1]["number"], "said": written(summary)}
        self._connection.execute(_NEW_VERSION, change)

    # Snapshots and samples.

    def snapshots(self, id: str) -> list[Snapshot]:
        """The snapshots of an experiment, oldest first."""
        query = sa.select(snapshots.c.number, snapshots.c.agent, snapshots.c.rest)
        query = query.where(snapshots.c.experiment == id).order_by(snapshots.c.number)
        return [Snapshot(*row) for row in self._connection.execute(query)]

    def put_snapshot(self, id: str, snapshot: Snapshot) -> None:
        """Keep a snapshot, and drop the oldest beyond `KEPT`."""
        own, number = snapshots.c.experiment == id, snapshots.c.number
        numbers = sa.select(number).where(own, number != snapshot.number).order_by(number.desc())
        old = list(self._connection.scalars(numbers))[KEPT - 1 :]
        gone = sa.delete(snapshots).where(own, number.in_([*old, snapshot.number]))
        self._connection.execute(gone)
        self._connection.execute(sa.insert(snapshots), [{"experiment": id, **snapshot._asdict()}])

    def samples(self, id: str, limit: int) -> list[dict[str, Any]]:
        """The newest samples of an experiment, oldest first."""
        query = sa.select(samples.c.number, samples.c.data).where(samples.c.experiment == id)
        rows = self._connection.execute(query.order_by(samples.c.number.desc()).limit(limit)).all()
        what = f"a sample of experiment {id}"
        return [{"number": number} | _read(data, what) for number, data in reversed(rows)]

    def put_sample(self, id: str, number: int, data: dict[str, Any], most: int) -> None:
        """Keep a sample; of more than ``most``, every other one in the older half is dropped."""
        row = {"experiment": id, "number": number, "data": written(data)}
        self._connection.execute(sa.insert(samples), [row])
        own = samples.c.experiment == id
        query = sa.select(samples.c.number).where(own).order_by(samples.c.number)
        numbers = list(self._connection.scalars(query))
        if len(numbers) > most:
            old = numbers[1 : most // 2 : 2]
            self._connection.execute(sa.delete(samples).where(own, samples.c.number.in_(old)))

    # Answers to requests with an idempotency key.

    def answers(self, id: str, wanted: Iterable[str]) -> dict[str, Answer]:
        """The stored answers to some keys."""
        rows = self._connection.execute(_ANSWERS, {"one": id, "wanted": list(wanted)})
        return {key: Answer(*rest) for key, *rest in rows}

    def put_answers(self, id: str, new: dict[str, Answer], now: float) -> None:
        """Keep answers."""
        rows = [
            {"experiment": id, "key": key, "time": now, **answer._asdict()}
            for key, answer in new.items()
        ]
        self._connection.execute(_NEW_ANSWERS, rows)

    def touch(self, now: float) -> None:
        """Write something, to see whether the store takes it: the answer of no experiment."""
        own = (answers.c.experiment == "", answers.c.key == "touch")
        self._connection.execute(sa.delete(answers).where(*own))
        self.put_answers("", {"touch": Answer("", 0, "")}, now)

    def forget_answers(self, before: float, most: int) -> int:
        """Drop answers that were given before a time, ``most`` at most; return how many."""
        own = sa.tuple_(answers.c.experiment, answers.c.key)
        old = sa.select(answers.c.experiment, answers.c.key).where(answers.c.time < before)
        done = self._connection.execute(sa.delete(answers).where(own.in_(old.limit(most))))
        return done.rowcount

    # Keys.

    def keys(self) -> list[dict[str, Any]]:
        """All keys, oldest first, with their hashes."""
        rows = self._connection.execute(sa.select(keys).order_by(keys.c.created, keys.c.id))
        return [dict(row) for row in rows.mappings()]

    def add_key(self, row: dict[str, Any]) -> None:
        """Keep a new key."""
        self._connection.execute(sa.insert(keys), [row])

    def revoke_key(self, id: str, now: float) -> bool:
        """Revoke a key; False: there is none with that id, or it was revoked before."""
        open_ = (keys.c.id == id) & keys.c.revoked.is_(None)
        done = self._connection.execute(sa.update(keys).where(open_).values(revoked=now))
        return done.rowcount > 0


def checksum_of(experiment: str, number: int, kind: str, time: float, data: str) -> int:
    """A number that is another one, in all likelihood, after any change of an event."""
    return zlib.crc32(f"{experiment} {number} {kind} {float(time)!r} {data}".encode())


def _read(text: str, what: str) -> dict[str, Any]:
    """A stored JSON object."""
    try:
        found = json.loads(text)
    except (TypeError, ValueError):
        found = None
    if not isinstance(found, dict):
        raise Damaged(f"{what} cannot be read")
    return found


def written(document: Any) -> str:
    """A JSON document as every database can keep it: in ASCII, without NaN."""
    return _encode(document)


_encode = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
