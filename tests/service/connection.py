"""A small HTTP/1.1 client on asyncio: it shares two cores with the server that it loads."""

from __future__ import annotations

import asyncio
import json
import urllib.parse
import urllib.request
from typing import Any, NamedTuple


class Lost(ConnectionError):
    """The connection could not be had, or ended before the whole answer: was it done or not?"""


class Answer(NamedTuple):
    """What a server answered; ``head`` is in lower case."""

    status: int
    head: bytes
    body: bytes

    @property
    def document(self) -> Any:
        """The body, read as JSON."""
        return json.loads(self.body)

    @property
    def is_replayed(self) -> bool:
        """Whether the server gave the answer to an earlier request with the same key."""
        return b"\r\nidempotent-replayed: true" in self.head


class Connection(asyncio.Protocol):
    """A connection that is kept alive, for one request at a time; it opens again by itself."""

    def __init__(self, url: str, timeout: float = 20.0) -> None:
        place = urllib.parse.urlsplit(url)
        self._host, self._port = place.hostname or "127.0.0.1", place.port or 80
        self._fixed = f"Host: {place.netloc}\r\nContent-Type: application/json\r\n"
        self._timeout = timeout
        self._transport: Any = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._buffer = bytearray()
        self._head: bytes | None = None
        self._length: int | None = None  # bytes of the whole answer; None: it comes in chunks

    async def request(
        self, method: str, path: str, body: bytes = b"", key: str | None = None
    ) -> Answer:
        """Send a request and return its answer, or raise `Lost`."""
        loop = asyncio.get_running_loop()
        if self._transport is None:
            try:
                opened = loop.create_connection(lambda: self, self._host, self._port)
                await asyncio.wait_for(opened, self._timeout)
            except (OSError, TimeoutError) as error:
                raise Lost(f"cannot connect: {error}") from error
        if self._transport is None:
            raise Lost("ended as soon as it was open")
        said = f"{method} {path} HTTP/1.1\r\n{self._fixed}Content-Length: {len(body)}\r\n"
        said += "\r\n" if key is None else f"Idempotency-Key: {key}\r\n\r\n"
        self._buffer.clear()
        self._head, self._waiting = None, loop.create_future()
        self._transport.write(said.encode() + body)
        clock = loop.call_later(self._timeout, self._end, "took too long")
        try:
            return await self._waiting
        finally:
            clock.cancel()

    async def close(self) -> None:
        """End the connection."""
        if self._transport is not None:
            self._transport.close()
            while self._transport is not None:
                await asyncio.sleep(0)

    def _end(self, why: str) -> None:
        if self._transport is not None:
            self._transport.abort()
        self._fail(why)

    def _fail(self, why: str) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(Lost(why))

    def connection_made(self, transport: Any) -> None:
        """The event loop calls this."""
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        """The event loop calls this."""
        self._transport = None
        self._fail(f"ended before the answer: {error}")

    def data_received(self, data: bytes) -> None:
        """The event loop calls this."""
        buffer = self._buffer
        buffer += data
        if self._head is None:
            end = buffer.find(b"\r\n\r\n")
            if end < 0:
                return
            self._head = bytes(buffer[: end + 2]).lower()
            place = self._head.find(b"\r\ncontent-length:")
            self._length = None  # in chunks
            if place >= 0:
                length = int(self._head[place + 17 : self._head.index(b"\r\n", place + 2)])
                self._length = end + 4 + length
        begin = len(self._head) + 2
        if self._length is None:
            if not buffer.endswith(b"\r\n0\r\n\r\n"):
                return
            body = _joined(bytes(buffer[begin:]))
        elif len(buffer) < self._length:
            return
        else:
            body = bytes(buffer[begin : self._length])
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(Answer(int(self._head[9:12]), self._head, body))


def _joined(chunks: bytes) -> bytes:
    """The content of a body that was sent in chunks."""
    content, place = b"", 0
    while True:
        end = chunks.index(b"\r\n", place)
        size = int(chunks[place:end], 16)
        if size == 0:
            return content
        content += chunks[end + 2 : end + 2 + size]
        place = end + 4 + size


def get(url: str, timeout: float = 60.0) -> Any:
    """The JSON document at a URL."""
    with urllib.request.urlopen(url, timeout=timeout) as answer:
        return json.load(answer)


def post(url: str, document: Any, timeout: float = 60.0) -> Any:
    """Send a JSON document and return the answer's."""
    body = json.dumps(document).encode()
    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=timeout) as answer:
        return json.load(answer)
