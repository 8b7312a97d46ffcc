"""The client whose calls are awaited; `blocking` documents them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Any, Self

import httpx

from driftbandit.agent.choosing import Decision, Score
from driftbandit.agent.history import Told
from driftbandit.io.atomic import write_whole
from driftbandit.service.client import transport
from driftbandit.service.client.calls import PAGE, Calls
from driftbandit.service.client.retries import Answer, Failure, Reply, Request, Steps
from driftbandit.system import Name, System


class AsyncClient:
    """`Client` for asyncio: the same calls, awaited; `names` and `round` are calls, too.

    One event loop may run many of its calls at a time. A call that was cancelled leaves it usable.

    Args:
        url, key, experiment, timeout, patience: as for `Client`.

    Example:
        Several requests are on their way at the same time.

        >>> from driftbandit import LGDS, AsyncClient, System
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> system = System(model, [[1.0, 0.0], [0.0, 1.0]], ["slow", "fast"])
        >>> async def play():
        ...     async with AsyncClient(url) as server:
        ...         client = await server.create("shop", system)
        ...         decision = await client.ask()
        ...         print(decision.arm, await client.tell(decision, -3.0))
        ...         both = await client.ask_many(2)
        ...         print(await client.tell_many([(one, 1.0) for one in both]))
        ...         given = client.names(), client.round(), server.experiments()
        ...         print(await asyncio.gather(*given))
        ...         await client.close()
        >>> asyncio.run(play())
        slow learned
        ['learned', 'learned']
        [('slow', 'fast'), 2, ['shop']]

        What it knows, and what changes it:

        >>> async def change():
        ...     async with AsyncClient(url, experiment="shop") as client:
        ...         print([score.arm for score in await client.scores() if score.mean > 0.6])
        ...         state = await client.state()
        ...         print(state["decisions"], [event["kind"] async for event in client.events(4)])
        ...         await client.download_log("log.parquet")
        ...         await client.add_arm("both", [0.7, 0.7])
        ...         await client.remove_arm("fast")
        ...         faster = LGDS(0.5 * model.transition, model.process_cov, reward_std=0.1)
        ...         rows = [[1.0, 0.0], [0.7, 0.7]]
        ...         await client.replace_model(System(faster, rows, ["slow", "both"]))
        ...         await client.pause("stocktaking")
        ...         await client.resume()
        ...         try:
        ...             await client.refit()
        ...         except ValueError as error:
        ...             print(error)
        >>> asyncio.run(change())
        ['slow']
        3 ['decided', 'rewarded', 'rewarded']
        id: there are 3 rewards, and a refit takes 10; let more come
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        experiment: str | None = None,
        *,
        timeout: float = 10.0,
        patience: float = 60.0,
    ) -> None:
        self._calls = Calls(url, key, experiment, timeout, patience)
        self._http = httpx.AsyncClient(**transport.options(self._calls))
        self._attempts: set[asyncio.Task[Reply | Failure]] = set()
        self._places = asyncio.Semaphore(transport.MOST)

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._calls!r}"

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections; the client can no longer be used."""
        for attempt in self._attempts:
            attempt.cancel()
        await asyncio.gather(*self._attempts, return_exceptions=True)
        await self._http.aclose()

    async def _run(self, steps: Steps[Answer]) -> Answer:
        answer: Reply | Failure | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = None
            if isinstance(step, Request):
                answer = await self._send(step)
            else:
                await asyncio.sleep(step)

    async def _send(self, request: Request) -> Reply | Failure:
        """Send a request in a task that goes on to its end, even if the call is cancelled.

        httpx's pool keeps the connection of a request that is cancelled too early for ever.
        """
        try:
            async with asyncio.timeout(request.timeout):
                await self._places.acquire()
        except TimeoutError:
            return Failure(f"{transport.MOST} other requests were still on their way")
        attempt = asyncio.create_task(self._attempt(request))
        self._attempts.add(attempt)
        attempt.add_done_callback(self._ended)
        return await asyncio.shield(attempt)

    def _ended(self, attempt: asyncio.Task[Reply | Failure]) -> None:
        self._attempts.discard(attempt)
        self._places.release()
        if not attempt.cancelled():
            attempt.exception()  # has been seen, even if the call is gone

    async def _attempt(self, request: Request) -> Reply | Failure:
        try:
            return transport.reply_of(
                await self._http.request(
                    request.method,
                    request.url,
                    content=request.body,
                    headers=request.headers,
                    timeout=request.timeout,
                )
            )
        except transport.FAILURES as error:
            return transport.failure_of(error)

    async def ask(
        self,
        arms: Any = None,
        *,
        round: int | None = None,
        context: Any = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Choose an arm for the next round, or for the round you name: see `Client.ask`.

        Args:
            arms, round, context, idempotency_key: as for `Client.ask`.
        """
        return await self._run(self._calls.ask(arms, round, context, idempotency_key))

    async def ask_many(
        self,
        count: int,
        arms: Any = None,
        *,
        round: int | None = None,
        distinct: bool = True,
        context: Any = None,
        idempotency_key: str | None = None,
    ) -> list[Decision]:
        """Choose several arms for one round: see `Client.ask_many`.

        Args:
            count, arms, round, distinct, context, idempotency_key: as for `Client.ask_many`.
        """
        given = (count, arms, round, distinct, context, idempotency_key)
        return await self._run(self._calls.ask_many(*given))

    async def tell(
        self, decision: Decision | int, reward: Any, *, idempotency_key: str | None = None
    ) -> Told:
        """Tell the reward of a decision: see `Client.tell`.

        Args:
            decision, reward, idempotency_key: as for `Client.tell`.
        """
        return await self._run(self._calls.tell(decision, reward, idempotency_key))

    async def tell_many(
        self, rewards: Iterable[tuple[Decision | int, Any]], *, idempotency_key: str | None = None
    ) -> list[Told]:
        """Tell the rewards of several decisions, all or none of them: see `Client.tell_many`.

        Args:
            rewards, idempotency_key: as for `Client.tell_many`.
        """
        return await self._run(self._calls.tell_many(rewards, idempotency_key))

    async def scores(self) -> list[Score]:
        """The policy's score of every arm in the present round, a `Score` each."""
        return await self._run(self._calls.scores())

    async def names(self) -> tuple[Name, ...]:
        """The names of the arms that are on offer."""
        return await self._run(self._calls.names())

    async def round(self) -> int:
        """The round that the next `ask` is for."""
        return await self._run(self._calls.round())

    async def state(self) -> dict[str, Any]:
        """The experiment as it is now: see `Client.state`."""
        return await self._run(self._calls.state())

    async def events(self, after: int = 0) -> AsyncIterator[dict[str, Any]]:
        """Everything that happened, oldest first, page by page as it is read.

        Args:
            after: the number of the last event that you know; 0: none.

        Returns:
            An asynchronous iterator, for ``async for``.
        """
        while True:
            page = await self._run(self._calls.events(after))
            for event in page:
                yield event
            if len(page) < PAGE:
                return
            after = page[-1]["number"]

    async def download_log(self, path: str | Path) -> None:
        """Write the plays and their rewards to a Parquet file, for `fit` and `replay`.

        Args:
            path: of the file, which is replaced if it exists.
        """
        content = await self._run(self._calls.log())
        await asyncio.to_thread(write_whole, Path(path), content)

    async def add_arm(
        self, name: Name, features: Any = None, *, idempotency_key: str | None = None
    ) -> None:
        """Offer one more arm from now on: see `Client.add_arm`.

        Args:
            name, features, idempotency_key: as for `Client.add_arm`.
        """
        await self._run(self._calls.add_arm(name, features, idempotency_key))

    async def remove_arm(self, name: Name, *, idempotency_key: str | None = None) -> None:
        """Stop offering an arm; its open decisions can still be told.

        Args:
            name: of the arm.
            idempotency_key: see `Client`.
        """
        await self._run(self._calls.remove_arm(name, idempotency_key))

    async def replace_model(self, model: System, *, idempotency_key: str | None = None) -> None:
        """Switch to the model of a `System`: see `Client.replace_model`.

        Args:
            model: has an arm for each of the experiment's.
            idempotency_key: see `Client`.
        """
        await self._run(self._calls.replace_model(model, idempotency_key))

    async def refit(self, *, idempotency_key: str | None = None) -> None:
        """Begin to learn the model from the experiment's log; `state` says when it is done.

        Args:
            idempotency_key: see `Client`.
        """
        await self._run(self._calls.refit(idempotency_key))

    async def pause(self, reason: str | None = None, *, idempotency_key: str | None = None) -> None:
        """Refuse to decide until `resume`; rewards are still taken.

        Args:
            reason: a text for those who ask in the meantime.
            idempotency_key: see `Client`.
        """
        await self._run(self._calls.pause(reason, idempotency_key))

    async def resume(self, *, idempotency_key: str | None = None) -> None:
        """Decide again.

        Args:
            idempotency_key: see `Client`.
        """
        await self._run(self._calls.resume(idempotency_key))

    async def experiments(self) -> list[str]:
        """The ids of the server's experiments."""
        return await self._run(self._calls.experiments())

    async def create(
        self,
        id: str,
        system: System | None = None,
        policy: str | None = None,
        *,
        exist_ok: bool = False,
        idempotency_key: str | None = None,
        **settings: Any,
    ) -> Self:
        """Make a new experiment; return a client of it, which you close separately.

        Args:
            id: of the experiment.
            system: the model, the arms and their names. None: ``settings`` give the arms.
            policy: the name of a policy; None: the service's default, `policies.PREFERRED`.
            exist_ok: as for `Client.create`.
            idempotency_key: see `Client`.
            **settings: as for `Client.create`.

        Returns:
            A client of the new experiment, with the settings of this one.
        """
        calls = self._calls
        given = (id, system, policy, exist_ok, settings, idempotency_key)
        id = await self._run(calls.create(*given))
        times = {"timeout": calls.timeout, "patience": calls.patience.seconds}
        return type(self)(calls.root, calls.key, id, **times)
