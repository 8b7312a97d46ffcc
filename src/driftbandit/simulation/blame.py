"""Mistakes in a policy of one's own, told in one line that names the policy.

JAX calls the functions of a policy once, with arrays that have shapes but no numbers. What NumPy
and Python do with numbers fails there, with long messages about JAX. What is wrong with the numbers
themselves shows only while they are computed: rounds without an arm get the regret NaN or ∞.
"""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from driftbandit import errors
from driftbandit.arrays import NO_ARM, Array
from driftbandit.policies.base import COMPUTED_NAN, NEEDS_NOISE

PAGE = "see https://driftbandit.github.io/driftbandit/do/add_a_policy.html"
MISTAKES: tuple[tuple[Any, str, str], ...] = (
    (
        jax.errors.TracerArrayConversionError,
        "calls a NumPy function on an array of JAX",
        f"call it from xp = arrays.namespace(x), as xp.sqrt(x); {PAGE}",
    ),
    (
        jax.errors.TracerBoolConversionError,
        "branches on the value of an array (if, while, and, or, not, min, max)",
        f"write xp.where(condition, yes, no) with xp = arrays.namespace(x); {PAGE}",
    ),
    (
        jax.errors.NonConcreteBooleanIndexError,
        "selects by a condition, so the shape depends on values",
        f"write xp.where(condition, x, 0.0) with xp = arrays.namespace(x); {PAGE}",
    ),
    (
        (jax.errors.ConcretizationTypeError, jax.errors.TracerIntegerConversionError),
        "needs the value of an array as a Python number (float, int, item, range, a list's index)",
        f"keep it an array; {PAGE}",
    ),
)
"""The errors of JAX, subclasses first, and what they mean here."""
OTHERS = tuple(str(Path(file).parent) for file in (jax.__file__, Path(__file__).parent))


@contextlib.contextmanager
def blaming(label: str) -> Iterator[None]:
    """Name the policy in what goes wrong while its functions are compiled.

    Likely mistakes become `InvalidInput`, with the original error as its cause. Other errors stay
    what they are, with a note.
    """
    owner = f"policy {label!r}"
    try:
        yield
    except errors.InvalidInput as error:
        raise error.of(owner) from error.__cause__
    except Exception as error:
        if isinstance(error, TypeError) and "JAX arrays are immutable" in str(error):
            remedy = f"write arrays.put(x, index, value), or xp.where; {PAGE}"
            problem = f"writes into an array{_place(error)}"
            raise errors.InvalidInput(owner, problem, remedy) from error
        for kinds, problem, remedy in MISTAKES:
            if isinstance(error, kinds):
                raise errors.InvalidInput(owner, problem + _place(error), remedy) from error
        error.add_note(f"This happened while {owner} was compiled.")
        raise


def _place(error: Exception) -> str:
    """Where in the user's own code it happened."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not frame.filename.startswith(OTHERS)]
    own = [frame for frame in own if "site-packages" not in frame.filename]
    return f" ({own[-1].name}, line {own[-1].lineno})" if own else ""


@contextlib.contextmanager
def without_noise(noise: Array | None) -> Iterator[None]:
    """Say so if ``choose`` fails because it uses random numbers that its policy did not ask for."""
    try:
        yield
    except (TypeError, AttributeError) as error:
        if noise is not None or "NoneType" not in str(error):
            raise
        problem = f"uses None as a number{_place(error)}, and the policy asks for no noise"
        raise errors.InvalidInput("choose", problem, NEEDS_NOISE) from error


def check_arm(arm: Array, n_arms: int) -> None:
    """Refuse what ``choose`` returns if it is not the index of an arm."""
    remedy = "return the index of one arm, such as arrays.first_highest(scores)"
    if jnp.shape(arm) != ():
        problem = f"returns an array of shape {jnp.shape(arm)}"
        raise errors.InvalidInput("choose", problem, remedy)
    if not jnp.issubdtype(jnp.result_type(arm), jnp.integer):
        problem = f"returns a number of type {jnp.result_type(arm)}"
        raise errors.InvalidInput("choose", problem, remedy)
    if isinstance(arm, int | np.integer) and not 0 <= arm < n_arms:  # the same in every round
        raise errors.InvalidInput("choose", f"returns {arm}", _in_range(n_arms))


def _in_range(n_arms: int) -> str:
    return f"return an index from 0 to {n_arms - 1}"


def marked(regret: Array, arm: Array, n_arms: int) -> Array:
    """The regret of a round; NaN if the arm was chosen by scores that are NaN, ∞ if it is none."""
    exists = (arm >= 0) & (arm < n_arms)
    return jnp.where(exists, regret, jnp.where(arm == NO_ARM, jnp.nan, jnp.inf))


def check_regret(
    label: str, curves: np.ndarray, checkpoints: np.ndarray, n_arms: int, dtype: np.dtype
) -> None:
    """Refuse regret that is not finite.

    Args:
        label: of the policy.
        curves: systems × runs × checkpoints.
        checkpoints: the rounds at which regret was noted.
        n_arms: k.
        dtype: in which the policy computed.
    """
    wrong = ~np.isfinite(curves)
    if not wrong.any():
        return
    place, system, run = np.argwhere(np.moveaxis(wrong, -1, 0))[0]  # the earliest
    count = checkpoints[place]
    when = "in the first round" if count == 1 else f"within the first {count} rounds"
    where = f"(system {system}, run {run}, {when})"
    if np.isinf(curves[system, run, place]):
        problem = f"chose an arm that does not exist {where}"
        raise errors.InvalidInput(f"policy {label!r}", problem, _in_range(n_arms))
    problem = f"computed NaN {where}"
    remedy = COMPUTED_NAN
    if dtype == np.float32:
        remedy += ", or try float64: some numbers are too large for float32"
    raise errors.InvalidInput(f"policy {label!r}", problem, remedy)
