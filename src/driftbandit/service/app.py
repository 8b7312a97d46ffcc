"""The HTTP application: a store, its writer, and the routes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema
from starlette.exceptions import HTTPException
from starlette.staticfiles import StaticFiles

from driftbandit._version import __version__
from driftbandit.errors import InvalidInput
from driftbandit.service import routes_experiments, routes_operations, routes_reading, wire
from driftbandit.service.direct import Direct
from driftbandit.service.keys import FRESH, Doorkeeper
from driftbandit.service.late_rewards import LateRewards
from driftbandit.service.limits import Limits
from driftbandit.service.metrics import Metrics
from driftbandit.service.middleware import Guard
from driftbandit.service.problems import Problem, of_input
from driftbandit.service.refitting import Refitter
from driftbandit.service.requests import Gate, refused
from driftbandit.service.store import Store, StoreError
from driftbandit.service.writer import Writer

logger = logging.getLogger("driftbandit.service")
PAGE = Path(__file__).parent / "page"
DESCRIPTION = """Decisions whose rewards drift, over HTTP.

Ask for a decision, play its arm, tell its reward: now, later, in any order, or never. Nothing is
acknowledged before it is stored. With an `Idempotency-Key`, a POST request may be repeated: it is
carried out once, and answered the same."""


def create_app(store: Store, limits: Limits | None = None) -> FastAPI:
    """The application on a store, which it closes at its end."""
    limits = limits or Limits()
    metrics = Metrics()
    refitter = Refitter(store)
    writer = Writer(store, metrics, on_refit_due=refitter.request)
    refitter.writer = writer
    doorkeeper = Doorkeeper(store)

    @contextlib.asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        app.state.closing = asyncio.Event()
        watch = asyncio.create_task(_watch_keys(doorkeeper))
        refitter.watch()
        yield
        app.state.closing.set()
        watch.cancel()
        refitter.close()
        await asyncio.to_thread(writer.close)
        store.close()

    app = FastAPI(
        title="driftbandit",
        version=__version__,
        description=DESCRIPTION,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,  # the place would be made of the Host header
        lifespan=life,
    )
    app.state.gate = Gate(writer, limits, doorkeeper)
    app.state.metrics, app.state.store, app.state.refitter = metrics, store, refitter
    app.state.late_rewards = LateRewards()
    for routes in (routes_experiments, routes_reading, routes_operations):
        app.include_router(routes.router)
    app.mount("/page", StaticFiles(directory=PAGE), name="page")
    app.add_exception_handler(Problem, _on_problem)
    app.add_exception_handler(InvalidInput, _on_invalid_input)
    app.add_exception_handler(HTTPException, _on_http)
    app.add_exception_handler(RequestValidationError, _on_validation)
    app.add_exception_handler(Exception, _on_failure)
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    return app


def guarded(app: FastAPI, *, log_requests: bool = False) -> Guard:
    """The application as it is served: behind its guard, with the short way to decisions."""
    doorkeeper: Doorkeeper = app.state.gate.doorkeeper
    is_open = lambda: doorkeeper.open  # noqa: E731
    return Guard(Direct(app), app.state.metrics, is_open, log_requests)


async def _watch_keys(doorkeeper: Doorkeeper) -> None:
    """Notice new and revoked keys; while the store is away, those known last count."""
    while True:
        await asyncio.sleep(FRESH)
        try:
            await asyncio.to_thread(doorkeeper.refresh)
        except StoreError:
            continue
        except Exception:  # whoever watches must not stop: a revoked key would work for ever
            logger.exception("the keys cannot be read")


async def _on_problem(_: Request, error: Exception) -> Response:
    assert isinstance(error, Problem)
    return refused(error)


async def _on_invalid_input(_: Request, error: Exception) -> Response:
    assert isinstance(error, InvalidInput)
    return refused(of_input(error))


async def _on_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    detail = "there is nothing here; see /openapi.json" if error.status_code == 404 else None
    response = refused(Problem(error.status_code, detail or HTTPStatus(error.status_code).phrase))
    response.headers.update(error.headers or {})
    return response


async def _on_validation(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where, field = first["loc"][0], str(first["loc"][-1])
    field = field.title() if where == "header" else field
    return refused(Problem(422, first["msg"][:1].lower() + first["msg"][1:], field))


async def _on_failure(_: Request, __: Exception) -> Response:
    return refused(Problem(500, "the request failed; see the server's log"))  # the guard logs it


def _described(app: FastAPI) -> dict[str, Any]:
    """The OpenAPI description, with the models that routes read by themselves."""
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        models: Any = [(model, "validation") for model in routes_experiments.BODIES]
        models.append((wire.ProblemDetails, "serialization"))
        _, schemas = models_json_schema(models, ref_template="#/components/schemas/{model}")
        components = found.setdefault("components", {})
        components.setdefault("schemas", {}).update(schemas["$defs"])
        bearer = {"type": "http", "scheme": "bearer"}
        components["securitySchemes"] = {"key": bearer}
        found["security"] = [{"key": []}, {}]
        app.openapi_schema = found
    return app.openapi_schema
