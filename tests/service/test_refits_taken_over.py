"""A refit whose server was killed begins again: at the next start, or on another server."""

import json
import time

import pytest

from driftbandit import Client
from driftbandit.errors import Conflict
from service.connection import get
from service.postgres import postgres  # noqa: F401
from service.servers import Server, verified
from service.test_refitting import ARMS, Service, World, assert_folds

REFIT = {"after": 40, "iterations": 20, "check": False}  # any model will do


def until(condition, seconds):
    """Wait until a condition holds; return what it gave."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := condition():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not happen")


def play(client, rounds):
    world = World()
    for _ in range(rounds):
        decision = client.ask()
        client.tell(decision, world.pays(decision.arm))


def of_kind(client, kind):
    return [event for event in client.events() if event["kind"] == kind]


def lines_of(server):
    return [json.loads(line)["message"] for line in server.log.read_text().splitlines()]


def test_killed_during_a_refit(tmp_path):
    store = f"sqlite:///{tmp_path}/decisions.db"
    with Server(store, tmp_path) as server:
        with Client(server.url).create("shop", None, arms=ARMS, window=5, refit=REFIT) as client:
            play(client, 40)
            until(lambda: client.state()["refit"]["in_progress"], 10)
            server.kill()
            server.start()
            until(lambda: of_kind(client, "refitted"), 60)
            kinds = [event["kind"] for event in client.events() if "refit" in event["kind"]]
            assert kinds == ["refit_started", "refit_failed", "refit_started", "refitted"]
            state = client.state()
            assert state["refit"]["in_progress"] is False
            assert state["refit"]["failure"] is None
            assert [model["kind"] for model in state["models"]] == ["created", "refitted"]
            said = "experiment shop: the server of its refit ended; the refit begins again"
            assert lines_of(server).count(said) == 1
            client.refit()  # by hand, too
            until(lambda: len(of_kind(client, "refitted")) == 2, 60)
            with pytest.raises(Conflict, match="a refit is in progress"):
                client.refit(), client.refit()
        assert server.stop() == 0
    assert verified(store)[0] == 0


@pytest.fixture
def quick(monkeypatch):
    """Leases of seconds."""
    monkeypatch.setattr("driftbandit.service.experiment.REFIT_LEASE", 2.0)
    monkeypatch.setattr("driftbandit.service.refitting.PACE", 0.3)


def both(url, **settings):
    one = Service(url, arms=ARMS, window=5, **settings)
    return one, Service(url)


def test_another_server_waits_for_the_lease(postgres, quick):  # noqa: F811
    one, two = both(postgres.database(), refit={"after": 500, "iterations": 5, "check": False})
    try:
        one.play(World(), 20)
        one.run(lambda e, now: e.start_refit(now))  # and no more: the server is dead
        begun = time.monotonic()
        two.refitter.watch()
        two.wait("refitted")
        assert time.monotonic() - begun > 1.5
        kinds = [event["kind"] for event in two.events() if "refit" in event["kind"]]
        assert [kind for kind in kinds if kind != "refit_continues"] == [
            "refit_started", "refit_failed", "refit_started", "refitted",
        ]  # fmt: skip
        assert_folds(two)
        assert_folds(one)
    finally:
        one.close()
        two.close()


def test_a_server_at_work_keeps_its_refit(tmp_path, postgres, quick, monkeypatch):  # noqa: F811
    slow = tmp_path / "slow"
    slow.write_text("#!/bin/sh\nexec sleep 60\n")
    slow.chmod(0o755)
    monkeypatch.setattr("driftbandit.service.refitting.sys.executable", str(slow))
    one, two = both(postgres.database(), refit={"after": 12})
    try:
        one.refitter.watch()
        two.refitter.watch()
        one.play(World(), 12)
        one.wait("refit_continues", 12)  # 3.6 seconds, more than the lease
        kinds = [event["kind"] for event in two.events() if "refit" in event["kind"]]
        assert kinds.count("refit_started") == 1
        assert "refit_failed" not in kinds
        one.refitter.close()
        assert one.wait("refit_failed")["lost"]
        assert_folds(one)
    finally:
        one.close()
        two.close()


@pytest.mark.nightly
def test_one_of_two_servers_is_killed_during_a_refit(tmp_path, postgres):  # noqa: F811
    store = postgres.database()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with Server(store, tmp_path / "one") as one, Server(store, tmp_path / "two") as two:
        with Client(one.url).create("shop", None, arms=ARMS, window=5, refit=REFIT) as client:
            play(client, 40)
            until(lambda: client.state()["refit"]["in_progress"], 10)
        one.kill()
        with Client(two.url, experiment="shop") as client:
            assert client.state()["refit"]["in_progress"]  # it may run: nobody knows yet
            until(lambda: of_kind(client, "refitted"), 120)
            assert len(of_kind(client, "refit_started")) == 2
            play(client, 5)
        state = get(f"{two.url}/v1/experiments/shop/state")
        assert state["refit"]["in_progress"] is False
        assert two.stop() == 0
    assert verified(store)[0] == 0
