"""Routes for those who run the service: is it alive, is it ready, what does it count; the page."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import FileResponse

from driftbandit._version import __version__
from driftbandit.service.problems import Problem, unavailable
from driftbandit.service.requests import gate_of
from driftbandit.service.routes_experiments import READING
from driftbandit.service.store import Store, StoreError
from driftbandit.service.transaction import written

router = APIRouter()
PATIENCE = 3.0  # seconds for the store to answer
METRICS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/healthz", responses={403: READING[403]})
async def healthz() -> Response:
    """Whether the process answers."""
    text = written({"status": "ok", "version": __version__})
    return Response(text, media_type="application/json")


@router.get("/readyz", responses={403: READING[403], 503: READING[503]})
async def readyz(request: Request) -> Response:
    """Whether the store answers and can be written, so that decisions can be made."""
    store: Store = request.app.state.store
    if not gate_of(request).writer.is_alive:
        raise Problem(503, "nothing can be written any more; start the server again", retry_after=1)

    def read() -> None:
        with store.read() as transaction:
            transaction.version("")

    try:
        await asyncio.wait_for(run_in_threadpool(read), PATIENCE)
    except StoreError as error:
        raise unavailable(str(error)) from None
    except TimeoutError:
        raise unavailable(f"no answer within {PATIENCE:g} s") from None
    return Response(written({"status": "ready"}), media_type="application/json")


COUNTERS: dict[int | str, Any] = {status: READING[status] for status in (401, 403, 429)}
COUNTERS[200] = {"content": {METRICS: {}}, "description": "counters"}


@router.get("/metrics", response_class=Response, responses=COUNTERS)
async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    gate_of(request).admit(request, "read")
    return Response(request.app.state.metrics.text(), media_type=METRICS)


@router.get("/", include_in_schema=False)
async def page() -> Response:
    """The page."""
    return FileResponse(Path(__file__).parent / "page" / "index.html", media_type="text/html")
