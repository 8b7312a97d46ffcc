"""The errors users see, and the checks that raise them before any work is done.

Every check names the argument, shows the value and says what would be right.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

__all__ = [
    "InvalidInput",
    "MissingExtra",
    "NotDetectable",
    "closest",
    "covariance",
    "matrix",
    "needing",
    "number",
    "printable",
    "require",
    "unknown",
    "whole_number",
]

LARGEST = 1e150
"""Largest size of an entry: its square must still be a number."""
EXTRAS = {
    "gymnasium": ("gymnasium", "driftbandit[gym]"),
    "jax": ("JAX", "driftbandit[sim]"),
    "jinja2": ("jinja2", "driftbandit[report]"),
    "markupsafe": ("jinja2", "driftbandit[report]"),
    "matplotlib": ("matplotlib", "driftbandit[report]"),
    "pandas": ("pandas", "pandas"),
    "pyarrow": ("pyarrow", "driftbandit[io]"),
    "ray": ("Ray", "driftbandit[ray]"),
    "rich": ("rich", "driftbandit[cli]"),
    "river": ("river", "driftbandit[river]"),
    "typer": ("typer", "driftbandit[cli]"),
}
"""Libraries that the plain install leaves out: as people write them, and what brings them."""
SYMMETRY_TOLERANCE = 1e-10
"""Largest asymmetry, or negative eigenvalue, relative to the largest entry of a covariance."""


class InvalidInput(ValueError):
    """An argument is wrong: the message names it, its value and the remedy."""

    def __init__(self, argument: str, problem: str, remedy: str) -> None:
        super().__init__(f"{argument}: {problem}; {remedy}")
        self.argument, self.problem, self.remedy = argument, problem, remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes whole."""
        return type(self), (self.argument, self.problem, self.remedy)

    def of(self, owner: str) -> InvalidInput:
        """The same error, of an argument that belongs to ``owner``."""
        if self.argument.startswith(owner):
            return self
        return InvalidInput(f"{owner} {self.argument}", self.problem, self.remedy)


class NotDetectable(ValueError):
    """The asked-for steady state does not exist: an unstable mode is never seen."""


class MissingExtra(ImportError):
    """A library that the plain install leaves out is missing: the message names the extra."""

    def __init__(self, what: str, library: str) -> None:
        title, package = EXTRAS[library]
        super().__init__(f"{what} needs {title}; install {package}", name=library)
        self.what, self.library = what, library

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel between processes whole."""
        return type(self), (self.what, self.library)


@contextlib.contextmanager
def needing(what: str) -> Iterator[None]:
    """Name the missing extra, and ``what`` needs it, where an import inside fails.

    Example:
        >>> with needing("a plot"):
        ...     raise ModuleNotFoundError(name="matplotlib.figure")
        Traceback (most recent call last):
        driftbandit.errors.MissingExtra: a plot needs matplotlib; install driftbandit[report]
    """
    try:
        yield
    except (MissingExtra, ModuleNotFoundError) as error:
        library = (error.name or "").partition(".")[0]
        if library not in EXTRAS:
            raise
        raise MissingExtra(what, library) from None


def require(what: str, *libraries: str) -> None:
    """Refuse before any work where a library that ``what`` needs is missing; load none of them."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(what, library)


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str) -> str:
    """The text itself, or its escapes where it would break the line or drive the terminal."""
    return text if text.isprintable() else ascii(text)


