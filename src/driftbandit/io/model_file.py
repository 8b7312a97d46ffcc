"""Model files: a system, its arms and their names as JSON or TOML.

    {"transition": [[…]], "process_cov": [[…]], "reward_std": x, "initial_cov": [[…]],
     "initial_mean": […], "arms": [[…]], "names": ["…"], "contexts": {"x_…": [[…]]},
     "first_round": n, "clock": {…}}

Without ``initial_cov`` the state starts stationary, without ``initial_mean`` at zero. ``names`` are
texts or whole numbers; without them arms are called 0 … k − 1. ``contexts`` has a matrix of the
shape of ``arms`` for each feature that changes them; without it, arms are the same in every round.
``first_round`` is the round of which ``initial_mean`` and ``initial_cov`` speak, if they contain
what was learned from earlier rounds. ``clock`` says how rounds count times.
"""

from __future__ import annotations

import json
import sys
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.contexts import NO_CONTEXTS, Contexts, argument_of
from driftbandit.io import atomic
from driftbandit.io.times import Clock
from driftbandit.model import LGDS
from driftbandit.system import System

REQUIRED = ("transition", "process_cov", "reward_std", "arms")
OPTIONAL = ("initial_cov", "initial_mean", "names", "contexts", "first_round", "clock")
PARTS = ("arms", "names", "contexts", "first_round", "clock")  # of a system, beside its model
LARGEST = {"JSON": 64 * 2**20, "TOML": 8 * 2**20}  # bytes; TOML is ten times slower to read


def to_document(
    model: LGDS | System,
    arms: Any = None,
    names: Iterable[Any] | None = None,
    contexts: Contexts = NO_CONTEXTS,
) -> dict[str, Any]:
    """The JSON object of a model file: of a `System`, or of a model, arms, perhaps names, …."""
    first_round = clock = None
    if isinstance(model, System):
        first_round, clock = model.first_round, model.clock
        arms, names, contexts, model = model.arms, model.names, model.contexts, model.model
    numbers = [field for field in (*REQUIRED, *OPTIONAL) if field not in PARTS]
    document = {field: getattr(model, field) for field in numbers} | {"arms": arms}
    document = {field: np.asarray(value).tolist() for field, value in document.items()}
    document["names"] = None if names is None else list(names)
    document["contexts"] = {name: matrix.tolist() for name, matrix in contexts.items()} or None
    document["first_round"] = first_round
    document["clock"] = None if clock is None else clock.to_document()
    return {field: value for field, value in document.items() if value is not None}


def from_document(document: Any) -> System:
    """The system of a model file's JSON object.

    Example:
        >>> system = from_document(
        ...     {"transition": [[0.5]], "process_cov": [[1]], "reward_std": 0, "arms": [[1], [2]]}
        ... )
        >>> system.model.n_states, system.arms.shape, system.names
        (1, (2, 1), (0, 1))
    """
    fields = ", ".join(REQUIRED)
    said = "holds the list" if isinstance(document, list) else "holds"
    document = _typed(document, dict, "model file", f"write an object with {fields}", said)
    for key in document:  # before what is missing: a misspelled name is both
        errors.closest(key, "model file", (*REQUIRED, *OPTIONAL))
    missing = [repr(key) for key in REQUIRED if key not in document]
    if missing:
        raise _wrong(f"lacks {', '.join(missing)}", f"give {fields}")
    values = {key: x for key, x in document.items() if key in REQUIRED or x is not None}
    try:
        for field, read in READERS.items():
            if field in values:
                values[field] = read(values[field], field)
        parts = {field: values.pop(field, None) for field in PARTS}
        return System(LGDS(**values), **parts)
    except errors.InvalidInput as error:
        raise error.of("model file") from None


def load_model(path: str | Path) -> System:
    """Read a model file, as `fit` writes it: TOML if its name ends in .toml, else JSON.

    Args:
        path: of the file.

    Returns:
        A `System`; the file's numbers are checked.

    Example:
        >>> text = '''
        ...     transition = [[0.5]]
        ...     process_cov = [[1.0]]
        ...     reward_std = 1.0
        ...     arms = [[1.0], [2.0]]
        ...     names = ["left", "right"]
        ... '''
        >>> size = Path("model.toml").write_text(text)
        >>> system = load_model("model.toml")
        >>> system.names, system.model.spectral_radius
        (('left', 'right'), 0.5)
        >>> load_model("no/such/model.json")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: model file: cannot read no/such/model.json (No such ...
    """
    format_ = "TOML" if str(path).lower().endswith(".toml") else "JSON"
    name = errors.printable(str(path))
    data = _bytes(path, name, format_)
    try:
        text = data.decode("utf-8-sig")
        if format_ == "TOML":
            return from_document(tomllib.loads(text))
        return from_document(json.loads(text, object_pairs_hook=_without_repeats))
    except errors.InvalidInput:
        raise
    except RecursionError:
        raise _wrong(f"{name} is nested too deep", "a matrix is a list of rows") from None
    except ValueError as error:
        problem = f"{name} is not {format_} ({errors.printable(str(error))})"
        remedy = f"write {', '.join(REQUIRED)} as {format_} in UTF-8"
        if format_ == "JSON":
            remedy += "; if it is a log, run driftbandit fit on it first"
        raise _wrong(problem, remedy) from None


