"""One request, repeated until it is answered: the rules, without any input or output.

`exchange` is a generator. It yields a `Request`, and is sent the `Reply` or a `Failure`. It yields
a number of seconds, and is sent None when they have passed. So both clients share it: one waits in
`time.sleep`, the other in `asyncio.sleep`.
"""

from __future__ import annotations

import email.utils
import itertools
import random
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, NamedTuple, TypeVar

FIRST, LONGEST = 0.05, 2.0  # seconds: the bounds of the pause after the first failure, and of any
SHORTEST = 1.0  # seconds that an attempt gets at least, even at the end of the patience
BUSY = {429: "it gets too many requests", 503: "it is not ready"}
BUSY |= {502: "a proxy cannot reach it", 504: "a proxy got no answer from it"}
"""Statuses after which the same request may be answered later."""

Answer = TypeVar("Answer")


class Request(NamedTuple):
    """What to send."""

    method: str
    url: str
    headers: Mapping[str, str]
    body: bytes | None = None
    timeout: float = 10.0


class Reply(NamedTuple):
    """What the service answered; the names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    content: bytes = b""


class Failure(NamedTuple):
    """Why there is no answer."""

    reason: str
    final: bool = False  # it will not go away by itself


Steps = Generator[Request | float, Reply | Failure | None, Answer]
"""What a client carries out, step by step, and what comes of it."""


class Damaged(ValueError):
    """An answer is not whole, so that it has to be fetched again."""


class Unavailable(ConnectionError):
    """The service did not answer within the client's patience.

    Whether it carried out the request is not known. ``key``: the Idempotency-Key that all attempts
    carried (None: the request changes nothing). A request that is repeated with it is carried out
    once, however often it was received.

    Args:
        message: which request, how often it was tried, and why it failed the last time.
        key: the Idempotency-Key.

    Example:
        Nobody listens at this port. The same call with the key of the error can be made later,
        without deciding twice.

        >>> from driftbandit import Client
        >>> with Client("http://127.0.0.1:9", experiment="shop", patience=0) as client:
        ...     try:
        ...         client.ask()
        ...     except Unavailable as error:
        ...         key = error.key
        >>> later = {"idempotency_key": key}  # client.ask(**later)
        >>> isinstance(key, str)
        True
    """

    def __init__(self, message: str, key: str | None = None) -> None:
        super().__init__(message)
        self.key = key

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the arguments, so that the key survives."""
        return type(self), (str(self), self.key)


class Patience(NamedTuple):
    """How long to try, and the clock and random numbers (from [0, 1)) for it."""

    seconds: float
    clock: Callable[[], float] = time.monotonic
    draw: Callable[[], float] = random.SystemRandom().random  # no seed of the caller's repeats it


def exchange(
    request: Request, patience: Patience, read: Callable[[Reply], Answer]
) -> Steps[Answer]:
    """Send a request until ``read`` can read an answer to it; raise `Unavailable` if none comes.

    The pause before the next attempt is drawn between 0 and a bound that doubles (full jitter), so
    that clients which failed together do not come back together. Retry-After is waited for first.
    """
    began = patience.clock()
    for attempts in itertools.count(1):
        answer = yield request
        after = 0.0
        if isinstance(answer, Reply) and answer.status not in BUSY:
            try:
                return read(answer)
            except Damaged as error:
                failure = Failure(str(error))
        elif isinstance(answer, Reply):
            failure = Failure(f"{BUSY[answer.status]} ({answer.status})")
            after = retry_after(answer.headers)
        else:
            assert answer is not None
            failure = answer
        passed = patience.clock() - began
        left = patience.seconds - passed
        if failure.final or left <= 0 or after > left:
            raise _unavailable(request, failure.reason, attempts, passed, after)
        pause = patience.draw() * min(LONGEST, FIRST * 2 ** min(attempts - 1, 20))
        pause = min(after + pause, left)
        yield pause
        longest = max(left - pause, SHORTEST)
        request = request._replace(timeout=min(request.timeout, longest))
    raise AssertionError("itertools.count ends")


def retry_after(headers: Mapping[str, str]) -> float:
    """The seconds that a Retry-After header asks for, which may give a number or a date.

    Example:
        >>> retry_after({"retry-after": "3"}), retry_after({"retry-after": "soon"})
        (3.0, 0.0)
    """
    text = headers.get("retry-after", "").strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    try:
        return max(email.utils.parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, OverflowError):
        return 0.0


def _unavailable(
    request: Request, reason: str, attempts: int, passed: float, after: float
) -> Unavailable:
    tries = "1 attempt" if attempts == 1 else f"{attempts} attempts"
    problem = f"{request.method} {request.url} got no answer in {tries} and {passed:.1f} s"
    if after:
        reason += f", and asks to wait {after:.0f} s"
    key = request.headers.get("Idempotency-Key")
    remedy = "the same call can be repeated"
    if key is not None:
        remedy += f"; with idempotency_key={key!r} it acts only once"
    return Unavailable(f"service: {problem} (the last time: {reason}); {remedy}", key)