def matrix(value: Any, argument: str, *, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return ``value`` as a fresh finite float64 array of ``shape`` (None: any length ≥ 1)."""
    wanted = "(" + ", ".join("any" if n is None else str(n) for n in shape) + ",)"
    wanted = wanted.replace(",)", ")") if len(shape) != 1 else wanted
    try:
        array = np.array(value)
        if array.dtype.kind not in "biuf":  # text, complex, ragged, None, or beyond any float
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise InvalidInput(
            argument, f"{_shown(value)} is not an array of real numbers", f"give shape {wanted}"
        ) from None
    if array.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, array.shape, strict=True)
    ):
        raise InvalidInput(argument, f"has shape {array.shape}", f"give shape {wanted}")
    if array.size == 0:
        raise InvalidInput(argument, f"is empty, shape {array.shape}", "give at least one entry")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        raise InvalidInput(
            argument,
            f"entry {list(where)} is {array[where]}",
            "every entry must be a finite number",
        )
    if np.abs(array).max() > LARGEST:
        raise InvalidInput(
            argument, f"has an entry of size {np.abs(array).max():g}", f"{LARGEST:g} is the most"
        )
    return array


def covariance(value: Any, argument: str, *, size: int) -> np.ndarray:
    """Return ``value`` as a symmetric positive semidefinite ``size`` × ``size`` array."""
    cov = matrix(value, argument, shape=(size, size))
    scale = max(float(np.abs(cov).max()), np.finfo(float).tiny)
    gap = float(np.abs(cov - cov.T).max())
    if gap > SYMMETRY_TOLERANCE * scale:
        i, j = (int(n) for n in np.unravel_index(np.abs(cov - cov.T).argmax(), cov.shape))
        raise InvalidInput(
            argument,
            f"is not symmetric: entry [{i}, {j}] is {cov[i, j]:g} but [{j}, {i}] is {cov[j, i]:g}",
            "a covariance equals its transpose; (M + M.T) / 2 makes it so",
        )
    cov = (cov + cov.T) / 2
    smallest = float(np.linalg.eigvalsh(cov / scale)[0]) * scale
    if smallest < -SYMMETRY_TOLERANCE * scale:
        raise InvalidInput(
            argument,
            f"is indefinite: smallest eigenvalue {smallest:g}",
            "a covariance has no negative eigenvalue; R @ R.T never does",
        )
    return cov


def number(
    value: Any,
    argument: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    strict: bool = False,
) -> float:
    """Return ``value`` as a finite float in [low, high], or (low, high) when ``strict``."""
    try:
        if not isinstance(value, float) and isinstance(value, str | bytes | bool | np.bool):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        problem = f"{_shown(value)} is not a real number"
        raise InvalidInput(argument, problem, _wanted(low, high, strict)) from None
    inside = low < result < high if strict else low <= result <= high
    if not math.isfinite(result) or not inside:
        raise InvalidInput(argument, f"is {result:g}", _wanted(low, high, strict))
    if abs(result) > LARGEST:
        raise InvalidInput(argument, f"is {result:g}", f"{LARGEST:g} is the most")
    return result


def _wanted(low: float, high: float, strict: bool) -> str:
    if math.isinf(low) and math.isinf(high):
        return "give a finite number"
    if math.isinf(high):
        return f"give a finite number {'>' if strict else '≥'} {low:g}"
    ends = "()" if strict else "[]"
    return f"give a number in {ends[0]}{low:g}, {high:g}{ends[1]}"


def whole_number(value: Any, argument: str, *, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int in low..high."""
    wanted = f"give a whole number ≥ {low}" if high is None else f"give one of {low}..{high}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidInput(argument, f"{_shown(value)} is not a whole number", wanted)
    if value < low or (high is not None and value > high):
        raise InvalidInput(argument, f"is {int(value)}", wanted)
    return int(value)


def closest(value: Any, argument: str, valid: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``valid``; otherwise say which valid name is nearest."""
    names = sorted(valid)
    if not isinstance(value, str):
        raise InvalidInput(
            argument, f"{_shown(value)} is not a name", f"valid: {', '.join(names) or 'none'}"
        )
    if value in names:
        return value
    raise unknown(value, argument, names)


def unknown(value: str, argument: str, names: list[str], meant: str | None = None) -> InvalidInput:
    """The error for a name that is none of ``names``; ``meant``: which one it was perhaps."""
    near = difflib.get_close_matches(meant or value, names, n=1, cutoff=0.5)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return InvalidInput(
        argument, f"unknown name {_shown(value)}", f"{hint}valid: {', '.join(names) or 'none'}"
    )
