"""The client that waits for every answer."""

from __future__ import annotations

import time
import weakref
from collections.abc import Iterable, Iterator
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


class Client:
    """An experiment of a decision service, with the methods of an `Agent`.

    Threads may share a client. A call that was interrupted leaves it usable.

    Args:
        url: of the server, "http://127.0.0.1:8080", or of an experiment,
            "http://127.0.0.1:8080/v1/experiments/shop".
        key: one of the server's keys, if it wants one.
        experiment: the experiment's id. None: the one in the url, or the server's only one.
        timeout: seconds without any progress after which an attempt has failed.
        patience: seconds after which a call is attempted no more and raises `Unavailable`. 0: every
            call is attempted once.

    Calls that change something take an ``idempotency_key``, a text of your choice. The service
    carries out only the first call with that key, and answers the others as it answered the first.
    None: the client makes one for each call, and repeats a failed attempt with it. Give the ``key``
    of an `Unavailable` to repeat a whole call.

    A wrong argument raises `InvalidInput`, one that contradicts an earlier call `Conflict`, a key
    that is missing or lacks a scope PermissionError, and a server that does not answer in time
    `Unavailable`.

    If the server has keys, `ask` and `ask_many` need one with the scope "decide", `tell` and
    `tell_many` "reward", and all that only reads "read". Everything else needs "admin".

    Example:
        A shop makes an experiment, decides and learns. Any process that knows the address can go
        on with it.

        >>> from driftbandit import LGDS, Client, System
        >>> model = LGDS([[0.9, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], reward_std=0.1)
        >>> system = System(model, [[1.0, 0.0], [0.0, 1.0]], ["slow", "fast"])
        >>> server = Client(url)  # such as "http://127.0.0.1:8080"
        >>> client = server.create("shop", system, policy="reach")
        >>> decision = client.ask()
        >>> decision.arm, client.tell(decision, -3.0)
        ('slow', 'learned')
        >>> both = client.ask_many(2)  # for one round
        >>> client.tell_many([(one, 1.0) for one in both])
        ['learned', 'learned']

        What it knows:

        >>> server.experiments(), client.names, client.round
        (['shop'], ('slow', 'fast'), 2)
        >>> [score.arm for score in client.scores() if score.mean > 0.6]
        ['slow']
        >>> client.state()["decisions"], client.state()["rewards"]
        (3, 3)
        >>> [event["kind"] for event in client.events(after=4)]
        ['decided', 'rewarded', 'rewarded']
        >>> client.download_log("log.parquet")  # for `fit` and `replay`

        What changes it:

        >>> client.add_arm("both", [0.7, 0.7])
        >>> client.remove_arm("fast")
        >>> client.names
        ('slow', 'both')
        >>> faster = LGDS(0.5 * model.transition, model.process_cov, reward_std=0.1)
        >>> client.replace_model(System(faster, [[1.0, 0.0], [0.7, 0.7]], client.names))
        >>> client.pause("stocktaking")
        >>> client.state()["paused"]
        True
        >>> client.resume()
        >>> client.close()
        >>> server.close()
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
        self._http = httpx.Client(**transport.options(self._calls))
        weakref.finalize(self, self._http.close)  # for those who do not close it

    def __repr__(self) -> str:
        return f"{type(self).__name__}{self._calls!r}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections; the client can no longer be used."""
        self._http.close()

    def _run(self, steps: Steps[Answer]) -> Answer:
        answer: Reply | Failure | None = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = None
            if isinstance(step, Request):
                answer = self._send(step)
            else:
                time.sleep(step)

    def _send(self, request: Request) -> Reply | Failure:
        try:
            return transport.reply_of(
                self._http.request(
                    request.method,
                    request.url,
                    content=request.body,
                    headers=request.headers,
                    timeout=request.timeout,
                )
            )
        except transport.FAILURES as error:
            return transport.failure_of(error)

    def ask(
        self,
        arms: Any = None,
        *,
        round: int | None = None,
        context: Any = None,
        idempotency_key: str | None = None,
    ) -> Decision:
        """Choose an arm for the next round, or for the round you name: see `Agent.ask`.

        Args:
            arms, round, context: as for `Agent.ask`.
            idempotency_key: see `Client`.

        Returns:
            `Decision`; on the wire an infinite bonus is None.

        Example:
            >>> from driftbandit import LGDS, Client, System
            >>> system = System(LGDS([[0.9]], [[1.0]], 1.0), [[2.0], [1.0]], ["left", "right"])
            >>> with Client(url).create("shop", system) as client:
            ...     first = client.ask(["right"])  # the arms that are on offer
            ...     same = [client.ask(idempotency_key="order-7") for _ in range(2)]
            >>> first.arm, same[0].id, same[1].id  # one key, one decision
            ('right', 1, 1)
        """
        return self._run(self._calls.ask(arms, round, context, idempotency_key))

    def ask_many(
        self,
        count: int,
        arms: Any = None,
        *,
        round: int | None = None,
        distinct: bool = True,
        context: Any = None,
        idempotency_key: str | None = None,
    ) -> list[Decision]:
        """Choose several arms for one round: see `Agent.ask_many`.

        Args:
            count, arms, round, distinct, context: as for `Agent.ask_many`.
            idempotency_key: see `Client`.

        Returns:
            ``count`` decisions, each with an id of its own.
        """
        given = (count, arms, round, distinct, context, idempotency_key)
        return self._run(self._calls.ask_many(*given))

    def tell(
        self, decision: Decision | int, reward: Any, *, idempotency_key: str | None = None
    ) -> Told:
        """Tell the reward of a decision: see `Agent.tell`.

        Args:
            decision: what `ask` returned, or its id.
            reward: as for `Agent.tell`. None: not known yet; the answer is "missing".
            idempotency_key: see `Client`.

        Returns:
            "learned"; or, if nothing changes, "missing", "duplicate" or "too late": the decision's
            round has left the experiment's ``window``.

        Example:
            >>> from driftbandit import LGDS, Client, System
            >>> system = System(LGDS([[0.9]], [[1.0]], 1.0), [[2.0], [1.0]], ["left", "right"])
            >>> with Client(url).create("shop", system) as client:
            ...     number = client.ask().id  # this process may end here
            >>> with Client(url, experiment="shop") as client:
            ...     client.tell(number, 0.5), client.tell(number, 0.5)
            ('learned', 'duplicate')
        """
        return self._run(self._calls.tell(decision, reward, idempotency_key))

    def tell_many(
        self, rewards: Iterable[tuple[Decision | int, Any]], *, idempotency_key: str | None = None
    ) -> list[Told]:
        """Tell the rewards of several decisions, all or none of them: see `Agent.tell_many`.

        Args:
            rewards: pairs of a decision, or its id, and its reward.
            idempotency_key: see `Client`.

        Returns:
            What `tell` returns, for each pair.
        """
        return self._run(self._calls.tell_many(rewards, idempotency_key))

    def scores(self) -> list[Score]:
        """The policy's score of every arm in the present round, a `Score` each."""
        return self._run(self._calls.scores())

    @property
    def names(self) -> tuple[Name, ...]:
        """The names of the arms that are on offer."""
        return self._run(self._calls.names())

    @property
    def round(self) -> int:
        """The round that the next `ask` is for."""
        return self._run(self._calls.round())

    def state(self) -> dict[str, Any]:
        """The experiment as it is now: arms, counts, calibration, models.

        Returns:
            The JSON object of ``GET /v1/experiments/ID/state``.
        """
        return self._run(self._calls.state())

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Everything that happened, oldest first, page by page as it is read.

        Args:
            after: the number of the last event that you know; 0: none.

        Returns:
            An iterator of JSON objects with ``number``, ``kind`` and ``time``, among others.
        """
        while True:
            page = self._run(self._calls.events(after))
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1]["number"]

    def download_log(self, path: str | Path) -> None:
        """Write the plays and their rewards to a Parquet file, for `fit` and `replay`.

        Args:
            path: of the file, which is replaced if it exists.

        Example:
            >>> from driftbandit import LGDS, Client, System, identify
            >>> system = System(LGDS([[0.9]], [[1.0]], 1.0), [[2.0], [1.0]], ["left", "right"])
            >>> with Client(url).create("shop", system) as client:
            ...     told = [client.tell(client.ask(), reward) for reward in (0.5, 1.5, 0.7)]
            ...     client.download_log("log.parquet")
            >>> identify.read_log("log.parquet").rewards_seen
            3
        """
        write_whole(Path(path), self._run(self._calls.log()))

    def add_arm(
        self, name: Name, features: Any = None, *, idempotency_key: str | None = None
    ) -> None:
        """Offer one more arm from now on: see `Agent.add_arm`.

        Args:
            name: a name that no other arm has.
            features: as for `Agent.add_arm`.
            idempotency_key: see `Client`.
        """
        self._run(self._calls.add_arm(name, features, idempotency_key))

    def remove_arm(self, name: Name, *, idempotency_key: str | None = None) -> None:
        """Stop offering an arm; its open decisions can still be told.

        Args:
            name: of the arm.
            idempotency_key: see `Client`.
        """
        self._run(self._calls.remove_arm(name, idempotency_key))

    def replace_model(self, model: System, *, idempotency_key: str | None = None) -> None:
        """Switch to the model of a `System`: see `Agent.replace_model`.

        Args:
            model: has an arm for each of the experiment's.
            idempotency_key: see `Client`.
        """
        self._run(self._calls.replace_model(model, idempotency_key))

    def refit(self, *, idempotency_key: str | None = None) -> None:
        """Begin to learn the model from the experiment's log; `state` says when it is done.

        Args:
            idempotency_key: see `Client`.

        Example:
            >>> from driftbandit import LGDS, Client, System
            >>> system = System(LGDS([[0.9]], [[1.0]], 1.0), [[2.0], [1.0]], ["left", "right"])
            >>> client = Client(url).create("shop", system, refit={"after": 200})
            >>> client.refit()
            Traceback (most recent call last):
            driftbandit.errors.Conflict: id: there are 0 rewards, and a refit takes 10; let more ...
            >>> client.state()["refit"]["in_progress"]
            False
        """
        self._run(self._calls.refit(idempotency_key))

    def pause(self, reason: str | None = None, *, idempotency_key: str | None = None) -> None:
        """Refuse to decide until `resume`; rewards are still taken.

        Args:
            reason: a text for those who ask in the meantime.
            idempotency_key: see `Client`.
        """
        self._run(self._calls.pause(reason, idempotency_key))

    def resume(self, *, idempotency_key: str | None = None) -> None:
        """Decide again.

        Args:
            idempotency_key: see `Client`.
        """
        self._run(self._calls.resume(idempotency_key))

    def experiments(self) -> list[str]:
        """The ids of the server's experiments."""
        return self._run(self._calls.experiments())

    def create(
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
            exist_ok: whether to return a client of the experiment if it exists with the same
                settings, so that a program can be started again. Other settings raise `Conflict`;
                an experiment keeps its policy if none is named here.
            idempotency_key: see `Client`.
            **settings: as the service takes them: seed, window (a reward counts if it comes within
                so many rounds), rounds, memory, time, refit (also a `Refit`), on_alarm; without a
                system, ``names`` of the arms and perhaps a ``structure`` ("level(arm)" if absent),
                or ``arms``, a mapping from names to features.

        Returns:
            A client of the new experiment, with the settings of this one.

        Example:
            An experiment that knows only its arms, and learns a model later.

            >>> from driftbandit import Client
            >>> server = Client(url)
            >>> client = server.create("news", names=["a", "b"])
            >>> client.names, server.experiments()
            (('a', 'b'), ['news'])
            >>> client.close()
            >>> client = server.create("news", names=["a", "b"], exist_ok=True)
            >>> client.close()
            >>> server.create("news", names=["a", "b", "c"], exist_ok=True)
            Traceback (most recent call last):
            driftbandit.errors.Conflict: id: news exists with another system; choose another id
            >>> server.close()
        """
        calls = self._calls
        given = (id, system, policy, exist_ok, settings, idempotency_key)
        id = self._run(calls.create(*given))
        times = {"timeout": calls.timeout, "patience": calls.patience.seconds}
        return type(self)(calls.root, calls.key, id, **times)
