"""Learning models in a process of its own, while decisions go on.

The worker gets the newest plays as JSON on its standard input and answers with a model file. It
knows neither the store nor the server, and the new model becomes an event. A server says in events
that it is still at work. If it dies, another takes over when its lease is over; on SQLite, which is
for one server, the next start does. Whatever comes late from the first is refused.
"""

from __future__ import annotations

import json
import logging
import math
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.agent import Refit
from driftbandit.agent.ledger import Entry
from driftbandit.agent.refitting import Present, Refused, relearned
from driftbandit.io import model_file
from driftbandit.service.experiment import Experiment
from driftbandit.service.exporting import columns_of
from driftbandit.service.folding import fold, opened
from driftbandit.service.problems import Problem
from driftbandit.service.settings import features_of
from driftbandit.service.store import Store, StoreError
from driftbandit.service.writer import Work, Writer
from driftbandit.system import System

WORKERS = 2  # at a time; others wait for their turn
PATIENCE = 5.0  # seconds for a stopped worker to end
LONGEST = 1800.0  # seconds that a worker may take
PACE = 15.0  # seconds between two signs of life, and between two looks at other servers' refits

logger = logging.getLogger("driftbandit.service")


class Refitter:
    """Starts a worker whenever a refit is due."""

    writer: Writer

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(WORKERS)
        self._scheduling: set[str] = set()
        self._mine: dict[str, float] = {}  # the refits that this server runs, by their starts
        self._workers: dict[str, subprocess.Popen[str]] = {}
        self._threads: list[threading.Thread] = []
        self._closed = False
        self._ended = threading.Event()

    def watch(self) -> None:
        """Take over what servers that ended have left, now and then; call it before serving."""
        self._start(self._watch, self._unfinished())

    def request(self, id: str) -> None:
        """Note that a refit is due; a thread says so in an event, and begins."""
        with self._lock:
            if id in self._scheduling:
                return
            self._scheduling.add(id)
        self._start(self._scheduled, id)

    def begin(self, id: str, started: float) -> None:
        """Begin a refit whose start is an event already."""
        self._start(self._refit, id, started)

    def _start(self, target: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=target, args=arguments, name="refit", daemon=True)
        with self._lock:
            if self._closed:
                return
            self._threads = [one for one in self._threads if one.is_alive()] + [thread]
            thread.start()

    def close(self) -> None:
        """Stop all workers, and say so in events: their refits are due again."""
        self._ended.set()
        with self._lock:
            self._closed = True
            for worker in self._workers.values():
                worker.kill()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _watch(self, unfinished: list[tuple[str, float]]) -> None:
        ended = self.store.is_sqlite  # which is for one server, and it has just started
        while True:
            try:
                self._renew()
                self._take_over(unfinished, ended=ended)
            except Exception:  # whoever watches must not stop: refits would be lost
                logger.exception("refits cannot be watched")
            if self._ended.wait(PACE):
                return
            unfinished, ended = self._unfinished(), False

    def _unfinished(self) -> list[tuple[str, float]]:
        """The refits that run somewhere, or were left: experiments, and when they began."""
        try:
            with self.store.read() as transaction:
                found = transaction.refits()
        except StoreError as error:
            logger.warning("refits cannot be watched now (%s)", error)
            return []
        with self._lock:
            mine = dict(self._mine)
        return [(id_, started) for id_, started in found if started != mine.get(id_)]

    def _renew(self) -> None:
        """Say that this server still learns its models."""
        with self._lock:
            mine = dict(self._mine)
        for id_, started in mine.items():
            try:
                self.writer.run(id_, _then(Experiment.continue_refit, started))
            except Problem as problem:
                logger.warning("experiment %s: no sign of life (%s)", id_, problem.detail)

    def _take_over(self, unfinished: list[tuple[str, float]], *, ended: bool) -> None:
        """Begin refits again whose servers have ended: for certain, or as their leases say."""
        for id_, started in unfinished:
            try:
                done = self.writer.run(id_, _then(Experiment.take_over_refit, started, ended=ended))
            except Problem:
                continue  # it goes on elsewhere, or was finished meanwhile
            again = json.loads(done.body)
            what = "is not begun again" if again is None else "begins again"
            logger.warning("experiment %s: the server of its refit ended; the refit %s", id_, what)
            if again is not None:
                self.begin(id_, again)

    def _scheduled(self, id: str) -> None:
        def start(experiment: Experiment, now: float) -> tuple[int, Any]:
            if not experiment.refit_is_due():  # another server was faster
                raise Problem(409, "the refit is not due any more", "id")
            return 200, experiment.start_refit(now)

        try:
            started = json.loads(self.writer.run(id, start).body)
        except Problem as problem:
            logger.info("experiment %s: no refit (%s)", id, problem.detail)
            return
        finally:
            with self._lock:
                self._scheduling.discard(id)
        self._refit(id, started)

    def _refit(self, id: str, started: float) -> None:
        begun = time.perf_counter()
        with self._lock:
            self._mine[id] = started
        try:
            with self._slots:
                found = self._worked(id)
        except Exception as error:
            found = {"reason": " ".join(str(error).split())[:500] or type(error).__name__}
        with self._lock:
            self._workers.pop(id, None)
            if self._mine.get(id) == started:
                del self._mine[id]
            if self._closed and "reason" in found:
                found = {"reason": "the server stopped; the refit is due again", "lost": True}
        if "reason" not in found:
            found["seconds"] = round(time.perf_counter() - begun, 3)
        try:
            self.writer.run(id, _then(Experiment.finish_refit, found, started))
        except Problem as problem:
            logger.error("experiment %s: the refit was lost (%s)", id, problem.detail)

    def _worked(self, id: str) -> dict[str, Any]:
        """What a worker finds: a system, the round in which it starts, how many rewards."""
        with self.store.read() as transaction:
            task = task_of(transaction, id)
        command = [sys.executable, "-m", "driftbandit.service.refitting", str(os.getpid())]
        pipe = subprocess.PIPE
        worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        with self._lock:
            self._workers[id] = worker
            if self._closed:
                worker.kill()
        try:
            out, err = worker.communicate(json.dumps(task), timeout=LONGEST)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.communicate()
            return {"reason": f"the worker took longer than {LONGEST:g} s"}
        if worker.returncode != 0:
            last = err.strip().splitlines()[-1:] or [f"the worker ended with {worker.returncode}"]
            return {"reason": last[0][:500]}
        found: dict[str, Any] = json.loads(out)
        return found


