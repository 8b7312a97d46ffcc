"""One thread that owns the experiments of this process, and commits requests in groups.

Requests that wait for the same experiment share a transaction. It locks the experiment, brings the
cached agent up to the stored version, runs the requests one after another, appends their events and
commits. Only then are they answered. So a busy server waits for the disk once per group, and two
servers never decide at the same time for one experiment. Under load the thread waits a moment for
more requests: larger groups cost less, and latencies have shorter tails.

If a group fails in a way that no request should (a policy that cannot take a reward, say), it is
undone, and its requests run again one by one: only the one that fails is refused.
"""

from __future__ import annotations

import json
import logging
import math
import queue
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.agent.ledger import Unlearnable
from driftbandit.kalman import is_belief
from driftbandit.service.experiment import Experiment
from driftbandit.service.folding import fold, opened
from driftbandit.service.metrics import Metrics
from driftbandit.service.problems import Problem, of_input, unavailable
from driftbandit.service.reading import sample_of, summary_of
from driftbandit.service.store import Store
from driftbandit.service.transaction import (
    Answer,
    Damaged,
    Snapshot,
    StoreError,
    Transaction,
    written,
)

SNAPSHOT_EVERY = 10_000  # events; more if a snapshot has to hold very many decisions
TAIL = 200  # events that are folded under the experiment's lock, at most
CATCH_UP = 5  # times that events are folded before the lock is taken, whatever comes meanwhile
SAMPLE_EVERY = 1.0  # seconds between two samples for the page, at least
MOST_SAMPLES = 1000
MOST_CACHED = 256  # experiments whose agents are kept in memory
BUSY = 8  # requests at a time from which on it pays to wait for more
GATHER = 0.002  # seconds of this wait
MOST_TOGETHER = 500  # requests in one transaction
TOUCH_EVERY = 1.0  # seconds between two writes that only show that the store can be written
PRUNE_EVERY = 600.0  # seconds
MOST_PRUNED = 2000  # answers dropped at a time
ANSWERS_KEPT = 7 * 86400.0  # seconds for which an idempotency key gives the same answer

Work = Callable[[Experiment, float], tuple[int, Any]]
"""Runs a request on its experiment, at a time; returns the status and the answer's document."""

logger = logging.getLogger("driftbandit.service")


class Result(NamedTuple):
    """What is answered: a status and a JSON text, and whether it was answered before."""

    status: int
    body: str
    replayed: bool = False


class Job(NamedTuple):
    """A request that waits for its experiment."""

    experiment: str
    work: Work | None  # None: make the experiment of ``settings``
    done: Callable[[Result | Problem], None]
    writes: bool = True
    early: bool = False  # before others of its group: rewards, which decisions can use
    key: str | None = None
    fingerprint: str = ""
    settings: Any = None
    exist_ok: bool = False  # whether to answer with the one that exists, if its settings are equal
    by_default: tuple[str, ...] = ()  # settings that the request left to a default, old or new


class Probe(NamedTuple):
    """A question whether the writer works and the store can be written."""

    done: Callable[[Problem | None], None]


class _Behind(Exception):
    """Too many events were stored since the experiment was last folded."""


