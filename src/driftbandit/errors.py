"""The errors users see, and the checks that raise them before any work is done.

Every message names the argument, shows its value and says what to give instead.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np

LARGEST = 1e150  # largest absolute value of an entry: its square must not overflow
EXTRAS = {
    "alembic": ("Alembic", "driftbandit[service]"),
    "fastapi": ("FastAPI", "driftbandit[service]"),
    "gymnasium": ("gymnasium", "driftbandit[gym]"),
    "httpx": ("httpx", "driftbandit[client]"),
    "jax": ("JAX", "driftbandit[sim]"),
    "jinja2": ("jinja2", "driftbandit[report]"),
    "llvmlite": ("llvmlite", "driftbandit[fast]"),
    "markupsafe": ("jinja2", "driftbandit[report]"),
    "matplotlib": ("matplotlib", "driftbandit[report]"),
    "pandas": ("pandas", "pandas"),
    "prometheus_client": ("prometheus_client", "driftbandit[service]"),
    "psycopg": ("psycopg", "driftbandit[service]"),
    "pyarrow": ("pyarrow", "driftbandit[io]"),
    "ray": ("Ray", "driftbandit[ray]"),
    "rich": ("rich", "driftbandit[cli]"),
    "river": ("river", "driftbandit[river]"),
    "sqlalchemy": ("SQLAlchemy", "driftbandit[service]"),
    "typer": ("typer", "driftbandit[cli]"),
    "uvicorn": ("uvicorn", "driftbandit[service]"),
}
"""Optional libraries: the name as people write it, and what to install."""
SYMMETRY_TOLERANCE = 1e-10
"""Largest asymmetry or negative eigenvalue of a covariance, relative to its largest entry."""


class InvalidInput(ValueError):
    """An argument is wrong; the message gives the argument, its value and the remedy.

    Args:
        argument: its name.
        problem: what is wrong with it, with its value.
        remedy: what to give instead.

    Example:
        Every function checks its arguments before it works. All three parts are attributes.

        >>> from driftbandit import LGDS
        >>> try:
        ...     LGDS([[0.9]], [[-1.0]], reward_std=1.0)
        ... except InvalidInput as error:
        ...     print(error.argument, "|", error.problem)
        process_cov | is indefinite: smallest eigenvalue -1
        >>> error = InvalidInput("arms", "is empty", "give at least one")
        >>> str(error.of("system 3"))
        'system 3 arms: is empty; give at least one'
    """

    def __init__(self, argument: str, problem: str, remedy: str) -> None:
        super().__init__(f"{argument}: {problem}; {remedy}")
        self.argument, self.problem, self.remedy = argument, problem, remedy

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the arguments, so that all attributes survive."""
        return type(self), (self.argument, self.problem, self.remedy)

    def of(self, owner: str) -> InvalidInput:
        """The same error with ``owner`` in front of the argument's name.

        Args:
            owner: whose argument it is, such as "model file"; once is enough.
        """
        if self.argument.startswith(owner):
            return self
        return type(self)(f"{owner} {self.argument}", self.problem, self.remedy)


class Conflict(InvalidInput):
    """An argument contradicts what was said before, such as a second reward of a decision.

    Example:
        >>> from driftbandit import LGDS, Agent
        >>> agent = Agent(LGDS([[0.9]], [[1.0]], 1.0), [[1.0]])
        >>> agent.tell(agent.ask(), 0.5)
        'learned'
        >>> agent.tell(0, 0.7)
        Traceback (most recent call last):
        driftbandit.errors.Conflict: reward: is 0.7, but decision 0 was told 0.5; a ...
    """


class NotDetectable(ValueError):
    """The steady state does not exist: no observed arm reads some unstable mode.

    Example:
        The second state is a random walk, and the only arm does not read it.

        >>> from driftbandit import LGDS, steady_state
        >>> model = LGDS(np.diag([0.5, 1.0]), np.eye(2), 1.0, initial_cov=np.eye(2))
        >>> try:
        ...     steady_state.prediction_cov(model, [1.0, 0.0])
        ... except NotDetectable:
        ...     print("its variance grows without limit")
        its variance grows without limit
    """


