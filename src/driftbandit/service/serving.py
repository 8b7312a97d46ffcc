"""Running the service: a web server that starts, says so, and stops cleanly."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from driftbandit import errors
from driftbandit.service import keys
from driftbandit.service.app import create_app, guarded
from driftbandit.service.limits import Limits
from driftbandit.service.middleware import is_loopback
from driftbandit.service.store import Store

IDLE = 75  # seconds after which a connection without requests is closed; proxies close earlier
GRACE = 10  # seconds for requests to finish after the signal to stop
MOST_CONNECTIONS = 4096
BACKLOG = 2048  # connections that wait to be taken
LOGGERS = ("driftbandit", "uvicorn.error", "asyncio", "sqlalchemy", "concurrent.futures")
SWITCH = 0.0005  # seconds after which Python lets the other thread run; by default 0.005

logger = logging.getLogger("driftbandit.service")


def check_host(store: Store, host: str) -> None:
    """Refuse to listen to other machines as long as everybody would be let in."""
    if is_loopback(host) or any(key.revoked is None for key in keys.listed(store)):
        return
    problem = f"is {errors.printable(host)}, which other machines reach, and the store has no key"
    raise errors.InvalidInput("host", problem, "make one first: driftbandit keys create")


def serve(
    store: Store,
    host: str,
    listening: socket.socket,
    limits: Limits | None = None,
    *,
    log_requests: bool = False,
    on_ready: Callable[[str], Any] = lambda _: None,
) -> None:
    """Serve a store until SIGINT or SIGTERM; ``on_ready`` is called with the URL.

    ``listening``: see `bound`.
    """
    check_host(store, host)
    log_as_json()
    with store.read() as transaction:
        experiments, events = transaction.totals()
    opened = f"{_count(experiments, 'experiment')}, {_count(events, 'event')}"
    logger.info("opened %s", opened)
    with refusing_port(*listening.getsockname()[:2]):
        listening.listen(BACKLOG)
    before = sys.getswitchinterval()
    sys.setswitchinterval(SWITCH)
    app = create_app(store, limits)
    config = uvicorn.Config(
        guarded(app, log_requests=log_requests),
        proxy_headers=False,
        host=host,
        port=listening.getsockname()[1],
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=GRACE,
        timeout_keep_alive=IDLE,
        limit_concurrency=MOST_CONNECTIONS,
    )
    try:
        _Server(config, app, on_ready).run(sockets=[listening])
    finally:
        sys.setswitchinterval(before)
    logger.info("stopped")


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that has the port but does not listen yet, so that nobody can connect.

    A server takes its port before it opens a store: one that cannot start changes nothing.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with contextlib.closing(socket.socket(family)) as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        with refusing_port(host, port):
            made.bind((host.strip("[]"), port))
        yield made


@contextlib.contextmanager
def refusing_port(host: str, port: int) -> Iterator[None]:
    """Tell in one line that an address cannot be used."""
    try:
        yield
    except OSError as error:
        problem = f"{errors.printable(host)}:{port} cannot be used ({error.strerror or error})"
        raise errors.InvalidInput("port", problem, "choose another, or 0 for any") from None


class _Server(uvicorn.Server):
    """Says when it is ready, and ends live pages when it stops.

    It ends with code 0; a second signal ends it at once.
    """

    def __init__(
        self, config: uvicorn.Config, app: FastAPI, on_ready: Callable[[str], Any]
    ) -> None:
        super().__init__(config)
        self._app, self._on_ready = app, on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        assert sockets
        host, port = sockets[0].getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}/"
        logger.info("ready", extra={"fields": {"url": url}})
        self._on_ready(url)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._app.state.closing.set()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        # The base class would raise the signal again at the end.
        if self.should_exit:  # a second signal: what is acknowledged is stored, so nothing is lost
            os._exit(128 + sig)
        self.should_exit = True


class _JSON(logging.Formatter):
    """One JSON object per line. Requests are logged by route, so no key and no body gets here."""

    def format(self, record: logging.LogRecord) -> str:
        said: dict[str, Any] = {
            "time": time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
            + f".{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "message": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            said["traceback"] = self.formatException(record.exc_info)
        return json.dumps(said)


def log_as_json() -> None:
    """Write what the service and its web server log to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JSON())
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers, logger.propagate = [handler], False
        logger.setLevel(logging.INFO if name == "driftbandit" else logging.WARNING)
