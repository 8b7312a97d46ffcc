"""A bad network, and a test that any service passes through it.

    with FlakyProxy(port_of_the_service, seed=0) as proxy:
        exercise(lambda: Client(proxy.url, experiment="shop", timeout=0.3), proxy.pull)

The experiment needs two arms or more, and a window as long as the test: rewards may stall.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
import struct
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple, Self

RESET = struct.pack("ii", 1, 0)  # SO_LINGER: close with RST
FAULTS = ("pass", "refuse", "cut request", "cut answer", "reset", "delay", "stall")
WEIGHTS = (1, 2, 4, 4, 4, 2, 0.5)


class Plan(NamedTuple):
    """What happens to one connection."""

    fault: str
    bytes: int  # that pass before it happens


class FlakyProxy:
    """Forwards TCP connections to a port of this machine, and spoils most of them.

    It refuses connections, cuts requests and answers off half way, resets, delays and stalls. The
    seed fixes the plan of the n-th connection; which call it hits depends on timing.
    """

    def __init__(self, target: int, seed: int = 0, host: str = "127.0.0.1") -> None:
        self.target, self.host = target, host
        self.faults: dict[str, int] = {}  # how often each has happened
        self._random = random.Random(seed)
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._listener: socket.socket | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen(0))
        return self

    def __exit__(self, *exception: object) -> None:
        self._call(self._end())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def pull(self, seconds: float = 0.05) -> None:
        """Cut every connection and refuse new ones for a while."""
        self._call(self._pull(seconds))

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _listen(self, port: int) -> None:
        while True:
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.setblocking(False)
            try:
                listener.bind((self.host, port))
                break
            except OSError:  # another connection took the port, for a moment
                listener.close()
                await asyncio.sleep(0.01)
        listener.listen(128)
        self.port, self._listener = listener.getsockname()[1], listener
        self._loop.add_reader(listener, self._accept, listener)

    def _accept(self, listener: socket.socket) -> None:
        # Not asyncio's own server, which loses a connection if it is closed while it accepts one.
        with contextlib.suppress(OSError):
            accepted, _ = listener.accept()
            accepted.setblocking(False)
            self._begin(self._serve(accepted))

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _refuse(self) -> bool:
        """Listen no more; return whether it did."""
        listener, self._listener = self._listener, None
        if listener is not None:
            self._loop.remove_reader(listener)
            listener.close()
        return listener is not None

    async def _pull(self, seconds: float) -> None:
        if not self._refuse():
            return  # it is pulled already
        self._count("pull")
        for writer in tuple(self._open):
            _reset(writer)
        self._begin(self._plug(seconds))

    async def _plug(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        await self._listen(self.port)

    async def _end(self) -> None:
        self._refuse()
        await asyncio.sleep(0)  # every task has begun, and owns its connection
        await _cancelled(*self._tasks)
        self._refuse()

    def _count(self, fault: str) -> None:
        self.faults[fault] = self.faults.get(fault, 0) + 1

    async def _serve(self, accepted: socket.socket) -> None:
        fault = self._random.choices(FAULTS, WEIGHTS)[0]
        plan = Plan(fault, self._random.randrange(0 if fault != "stall" else 600, 1500))
        reader, writer = await asyncio.open_connection(sock=accepted)
        self._open.add(writer)
        upstream = None
        try:
            if plan.fault == "refuse":
                self._count("refuse")
                return
            there, upstream = await asyncio.open_connection(self.host, self.target)
            self._open.add(upstream)
            ways = [
                asyncio.ensure_future(self._forward(reader, upstream, plan, "request")),
                asyncio.ensure_future(self._forward(there, writer, plan, "answer")),
            ]
            try:
                await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            finally:
                await _cancelled(*ways)
        except (OSError, asyncio.CancelledError):
            pass  # the service is gone, or the test has ended
        finally:
            for end in (writer, upstream):
                if end is not None:
                    self._open.discard(end)
                    if plan.fault in ("refuse", "reset") or end is upstream:
                        _reset(end)
                    end.close()

    async def _forward(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, plan: Plan, way: str
    ) -> None:
        """Pass bytes on until the end, or until the plan's fault happens."""
        spoils = plan.fault == f"cut {way}" or (
            way == "answer" and plan.fault in ("reset", "stall")
        )
        passed = 0
        with contextlib.suppress(OSError):
            while piece := await source.read(65536):
                if plan.fault == "delay":
                    self._count("delay")
                    await asyncio.sleep(self._random.random() * 0.01)
                last = spoils and passed + len(piece) > plan.bytes
                sink.write(piece[: plan.bytes - passed] if last else piece)
                passed += len(piece)
                await sink.drain()
                if last:
                    self._count(plan.fault)
                    if plan.fault == "stall":
                        await asyncio.sleep(60)
                    return


