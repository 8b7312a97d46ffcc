"""Structures as text: `level(arm) + season(7) + level(shared)`, read and checked."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterable, Sequence
from typing import Any

from driftbandit import errors
from driftbandit.structure.base import SCOPES, Component, Structure
from driftbandit.structure.kinds import FORMS, KINDS, Factors, Regression

COMPONENT = re.compile(r"\s*([A-Za-z_]\w*)\s*(?:\(([^()]*)\))?\s*")
VALUE = r"\[[^\[\]]*\]|[^,\[\]=\s](?:[^,\[\]=]*[^,\[\]=\s])?"  # never begins or ends with a blank
OPTION = re.compile(rf"\s*(?:([A-Za-z_]\w*)\s*=\s*)?({VALUE})\s*(?:,|$)")
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
EXAMPLE = 'write a sum of components, as "level(arm) + season(7)"'
NEEDED = {"period": "season(7)", "features": "regression(x_price)", "n_states": "factors(2)"}
"""Options without a default, with an example."""
MOST = 100_000  # characters


def parse(text: Any, others: Sequence[str] = ()) -> Structure:
    """The structure that a text describes.

    Each component is a name and options in parentheses: its scope (arm, group or shared), words
    such as own, ``name=value``, a season's period, an autoregression's order, a regression's
    features. Numbers for parameters fix them.

    Args:
        text: the description; a `Component` or a `Structure` is returned as a `Structure`.
        others: words that the caller takes as well, for the message about an unknown one.

    Example:
        >>> str(parse("level(arm,drift=0.1)+season(24, harmonics=3) + regression(x_price, arm)"))
        'level(arm, drift=0.1) + season(24, harmonics=3) + regression(x_price, arm)'
        >>> parse("level(arm) + saeson(7)")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: structure: unknown name 'saeson'; did you mean 'season'...
    """
    if isinstance(text, Component):
        return Structure((text,))
    if isinstance(text, Structure):
        return text
    if not isinstance(text, str):
        raise errors.InvalidInput("structure", f"has type {type(text).__name__}", EXAMPLE)
    if not text.strip() or len(text) > MOST:
        problem = "is empty" if not text.strip() else f"has {len(text):,} characters"
        raise errors.InvalidInput("structure", problem, EXAMPLE)
    found, place = [], 0
    while True:
        match = COMPONENT.match(text, place)
        if match is None:
            rest = errors.printable(text[place : place + 30])
            problem = f"cannot be read at {rest!r}" if rest.strip() else "ends after a +"
            raise errors.InvalidInput("structure", problem, EXAMPLE)
        found.append(_component(match[1], match[2] or "", others))
        place = match.end()
        if place == len(text):
            return Structure(tuple(found))
        if text[place] != "+":
            rest = errors.printable(text[place : place + 30])
            raise errors.InvalidInput(
                "structure", f"has {rest!r} after {match[0].strip()}", EXAMPLE
            )
        place += 1


def _component(name: str, inside: str, others: Sequence[str]) -> Component:
    if name.lower() not in KINDS:
        raise errors.unknown(name.lower(), "structure", sorted([*others, *KINDS]))
    kind = KINDS[name.lower()]
    given: dict[str, Any] = {}
    for key, value in _options(name, inside):
        key = key or _key(kind, given, value)
        if key == "features":
            given[key] = (*given.get(key, ()), value)
        elif key in given:
            raise errors.InvalidInput(
                f"{name}: {key}", f"is given twice, as {value}", "give it once"
            )
        else:
            given[key] = True if value == key else _value(value)  # a word such as own is a flag
    return made(kind, given)


def _options(name: str, inside: str) -> list[tuple[str, str]]:
    found, place = [], 0
    inside = inside.rstrip()
    while place < len(inside):
        match = OPTION.match(inside, place)
        if match is None:
            rest = errors.printable(inside[place:].strip()[:30])
            remedy = "separate options by commas, as arm, memory=20"
            raise errors.InvalidInput(f"{name}: options", f"cannot be read at {rest!r}", remedy)
        found.append((match[1] or "", match[2].strip()))
        place = match.end()
    return found


def _key(kind: type[Component], given: dict[str, Any], value: str) -> str:
    """The option that a value without a name belongs to."""
    flags = [field.name for field in dataclasses.fields(kind) if field.type == "bool"]
    if value in SCOPES:
        return "scope"
    if value in flags:
        return value
    if value.startswith("x_") and kind is Regression:
        return "features"
    if value in FORMS and kind is Factors:
        return "form"
    if NUMBER.fullmatch(value) and kind.first is not None:
        return kind.first
    shown = errors.printable(repr(value))
    problem = f"{shown} is not one of its options"
    valid = [*SCOPES, *flags, *([f"a number ({kind.first})"] if kind.first else [])]
    raise errors.InvalidInput(kind.kind, problem, f"valid: {', '.join(valid)}, or name=value")


def _value(text: str) -> Any:
    if text.startswith("["):
        return tuple(_value(part.strip()) for part in text[1:-1].split(","))
    if NUMBER.fullmatch(text):
        return int(text) if re.fullmatch(r"[+-]?\d{1,15}", text) else float(text)
    return text


def made(kind: type[Component], given: dict[str, Any]) -> Component:
    """A component from its options and, among them, values of parameters that are known."""
    for name, example in NEEDED.items():
        if name in kind.options() and name not in given:
            remedy = f"give it, as {example}"
            raise errors.InvalidInput(f"{kind.kind}: {name}", "is missing", remedy)
    options: dict[str, Any] = {name: given[name] for name in given if name in kind.options()}
    fixed = {name: value for name, value in given.items() if name not in options}
    loadings = options.get("loadings")
    if isinstance(loadings, Iterable) and not isinstance(loadings, str):
        options["loadings"] = tuple(loadings)
    return kind(**options, fixed=fixed)