class Writer:
    """Runs jobs, in groups, in a thread of its own."""

    def __init__(
        self,
        store: Store,
        metrics: Metrics | None = None,
        clock: Callable[[], float] = time.time,
        on_refit_due: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.store, self.clock = store, clock
        self.metrics = metrics or Metrics()
        self.on_refit_due = on_refit_due
        self._jobs: queue.SimpleQueue[Job | Probe | None] = queue.SimpleQueue()
        self._cache: OrderedDict[str, Experiment] = OrderedDict()
        self._snapshot_at: dict[str, int] = {}
        self._sampled_at: dict[str, float] = {}
        self._prune_at = clock() + PRUNE_EVERY
        self._is_busy = False
        self._touched_at = -math.inf
        self._thread = threading.Thread(target=self._run, name="driftbandit writer", daemon=True)
        self._thread.start()

    def submit(self, job: Job | Probe) -> None:
        """Run a job soon; its ``done`` is called in the writer's thread."""
        self._jobs.put(job)

    def run(self, experiment: str, work: Work, **options: Any) -> Result:
        """Run a job and wait for it; raises its `Problem`."""
        found: queue.SimpleQueue[Result | Problem] = queue.SimpleQueue()
        self.submit(Job(experiment, work, found.put, **options))
        result = found.get()
        if isinstance(result, Problem):
            raise result
        return result

    @property
    def is_alive(self) -> bool:
        """Whether its thread runs."""
        return self._thread.is_alive()

    def close(self) -> None:
        """Finish the jobs that wait, take snapshots, and stop."""
        self._jobs.put(None)
        self._thread.join()

    def _run(self) -> None:
        with np.errstate(all="ignore"):  # what outgrows numbers is refused by the agent's checks
            while True:
                jobs, last = self._waiting()
                groups: dict[str, list[Job]] = {}
                for job in jobs:
                    if isinstance(job, Probe):
                        _tell(job.done, self._probed())
                    else:
                        groups.setdefault(job.experiment, []).append(job)
                for id_, group in groups.items():
                    group.sort(key=lambda job: not job.early)
                    self._answer(id_, group)
                self._prune(self.clock())
                if last:
                    self._save_all()
                    return

    def _prune(self, now: float) -> None:
        """Drop old answers now and then, a few at a time, so that no request waits for long."""
        if now < self._prune_at:
            return
        self._prune_at = now + PRUNE_EVERY
        try:
            with self.store.write() as transaction:
                if transaction.forget_answers(now - ANSWERS_KEPT, MOST_PRUNED) >= MOST_PRUNED:
                    self._prune_at = now + 1
        except StoreError as error:
            logger.warning("old answers are kept for now (%s)", error)

    def _probed(self) -> Problem | None:
        """Write something; None: it is stored.

        Anybody may ask: after a success, the disk is left alone for a moment.
        """
        now = time.monotonic()
        try:
            with self.store.write() as transaction:
                if now < self._touched_at + TOUCH_EVERY:
                    transaction.version("")
                else:
                    transaction.touch(self.clock())
                    self._touched_at = now
        except StoreError as error:
            self._touched_at = -math.inf
            return unavailable(str(error), error.remedy)
        return None

    def _waiting(self) -> tuple[list[Job | Probe], bool]:
        """The jobs that wait, at least one; and whether there will be no more."""
        jobs: list[Job | Probe] = []
        job = self._jobs.get()
        if self._is_busy:  # more will come in a moment, and share the transaction
            time.sleep(GATHER)
        while job is not None:
            jobs.append(job)
            if self._jobs.empty() or len(jobs) >= MOST_TOGETHER:
                self._is_busy = len(jobs) >= BUSY
                return jobs, False
            job = self._jobs.get()
        return jobs, True

    def _answer(self, id: str, group: list[Job]) -> None:
        """Run a group together or, if that fails, one by one."""
        try:
            results = self._committed(id, group)
        except StoreError as error:
            self._forget_unstored(id, error)
            self.metrics.store_failures.inc()
            logger.error("the store failed: %s", error)
            problem = unavailable(str(error), error.remedy)
            results = [problem] * len(group)
        except Exception as error:
            self._cache.pop(id, None)
            if len(group) > 1:
                for job in group:
                    self._answer(id, [job])
                return
            results = [_failed(error)]
        for job, result in zip(group, results, strict=True):
            _tell(job.done, result)

    def _forget_unstored(self, id: str, error: StoreError) -> None:
        """Drop an experiment that is not what is stored; others would be folded again for nothing.

        One that could not be locked in time is as it was: else two servers with much to fold could
        keep each other from ever being ready.
        """
        experiment = self._cache.get(id)
        if isinstance(error, Damaged) or (experiment is not None and experiment.new):
            self._cache.pop(id, None)

    def _committed(self, id: str, group: list[Job]) -> list[Result | Problem]:
        """Run a group in one transaction, on an experiment that is nearly up to date before it.

        Other servers store events meanwhile. As long as there are many that it has not seen, it
        folds them without the lock, for which the others would wait.
        """
        if id not in self._cache:
            self._catch_up(id)
        for _ in range(CATCH_UP):
            try:
                return self._commit(id, group, most_behind=TAIL)
            except _Behind:
                self._catch_up(id)
        return self._commit(id, group)

    def _catch_up(self, id: str) -> None:
        """Fold what is stored, without the lock."""
        with self.store.read() as transaction:
            version = transaction.version(id)
            if version is not None:
                self._remember(self._current(transaction, id, version))

    def _commit(
        self, id: str, group: list[Job], most_behind: int | None = None
    ) -> list[Result | Problem]:
        begun, writes = time.perf_counter(), any(job.writes for job in group)
        now = self.clock()
        with self.store.write() if writes else self.store.read() as transaction:
            version = transaction.version(id, lock=writes)
            if version is not None and most_behind is not None and writes:
                cached = self._cache.get(id)
                if cached is None or version - cached.version > most_behind:
                    raise _Behind
            experiment = None if version is None else self._current(transaction, id, version)
            keys = {job.key for job in group if job.key is not None}
            known = transaction.answers(id, keys) if keys else {}
            fresh: dict[str, Answer] = {}
            results: list[Result | Problem] = []
            for job in group:
                result: Result | Problem
                if experiment is None and job.work is None and job.key not in known:
                    experiment, result = self._created(transaction, job, now)
                else:
                    result = _result(experiment, job, known, now)
                results.append(result)
                if job.key is not None and isinstance(result, Result) and not result.replayed:
                    known[job.key] = fresh[job.key] = Answer(
                        job.fingerprint, result.status, result.body
                    )
            new = [] if experiment is None else experiment.new
            if experiment is not None and new:
                _check_state(experiment)
                transaction.append(id, new, summary_of(experiment))
                self._keep_views(transaction, experiment, now)
            if fresh:
                transaction.put_answers(id, fresh, now)
        if experiment is not None:
            experiment.new = []
            self._remember(experiment)
            if new:
                self.metrics.committed(new, len(group), time.perf_counter() - begun)
                self._ask_for_refit(experiment)
        return results

    def _ask_for_refit(self, experiment: Experiment) -> None:
        """Say that a refit is due; a failure must not undo what is committed."""
        try:
            if experiment.refit_is_due():
                self.on_refit_due(experiment.id)
        except Exception:
            logger.exception("experiment %s: no refit", experiment.id)

    def _created(self, transaction: Transaction, job: Job, now: float) -> tuple[Experiment, Result]:
        transaction.add_experiment(job.experiment, now)
        experiment = Experiment.create(job.experiment, job.settings, now)
        self._snapshot_at[job.experiment] = 0
        return experiment, Result(201, written(summary_of(experiment, full=True)))

    def _current(self, transaction: Transaction, id: str, version: int) -> Experiment:
        """The experiment at the stored version, from the cache or folded."""
        experiment = self._cache.get(id)
        if experiment is None or experiment.version > version:
            experiment = self._opened(transaction, id)
        if experiment.version < version:
            fold(experiment, transaction)
        if experiment.version != version:
            last = f"event {experiment.version} is the last of experiment {id}"
            raise Damaged(f"{last}, which says that it has {version}")
        return experiment

    def _opened(self, transaction: Transaction, id: str) -> Experiment:
        experiment, self._snapshot_at[id] = opened(transaction, id)
        return experiment

    def _keep_views(self, transaction: Transaction, experiment: Experiment, now: float) -> None:
        """Keep a snapshot and a sample if it is time for one."""
        id_ = experiment.id
        every = max(SNAPSHOT_EVERY, experiment.kept // 10)
        if experiment.version - self._snapshot_at.get(id_, 0) >= every:
            self._save(transaction, experiment)
        decided = experiment.new[-1]["kind"] == "decided"
        if decided and now >= self._sampled_at.get(id_, 0.0) + SAMPLE_EVERY:
            sample = sample_of(experiment, now)
            if sample is not None:
                transaction.put_sample(id_, experiment.version, sample, MOST_SAMPLES)
            self._sampled_at[id_] = now

    def _save(self, transaction: Transaction, experiment: Experiment) -> None:
        try:
            snapshot = Snapshot(experiment.version, *experiment.to_snapshot())
        except ValueError as error:  # its state cannot be stored; its events can
            logger.warning("experiment %s: no snapshot (%s)", experiment.id, error)
        else:
            transaction.put_snapshot(experiment.id, snapshot)
        self._snapshot_at[experiment.id] = experiment.version

    def _save_all(self) -> None:
        """Take a snapshot of every experiment that changed, so that the next start is quick."""
        for id_, experiment in self._cache.items():
            if experiment.version > self._snapshot_at.get(id_, 0):
                try:
                    with self.store.write() as transaction:
                        if transaction.version(id_, lock=True) == experiment.version:
                            self._save(transaction, experiment)
                except StoreError as error:
                    logger.warning("experiment %s: no snapshot (%s)", id_, error)

    def _remember(self, experiment: Experiment) -> None:
        self._cache[experiment.id] = experiment
        self._cache.move_to_end(experiment.id)
        while len(self._cache) > MOST_CACHED:
            id_, _ = self._cache.popitem(last=False)
            self._snapshot_at.pop(id_, None)
            self._sampled_at.pop(id_, None)


def _tell(done: Callable[[Any], None], result: Any) -> None:
    try:
        done(result)
    except Exception as error:  # the event loop that waited for it is closed
        logger.warning("nobody waits for an answer any more (%s)", error)


def _result(
    experiment: Experiment | None, job: Job, known: dict[str, Answer], now: float
) -> Result | Problem:
    """Run one job; what it is refused for changes nothing."""
    if job.key is not None and (before := known.get(job.key)) is not None:
        if before.fingerprint != job.fingerprint:
            detail = "was used for another request; make a new key for each request"
            return Problem(422, detail, "Idempotency-Key")
        return Result(before.status, before.body, replayed=True)
    if experiment is None:
        return Problem(404, f"there is no experiment {job.experiment}; create it first", "id")
    if job.work is None:
        return _existing(experiment, job)
    try:
        status, document = job.work(experiment, now)
    except Problem as problem:
        return problem
    except Unlearnable:  # a reward of this group was dropped: the group must not be stored
        raise
    except errors.InvalidInput as error:
        return of_input(error)
    return Result(status, written(document))


def _existing(experiment: Experiment, job: Job) -> Result | Problem:
    """The answer to a request to make an experiment that exists."""
    if not job.exist_ok:
        detail = f"{experiment.id} exists already; choose another id, or set exist_ok"
        return Problem(409, detail, "id")
    wanted = _asked(job.settings, job.by_default)
    ours = _asked(experiment.settings, job.by_default)
    differ = [name for name in wanted if wanted[name] != ours.get(name)]
    if differ:
        detail = f"{experiment.id} exists with another {', '.join(differ)}; choose another id"
        return Problem(409, detail, "id")
    return Result(200, written(summary_of(experiment, full=True)))


def _asked(settings: Mapping[str, Any], by_default: Sequence[str]) -> dict[str, Any]:
    """The settings as they are stored, without those that were left to a default."""
    every = json.loads(written(settings))
    if every["refit"] is not None:
        rules = every["refit"].items()
        every["refit"] = {name: rule for name, rule in rules if f"refit.{name}" not in by_default}
    return {name: value for name, value in every.items() if name not in by_default}


def _check_state(experiment: Experiment) -> None:
    """Refuse rewards that the agent cannot take: late ones, or those that outgrow its numbers."""
    state = experiment.agent.state
    if is_belief(state) and not np.isfinite(state.mean).all():
        problem = "makes what is expected outgrow the largest number"
        raise errors.InvalidInput("reward", problem, "tell a smaller one, or replace the model")


def _failed(error: Exception) -> Problem:
    """The answer to a request that failed alone; nothing of it was stored."""
    if isinstance(error, errors.InvalidInput):
        return of_input(error)
    logger.exception("a request failed")
    return Problem(500, "the request failed, and nothing was stored; see the server's log")


def parsed(result: Result) -> Any:
    """The document of a result."""
    return json.loads(result.body)
