"""A server is killed again and again under load: what it acknowledged is there, exactly once.

SIGKILL ends the process, not the machine: what the process has handed to the operating system
survives. That a commit also waits for the disk is a setting of the stores.
"""

import asyncio
import random
import time

import pytest

from service.connection import post
from service.load import Load, check, settings
from service.postgres import postgres  # noqa: F401
from service.servers import NotReady, Server, verified


async def killed(server, load, kills, seed):
    """Kill the server at random moments of the load, now and then again while it starts."""
    rng, done, starting = random.Random(seed), 0, 0.5
    moments = [(number + rng.uniform(0.1, 0.9)) / kills * load.rewards for number in range(kills)]
    while done < kills:
        while len(load.ledger.rewards) < moments[done]:
            await asyncio.sleep(0.001)
        await asyncio.sleep(rng.uniform(0, 0.01))
        server.kill()
        done += 1
        if done < kills and rng.random() < 0.2:
            server.launch()
            await asyncio.sleep(rng.uniform(0, 1.5 * starting))
            server.kill()
            done += 1
        begin = time.monotonic()
        server.launch()
        await asyncio.to_thread(server.wait_until_ready)
        starting = time.monotonic() - begin
    load.ledger.counts["kills"] = done


async def stopped(server, load, stops):
    """Ask the server to end, evenly over the load; it must end in good order, and at once."""
    for number in range(1, stops + 1):
        while len(load.ledger.rewards) < load.rewards * number / (stops + 1):
            await asyncio.sleep(0.001)
        begin = time.monotonic()
        assert await asyncio.to_thread(server.stop) == 0
        assert time.monotonic() - begin < 9, "it waited for clients that keep their connections"
        server.launch()
        await asyncio.to_thread(server.wait_until_ready)


def nothing_is_lost(store, folder, kills, rewards, seconds):
    begin = time.monotonic()
    document = settings("killed")
    with Server(store, folder) as server:
        load = Load([server.url], document, clients=12, rewards=rewards, seconds=seconds)
        post(f"{server.url}/v1/experiments", document)
        asyncio.run(load.run(killed(server, load, kills, seed=7)))
        took = time.monotonic() - begin
        checked = check(server.url, document, load.ledger)
        assert server.stop() == 0
    code, report = verified(store)
    assert code == 0, report
    counts = load.ledger.counts
    print(
        f"\n{store.partition(':')[0]}: {counts['kills']} kills, "
        f"{len(load.ledger.decisions)} decisions and {len(load.ledger.rewards)} rewards "
        f"acknowledged, {checked.lost} lost, {checked.twice} twice, {took:.1f} s, "
        f"with the check {time.monotonic() - begin:.1f} s; {dict(counts)}"
    )
    assert counts["kills"] == kills
    assert counts["lost answers"] >= kills
    assert len(load.ledger.rewards) >= rewards


def test_killed_on_sqlite(tmp_path):
    nothing_is_lost(f"sqlite:///{tmp_path}/decisions.db", tmp_path, 2, 800, 120)


@pytest.mark.nightly
def test_killed_on_postgresql(tmp_path, postgres):  # noqa: F811
    nothing_is_lost(postgres.database(), tmp_path, 2, 1000, 120)


def test_stopped_under_load(tmp_path):
    document, store = settings("stopped"), f"sqlite:///{tmp_path}/decisions.db"
    with Server(store, tmp_path) as server:
        load = Load([server.url], document, clients=12, rewards=300)
        post(f"{server.url}/v1/experiments", document)
        asyncio.run(load.run(stopped(server, load, 1)))
        check(server.url, document, load.ledger)
        assert server.stop() == 0
    code, report = verified(store)
    assert code == 0, report


@pytest.mark.nightly
def test_killed_on_sqlite_50_times(tmp_path):
    nothing_is_lost(f"sqlite:///{tmp_path}/decisions.db", tmp_path, 50, 200_000, 3600)


@pytest.mark.nightly
def test_killed_on_postgresql_50_times(tmp_path, postgres):  # noqa: F811
    nothing_is_lost(postgres.database(), tmp_path, 50, 200_000, 3600)


def test_a_server_that_cannot_start_says_why(tmp_path):
    server = Server("sqlite:////no/such/folder/decisions.db", tmp_path)
    with pytest.raises(NotReady, match=r"ended with exit code [12]"):
        server.start(30)
