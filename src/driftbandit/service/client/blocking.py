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

        On the wire an infinite bonus is None.
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
        """Choose several arms for one round: see `Agent.ask_many`."""
        given = (count, arms, round, distinct, context, idempotency_key)
        return self._run(self._calls.ask_many(*given))

    def tell(
        self, decision: Decision | int, reward: Any, *, idempotency_key: str | None = None
    ) -> Told:
        """Tell the reward of a decision: see `Agent.tell`."""
        return self._run(self._calls.tell(decision, reward, idempotency_key))

    def tell_many(
        self, rewards: Iterable[tuple[Decision | int, Any]], *, idempotency_key: str | None = None
    ) -> list[Told]:
        """Tell the rewards of several decisions, all or none of them: see `Agent.tell_many`."""
        return self._run(self._calls.tell_many(rewards, idempotency_key))

    def scores(self) -> list[Score]:
        """The policy's score of every arm in the present round."""
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
        """The experiment as it is now: arms, counts, calibration, models."""
        return self._run(self._calls.state())

    def events(self, after: int = 0) -> Iterator[dict[str, Any]]:
        """Everything that happened, oldest first, from the event after number ``after`` on."""
        while True:
            page = self._run(self._calls.events(after))
            yield from page
            if len(page) < PAGE:
                return
            after = page[-1]["number"]

    def download_log(self, path: str | Path) -> None:
        """Write the plays and their rewards to a Parquet file, for `fit` and `replay`."""
        write_whole(Path(path), self._run(self._calls.log()))

    def add_arm(
        self, name: Name, features: Any = None, *, idempotency_key: str | None = None
    ) -> None:
        """Offer one more arm from now on: see `Agent.add_arm`."""
        self._run(self._calls.add_arm(name, features, idempotency_key))

    def remove_arm(self, name: Name, *, idempotency_key: str | None = None) -> None:
        """Stop offering an arm; its open decisions can still be told."""
        self._run(self._calls.remove_arm(name, idempotency_key))

    def replace_model(self, model: System, *, idempotency_key: str | None = None) -> None:
        """Switch to the model of a `System`, which has an arm for each of the experiment's."""
        self._run(self._calls.replace_model(model, idempotency_key))

    def refit(self, *, idempotency_key: str | None = None) -> None:
        """Begin to learn the model from the experiment's log; `state` says when it is done."""
        self._run(self._calls.refit(idempotency_key))

    def pause(self, reason: str | None = None, *, idempotency_key: str | None = None) -> None:
        """Refuse to decide until `resume`; rewards are still taken."""
        self._run(self._calls.pause(reason, idempotency_key))

    def resume(self, *, idempotency_key: str | None = None) -> None:
        """Decide again."""
        self._run(self._calls.resume(idempotency_key))

    def experiments(self) -> list[str]:
        """The ids of the server's experiments."""
        return self._run(self._calls.experiments())

    def create(
        self,
        id: str,
        system: System | None,
        policy: str = "idea",
        *,
        idempotency_key: str | None = None,
        **settings: Any,
    ) -> Self:
        """Make a new experiment; return a client of it, to be closed by itself.

        Args:
            id: of the experiment.
            system: the model, the arms and their names. None: ``settings`` give the arms.
            policy: the name of a policy.
            settings: as the service takes them: seed, window, rounds, memory, time, refit (also a
                `Refit`), on_alarm; without a system, arms or structure and names.
        """
        calls = self._calls
        id = self._run(calls.create(id, system, policy, settings, idempotency_key))
        times = {"timeout": calls.timeout, "patience": calls.patience.seconds}
        return type(self)(calls.root, calls.key, id, **times)
