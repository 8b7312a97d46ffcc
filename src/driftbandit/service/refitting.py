"""Learning models in a process of its own, while decisions go on.

The worker gets the newest plays as JSON on its standard input and answers with a model file. It
knows neither the store nor the server, and the new model becomes an event. If the server dies
meanwhile, the refit is due again when its patience is over.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import threading
import time
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.agent import Refit
from driftbandit.agent.ledger import Entry
from driftbandit.agent.refitting import learned
from driftbandit.io import model_file
from driftbandit.service.experiment import REFIT_PATIENCE, Experiment
from driftbandit.service.exporting import columns_of
from driftbandit.service.folding import fold, opened
from driftbandit.service.problems import Problem
from driftbandit.service.settings import features_of
from driftbandit.service.store import Store
from driftbandit.service.writer import Writer
from driftbandit.system import System

logger = logging.getLogger("driftbandit.service")


class Refitter:
    """Starts a worker whenever a refit is due."""

    writer: Writer

    def __init__(self, store: Store) -> None:
        self.store = store
        self._lock = threading.Lock()
        self._running: dict[str, subprocess.Popen[str] | None] = {}
        self._closed = False

    def request(self, id: str) -> None:
        """Note that a refit is due; a thread says so in an event, and begins."""
        with self._lock:
            if id in self._running or self._closed:
                return
            self._running[id] = None
        threading.Thread(target=self._scheduled, args=(id,), name="refit", daemon=True).start()

    def begin(self, id: str) -> None:
        """Begin a refit whose start is an event already."""
        with self._lock:
            self._running.setdefault(id, None)
        threading.Thread(target=self._refit, args=(id,), name="refit", daemon=True).start()

    def close(self) -> None:
        """Stop all workers; their refits are due again later."""
        with self._lock:
            self._closed = True
            workers = [one for one in self._running.values() if one is not None]
        for worker in workers:
            worker.kill()

    def _scheduled(self, id: str) -> None:
        def start(experiment: Experiment, now: float) -> tuple[int, Any]:
            if not experiment.refit_is_due(now):  # another server was faster
                raise Problem(409, "the refit is not due any more", "id")
            experiment.start_refit(now)
            return 200, None

        try:
            self.writer.run(id, start)
        except Problem as problem:
            logger.info("experiment %s: no refit (%s)", id, problem.detail)
            with self._lock:
                self._running.pop(id, None)
            return
        self._refit(id)

    def _refit(self, id: str) -> None:
        begun = time.perf_counter()
        try:
            found = self._worked(id)
        except Exception as error:
            found = {"reason": " ".join(str(error).split())[:500] or type(error).__name__}
        with self._lock:
            self._running.pop(id, None)
            if self._closed:
                return
        if "reason" not in found:
            found["seconds"] = round(time.perf_counter() - begun, 3)

        def finish(experiment: Experiment, now: float) -> tuple[int, Any]:
            experiment.finish_refit(now, found)
            return 200, None

        try:
            self.writer.run(id, finish)
        except Problem as problem:
            logger.error("experiment %s: the refit was lost (%s)", id, problem.detail)

    def _worked(self, id: str) -> dict[str, Any]:
        """What a worker finds: a system, the round in which it starts, how many rewards."""
        with self.store.read() as transaction:
            task = task_of(transaction, id)
        command = [sys.executable, "-m", "driftbandit.service.refitting"]
        pipe = subprocess.PIPE
        worker = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
        with self._lock:
            self._running[id] = worker
            if self._closed:
                worker.kill()
        try:
            out, err = worker.communicate(json.dumps(task), timeout=REFIT_PATIENCE / 2)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.communicate()
            return {"reason": f"the worker took longer than {REFIT_PATIENCE / 2:g} s"}
        if worker.returncode != 0:
            last = err.strip().splitlines()[-1:] or [f"the worker ended with {worker.returncode}"]
            return {"reason": last[0][:500]}
        found: dict[str, Any] = json.loads(out)
        return found


def task_of(transaction: Any, id: str) -> dict[str, Any]:
    """What a worker needs: plays and rewards, arms, options, and the model to start from."""
    experiment, _ = opened(transaction, id)
    memory = (experiment.refit or Refit()).memory
    fold(experiment, transaction)
    # A reward comes after its decision: so many events hold the newest rewards, and more.
    columns = columns_of(transaction.events(id, max(0, experiment.version - 4 * memory)))
    names = list(experiment.agent.names)
    rows = {name: row for row, name in enumerate(names)}
    plays = [
        [round_, rows[arm], reward]
        for round_, arm, reward in zip(
            *(columns[c] for c in ("round", "arm", "reward")), strict=True
        )
        if arm in rows and isinstance(reward, float | int)
    ][-memory:]
    agent, settings = experiment.agent, experiment.settings
    by_arm = experiment.refit is not None and experiment.refit.by_arm
    first_names, first_features = features_of(settings)
    features = first_features if by_arm and first_names == names else agent.problem.arms
    return {
        "plays": plays,
        "names": names,
        "features": np.asarray(features).tolist(),
        "options": settings["refit"],
        "model": None if by_arm else model_file.to_document(agent.model, agent.problem.arms),
        "seed": settings["seed"],
    }


def worked(task: dict[str, Any]) -> dict[str, Any]:
    """Learn the model; see `agent.refitting.learned`."""
    options = Refit(**(task["options"] or {}))
    entries = [Entry(None, round_, arm, None, float(x)) for round_, arm, x in task["plays"]]
    if not entries:
        raise errors.InvalidInput("log", "has no rewards of the present arms", "let some come")
    start = None if task["model"] is None else model_file.from_document(task["model"]).model
    model, arms = learned(entries, np.array(task["features"]), options, start, task["seed"])
    system = System(model, arms, task["names"])
    document = model_file.to_document(system)
    return {"system": document, "start": entries[0].round, "rewards": len(entries)}


def main() -> None:
    """Read a task from standard input, and write what was found."""
    task = json.load(sys.stdin)
    try:
        found = worked(task)
    except errors.InvalidInput as error:
        sys.exit(str(error))
    json.dump(found, sys.stdout)


if __name__ == "__main__":
    main()
