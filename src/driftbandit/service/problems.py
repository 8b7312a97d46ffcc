"""What the service answers when it cannot do what was asked: problem details (RFC 9457)."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from driftbandit import errors


class Problem(Exception):
    """An answer with an error status.

    Args:
        status: of HTTP.
        detail: what is wrong and what to do, in one sentence.
        field: the part of the request that is wrong, if it is one.
        retry_after: seconds after which the same request may succeed.
    """

    def __init__(
        self, status: int, detail: str, field: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(detail)
        self.status, self.detail, self.field = status, detail, field
        self.retry_after = retry_after

    def document(self) -> dict[str, Any]:
        """The JSON object of the answer."""
        found = {
            "type": "about:blank",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": self.detail,
        }
        return found if self.field is None else found | {"field": self.field}


def of_input(error: errors.InvalidInput) -> Problem:
    """The answer to a wrong argument: 409 if it contradicts what was said before, else 422."""
    status = 409 if isinstance(error, errors.Conflict) else 422
    return Problem(status, f"{error.problem}; {error.remedy}", error.argument)


def unavailable(reason: str, remedy: str = "try again") -> Problem:
    """The answer while the store cannot be used; nothing was stored."""
    return Problem(503, f"the store cannot be used now ({reason}); {remedy}", retry_after=1)
