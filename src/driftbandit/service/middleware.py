"""Around every request: headers that browsers obey, counts, log lines, and no traceback."""

from __future__ import annotations

import ipaddress
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from driftbandit.service.metrics import Metrics
from driftbandit.service.problems import Problem
from driftbandit.service.transaction import written

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]

logger = logging.getLogger("driftbandit.service")


class Guard:
    """The outermost layer of the application.

    Args:
        app: what it guards.
        metrics: counts requests.
        is_open: whether no key is needed; then only local names are answered, since a page from
            elsewhere could reach a local server under a name of its own (DNS rebinding).
        log_requests: whether to log every request.
    """

    def __init__(
        self, app: App, metrics: Metrics, is_open: Callable[[], bool], log_requests: bool
    ) -> None:
        self.app, self.metrics, self.is_open = app, metrics, is_open
        self.log_requests = log_requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        begun, status, whole = time.perf_counter(), 0, False

        async def headed(message: MutableMapping[str, Any]) -> None:
            nonlocal status, whole
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)
            whole = message["type"] == "http.response.body" and not message.get("more_body")

        try:
            if self.is_open() and not _is_local(scope):
                detail = "this server answers only under the name localhost until it has keys"
                detail += "; make one with driftbandit keys create"
                await _answer(headed, Problem(403, detail, "Host"))
            else:
                await self.app(scope, receive, headed)
        except Exception:
            logger.exception("a request failed")
            if status and not whole:  # the answer has begun, and must not look complete
                raise
            if not status:
                await _answer(headed, Problem(500, "the request failed; see the server's log"))
        finally:
            seconds = time.perf_counter() - begun
            path = getattr(scope.get("route"), "path", "other")
            route = scope.get("driftbandit.route", path)
            self.metrics.answered(route, status, seconds)
            if self.log_requests:
                said = {"method": scope["method"], "route": route, "status": status}
                said["milliseconds"] = round(1000 * seconds, 2)
                logger.info("request", extra={"fields": said})


def _is_local(scope: Scope) -> bool:
    host = next((value for name, value in scope["headers"] if name == b"host"), b"").decode(
        "latin1"
    )
    name = host if host.endswith("]") else host.rpartition(":")[0] or host
    return is_loopback(name)


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address.

    Example:
        >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


async def _answer(send: Send, problem: Problem) -> None:
    headers = [(b"content-type", b"application/problem+json")]
    await send({"type": "http.response.start", "status": problem.status, "headers": headers})
    await send({"type": "http.response.body", "body": written(problem.document()).encode()})