class MissingExtra(ImportError):
    """An optional library is not installed; the message names the extra that brings it.

    Args:
        what: what needs it, such as "simulate".
        library: the name by which it is imported.

    Example:
        It is an ImportError, so that code may go on without the extra.

        >>> def plotted():
        ...     raise MissingExtra("plot", "matplotlib")  # as any function that needs one does
        >>> try:
        ...     plotted()
        ... except ImportError as error:
        ...     print(error)
        plot needs matplotlib; install driftbandit[report]
    """

    def __init__(self, what: str, library: str) -> None:
        title, package = EXTRAS[library]
        super().__init__(f"{what} needs {title}; install {package}", name=library)
        self.what, self.library = what, library

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle by the arguments, so that all attributes survive."""
        return type(self), (self.what, self.library)


@contextlib.contextmanager
def needing(what: str) -> Iterator[None]:
    """Turn a failed import inside the block into `MissingExtra`: ``what`` needs which extra.

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


def lazy(package: str, homes: Mapping[str, str]) -> Callable[[str], Any]:
    """A package's ``__getattr__``: names whose module, by ``homes``, is imported on first use."""

    def attribute(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needing(name):
            return getattr(importlib.import_module(f"{package}.{homes[name]}"), name)

    return attribute


def require(what: str, *libraries: str) -> None:
    """Raise `MissingExtra` if a library that ``what`` needs is not installed; load none of them."""
    for library in libraries:
        if importlib.util.find_spec(library) is None:
            raise MissingExtra(what, library)


def _shown(value: Any) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else text[:57] + "..."


def printable(text: str) -> str:
    """The text, escaped if it contains line breaks or terminal control characters."""
    return text if text.isprintable() else ascii(text)


def matrix(value: Any, argument: str, *, shape: tuple[int | None, ...]) -> np.ndarray:
    """Return ``value`` as a fresh finite float64 array of ``shape`` (None: any length ≥ 1)."""
    wanted = str(tuple("any" if n is None else n for n in shape)).replace("'", "")
    try:
        array = np.array(value)
        if array.dtype.kind not in "biuf":  # text, complex, ragged, None, or too large for a float
            raise TypeError
        array = array.astype(np.float64)
    except (TypeError, ValueError):
        problem = f"{_shown(value)} is not an array of real numbers"
        raise InvalidInput(argument, problem, f"give shape {wanted}") from None
    if array.ndim != len(shape) or any(
        n is not None and n != m for n, m in zip(shape, array.shape, strict=True)
    ):
        raise InvalidInput(argument, f"has shape {array.shape}", f"give shape {wanted}")
    if array.size == 0:
        raise InvalidInput(argument, f"is empty, shape {array.shape}", "give at least one entry")
    if not np.isfinite(array).all():
        where = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        problem = f"entry {list(where)} is {array[where]}"
        raise InvalidInput(argument, problem, "every entry must be a finite number")
    if np.abs(array).max() > LARGEST:
        problem = f"has an entry of size {np.abs(array).max():g}"
        raise InvalidInput(argument, problem, f"the largest allowed size is {LARGEST:g}")
    return array


def covariance(value: Any, argument: str, *, size: int) -> np.ndarray:
    """Return ``value`` as a symmetric positive semidefinite ``size`` × ``size`` array."""
    cov = matrix(value, argument, shape=(size, size))
    scale = max(float(np.abs(cov).max()), np.finfo(float).tiny)
    gaps = np.abs(cov - cov.T)
    if gaps.max() > SYMMETRY_TOLERANCE * scale:
        i, j = np.unravel_index(gaps.argmax(), cov.shape)
        entries = f"entry [{i}, {j}] is {cov[i, j]:g} but [{j}, {i}] is {cov[j, i]:g}"
        remedy = "a covariance equals its transpose; (M + M.T) / 2 makes it symmetric"
        raise InvalidInput(argument, f"is not symmetric: {entries}", remedy)
    cov = (cov + cov.T) / 2
    smallest = float(np.linalg.eigvalsh(cov / scale)[0]) * scale
    if smallest < -SYMMETRY_TOLERANCE * scale:
        problem = f"is indefinite: smallest eigenvalue {smallest:g}"
        remedy = "a covariance has no negative eigenvalue; R @ R.T never has one"
        raise InvalidInput(argument, problem, remedy)
    return cov


def finite(array: np.ndarray) -> bool:
    """Whether `matrix` would accept all entries: finite, and none larger than `LARGEST`."""
    return bool((np.abs(array) <= LARGEST).all())  # False for NaN, too


def covariances(stack: np.ndarray) -> np.ndarray | None:
    """`covariance` of n finite matrices, n × d × d; None if it would refuse one of them."""
    scale = np.maximum(np.abs(stack).max(axis=(1, 2), keepdims=True), np.finfo(float).tiny)
    if (np.abs(stack - stack.mT) > SYMMETRY_TOLERANCE * scale).any():
        return None
    covs = (stack + stack.mT) / 2
    smallest = np.linalg.eigvalsh(covs / scale)[:, 0]
    return None if (smallest < -SYMMETRY_TOLERANCE).any() else covs


def number(
    value: Any,
    argument: str,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    strict: bool = False,
) -> float:
    """Return ``value`` as a finite float in [low, high], or (low, high) if ``strict``."""
    if type(value) is float and low < value < high and -LARGEST <= value <= LARGEST:
        return value  # most calls; without making the texts below
    ends = "()" if strict else "[]"
    wanted = f"give a number in {ends[0]}{low:g}, {high:g}{ends[1]}"
    if math.isinf(high):
        wanted = f"give a finite number {'>' if strict else '≥'} {low:g}"
    if math.isinf(low) and math.isinf(high):
        wanted = "give a finite number"
    try:
        if not isinstance(value, float) and isinstance(value, str | bytes | bool | np.bool):
            raise TypeError
        result = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InvalidInput(argument, f"{_shown(value)} is not a real number", wanted) from None
    inside = low < result < high if strict else low <= result <= high
    if not math.isfinite(result) or not inside:
        raise InvalidInput(argument, f"is {result:g}", wanted)
    if abs(result) > LARGEST:
        raise InvalidInput(argument, f"is {result:g}", f"the largest allowed size is {LARGEST:g}")
    return result


def whole_number(value: Any, argument: str, *, low: int, high: int | None = None) -> int:
    """Return ``value`` as an int in low..high."""
    wanted = f"give a whole number ≥ {low}" if high is None else f"give one of {low}..{high}"
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InvalidInput(argument, f"{_shown(value)} is not a whole number", wanted)
    if value < low or (high is not None and value > high):
        raise InvalidInput(argument, f"is {int(value)}", wanted)
    return int(value)


def boolean(value: Any, argument: str) -> bool:
    """Return ``value`` if it is True or False."""
    if not isinstance(value, bool):
        raise InvalidInput(argument, f"is {_shown(value)}", "give True or False")
    return value


def closest(value: Any, argument: str, valid: Iterable[str]) -> str:
    """Return ``value`` if it is one of ``valid``; otherwise suggest the nearest valid name."""
    names = sorted(valid)
    if not isinstance(value, str):
        problem = f"{_shown(value)} is not a name"
        raise InvalidInput(argument, problem, f"valid: {', '.join(names) or 'none'}")
    if value not in names:
        raise unknown(value, argument, names)
    return value


def unknown(value: str, argument: str, names: list[str], meant: str | None = None) -> InvalidInput:
    """The error for a name that is not in ``names``; the hint is the one nearest to ``meant``."""
    near = nearest(meant or value, names)
    hint = f"did you mean '{near}'? " if near else ""
    remedy = f"{hint}valid: {', '.join(names) or 'none'}"
    return InvalidInput(argument, f"unknown name {_shown(value)}", remedy)


def nearest(value: Any, names: Iterable[str]) -> str | None:
    """The name that is most like ``value``; None: none is, or it is not text.

    Example:
        >>> nearest("idae", ["ucb", "idea"]), nearest("tiktok", ["email", "search"])
        ('idea', None)
    """
    text = value[:100] if isinstance(value, str) else ""
    near = difflib.get_close_matches(text, list(names), n=1, cutoff=0.5)
    return near[0] if near else None
