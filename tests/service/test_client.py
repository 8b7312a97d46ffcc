"""The clients: through a bad network, interrupted, and shared."""

import asyncio
import contextlib
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("httpx")

from driftbandit import InvalidInput
from driftbandit.service.client import AsyncClient, Client, Unavailable, transport
from service.flaky import FlakyProxy, exercise, exercise_async

pytest_plugins = ["service.clients"]
JSON = {"Content-Type": "application/json"}


# Through a bad network.


def test_each_decision_is_made_once_and_each_reward_told_once(service):
    with FlakyProxy(service.port, seed=3) as proxy:
        options = {"timeout": 0.3, "patience": 30.0}
        ledger = exercise(lambda: Client(proxy.url, **options), proxy.pull, turns=140)
    _check_faults(service, proxy, ledger)


def test_the_same_with_cancelled_calls(service):
    with FlakyProxy(service.port, seed=4) as proxy:
        options = {"timeout": 0.3, "patience": 30.0}
        play = exercise_async(lambda: AsyncClient(proxy.url, **options), proxy.pull, turns=120)
        ledger = asyncio.run(play)
    _check_faults(service, proxy, ledger)


def _check_faults(service, proxy, ledger):
    """The network was bad, and requests did arrive twice."""
    assert {"pull", "refuse", "cut request", "cut answer", "reset"} <= set(proxy.faults)
    keys = [seen.key for seen in service.seen if seen.method == "POST"]
    assert len(keys) > len(set(keys))
    shop = service.experiments["shop"]
    assert len(shop.decisions) == len(ledger.made) >= 140
    assert shop.rewards == ledger.told


def test_without_keys_the_exercise_fails(service, monkeypatch):
    """It would notice: a client without keys decides twice."""
    send = Client._send

    def without_key(self, request):
        headers = {name: x for name, x in request.headers.items() if name != "Idempotency-Key"}
        return send(self, request._replace(headers=headers))

    monkeypatch.setattr(Client, "_send", without_key)
    options = {"timeout": 0.3, "patience": 30.0}
    with FlakyProxy(service.port, seed=3) as proxy, pytest.raises(AssertionError):
        exercise(lambda: Client(proxy.url, **options), proxy.pull)


def test_no_server_at_all(connect):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # and does not listen
        url = f"http://127.0.0.1:{unused.getsockname()[1]}/v1/experiments/shop"
        client = connect(url, patience=0.3)
        began = time.monotonic()
        with pytest.raises(Unavailable, match="ConnectError") as caught:
            client.ask()
        assert 0.25 < time.monotonic() - began < 4
        assert caught.value.key
        with pytest.raises(ConnectionError, match=r"GET .*/state got no answer") as caught:
            client.state()
        assert caught.value.key is None


# Attempts.


def test_attempts_share_a_key_and_calls_do_not(service, connect):
    client = connect(service.url, experiment="shop")
    service.script += [(429, {"Retry-After": "0"}, b"{}"), (502, {}, b"<html>"), (503, {}, b"")]
    service.script += [(200, JSON, b'{"decision": 0, "ar')]  # cut off, and the length fits
    assert client.ask().id == 0
    assert len(service.seen) == 5
    assert len({seen.key for seen in service.seen}) == 1
    assert client.ask().id == 1
    assert service.seen[-1].key != service.seen[0].key
    assert len(service.experiments["shop"].decisions) == 2


def test_a_whole_call_can_be_repeated_with_its_key(service, connect):
    client = connect(service.url, experiment="shop", patience=0.0)
    service.gate.clear()
    impatient = connect(service.url, experiment="shop", timeout=0.1, patience=0.0)
    with pytest.raises(Unavailable, match="ReadTimeout") as caught:
        impatient.ask()
    service.gate.set()
    assert client.ask(idempotency_key=caught.value.key).id == 0
    assert client.ask(idempotency_key="mine") == client.ask(idempotency_key="mine")
    assert len(service.experiments["shop"].decisions) == 2
    with pytest.raises(InvalidInput, match="Idempotency-Key: was used before; take a new one"):
        client.ask(["a"], idempotency_key="mine")
    for wrong in ("", "x" * 256, "é", "a b", 7):
        with pytest.raises(InvalidInput, match="idempotency_key: "):
            client.ask(idempotency_key=wrong)


# Interruptions.


@contextlib.contextmanager
def _interrupted_when(reached):
    """Ctrl-C in this block, as soon as ``reached()`` says so; the block must not end before."""
    over = threading.Event()

    def interrupt():
        while not over.wait(0.01):
            if reached():
                os.kill(os.getpid(), signal.SIGINT)
                return

    sender = threading.Thread(target=interrupt)
    sender.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            yield
    finally:
        over.set()
        sender.join()


def test_an_interrupted_call_leaves_the_client_usable(service):
    decisions, this = service.experiments["shop"].decisions, threading.get_ident()

    def pauses():
        """It has the refusal, and is in no call but `time.sleep`, which has no frame."""
        return not service.script and sys._current_frames()[this].f_code is Client._run.__code__

    with Client(service.url, experiment="shop", timeout=30.0) as client:
        service.gate.clear()
        with _interrupted_when(lambda: decisions):  # carried out, and the answer is held back
            client.ask()
        service.gate.set()
        assert client.ask().id == 1
        service.script += [(503, {"Retry-After": "30"}, b"")]
        with _interrupted_when(pauses):
            client.ask()
        assert len(decisions) == 2
        assert client.ask().id == 2


def test_cancelled_calls_leave_the_client_usable(service):
    """Cancelled while connecting, sending and waiting, they take no connection with them."""
    drawn = random.Random(5)

    async def cancelled(client, most):
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(most * drawn.random()):
                await client.ask()

    async def work(client):
        for _ in range(60):
            await cancelled(client, 0.02)

    async def play():
        async with AsyncClient(service.url, experiment="shop", timeout=5.0) as client:
            await asyncio.gather(*(work(client) for _ in range(8)))
            async with asyncio.timeout(5):
                while client._attempts:
                    await asyncio.sleep(0.01)
                found = await asyncio.gather(*(client.ask() for _ in range(120)))
            assert len({decision.id for decision in found}) == 120
            connections = client._http._transport._pool.connections
            assert all(one.is_idle() or one.is_closed() for one in connections)
            service.gate.clear()
            await cancelled(client, 0.05)  # closing ends what is left of it

    asyncio.run(play())


def test_more_calls_than_connections_wait_for_their_turn(service):
    async def play():
        options = {"experiment": "shop", "timeout": 0.2, "patience": 0.0}
        async with AsyncClient(service.url, **options) as client:
            service.gate.clear()
            calls = (client.ask() for _ in range(transport.MOST + 1))
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(one) for one in found} == {Unavailable}
            service.gate.set()
            assert await client.ask()

    asyncio.run(play())


def test_a_client_is_closed_at_the_end(service):
    with Client(service.url) as client:
        assert client.experiments() == ["shop"]
    with pytest.raises(RuntimeError, match="closed"):
        client.experiments()


# The import.


def test_only_the_client_loads_httpx_and_its_absence_is_named():
    code = """
import sys
import driftbandit.service
assert "httpx" not in sys.modules
sys.modules["httpx"] = None
try:
    from driftbandit.service.client import Client
except driftbandit.MissingExtra as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("Client needs httpx; install driftbandit[client]\n", "")
