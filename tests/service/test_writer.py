"""The writer: groups in one transaction, requests that fail alone, caches that are dropped."""

import contextlib
import logging
import queue
import random
import threading

import pytest

from driftbandit.service import writer
from driftbandit.service.experiment import Experiment
from driftbandit.service.problems import Problem
from driftbandit.service.store import Store, StoreError
from driftbandit.service.transaction import Transaction
from driftbandit.service.verifying import verify
from driftbandit.service.writer import Job, parsed
from service.postgres import postgres  # noqa: F401
from service.stores import decision, desk, sqlite_url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return sqlite_url(tmp_path)
    return request.getfixturevalue("postgres").database()


@pytest.fixture
def service(tmp_path):
    with desk(sqlite_url(tmp_path)) as made:
        made.create()
        yield made


@contextlib.contextmanager
def held(service):
    """The writer is busy within this block, so that jobs wait and form a group."""
    begun, go_on = threading.Event(), threading.Event()

    def wait(*_):
        begun.set()
        go_on.wait(30)
        return 200, None

    service.writer.submit(Job("one", wait, lambda _: None, writes=False))
    assert begun.wait(30)
    try:
        yield
    finally:
        go_on.set()


def submitted(service, works, **options):
    """The results of jobs that are submitted together, in the order of the jobs."""
    results = [queue.SimpleQueue() for _ in works]
    with held(service):
        for work, result in zip(works, results, strict=True):
            service.writer.submit(Job("one", work, result.put, **options))
    return [result.get(timeout=30) for result in results]


def commits(service):
    """How many transactions wrote events, and how many requests were in them."""
    metrics = service.writer.metrics
    return metrics.commits._value.get(), metrics.grouped._value.get()


def numbers(service, id="one"):
    return [event["number"] for event in service.events(id)]


def test_requests_that_wait_share_a_transaction(service):
    before = commits(service)
    results = submitted(service, [decision] * 50)
    assert [parsed(result)["decision"] for result in results] == list(range(50))
    after = commits(service)
    assert (after[0] - before[0], after[1] - before[1]) == (1, 50)
    assert numbers(service) == list(range(1, 52))


def test_a_group_has_a_largest_size(service, monkeypatch):
    monkeypatch.setattr(writer, "MOST_TOGETHER", 20)
    before = commits(service)[0]
    results = submitted(service, [decision] * 50)
    assert [parsed(result)["decision"] for result in results] == list(range(50))
    assert commits(service)[0] - before == 3


