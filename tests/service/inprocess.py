"""The service on a free port of 127.0.0.1, in a thread of the test's own process.

The web server is the real one, so what it does to requests is tested, too. `servers.Server` is for
tests that kill it.
"""

from __future__ import annotations

import json
import socket
import threading
import time
from pathlib import Path
from typing import Any, Self

import httpx
import uvicorn

from driftbandit.service.app import create_app, guarded
from driftbandit.service.limits import Limits
from driftbandit.service.store import Store

JSON = {"Content-Type": "application/json"}


class Service:
    """Serves the store in a folder while the block lasts; calls are those of `httpx.Client`."""

    def __init__(self, folder: Path, **limits: Any) -> None:
        self.url = f"sqlite:///{folder / 'decisions.db'}"
        self.app = create_app(Store(self.url), Limits(**limits))
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        config = uvicorn.Config(
            guarded(self.app), log_config=None, access_log=False, server_header=False
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._listening],))
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=30)

    def __enter__(self) -> Self:
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            time.sleep(0.002)
        return self

    def __exit__(self, *_: object) -> None:
        self.client.close()
        self.app.state.closing.set()
        self._server.should_exit = True
        self._thread.join()
        self._listening.close()

    def get(self, path: str, **named: Any) -> httpx.Response:
        return self.client.get(path, **named)

    def post(
        self, path: str, body: Any = None, headers: Any = (), key: str | None = None
    ) -> httpx.Response:
        """Send a document, or bytes as they are; ``key``: the Idempotency-Key."""
        content = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
        extra = {} if key is None else {"Idempotency-Key": key}
        return self.client.post(path, content=content, headers=JSON | dict(headers) | extra)

    def create(self, id: str = "one", **settings: Any) -> Experiment:
        """Make an experiment."""
        answer = self.post("/v1/experiments", {"id": id} | settings)
        assert answer.status_code == 201, answer.text
        return Experiment(self, id)

    def sent(self, request: bytes, *, and_close: bool = False, wait: float = 10.0) -> bytes:
        """What is answered to raw bytes until the server closes, or nothing more comes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=wait) as connection:
            connection.sendall(request)
            if and_close:
                return b""
            answer = b""
            while b"\r\n\r\n" not in answer or not _is_whole(answer):
                more = connection.recv(65536)
                if not more:
                    break
                answer += more
            return answer

    def metrics(self) -> str:
        return self.get("/metrics").text


def _is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return len(body) >= int(line.partition(b":")[2])
    return False


def request_of(path: str, *headers: str, method: str = "POST", body: bytes = b"") -> bytes:
    """The bytes of a request; JSON unless the headers say otherwise."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close", *headers]
    if not any(line.lower().startswith("content-type") for line in headers):
        lines.append("Content-Type: application/json")
    return "\r\n".join([*lines, "", ""]).encode("latin1") + body


def answer_of(raw: bytes) -> httpx.Response:
    """Raw bytes as httpx would show them."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin1").split("\r\n")
    headers = [tuple(line.split(": ", 1)) for line in lines]
    return httpx.Response(int(first.split()[1]), headers=headers, content=body)


class Experiment:
    """Short calls to one experiment."""

    def __init__(self, service: Service, id: str) -> None:
        self.service, self.id, self.path = service, id, f"/v1/experiments/{id}"

    def get(self, what: str = "", **named: Any) -> Any:
        answer = self.service.get(f"{self.path}{what}", **named)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, what: str, body: Any = None, **named: Any) -> httpx.Response:
        return self.service.post(f"{self.path}/{what}", body, **named)

    def decide(self, **asked: Any) -> Any:
        answer = self.post("decisions", asked)
        assert answer.status_code == 201, answer.text
        return answer.json()

    def tell(self, decision: int, reward: Any, **more: Any) -> str:
        answer = self.post("rewards", {"decision": decision, "reward": reward, **more})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["outcome"])

    @property
    def version(self) -> int:
        """The number of its last event, read from the events themselves."""
        return max(
            event["number"] for event in self.get("/events", params={"limit": 10_000})["events"]
        )
