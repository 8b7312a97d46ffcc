"""Routes that change experiments: create, decide, reward, arms, model, refit, pause."""

from __future__ import annotations

import time
from typing import Annotated, Any

from fastapi import APIRouter, Header, Path, Request, Response
from starlette.concurrency import run_in_threadpool

from driftbandit.service import settings, wire
from driftbandit.service.experiment import Experiment, answer_of
from driftbandit.service.problems import Problem
from driftbandit.service.requests import gate_of, read_as, read_rewards

router = APIRouter(prefix="/v1/experiments")
Id = Annotated[str, Path(description="the experiment's id", json_schema_extra={"pattern": wire.ID})]
IdempotencyKey = Annotated[
    str | None,
    Header(
        pattern=r"^[\x21-\x7e]{1,255}$",
        description="the same key gives the same answer, whatever happens in between",
    ),
]

BODIES = [wire.NewExperiment, wire.AskFor, wire.Told, wire.ToldMany, wire.NewArm, wire.OldArm]
BODIES += [wire.NewModel, wire.Pause, wire.Nothing]

_PROBLEM = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/ProblemDetails"}}}
STATUSES = {
    401: "no valid key",
    403: "the key lacks the scope or the experiment",
    404: "there is no such experiment or decision",
    408: "the body came too slowly",
    409: "contradicts what was said before",
    413: "too large",
    422: "wrong input; `field` says where",
    429: "too many requests",
    503: "the store cannot be used now; try again",
}
PROBLEMS: dict[int | str, Any] = {
    status: {"description": text, "content": _PROBLEM} for status, text in STATUSES.items()
}
READING: dict[int | str, Any] = {
    status: problem for status, problem in PROBLEMS.items() if status not in (408, 409, 413)
}


def _takes(*models: type) -> dict[str, Any]:
    """The description of a body that the route reads by itself."""
    schemas = [{"$ref": f"#/components/schemas/{model.__name__}"} for model in models]
    schema = schemas[0] if len(schemas) == 1 else {"oneOf": schemas}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


EXISTS: Any = PROBLEMS | {200: {"description": "it exists with the same settings"}}


@router.post("", status_code=201, responses=EXISTS, openapi_extra=_takes(wire.NewExperiment))
async def create(request: Request, idempotency_key: IdempotencyKey = None) -> Response:
    """Make an experiment; with `exist_ok`, answer 200 if it exists with the same settings."""
    gate = gate_of(request)
    gate.admit(request, "admin")
    body = await gate.body(request)
    asked = read_as(wire.NewExperiment, body)
    given = asked.model_dump()
    found = await run_in_threadpool(settings.checked, given, gate.limits.arms)
    by_default = [name for name in ("policy", "window") if given[name] is None]
    rules = set() if asked.refit is None else asked.refit.model_fields_set
    by_default += [f"refit.{name}" for name in ("after", "scale", "check") if name not in rules]
    options = {"settings": found, "exist_ok": given["exist_ok"], "by_default": tuple(by_default)}
    return await gate.run(request, given["id"], None, body=body, **options)


