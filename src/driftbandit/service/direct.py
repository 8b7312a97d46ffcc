"""A short way to the two routes that are used most.

FastAPI's layers take three times as long as a decision. Requests for decisions and rewards go
straight to the same functions; FastAPI describes them, and serves everything else.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from fastapi import Request, Response

from driftbandit import errors
from driftbandit.service.middleware import App, Receive, Scope, Send
from driftbandit.service.problems import Problem, of_input
from driftbandit.service.requests import refused
from driftbandit.service.routes_experiments import decide, reward

Handler = Callable[[Request, str], Awaitable[Response]]
PATH = re.compile(r"/v1/experiments/([^/]+)/(decisions|rewards)")
HANDLERS: dict[str, Handler] = {"decisions": decide, "rewards": reward}


class Direct:
    """An application in front of another, which answers decisions and rewards itself."""

    def __init__(self, app: App) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        found = None
        if scope["type"] == "http" and scope["method"] == "POST":
            found = PATH.fullmatch(scope["path"])
        if found is None:
            await self.app(scope, receive, send)
            return
        id_, what = found.groups()
        scope["app"], scope["driftbandit.route"] = self.app, f"/v1/experiments/{{id}}/{what}"
        try:
            response = await HANDLERS[what](Request(scope, receive, send), id_)
        except Problem as problem:
            response = refused(problem)
        except errors.InvalidInput as error:
            response = refused(of_input(error))
        await response(scope, receive, send)
