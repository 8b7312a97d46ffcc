"""What both clients ask of httpx: how it is set up, what its answers and failures mean."""

from __future__ import annotations

import ssl
from typing import Any

import httpx

from driftbandit import errors
from driftbandit.service.client.calls import Calls
from driftbandit.service.client.retries import Failure, Reply

FAILURES = (httpx.TransportError, httpx.DecodingError)
MOST = 100  # requests of one `AsyncClient` that are on their way at a time
FINAL = (httpx.LocalProtocolError, httpx.UnsupportedProtocol)  # no attempt will fare better


def options(calls: Calls) -> dict[str, Any]:
    """Arguments of httpx's clients."""
    return {
        "trust_env": not calls.is_local,  # a proxy could not find this machine's own addresses
        "headers": {"Accept": "application/json, */*"},
        # A request that stops waiting for a place in httpx's pool may take the place with it: so
        # none ever waits. Threads, or MOST, bound the number of connections.
        "limits": httpx.Limits(max_connections=None, max_keepalive_connections=MOST),
    }


def reply_of(response: httpx.Response) -> Reply:
    """The answer, which has been read."""
    return Reply(response.status_code, response.headers, response.content)


def failure_of(error: Exception) -> Failure:
    """Why there is no answer, and whether there is any hope."""
    text = " ".join(str(error).split())
    reason = type(error).__name__ + (f": {text}" if text else "")
    cause: BaseException | None = error
    final = isinstance(error, FINAL)
    while cause is not None and not final:  # a certificate stays wrong
        final = isinstance(cause, ssl.SSLCertVerificationError)
        cause = cause.__cause__ or cause.__context__
    return Failure(errors.printable(reason), final)
