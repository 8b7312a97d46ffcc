"""Routes for those who run the service: is it alive, is it ready, what does it count; the page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.responses import FileResponse

from driftbandit._version import __version__
from driftbandit.service.requests import gate_of
from driftbandit.service.routes_experiments import READING
from driftbandit.service.transaction import written

router = APIRouter()
METRICS = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/healthz", responses={403: READING[403]})
async def healthz() -> Response:
    """Whether the process answers."""
    text = written({"status": "ok", "version": __version__})
    return Response(text, media_type="application/json")


@router.get("/readyz", responses={403: READING[403], 503: READING[503]})
async def readyz(request: Request) -> Response:
    """Whether decisions can be made: something was written, and the store has it."""
    await gate_of(request).check_ready()
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
