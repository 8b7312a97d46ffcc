"""What the service refuses, as the errors that an `Agent` raises."""

from __future__ import annotations

import http
import json
from typing import Any

from driftbandit import errors
from driftbandit.service.client.retries import Reply

REMEDIES = {
    404: "check the url and the names",
    409: "look at the state of the experiment",
    413: "send less at a time",
    422: "give what the service can read",
}


def check(reply: Reply, key: str | None) -> None:
    """Raise an error unless the service did what it was asked.

    Bad input raises `InvalidInput` (`Conflict`, if it contradicts what was said before), a bad key
    PermissionError, and a failure inside the service RuntimeError. No message holds the ``key``.
    """
    if 200 <= reply.status < 300:
        return
    status = f"{reply.status} {_phrase(reply.status)}".strip()
    if 300 <= reply.status < 400:
        problem = f"is redirected to {_shown(reply.headers.get('location', 'nowhere'), key)}"
        raise errors.InvalidInput("url", problem, "give the url of the service itself")
    detail, field = _problem(reply, key)
    problem, _, remedy = detail.partition("; ")
    if reply.status in (401, 403):
        if reply.status == 401:  # the service speaks of headers here
            remedy = "give key=…" if key is None else "the key is unknown or revoked; give another"
            remedy += " (driftbandit keys create makes one)"
        remedy = remedy or "use a key with the scope and the experiment that this call needs"
        reason = f" ({problem})" if problem else ""
        raise PermissionError(f"key: the service answers {status}{reason}; {remedy}")
    if reply.status >= 500:
        reason = f" ({detail})" if detail else ""
        raise RuntimeError(f"service: failed with {status}{reason}; its log says why")
    remedy = remedy or REMEDIES.get(reply.status, "check the url")
    kind = errors.Conflict if reply.status == 409 else errors.InvalidInput
    raise kind(field, problem or f"the service answers {status}", remedy)


def _problem(reply: Reply, key: str | None) -> tuple[str, str]:
    """The detail and the field of a problem document; a proxy's page has neither."""
    try:
        document: Any = json.loads(reply.content)
    except ValueError:
        document = None
    if not isinstance(document, dict):
        return "", "request"
    detail = document.get("detail") or document.get("title") or ""
    detail = _shown(detail if isinstance(detail, str) else json.dumps(detail), key)
    field = document.get("field")
    field = _shown(field, key) if isinstance(field, str) and field else "request"
    return detail.removeprefix(f"{field}: "), field


def _shown(text: str, key: str | None) -> str:
    """A text of the service on one line, without the key if it repeats it."""
    text = " ".join((text if key is None else text.replace(key, "…")).split())
    return errors.printable(text if len(text) <= 1000 else text[:999] + "…")


def _phrase(status: int) -> str:
    try:
        return http.HTTPStatus(status).phrase
    except ValueError:
        return ""