async def _cancelled(*tasks: asyncio.Future[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _reset(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        found = writer.get_extra_info("socket")
        found.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()


class Ledger:
    """What the clients were told: every decision, and the reward that they gave it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.made: dict[int, Any] = {}
        self.told: dict[int, float] = {}
        self._lock = threading.Lock()

    def add(self, decisions: Iterable[Any]) -> list[tuple[Any, float]]:
        """Note decisions; the reward of each."""
        with self._lock:
            pairs = [(decision, self.random.gauss()) for decision in decisions]
            for decision, reward in pairs:
                assert decision.id not in self.made, f"two clients got decision {decision.id}"
                self.made[decision.id] = decision
                self.told[decision.id] = reward
            return pairs

    def draw(self) -> float:
        with self._lock:
            return self.random.random()

    def check(self, events: list[dict[str, Any]]) -> None:
        """The service made each decision once, and learned each reward once, and nothing else."""
        decided = [event for event in events if event["kind"] == "decided"]
        fields = [(event["decision"], event["arm"], event["round"]) for event in decided]
        assert fields == [self.made[id_][:3] for id_ in sorted(self.made)]
        rewards = [(e["decision"], e["reward"]) for e in events if e["kind"] == "rewarded"]
        assert sorted(rewards) == sorted(self.told.items())


def exercise(
    make_client: Callable[[], Any],
    pull_network: Callable[[], None],
    *,
    turns: int = 200,
    workers: int = 4,
    seed: int = 0,
) -> Ledger:
    """Ask and tell through a bad network; each decision is made once, each reward learned once.

    ``make_client`` makes a `Client`, which the workers share; ``pull_network`` cuts everything.
    """
    ledger = Ledger(seed)

    def work(client: Any) -> None:
        waiting: list[tuple[Any, float]] = []
        for _ in range(turns // workers):
            if ledger.draw() < 0.04:
                pull_network()
            waiting += ledger.add(client.ask_many(2) if ledger.draw() < 0.2 else [client.ask()])
            if ledger.draw() < 0.2:
                assert client.tell_many(waiting) == ["learned"] * len(waiting)
                waiting = []
            elif ledger.draw() < 0.7:
                assert client.tell(*waiting.pop(0)) == "learned"
        for pair in reversed(waiting):
            assert client.tell(*pair) == "learned"

    with make_client() as client:
        before = [event["number"] for event in client.events()]
        with ThreadPoolExecutor(workers) as pool:
            for done in [pool.submit(work, client) for _ in range(workers)]:
                done.result()
        ledger.check(list(client.events(after=len(before))))
    return ledger


async def exercise_async(
    make_client: Callable[[], Any],
    pull_network: Callable[[], None],
    *,
    turns: int = 200,
    workers: int = 8,
    seed: int = 1,
) -> Ledger:
    """`exercise` with an `AsyncClient`; some calls are cancelled and repeated with their keys."""
    ledger, exercise_id = Ledger(seed), uuid.uuid4().hex

    async def work(client: Any, worker: int) -> None:
        for turn in range(turns // workers):
            if ledger.draw() < 0.04:
                await asyncio.to_thread(pull_network)
            key = f"{exercise_id}-{worker}-{turn}"
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.02 * ledger.draw()):
                    await client.ask_many(2, idempotency_key=key)
            pairs = ledger.add(await client.ask_many(2, idempotency_key=key))
            if ledger.draw() < 0.5:
                assert await client.tell_many(pairs) == ["learned"] * 2
            else:
                found = await asyncio.gather(*(client.tell(*pair) for pair in pairs))
                assert found == ["learned"] * 2

    async def numbered(events: AsyncIterator[dict[str, Any]]) -> list[dict[str, Any]]:
        return [event async for event in events]

    async with make_client() as client:
        before = await numbered(client.events())
        await asyncio.gather(*(work(client, worker) for worker in range(workers)))
        ledger.check(await numbered(client.events(after=len(before))))
    return ledger