@router.post(
    "/{id}/decisions",
    status_code=201,
    responses=PROBLEMS | {201: {"model": wire.Decided | wire.DecidedMany}},
    openapi_extra=_takes(wire.AskFor),
)
async def decide(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Decide which arm to play: once, or `count` times in one round."""
    gate = gate_of(request)
    gate.admit(request, "decide", id)
    body = await gate.body(request)
    asked = read_as(wire.AskFor, body)
    limits = gate.limits
    count = asked.count
    if count is not None and count > limits.batch:
        raise Problem(422, f"is {count}; {limits.batch} are the most in one request", "count")
    if max(len(asked.arms or ()), len(asked.features or ())) > limits.arms:
        raise Problem(422, f"more than {limits.arms} arms in one request", "arms")
    given = {key: value for key, value in vars(asked).items() if value is not None}

    def work(experiment: Experiment, now: float) -> tuple[int, Any]:
        found = experiment.decide(now, **given, most_open=limits.open)
        documents = [answer_of(decision) for decision in found]
        return 201, documents[0] if count is None else {"decisions": documents}

    return await gate.run(request, id, work, body=body)


@router.post(
    "/{id}/rewards",
    responses=PROBLEMS | {200: {"model": wire.Outcome | wire.Outcomes}},
    openapi_extra=_takes(wire.Told, wire.ToldMany),
)
async def reward(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Tell the reward of a decision, or of several."""
    gate = gate_of(request)
    gate.admit(request, "reward", id)
    body = await gate.body(request)
    many, rewards = read_rewards(body)
    if len(rewards) > gate.limits.batch:
        detail = f"has {len(rewards)} entries; {gate.limits.batch} are the most in one request"
        raise Problem(422, detail, "rewards")
    outcomes: list[str] = []
    window = 0

    def work(experiment: Experiment, now: float) -> tuple[int, Any]:
        nonlocal outcomes, window
        window = experiment.agent.window
        outcomes = experiment.reward(now, rewards)
        return 200, {"outcomes": outcomes} if many else {"outcome": outcomes[0]}

    response = await gate.run(request, id, work, body=body, early=True)
    if "Idempotent-Replayed" not in response.headers:  # the work may run twice: counted once
        for outcome in outcomes:
            request.app.state.metrics.outcomes.labels(outcome).inc()
        if late := outcomes.count("too late"):
            request.app.state.late_rewards.add(id, late, window, time.monotonic())
    return response


VERSION: Any = PROBLEMS | {200: {"model": wire.Version}}


@router.post(
    "/{id}/arms",
    status_code=201,
    responses=PROBLEMS | {201: {"model": wire.Version}},
    openapi_extra=_takes(wire.NewArm),
)
async def add_arm(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Offer one more arm from now on."""
    gate = gate_of(request)
    gate.admit(request, "admin", id)
    body = await gate.body(request)
    given = read_as(wire.NewArm, body)

    def work(experiment: Experiment, now: float) -> tuple[int, Any]:
        if len(experiment.agent.names) >= gate.limits.arms:
            raise Problem(422, f"{gate.limits.arms} arms are the most; retire one first", "arm")
        experiment.add_arm(now, given.arm, given.features)
        return 201, {"version": experiment.version}

    return await gate.run(request, id, work, body=body)


@router.post("/{id}/arms/retire", responses=VERSION, openapi_extra=_takes(wire.OldArm))
async def retire_arm(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Stop offering an arm; its open decisions can still be rewarded."""
    gate = gate_of(request)
    gate.admit(request, "admin", id)
    body = await gate.body(request)
    arm = read_as(wire.OldArm, body).arm
    return await gate.run(request, id, _then(lambda one, now: one.retire_arm(now, arm)), body=body)


@router.post("/{id}/model", responses=VERSION, openapi_extra=_takes(wire.NewModel))
async def model(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Go on with another model of the same arms; kept rewards are filtered again under it."""
    gate = gate_of(request)
    gate.admit(request, "admin", id)
    body = await gate.body(request)
    system = read_as(wire.NewModel, body).system
    work = _then(lambda one, now: one.replace_model(now, system))
    return await gate.run(request, id, work, body=body)


@router.post(
    "/{id}/refit",
    status_code=202,
    responses=PROBLEMS | {202: {"model": wire.Started}},
    openapi_extra=_takes(wire.Nothing),
)
async def refit(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Learn the model from the experiment's rewards, in a process of its own."""
    gate = gate_of(request)
    gate.admit(request, "admin", id)
    body = await gate.body(request)
    read_as(wire.Nothing, body)
    started = 0.0

    def work(experiment: Experiment, now: float) -> tuple[int, Any]:
        nonlocal started
        started = experiment.start_refit(now)
        return 202, {"started": True}

    response = await gate.run(request, id, work, body=body)
    if "Idempotent-Replayed" not in response.headers:
        request.app.state.refitter.begin(id, started)
    return response


@router.post("/{id}/pause", responses=VERSION, openapi_extra=_takes(wire.Pause))
async def pause(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Refuse decisions until the experiment is resumed; rewards are still taken."""
    gate = gate_of(request)
    gate.admit(request, "admin", id)
    body = await gate.body(request)
    reason = read_as(wire.Pause, body).reason
    return await gate.run(request, id, _then(lambda one, now: one.pause(now, reason)), body=body)


@router.post("/{id}/resume", responses=VERSION, openapi_extra=_takes(wire.Nothing))
async def resume(request: Request, id: Id, idempotency_key: IdempotencyKey = None) -> Response:
    """Decide again."""
    gate = gate_of(request)
    gate.admit(request, "admin", id)
    body = await gate.body(request)
    read_as(wire.Nothing, body)
    return await gate.run(request, id, _then(lambda one, now: one.resume(now)), body=body)


def _then(command: Any) -> Any:
    """A job that runs a command and answers the version."""

    def work(experiment: Experiment, now: float) -> tuple[int, Any]:
        command(experiment, now)
        return 200, {"version": experiment.version}

    return work
