"""Does the store hold what it says? All events are applied again, from the first."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any, NamedTuple

from sqlalchemy.exc import SQLAlchemyError

from driftbandit import errors
from driftbandit.service.experiment import Experiment
from driftbandit.service.store import Store
from driftbandit.service.transaction import Damaged, Snapshot, Transaction

ROUNDING = 1e-9  # relative difference up to which another machine's arithmetic explains it


class Verdict(NamedTuple):
    """What applying an experiment's events again showed."""

    experiment: str
    events: int
    snapshots: int
    problem: str | None  # None: all events can be applied, and the snapshots are the same

    @property
    def clean(self) -> bool:
        """Whether nothing is wrong."""
        return self.problem is None


def verify(
    store: Store,
    experiment: str | None = None,
    progress: Callable[[str, int, int], None] = lambda *_: None,
) -> list[Verdict]:
    """Apply the events of one experiment, or of all, and compare the snapshots on the way.

    ``progress`` is called with the experiment, the events applied and the events there are.
    """
    with store.read() as transaction:
        ids = transaction.ids()
    if experiment is not None:
        if experiment not in ids:
            problem = f"there is no {errors.printable(experiment)[:64]}"
            remedy = f"valid: {', '.join(ids) or 'none'}"
            raise errors.InvalidInput("experiment", problem, remedy)
        ids = [experiment]
    found = []
    for id_ in ids:  # one transaction for each: a long one keeps SQLite's log from being emptied
        with store.read() as transaction:
            found.append(_verdict(transaction, id_, progress))
    return found


def _verdict(transaction: Transaction, id: str, progress: Callable[..., None]) -> Verdict:
    last = transaction.version(id) or 0
    snapshots = {one.number: one for one in transaction.snapshots(id)}
    folded: Experiment | None = None
    compared, problem = 0, None
    try:
        for event in transaction.events(id, 0):
            if folded is None:
                folded = Experiment.of_event(id, event)
            else:
                folded.apply(event)
            if (snapshot := snapshots.get(folded.version)) is not None:
                compared += 1
                problem = problem or _difference(folded, snapshot)
            if folded.version % 1000 == 0:
                progress(id, folded.version, last)
    except Damaged as error:
        problem = problem or str(error)
    except SQLAlchemyError:
        raise
    except Exception as error:  # an event that is not what was written can do anything
        version = 0 if folded is None else folded.version
        problem = problem or f"the event after {version} cannot be applied ({error})"
    version = 0 if folded is None else folded.version
    if problem is None and version != last:
        problem = f"the last event is {version}, and the experiment says {last}"
    if problem is None and compared < len(snapshots):
        number = max(snapshots)
        problem = f"snapshot {number} cannot be compared: the last event is {version}"
    progress(id, version, last)
    return Verdict(id, version, compared, problem)


def _difference(folded: Experiment, snapshot: Snapshot) -> str | None:
    """How a snapshot differs from the experiment that its events give."""
    agent, rest = folded.to_snapshot()
    if (agent, rest) == (snapshot.agent, snapshot.rest):
        return None
    where = f"snapshot {snapshot.number} differs from what its events give"
    with contextlib.suppress(errors.InvalidInput, KeyError, TypeError, ValueError):
        # Version 0.2 kept decisions that are settled earlier now.
        ours, theirs = (_settled(folded.id, *texts) for texts in ((agent, rest), snapshot[1:]))
        if ours == theirs:
            return None
    try:
        pairs = zip((agent, rest), (snapshot.agent, snapshot.rest), strict=True)
        gap = max(_gap(json.loads(ours), json.loads(theirs)) for ours, theirs in pairs)
    except ValueError:
        return f"{where} and cannot be read"
    if gap <= ROUNDING:
        # Decisions are events, so nothing that was answered depends on this.
        return f"{where} by rounding (at most {gap:.1g}): another kind of machine wrote it"
    return where


def _settled(id: str, agent: str, rest: str) -> tuple[str, str]:
    """A snapshot after everything is settled that need not stay."""
    experiment = Experiment.from_snapshot(id, agent, rest)
    experiment.agent.advance(0)
    return experiment.to_snapshot()


def _gap(ours: Any, theirs: Any) -> float:
    """The largest relative difference of two documents' numbers; infinite if more differs."""
    if isinstance(ours, dict) and isinstance(theirs, dict) and ours.keys() == theirs.keys():
        pairs = [(ours[key], theirs[key]) for key in ours if key != "checksum"]
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        pairs = list(zip(ours, theirs, strict=True))
    elif isinstance(ours, float) and isinstance(theirs, float):
        return abs(ours - theirs) / max(1.0, abs(ours), abs(theirs))
    else:
        return 0.0 if ours == theirs else float("inf")
    return max((_gap(*pair) for pair in pairs), default=0.0)
