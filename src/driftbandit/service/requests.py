"""Reading a request: who sends it, its body, its key; and writing what is answered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar, get_args

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from driftbandit import errors
from driftbandit.service import wire
from driftbandit.service.keys import Doorkeeper, Key
from driftbandit.service.limits import Buckets, Limits
from driftbandit.service.problems import Problem, unavailable
from driftbandit.service.transaction import written
from driftbandit.service.writer import Job, Probe, Result, Work, Writer

Model = TypeVar("Model", bound=BaseModel)
IDEMPOTENCY_KEY = re.compile(r"[\x21-\x7e]{1,255}")
ID = re.compile(wire.ID)
MOST_FIELDS = 20_000  # of an object: it takes long to say what is wrong with more
PATIENCE = 3.0  # seconds for the writer and the store to show that they work
OPEN = "open"  # whose requests are counted together on a server without keys


class Gate:
    """What every route needs: the writer, the limits, and who may pass."""

    def __init__(self, writer: Writer, limits: Limits, doorkeeper: Doorkeeper) -> None:
        self.writer, self.limits, self.doorkeeper = writer, limits, doorkeeper
        self._buckets = Buckets(limits.rate)
        self._probe: asyncio.Future[Problem | None] | None = None

    def admit(
        self, request: Request, scope: str, experiment: str | None = None, *, own: bool = False
    ) -> Key | None:
        """Let a request pass, or raise 401, 403, 404 or 429.

        ``own``: it is about the experiments that the key opens, whichever they are.
        """
        key = self.doorkeeper.check(request.headers.get("authorization"))
        if own and key is not None:
            experiment = key.experiment
        if not self._buckets.takes(OPEN if key is None else key.id, time.monotonic()):
            detail = f"{self.limits.rate} requests per second are the most; slow down"
            raise Problem(429, detail, retry_after=1)
        if key is not None and not key.allows(scope, experiment):
            detail = f"this key lacks the scope {scope}; use a key that has it"
            if key.experiment not in (None, experiment):
                wanted = "all experiments" if experiment is None else "this experiment"
                detail = f"this key is for another experiment; use a key for {wanted}"
                if experiment is None:
                    detail = f"this key is for one experiment only; use a key for {wanted}"
            raise Problem(403, detail, "Authorization")
        if experiment is not None and not ID.fullmatch(experiment):
            # Not asked for: PostgreSQL takes no NUL, and the answer need not repeat kilobytes.
            raise Problem(404, f"no experiment can have such an id: {wire.ID}", "id")
        return key

    async def body(self, request: Request) -> bytes:
        """The bytes of a JSON request, within the limits of size and time."""
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            detail = f"is {kind[:60] or 'missing'}; send application/json"
            raise Problem(422, detail, "Content-Type")
        most = self.limits.body
        too_large = Problem(413, f"the body is larger than {most:,} bytes; send less", "body")
        if request.headers.get("content-length", "0").isdecimal() and (
            int(request.headers.get("content-length", "0")[:20]) > most
        ):
            raise too_large
        parts, size = [], 0
        try:
            async with asyncio.timeout(self.limits.patience):
                async for part in request.stream():
                    size += len(part)
                    if size > most:
                        raise too_large
                    parts.append(part)
        except TimeoutError:
            detail = f"the body did not arrive within {self.limits.patience:g} s; send it faster"
            raise Problem(408, detail, "body") from None
        except ClientDisconnect:  # nobody reads the answer, but it is counted
            raise Problem(400, "the body was cut off; send it whole", "body") from None
        return b"".join(parts)

    async def run(
        self,
        request: Request,
        experiment: str,
        work: Work | None,
        *,
        body: bytes = b"",
        **options: Any,
    ) -> Response:
        """Run a job for a request, and answer when it is committed."""
        key = request.headers.get("idempotency-key") if request.method == "POST" else None
        if key is not None and not IDEMPOTENCY_KEY.fullmatch(key):
            raise Problem(422, "give 1 to 255 visible ASCII characters", "Idempotency-Key")
        if key is not None:
            said = f"{request.method} {request.scope['path']}\n".encode() + body
            options |= {"key": key, "fingerprint": hashlib.sha256(said).hexdigest()}
        result = await self.result(experiment, work, **options)
        headers = {"Idempotent-Replayed": "true"} if result.replayed else None
        return Response(result.body, result.status, headers, "application/json")

    async def result(self, experiment: str, work: Work | None, **options: Any) -> Result:
        """Run a job, and wait until it is committed."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def done(result: Result | Problem) -> None:
            loop.call_soon_threadsafe(_set, future, result)

        self.writer.submit(Job(experiment, work, done, **options))
        return await future

    async def check_ready(self) -> None:
        """Raise 503 unless the writer works, and the store takes what it writes, in time."""
        if not self.writer.is_alive:
            detail = "nothing can be written any more; start the server again"
            raise Problem(503, detail, retry_after=1)
        if self._probe is None or self._probe.done():  # else the last question still waits
            loop = asyncio.get_running_loop()
            probe = self._probe = loop.create_future()

            def done(problem: Problem | None) -> None:
                loop.call_soon_threadsafe(probe.set_result, problem)

            self.writer.submit(Probe(done))
        try:
            problem = await asyncio.wait_for(asyncio.shield(self._probe), PATIENCE)
        except TimeoutError:
            raise unavailable(f"it has not answered for {PATIENCE:g} s") from None
        if problem is not None:
            raise problem