def test_many_threads(url):
    found, lock = [], threading.Lock()
    with desk(url) as service:
        service.create()

        def client():
            for _ in range(25):
                made = service.decide()["decision"]
                outcome = service.reward(made, 0.5)
                with lock:
                    found.append((made, outcome))

        threads = [threading.Thread(target=client, daemon=True) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(found) == [(number, "learned") for number in range(200)]
        assert numbers(service) == list(range(1, 402))
        written, requests = commits(service)
        assert requests == 401
        assert written < 350  # some of them shared one
        assert [one.problem for one in verify(service.store)] == [None]


def test_rewards_go_before_decisions(service):
    made = service.decide()["decision"]
    order = []

    def note(name, work):
        return lambda one, now: (order.append(name), work(one, now))[1]

    told = [{"decision": made, "reward": 1.0}]
    with held(service):
        done = queue.SimpleQueue()
        service.writer.submit(Job("one", note("decide", decision), done.put))
        tell = note("reward", lambda one, now: (200, one.reward(now, told)))
        service.writer.submit(Job("one", tell, done.put, early=True))
    assert {done.get(timeout=30).status for _ in range(2)} == {200, 201}
    assert order == ["reward", "decide"]


def test_what_is_refused_leaves_the_others_alone(service):
    def wrong(one, now):
        return 200, one.reward(now, [{"decision": 99, "reward": 1.0}])

    before = commits(service)[0]
    first, refused, second = submitted(service, [decision, wrong, decision])
    assert (parsed(first)["decision"], parsed(second)["decision"]) == (0, 1)
    assert (refused.status, refused.field) == (404, "decision")
    assert commits(service)[0] - before == 1


def test_a_late_reward_that_cannot_be_learned_is_refused_alone(service, monkeypatch):
    """The decision after it would drop it silently, though it was already answered for."""
    from driftbandit.agent import ledger

    fold = ledger.fold

    def fails(policy, problem, state, round_, entries):
        if any(entry.reward == 13.0 for entry in entries):
            raise ValueError("thirteen")
        return fold(policy, problem, state, round_, entries)

    monkeypatch.setattr(ledger, "fold", fails)
    for _ in range(4):
        service.decide()

    def tell(id_, reward):
        return lambda one, now: (200, one.reward(now, [{"decision": id_, "reward": reward}]))

    good, bad, last = submitted(service, [tell(0, 1.0), tell(1, 13.0), decision])
    assert (parsed(good), bad.status, parsed(last)["decision"]) == (["learned"], 422, 4)
    assert [e["reward"] for e in service.events() if e["kind"] == "rewarded"] == [1.0]
    live = service.snapshot()
    assert verify(service.store)[0].clean
    assert service.snapshot() == live


def test_a_request_that_makes_the_agent_fail_is_refused_alone(service, monkeypatch, caplog):
    """Nobody expected it, so the group is undone, and its requests run one by one."""
    from driftbandit.agent import Agent

    tell_many = Agent.tell_many

    def fails(agent, pairs):
        if any(reward == 666.0 for _, reward in pairs):
            agent._history.decided += 1  # half of its work is done
            raise ZeroDivisionError("no such luck")
        return tell_many(agent, pairs)

    monkeypatch.setattr(Agent, "tell_many", fails)
    for _ in range(4):
        service.decide()

    def tell(id_, reward):
        return lambda one, now: (200, one.reward(now, [{"decision": id_, "reward": reward}]))

    before = commits(service)[0]
    told = [tell(0, 1.0), tell(1, 666.0), tell(2, 2.0), decision]
    with caplog.at_level(logging.ERROR):
        first, failed, third, last = submitted(service, told)
    assert (parsed(first), parsed(third), parsed(last)["decision"]) == (["learned"], ["learned"], 4)
    assert (failed.status, failed.field) == (500, None)
    assert failed.detail == "the request failed, and nothing was stored; see the server's log"
    assert "no such luck" in caplog.text
    assert commits(service)[0] - before == 3
    rewarded = [event["decision"] for event in service.events() if event["kind"] == "rewarded"]
    assert rewarded == [0, 2]
    assert [one.problem for one in verify(service.store)] == [None]


def test_late_rewards_that_the_agent_cannot_take_are_refused_before_they_are_stored(
    service, monkeypatch
):
    from driftbandit.agent import Agent

    for _ in range(3):
        service.decide()
    monkeypatch.setattr(Agent, "state", property(lambda _: 1 / 0))
    with pytest.raises(Problem) as caught:
        service.reward(0, 1.0)
    assert caught.value.status == 500
    assert numbers(service) == [1, 2, 3, 4]
    monkeypatch.undo()
    assert service.reward(0, 1.0) == "learned"


def test_a_commit_that_fails_leaves_nothing_and_the_next_one_works(service, monkeypatch, caplog):
    service.play(3)
    write, fails = Store.write, [True, True]

    @contextlib.contextmanager
    def failing(store):
        with write(store) as transaction:
            yield transaction
            if fails and fails.pop():
                raise StoreError("the disk is full")

    monkeypatch.setattr(Store, "write", failing)
    with caplog.at_level(logging.ERROR):
        results = submitted(service, [decision] * 3)
    assert [(one.status, one.retry_after) for one in results] == [(503, 1)] * 3
    assert "the store cannot be used now (the disk is full); try again" in results[0].detail
    assert "the store failed: the disk is full" in caplog.text
    with pytest.raises(Problem):
        service.reward(2, 0.5, key="k")
    assert numbers(service) == list(range(1, 8))
    assert service.decide()["decision"] == 3  # the cached agent had decided 3 … 5
    assert numbers(service) == list(range(1, 9))
    assert service.writer.metrics.store_failures._value.get() == 2
    assert [one.problem for one in verify(service.store)] == [None]


def test_a_key_gives_the_same_answer_also_within_a_group(service):
    options = {"key": "k", "fingerprint": "f"}
    first, second = submitted(service, [decision] * 2, **options)
    assert (first.replayed, second.replayed) == (False, True)
    assert first[:2] == second[:2]
    (third,) = submitted(service, [decision], **options)
    assert third == second
    (other,) = submitted(service, [decision], key="k", fingerprint="g")
    assert (other.status, other.field) == (422, "Idempotency-Key")
    assert numbers(service) == [1, 2]


def test_a_request_that_was_refused_may_use_its_key_again(service):
    with pytest.raises(Problem):
        service.reward(0, 1.0, key="k", fingerprint="f")
    service.decide()
    assert service.reward(0, 1.0, key="k", fingerprint="f") == "learned"


def test_old_answers_are_forgotten(tmp_path):
    now = [1e9]
    with desk(sqlite_url(tmp_path), clock=lambda: now[0]) as service:
        service.create()
        first = service.decide(key="k", fingerprint="f")
        now[0] += writer.ANSWERS_KEPT - 10
        assert service.decide(key="k", fingerprint="f") == first
        now[0] += 3620  # they are looked at once an hour
        service.decide()
        assert service.decide(key="k", fingerprint="f") != first


def test_two_writers_on_one_store(url):
    """As two servers: what one of them stores, the other one folds before it decides."""
    rng = random.Random(0)
    with desk(url) as one, desk(url) as two:
        one.create()
        for number in range(60):
            writes = rng.choice([one, two])
            made = writes.decide()
            assert made["decision"] == number
            assert rng.choice([one, two]).reward(number, rng.random()) == "learned"
        assert one.snapshot() == two.snapshot()
        assert numbers(one) == list(range(1, 122))
        assert [verdict.problem for verdict in verify(one.store)] == [None]


def test_two_writers_at_the_same_time(url):
    with desk(url) as one, desk(url) as two:
        one.create()
        threads = [
            threading.Thread(target=each.play, args=(40,), daemon=True) for each in (one, two)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert numbers(one) == list(range(1, 162))
        assert one.snapshot() == two.snapshot()
        assert [verdict.problem for verdict in verify(one.store)] == [None]


def test_one_of_two_creates(url):
    """The other one is told that the name is taken, or to try again."""
    with desk(url) as one, desk(url) as two:
        statuses, barrier = [], threading.Barrier(2)

        def create(service):
            barrier.wait()
            try:
                service.create()
                statuses.append(201)
            except Problem as problem:
                statuses.append(problem.status)

        threads = [
            threading.Thread(target=create, args=(each,), daemon=True) for each in (one, two)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted(statuses) in ([201, 409], [201, 503])
        assert numbers(one) == [1]
        with pytest.raises(Problem) as caught:
            two.create()
        assert caught.value.status == 409


def test_a_reader_beside_a_busy_writer_sees_one_moment(url):
    """The experiment's version and its events are read one after the other."""
    with desk(url) as one, desk(url) as two:
        one.create()
        thread = threading.Thread(target=one.play, args=(60,), daemon=True)
        thread.start()
        seen = []
        while thread.is_alive():
            two.snapshot()
            seen += [verdict.problem for verdict in verify(two.store)]
        thread.join()
        assert set(seen) == {None}
        assert one.snapshot() == two.snapshot()


class Folded:
    """Counts the events that are folded."""

    def __init__(self, monkeypatch):
        self.numbers, apply = [], Experiment.apply

        def counted(experiment, event):
            self.numbers.append(event["number"])
            apply(experiment, event)

        monkeypatch.setattr(Experiment, "apply", counted)


def test_the_end_takes_snapshots_and_the_next_start_folds_nothing(tmp_path, monkeypatch):
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.create("two")
        service.play(20)
        state = service.snapshot()
    folded = Folded(monkeypatch)
    with desk(sqlite_url(tmp_path)) as service:
        assert service.snapshot() == state
        service.decide()
        assert folded.numbers == []
        with service.store.read() as transaction:
            assert [one.number for one in transaction.snapshots("one")] == [41]
            assert [one.number for one in transaction.snapshots("two")] == [1]


def test_snapshots_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 10)
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.play(27)
        state = service.snapshot()
        with service.store.read() as transaction:
            assert [one.number for one in transaction.snapshots("one")] == [40, 50]
        folded = Folded(monkeypatch)
        with desk(sqlite_url(tmp_path)) as other:  # as after a kill
            assert other.snapshot() == state
            assert folded.numbers == list(range(51, 56))


def test_without_snapshots_everything_is_folded(tmp_path, monkeypatch):
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.play(5)
        state = service.snapshot()
        folded = Folded(monkeypatch)
        with desk(sqlite_url(tmp_path)) as other:
            assert other.snapshot() == state
        assert folded.numbers == list(range(2, 12))


def test_a_state_that_cannot_be_stored_does_not_stop_the_experiment(service, monkeypatch, caplog):
    monkeypatch.setattr(writer, "SNAPSHOT_EVERY", 5)

    def fails(_):
        raise ValueError("Out of range float values are not JSON compliant")

    monkeypatch.setattr(Experiment, "to_snapshot", fails)
    with caplog.at_level(logging.WARNING):
        for _ in range(8):
            service.decide()
    assert "experiment one: no snapshot (Out of range float" in caplog.text
    assert numbers(service) == list(range(1, 10))


def test_experiments_that_are_not_used_leave_the_memory(service, monkeypatch):
    monkeypatch.setattr(writer, "MOST_CACHED", 2)
    for name in ("two", "three", "four"):
        service.create(name)
    assert list(service.writer._cache) == ["three", "four"]
    assert service.decide("one")["decision"] == 0
    assert list(service.writer._cache) == ["four", "one"]


def test_a_refit_that_cannot_begin_undoes_nothing(tmp_path, caplog):
    """Threads may have run out, after the commit."""

    def fails(_):
        raise RuntimeError("can't start new thread")

    with desk(sqlite_url(tmp_path), on_refit_due=fails) as service:
        service.create(refit={"after": 12})
        with caplog.at_level(logging.ERROR):
            service.play(12)
        assert "experiment one: no refit" in caplog.text
        assert numbers(service) == list(range(1, 26))


def test_an_answer_that_nobody_waits_for_does_not_stop_the_writer(service, caplog):
    def closed(_):
        raise RuntimeError("Event loop is closed")

    with caplog.at_level(logging.WARNING):
        service.writer.submit(Job("one", decision, closed))
        assert service.decide()["decision"] == 1
    assert "nobody waits" in caplog.text


def test_jobs_that_wait_at_the_end_are_finished(tmp_path):
    results = []
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        with held(service):
            for _ in range(20):
                service.writer.submit(Job("one", decision, results.append))
    assert [result.status for result in results] == [201] * 20


def test_an_unknown_experiment(service):
    with pytest.raises(Problem) as caught:
        service.decide("none")
    assert (caught.value.status, caught.value.field) == (404, "id")


# Two servers with one store.


def test_what_another_server_stored_is_folded_before_the_lock_is_taken(postgres, monkeypatch):  # noqa: F811
    """With the lock, every server would have to wait until this one has caught up."""
    url = postgres.database()
    monkeypatch.setattr(writer, "TAIL", 5)
    apply, locked = Experiment.apply, []
    with desk(url) as service, desk(url) as cold:
        service.create()
        cold.decide()
        service.play(30)

        def noted(experiment, event):
            if threading.current_thread() is cold.writer._thread:
                with service.store.read() as transaction:
                    query = "SELECT 1 FROM experiments WHERE id = 'one' FOR UPDATE SKIP LOCKED"
                    locked.append(transaction._connection.exec_driver_sql(query).first() is None)
            apply(experiment, event)

        monkeypatch.setattr(Experiment, "apply", noted)
        assert cold.decide()["decision"] == 31
        assert locked == [False] * 60
        service.play(1)
        locked.clear()
        assert cold.decide()["decision"] == 33
        assert locked == [True] * 2  # a few take less time than a second transaction


def test_a_lock_that_is_not_had_in_time_costs_nothing_that_was_folded(postgres, monkeypatch):  # noqa: F811
    from driftbandit.service import store

    monkeypatch.setattr(store, "BUSY", 100)
    url = postgres.database()
    with desk(url) as service, desk(url) as other:
        service.create()
        service.play(20)
        other.decide()
        folded = Folded(monkeypatch)
        with service.store.write() as transaction:
            transaction.version("one", lock=True)
            for _ in range(3):
                with pytest.raises(Problem, match="lock timeout"):
                    other.decide()
        assert other.decide()["decision"] == 21
        assert folded.numbers == []


def test_an_experiment_whose_events_were_not_stored_is_read_again(tmp_path, monkeypatch):
    """What it had in memory is not what is stored."""
    with desk(sqlite_url(tmp_path)) as service:
        service.create()
        service.play(3)
        append = Transaction.append

        def fails(*_):
            raise StoreError("the disk is full")

        monkeypatch.setattr(Transaction, "append", fails)
        with pytest.raises(Problem, match="disk is full"):
            service.decide()
        monkeypatch.setattr(Transaction, "append", append)
        assert service.decide()["decision"] == 3
        assert [one.problem for one in verify(service.store)] == [None]
