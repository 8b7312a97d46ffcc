"""What requests look like on the wire, for checks and for the OpenAPI description."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from driftbandit.agent.refitting import OF_NAMES
from driftbandit.policies import PREFERRED
from driftbandit.service.settings import LARGEST_NAME, LONGEST_NAME

ROUND = LARGEST_NAME
ID = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$"


Name = (
    Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)]
    | Annotated[int, Field(ge=-ROUND, le=ROUND)]
)
Number = Annotated[float, Field(allow_inf_nan=False)]
# One wrong entry is enough: to collect those of a million would take a second.
Row = Annotated[list[Number], Field(fail_fast=True)]
Rows = Annotated[list[Row], Field(fail_fast=True)]
Names = Annotated[list[Name], Field(fail_fast=True)]
Round = Annotated[int, Field(ge=-ROUND, le=ROUND)]
Count = Annotated[int, Field(ge=1)]
DecisionId = Annotated[int, Field(ge=0, le=ROUND)]

_VECTOR = {"type": "array", "items": {"type": "number"}, "minItems": 1}
_MATRIX = {"type": "array", "items": _VECTOR, "minItems": 1}
_FIELDS: dict[str, Any] = {
    "transition": _MATRIX,
    "process_cov": _MATRIX,
    "reward_std": {"type": "number", "minimum": 0},
    "arms": _MATRIX,
    "initial_cov": _MATRIX,
    "initial_mean": _VECTOR,
    "names": {"type": "array", "items": {"type": ["string", "integer"]}, "minItems": 1},
    "contexts": {"type": "object", "additionalProperties": _MATRIX},
    "first_round": {"type": "integer", "minimum": -ROUND, "maximum": ROUND},
    "clock": {"type": "object"},
}
ModelFile = Annotated[
    dict[str, Any],
    WithJsonSchema(
        {
            "type": "object",
            "description": "a model file, as `driftbandit fit` writes it",
            "properties": _FIELDS,
            "required": ["transition", "process_cov", "reward_std", "arms"],
            "additionalProperties": False,
        }
    ),
]
"""What `model_file.from_document` reads, and checks."""


class _Strict(BaseModel):
    # Strict: the text "off" is no reward of 0.
    model_config = ConfigDict(extra="forbid", strict=True)


class Seconds(_Strict):
    """Rounds that follow the clock."""

    seconds: Annotated[float, Field(ge=0.001, le=1e9, allow_inf_nan=False)]


class RefitRules(_Strict):
    """When and how the model is learned from the experiment's own rewards; see `Refit`."""

    after: Annotated[int, Field(ge=2, le=ROUND)] | None = None
    growth: Annotated[float, Field(ge=0, le=1e6, allow_inf_nan=False)] = 0.5
    memory: Annotated[int, Field(ge=2, le=100_000)] = 5000
    structure: Annotated[str, Field(max_length=1000)] | None = None
    stable: bool = True
    offsets: bool = False
    iterations: Annotated[int, Field(ge=1, le=10_000)] = 100
    scale: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    check: bool = True


def _features_by_name(arms: Any) -> Any:
    """A list of names, or of features, is the usual mistake."""
    if isinstance(arms, list):
        said = 'is a list; give features by name, as {"a": [1.0, 0.5]}, or give only names'
        raise PydanticCustomError("arms_list", said)
    return arms


class NewExperiment(_Strict):
    """An experiment: a model, named arms, a policy, and how time passes."""

    id: Annotated[str, Field(pattern=ID, description="letters, digits, '.', '_' and '-'")]
    system: ModelFile | None = None
    arms: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=LONGEST_NAME)], Row] | None,
        BeforeValidator(_features_by_name),
        Field(description="instead of a system: features by name; the model is then learned"),
    ] = None
    structure: Annotated[
        str | None, Field(max_length=1000, description="instead: as in level(arm) + season(7)")
    ] = None
    names: Annotated[
        Names | None,
        Field(description=f"the arms of the structure; alone, it is {OF_NAMES}"),
    ] = None
    policy: Annotated[
        Annotated[str, Field(max_length=200)] | None, Field(description=f"absent: {PREFERRED}")
    ] = None
    seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    window: Annotated[
        Annotated[int, Field(ge=0, le=ROUND)] | None,
        Field(description="rounds within which a reward counts; absent: 1000, or 100 by the clock"),
    ] = None
    time: Literal["rounds"] | Seconds = "rounds"
    rounds: Annotated[int, Field(ge=1, le=ROUND)] = 1000
    memory: Annotated[int, Field(ge=0, le=1_000_000)] = 1000
    refit: RefitRules | None = None
    on_alarm: Literal["widen"] | None = None
    exist_ok: Annotated[
        bool, Field(description="answer 200 if the experiment exists with these settings")
    ] = False


class AskFor(_Strict):
    """One decision, or ``count`` of them in one round."""

    arms: Annotated[Names | None, Field(description="the arms on offer; all if absent")] = None
    features: Annotated[
        Rows | None, Field(description="other arms by their features, a row each")
    ] = None
    context: Annotated[
        dict[str, Number | Row | dict[str, Number]] | None,
        Field(description="features of this decision, if the system has contexts"),
    ] = None
    round: Round | None = None
    count: Count | None = None
    distinct: bool = True


class Told(_Strict):
    """The reward of a decision; ``arm`` and ``round``, if given, are compared with the decision."""

    decision: DecisionId
    reward: Number | bool | Row | None
    arm: Name | None = None
    round: Round | None = None


class ToldMany(_Strict):
    """The rewards of several decisions: all are taken, or none."""

    rewards: Annotated[list[Told], Field(min_length=1, fail_fast=True)]


class NewArm(_Strict):
    """One more arm; without features it gets a level of its own."""

    arm: Name
    features: Row | None = None


class OldArm(_Strict):
    """An arm that is no longer offered."""

    arm: Name


class NewModel(_Strict):
    """Another model for the same arms."""

    system: ModelFile


class Pause(_Strict):
    """Why decisions stop."""

    reason: Annotated[str, Field(max_length=500)] = ""


class Nothing(_Strict):
    """No arguments."""


# What is answered.


class Decided(BaseModel):
    """A decision."""

    decision: int
    arm: str | int
    round: int
    mean: float | None
    bonus: float | None
    uncertainty: float | None


class DecidedMany(BaseModel):
    """The decisions of one round."""

    decisions: list[Decided]


class Outcome(BaseModel):
    """What a reward did."""

    outcome: Literal["learned", "duplicate", "missing", "too late"]


class Outcomes(BaseModel):
    """What each reward did."""

    outcomes: list[Literal["learned", "duplicate", "missing", "too late"]]


class Version(BaseModel):
    """The number of the experiment's last event."""

    version: int


class Started(BaseModel):
    """A worker learns the model."""

    started: Literal[True]


class ProblemDetails(BaseModel):
    """An error (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    field: str | None = None
