"""From what is stored to an experiment: its newest snapshot, and the events since."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator

from driftbandit import errors
from driftbandit.service.experiment import Event, Experiment
from driftbandit.service.transaction import Damaged, Transaction

logger = logging.getLogger("driftbandit.service")


def opened(transaction: Transaction, id: str) -> tuple[Experiment, int]:
    """An experiment from its newest snapshot that can be read, or from its first event.

    Returns the snapshot's number, too; 0: there was none.
    """
    for snapshot in reversed(transaction.snapshots(id)):
        try:
            return Experiment.from_snapshot(id, snapshot.agent, snapshot.rest), snapshot.number
        except (errors.InvalidInput, KeyError, TypeError, ValueError) as error:
            # The events hold everything; a snapshot only saves time.
            logger.warning(
                "experiment %s: snapshot %d is left out (%s)", id, snapshot.number, error
            )
    first = next(transaction.events(id, 0, 1), None)
    if first is None or first["kind"] != "created" or first["number"] != 1:
        raise Damaged(f"experiment {id} has no first event")
    return Experiment.of_event(id, first), 0


def fold(experiment: Experiment, transaction: Transaction) -> None:
    """Apply the events that an experiment has not seen.

    What many late rewards change is computed once, before the last decision: readers see the
    scores from which it was made.
    """
    new = transaction.events(experiment.id, experiment.version)
    for event, is_last_decision in _with_last_decision(new):
        try:
            if is_last_decision:
                _ = experiment.agent.state
            experiment.apply(event)
        except Exception as error:  # an event that is not what was written can do anything
            what = f"event {event['number']} of experiment {experiment.id}"
            raise Damaged(f"{what} cannot be applied: {error}") from error


def _with_last_decision(events: Iterable[Event]) -> Iterator[tuple[Event, bool]]:
    """Every event, and whether it is the last decision among them.

    Example:
        >>> events = [{"kind": "decided"}, {"kind": "decided"}, {"kind": "rewarded"}]
        >>> [is_last for _, is_last in _with_last_decision(events)]
        [False, True, False]
    """
    held: list[Event] = []  # the newest decision so far, and what followed
    for event in events:
        if event["kind"] == "decided":
            yield from ((earlier, False) for earlier in held)
            held = []
        held.append(event)
    yield from ((event, event["kind"] == "decided") for event in held)
