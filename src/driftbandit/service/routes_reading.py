"""Routes that read experiments: documents, state, events, samples, the log, the live stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from starlette.concurrency import run_in_threadpool
from starlette.responses import StreamingResponse

from driftbandit.service import exporting
from driftbandit.service.experiment import Experiment
from driftbandit.service.problems import Problem, unavailable
from driftbandit.service.reading import state_of, summary_of
from driftbandit.service.requests import gate_of
from driftbandit.service.routes_experiments import READING, Id
from driftbandit.service.store import Store, StoreError
from driftbandit.service.transaction import written
from driftbandit.service.writer import Result, parsed

router = APIRouter(prefix="/v1/experiments", responses=READING)
Number = Annotated[int, Query(ge=0, le=2**53)]
NEWEST = 200  # events in the first message of a stream
PACE = 1.0  # seconds between two messages, at least
PING = 15  # messages' time without news after which a comment keeps the connection open


def _json(document: Any) -> Response:
    return Response(written(document), media_type="application/json")


async def _read(request: Request, read: Any, *arguments: Any) -> Any:
    """What a function of a transaction returns, in a thread: the store may have to wait."""
    store: Store = request.app.state.store

    def run() -> Any:
        try:
            with store.read() as transaction:
                return read(transaction, *arguments)
        except StoreError as error:
            raise unavailable(str(error), error.remedy) from None

    return await run_in_threadpool(run)


@router.get("")
async def experiments(request: Request) -> Response:
    """All experiments that the key opens."""
    key = gate_of(request).admit(request, "read", own=True)
    found = await _read(request, lambda transaction: transaction.experiments())
    only = None if key is None else key.experiment
    return _json({"experiments": [one for one in found if only in (None, one["id"])]})


@router.get("/{id}")
async def experiment(request: Request, id: Id) -> Response:
    """An experiment's settings, arms and present model."""
    return await _told(request, id, lambda one, _: (200, summary_of(one, full=True)))


@router.get("/{id}/state")
async def state(request: Request, id: Id) -> Response:
    """What the experiment believes in the present round, and what it has done."""
    return await _told(request, id, lambda one, now: (200, state_of(one, now)))


async def _told(request: Request, id: str, work: Any) -> Response:
    gate = gate_of(request)
    gate.admit(request, "read", id)
    return await gate.run(request, id, work, writes=False)


@router.get("/{id}/events")
async def events(
    request: Request,
    id: Id,
    after: Number = 0,
    limit: Annotated[int, Query(ge=1, le=10_000)] = 1000,
) -> Response:
    """The experiment's events after a number, oldest first."""
    gate_of(request).admit(request, "read", id)

    def read(transaction: Any) -> list[dict[str, Any]] | None:
        known = transaction.version(id) is not None
        return list(transaction.events(id, after, limit)) if known else None

    found = await _read(request, read)
    if found is None:
        raise _unknown(id)
    return _json({"events": found})


@router.get("/{id}/samples")
async def samples(
    request: Request, id: Id, limit: Annotated[int, Query(ge=1, le=1000)] = 500
) -> Response:
    """What was expected of the arms over time, oldest first; recent times are denser."""
    gate_of(request).admit(request, "read", id)

    def read(transaction: Any) -> list[dict[str, Any]] | None:
        known = transaction.version(id) is not None
        return transaction.samples(id, limit) if known else None

    found = await _read(request, read)
    if found is None:
        raise _unknown(id)
    return _json({"samples": found})


def _unknown(id: str) -> Problem:
    return Problem(404, f"there is no experiment {id[:64]}; create it first", "id")


@router.get(
    "/{id}/log.parquet",
    response_class=Response,
    responses={200: {"content": {"application/vnd.apache.parquet": {}}, "description": "the log"}},
)
async def log(request: Request, id: Id) -> Response:
    """The log as `driftbandit fit` and `driftbandit replay` read it: round, arm, reward."""
    gate_of(request).admit(request, "read", id)
    content = await _read(request, exporting.parquet, id)
    if content is None:
        raise _unknown(id)
    headers = {"Content-Disposition": f'attachment; filename="{id}.parquet"'}
    return Response(content, headers=headers, media_type="application/vnd.apache.parquet")


@router.get(
    "/{id}/live",
    response_class=Response,
    responses={200: {"content": {"text/event-stream": {}}, "description": "state and events"}},
)
async def live(request: Request, id: Id) -> Response:
    """A stream of server-sent events: `state` whenever it changes, and new `events`."""
    gate = gate_of(request)
    gate.admit(request, "read", id)
    first = await gate.result(id, _state, writes=False)  # an unknown experiment is refused here
    return StreamingResponse(_stream(request, id, first), media_type="text/event-stream")


def _state(experiment: Experiment, now: float) -> tuple[int, Any]:
    return 200, state_of(experiment, now)


async def _stream(request: Request, id: str, first: Result) -> AsyncIterator[str]:
    gate, closing = gate_of(request), request.app.state.closing
    metrics = request.app.state.metrics
    metrics.pages.inc()
    try:
        document, quiet = parsed(first), 0
        seen, shown = max(0, document["version"] - NEWEST), None
        while not closing.is_set():
            now = document["version"], document["round"], document["paused"]
            if now != shown:
                yield f"event: state\ndata: {written(document)}\n\n"
                new = await _read(
                    request, lambda tx, after=seen: list(tx.events(id, after, NEWEST))
                )
                if new:
                    yield f"event: events\ndata: {written({'events': new})}\n\n"
                    seen = new[-1]["number"]  # some may be newer than the state
                shown, quiet = now, 0
            else:
                quiet += 1
                if quiet % PING == 0:
                    yield ": ping\n\n"
            try:
                await asyncio.wait_for(closing.wait(), PACE)
            except TimeoutError:
                gate.admit(request, "read", id)  # the key may have been revoked
                document = parsed(await gate.result(id, _state, writes=False))
                seen = max(seen, document["version"] - NEWEST)
    except Problem:
        return  # the store is away, or the key was revoked: the page connects again
    finally:
        metrics.pages.dec()