def gate_of(request: Request) -> Gate:
    """The gate of the application that a request came to."""
    gate: Gate = request.app.state.gate
    return gate


def _set(future: asyncio.Future[Result], result: Result | Problem) -> None:
    if future.cancelled():  # the client has gone; what was committed stays
        return
    if isinstance(result, Problem):
        future.set_exception(result)
    else:
        future.set_result(result)


def read_as(model: type[Model], body: bytes) -> Model:
    """The body as a model; a wrong one is refused by the name of its field."""
    _document(body)
    return _validated(model, body)


def _validated(model: type[Model], body: bytes) -> Model:
    try:
        return model.model_validate_json(body or b"{}")
    except ValidationError as error:
        raise _refusal(error, model) from None


def _document(body: bytes) -> Any:
    """The body as Python's own reader sees it, which can refuse a field that is there twice.

    None: it is no JSON; pydantic will say why.
    """
    try:
        return _READER.decode(body.decode())
    except (ValueError, RecursionError):
        return None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(pairs) > MOST_FIELDS:
        detail = f"has an object of {len(pairs)} fields; {MOST_FIELDS} are the most"
        raise Problem(422, detail, "body")
    if len(found) < len(pairs):
        field, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise Problem(422, "is there twice; give each field once", field[:200])
    return found


_READER = json.JSONDecoder(object_pairs_hook=_once)


def read_rewards(body: bytes) -> tuple[bool, list[dict[str, Any]]]:
    """The rewards of a request, and whether it holds several."""
    document = _document(body)
    if isinstance(document, dict) and "rewards" in document:
        return True, [told.model_dump() for told in _validated(wire.ToldMany, body).rewards]
    return False, [_validated(wire.Told, body).model_dump()]


def _refusal(error: ValidationError, model: type[BaseModel]) -> Problem:
    """The first thing that is wrong."""
    found = error.errors(include_url=False, include_context=False)
    places = [_place(one["loc"], one["type"] == "extra_forbidden") for one in found]
    # Of a union's branches, the one that gets furthest, or takes such values, says the most.
    first, place = max(
        (
            (one, place)
            for one, place in zip(found, places, strict=True)
            if place[: len(places[0])] == places[0]
        ),
        key=lambda pair: (len(pair[1]), not pair[0]["type"].endswith("_type")),
    )
    if first["type"] == "missing":  # perhaps it is there under a misspelled name
        beside = ((one["type"], there[:-1]) for one, there in zip(found, places, strict=True))
        if ("extra_forbidden", place[:-1]) in (all_ := list(beside)):
            at = all_.index(("extra_forbidden", place[:-1]))
            first, place = found[at], places[at]
    field = ""
    for part in place:
        field += f"[{part}]" if isinstance(part, int) else f".{part}" if field else part
    detail = first["msg"][:1].lower() + first["msg"][1:]
    if first["type"] == "extra_forbidden":
        valid = sorted(_model_at(model, place[:-1]).model_fields)
        unknown = errors.unknown(str(place[-1]), field, valid)
        return Problem(422, f"{unknown.problem}; {unknown.remedy}"[:500], field[:200])
    if place and first["type"] != "missing" and isinstance(first["input"], str | int | float):
        said = json.dumps(
            first["input"][:60] if isinstance(first["input"], str) else first["input"]
        )
        detail = f"is {said}; {detail}"
    return Problem(422, detail[:300], field[:200] or "body")


def _place(location: tuple[str | int, ...], own: bool) -> tuple[str | int, ...]:
    """The fields of a location, without branches of unions; ``own``: the user named the last."""
    *before, last = location or ("",)
    kept = [part for part in before if not _is_branch(part)]
    return (*kept, last) if location and (own or not _is_branch(last)) else tuple(kept)


def _model_at(model: type[BaseModel], place: tuple[str | int, ...]) -> type[BaseModel]:
    """The model of an object inside the body."""
    for part in place:
        if isinstance(part, str):
            inside = _models_in(model.model_fields[part].annotation)
            model = next(inside)
    return model


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for argument in get_args(annotation):
        yield from _models_in(argument)


def _is_branch(part: str | int) -> bool:
    """Whether a place is a branch of a union, as pydantic names them, and no field."""
    return isinstance(part, str) and (
        "[" in part
        or part in ("int", "str", "float", "bool", "Seconds", "literal")
        or part.startswith("constrained-")
    )


def refused(problem: Problem) -> Response:
    """The answer to a request that is refused."""
    headers = {} if problem.retry_after is None else {"Retry-After": str(problem.retry_after)}
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    text = written(problem.document())
    return Response(text, problem.status, headers, "application/problem+json")