def save_model(system: System, path: str | Path) -> None:
    """Write a .json model file, which `load_model` reads; it is written whole or not at all.

    Args:
        system: such as ``fit.system``.
        path: of the file, which is replaced if it exists.

    Example:
        >>> system = System(LGDS([[0.5]], [[1.0]], 1.0), [[1.0]], ["left"])
        >>> save_model(system, "model.json")
        >>> load_model("model.json") == system
        True
        >>> save_model(system, "model.toml")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: path: is model.toml; end it in .json
    """
    if not isinstance(system, System):
        raise errors.InvalidInput(
            "system", f"has type {type(system).__name__}", "give a System, such as fit.system"
        )
    if not str(path).lower().endswith(".json"):
        raise errors.InvalidInput("path", f"is {errors.printable(str(path))}", "end it in .json")
    content, most = to_bytes(system), LARGEST["JSON"]
    if len(content) > most:
        problem = f"takes {len(content):,} bytes as a file"
        remedy = f"give fewer arms: {most:,} bytes are the most that load_model reads"
        raise errors.InvalidInput("system", problem, remedy)
    atomic.write_whole(Path(path), content)


def to_bytes(system: System) -> bytes:
    """The content of a model file."""
    document = to_document(system)
    try:
        return json.dumps(document, ensure_ascii=False).encode() + b"\n"
    except UnicodeEncodeError:  # half of a character, for which JSON has an escape
        return json.dumps(document).encode() + b"\n"


def _bytes(path: str | Path, name: str, format_: str) -> bytes:
    most = LARGEST[format_]
    try:
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    except (OSError, TypeError, ValueError) as error:  # ValueError: a name with a zero byte
        reason = getattr(error, "strerror", None) or error
        problem = f"cannot read {name} ({reason})"
        raise _wrong(problem, "give the path of a JSON or TOML file") from None
    if len(data) > most:
        raise _wrong(f"{name} has more than {most:,} bytes", "give a smaller file")
    return data


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object; Python's own reader would silently keep the last of two equal fields."""
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise _wrong(f"holds {_shown(key)} twice", "give each field once")
        fields[key] = value
    return fields


def _rows(value: Any, field: str) -> list[list[float]]:
    """The rows of a matrix."""
    remedy = "give a list of rows, each a list of numbers"
    for i, row in enumerate(_typed(value, list, field, remedy)):
        if len(_typed(row, list, field, remedy, f"row {i} is")) != len(value[0]):
            problem = f"row {i} has {len(row)} entries, row 0 has {len(value[0])}"
            raise errors.InvalidInput(field, problem, "make all rows equally long")
    return [_numbers(row, field, f"{i}, ") for i, row in enumerate(value)]


def _numbers(value: Any, field: str, place: str = "") -> list[float]:
    for j, entry in enumerate(_typed(value, list, field, "give a list of numbers")):
        # Not isinstance: true is no number. A whole number may be too large for any float.
        if type(entry) not in (int, float) or not abs(entry) <= sys.float_info.max:
            problem = f"entry [{place}{j}] is {_shown(entry)}"
            raise errors.InvalidInput(field, problem, "every entry must be a finite number")
    return list(map(float, value))


def _names(value: Any, field: str) -> Any:
    return _typed(value, list, field, "give a list, one text or whole number for each arm")


def _contexts(value: Any, field: str) -> dict[str, Any]:
    document = _typed(value, dict, field, "give an object with a matrix for each feature")
    return {name: _rows(matrix, argument_of(name, field)) for name, matrix in document.items()}


def _typed(value: Any, wanted: type, field: str, remedy: str, said: str = "is") -> Any:
    """The value, which is a list or an object as wanted."""
    if not isinstance(value, wanted):
        raise errors.InvalidInput(field, f"{said} {_shown(value)}", remedy)
    return value


READERS: dict[str, Callable[[Any, str], Any]] = {
    **dict.fromkeys(["transition", "process_cov", "initial_cov", "arms"], _rows),
    "initial_mean": _numbers,
    "names": _names,
    "contexts": _contexts,
    "clock": lambda document, _: Clock.from_document(document),
}


def _shown(value: Any) -> str:
    """A value as the file writes it, cut short."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError):  # TOML has dates and times
        text = str(value)
    return errors.printable(text if len(text) <= 60 else text[:57] + "...")


def _wrong(problem: str, remedy: str) -> errors.InvalidInput:
    return errors.InvalidInput("model file", problem, remedy)
