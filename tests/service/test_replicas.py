"""Two servers on one PostgreSQL database are one service, also while the database restarts."""

import asyncio
import contextlib
import time

import pytest

from service.connection import get, post
from service.load import Load, check, settings
from service.postgres import postgres  # noqa: F401
from service.servers import Server, verified


@contextlib.contextmanager
def two_servers(store, folder):
    """Two servers, started one after the other: the first makes the tables."""
    with contextlib.ExitStack() as stack:
        servers = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            servers.append(stack.enter_context(Server(store, folder / name)))
        yield servers


def state_of(server, document):
    """The state document without the time of the answer."""
    state = get(f"{server.url}/v1/experiments/{document['id']}/state")
    return {name: value for name, value in state.items() if name != "time"}


def answer_alike(store, folder, requests, seconds, disturb=None, doubled=0.1):
    """Load both, and check what they say in the end; ``disturb`` runs beside the load."""
    begin, document = time.monotonic(), settings("replicas")
    with two_servers(store, folder) as (one, two):
        post(f"{one.url}/v1/experiments", document)
        urls = [one.url, two.url]
        load = Load(urls, document, 12, requests=requests, seconds=seconds, doubled=doubled)
        asyncio.run(load.run(*([] if disturb is None else [disturb(load, one, two)])))
        took = time.monotonic() - begin
        for server in (one, two):
            checked = check(server.url, document, load.ledger)
        assert state_of(one, document) == state_of(two, document)
        assert [server.stop() for server in (one, two)] == [0, 0]
    code, report = verified(store)
    assert code == 0, report
    counts = load.ledger.counts
    print(
        f"\ntwo replicas: {counts['answered']} requests answered, "
        f"{len(load.ledger.decisions)} decisions, {len(load.ledger.rewards)} rewards, "
        f"{checked.lost} lost, {checked.twice} twice, {took:.1f} s; {dict(counts)}"
    )
    assert counts["doubled"] > 0
    return counts


async def restarted(postgres, load, modes):  # noqa: F811
    """Restart the database in each of the modes, evenly over the load."""
    for number, mode in enumerate(modes, 1):
        while load.ledger.counts["answered"] < load.requests * number / (len(modes) + 1):
            await asyncio.sleep(0.005)
        await asyncio.to_thread(postgres.restart, mode, 0.2)
        load.ledger.counts["restarts"] += 1


def test_two_replicas(tmp_path, postgres):  # noqa: F811
    answer_alike(postgres.database(), tmp_path, 500, 60)


@pytest.mark.nightly
def test_the_database_restarts(tmp_path, postgres):  # noqa: F811
    def disturb(load, *_):
        return restarted(postgres, load, ["fast", "immediate"])

    counts = answer_alike(postgres.database(), tmp_path, 1000, 90, disturb)
    assert counts["restarts"] == 2


@pytest.mark.nightly
def test_one_replica_is_killed(tmp_path, postgres):  # noqa: F811
    async def disturb(load, one, two):
        while load.ledger.counts["answered"] < 100:
            await asyncio.sleep(0.001)
        one.kill()  # its clients go to the other
        while load.ledger.counts["answered"] < 200:
            await asyncio.sleep(0.001)
        one.launch()
        await asyncio.to_thread(one.wait_until_ready)

    counts = answer_alike(postgres.database(), tmp_path, 400, 60, disturb)
    assert counts["lost answers"] > 0


@pytest.mark.nightly
def test_two_replicas_and_many_requests(tmp_path, postgres):  # noqa: F811
    answer_alike(postgres.database(), tmp_path, 10_000, 1800)


@pytest.mark.nightly
def test_the_database_restarts_often(tmp_path, postgres):  # noqa: F811
    def disturb(load, *_):
        return restarted(postgres, load, ["fast", "immediate"] * 5)

    counts = answer_alike(postgres.database(), tmp_path, 10_000, 1800, disturb)
    assert counts["restarts"] == 10