def _then(command: Callable[..., Any], *given: Any, **named: Any) -> Work:
    """A job that runs a command of the experiment, and answers what it returns."""
    return lambda experiment, now: (200, command(experiment, now, *given, **named))


def task_of(transaction: Any, id: str) -> dict[str, Any]:
    """What a worker needs: plays and rewards, arms, options, and the model to start from.

    The newest ``memory`` rewards; and at least from the oldest decision on that is not settled,
    since the new model must start before it. From there on, plays without a reward count as missing
    ones.
    If refits learn something for each arm, retired arms that were played are among the ``names``:
    the experiment keeps their rewards, and has to know how the new model reads them.
    """
    experiment, _ = opened(transaction, id)
    memory = (experiment.refit or Refit()).memory
    fold(experiment, transaction)
    agent, settings = experiment.agent, experiment.settings
    # A reward comes after its decision: so many events hold the newest rewards, and more.
    reach = 4 * (memory + experiment.kept)
    columns = columns_of(transaction.events(id, max(0, experiment.version - reach)))
    table = list(zip(*(columns[name] for name in ("round", "arm", "reward")), strict=True))
    names = list(agent.names)
    oldest = (
        table[-min(experiment.kept, len(table))][0] if experiment.kept and table else agent.round
    )
    options = experiment.refit
    by_arm = options is not None and options.by_arm
    plays = [
        (round_, arm, reward)
        for round_, arm, reward in table
        if (by_arm or arm in names) and (isinstance(reward, float | int) or round_ >= oldest)
    ]
    inside = sum(round_ >= oldest for round_, _, _ in plays)
    begin = max(0, len(plays) - max(memory, inside + 1))
    features = agent.problem.arms
    if options is not None and options.offsets:
        features = features_of(settings)
    elif by_arm and plays:  # components do not use features
        kept = dict.fromkeys(arm for round_, arm, _ in table if round_ >= plays[begin][0])
        names += [arm for arm in kept if arm not in names]
        features = np.eye(len(names))
    rows = {name: row for row, name in enumerate(names)}
    return {
        "plays": [[t, rows[arm], x] for t, arm, x in plays[begin : begin + 2 * memory]],
        "names": names,
        "features": np.asarray(features).tolist(),
        "options": settings["refit"],
        "model": None if by_arm else model_file.to_document(agent.model, agent.problem.arms),
        "present": model_file.to_document(System(agent.model, agent.problem.arms, agent.names))
        if options is not None and options.check
        else None,
        "base": agent.first_round,
    }


def worked(task: dict[str, Any]) -> dict[str, Any]:
    """Learn the model as an agent does; see `agent.refitting.relearned`."""
    options = Refit(**{"check": False, **(task["options"] or {})})
    entries = [
        Entry(None, round_, arm, None, math.nan if reward is None else float(reward))
        for round_, arm, reward in task["plays"]
    ]
    rewards = sum(not math.isnan(entry.reward) for entry in entries)
    if not rewards:
        raise errors.InvalidInput("log", "has no rewards of the present arms", "let some come")
    start = None if task["model"] is None else model_file.from_document(task["model"]).model
    present = None
    if options.check and task.get("present") is not None:
        present = _present(task, [entry for entry in entries if not math.isnan(entry.reward)])
    model, arms = relearned(entries, np.array(task["features"]), options, start, present)
    document = model_file.to_document(System(model, arms, task["names"]))
    return {"system": document, "start": entries[0].round, "rewards": rewards}


def _present(task: dict[str, Any], entries: list[Entry]) -> Present:
    """The present model, which cannot tell what arms paid that were retired."""
    system = model_file.from_document(task["present"])
    rows = dict(zip(system.names, system.arms, strict=True))
    plays = [(entry.round, rows.get(task["names"][entry.arm]), entry.reward) for entry in entries]
    return Present(system.model, plays, task["base"])


def _end_after(server: int) -> None:
    """End when the server has ended: nobody waits for the model, and the refit begins again."""
    while os.getppid() == server:
        time.sleep(1)
    os._exit(1)


def main() -> None:
    """Read a task from standard input, and write what was found."""
    threading.Thread(target=_end_after, args=(int(sys.argv[1]),), daemon=True).start()
    task = json.load(sys.stdin)
    try:
        found = worked(task)
    except (errors.InvalidInput, Refused) as error:
        sys.exit(str(error))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
