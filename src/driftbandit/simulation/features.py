"""The contexts of a simulation: x of every round, and the rows of arms that follow from it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.contexts import read_rows
from driftbandit.simulation.jobs import Pair
from driftbandit.system import System


class ReadOuts(NamedTuple):
    """The B_j of all systems."""

    names: tuple[str, ...]  # of the J features
    matrices: np.ndarray  # systems × J × k × d


def read_outs_of(systems: Sequence[Any], argument: str = "model") -> ReadOuts | None:
    """The B_j of systems, all of which have the same features; None: they have no contexts."""
    found = [one.contexts if isinstance(one, System) else {} for one in systems]
    names = tuple(found[0])
    for index, contexts in enumerate(found):
        if tuple(contexts) != names:
            problem = f"has the contexts {_listed(contexts)}, {argument}[0] has {_listed(names)}"
            remedy = "give all systems the same ones, in the same order"
            raise errors.InvalidInput(f"{argument}[{index}]", problem, remedy)
    if not names:
        return None
    return ReadOuts(names, np.stack([np.stack(list(one.values())) for one in found]))


def _listed(names: Sequence[str] | Any) -> str:
    return ", ".join(map(errors.printable, names)) or "none"


def check_same_features(truth: ReadOuts | None, assumed: ReadOuts | None) -> None:
    """Refuse assumed systems with other features than the true ones."""
    names, others = (() if one is None else one.names for one in (truth, assumed))
    if names != others:
        problem = f"has the contexts {_listed(others)}, the systems {_listed(names)}"
        raise errors.InvalidInput("assumed", problem, "assume the same ones, in the same order")


def checked_features(
    contexts: Any, read_outs: ReadOuts | None, rounds: int, n_arms: int
) -> np.ndarray | None:
    """The features x of every round, rounds × k × J; None: the systems have no contexts."""
    if read_outs is None:
        if contexts is None:
            return None
        problem, remedy = "were given, and the system has none", "make it as System(…, contexts=…)"
        raise errors.InvalidInput("contexts", problem, remedy)
    count = len(read_outs.names)
    remedy = f"give {rounds} rounds × {count} features ({_listed(read_outs.names)})"
    if contexts is None:
        raise errors.InvalidInput("contexts", "are missing, and the system has some", remedy)
    shape: tuple[int | None, ...] = (rounds, count)
    remedy += f", or {rounds} × {n_arms} arms × {count}"
    try:
        given = np.asarray(contexts)
        if given.ndim == 3:
            shape = (rounds, n_arms, count)
        found = errors.matrix(given, "contexts", shape=shape)
    except errors.InvalidInput as error:
        wrong_shape = error.problem.startswith("has shape")
        other = remedy if wrong_shape else error.remedy
        raise errors.InvalidInput("contexts", error.problem, other) from None
    except ValueError:  # ragged
        raise errors.InvalidInput("contexts", "is not an array of numbers", remedy) from None
    return found if given.ndim == 3 else np.repeat(found[:, None], n_arms, axis=1)


def rows_of_rounds(
    systems: list[Pair], read_outs: ReadOuts | None, features: np.ndarray | None
) -> list[Pair]:
    """The systems with the rows that their arms have in any round, k × rounds × d.

    k × d as ever if contexts change no arm. Contexts that come again are left out.
    """
    if read_outs is None or features is None:
        return systems
    different = np.unique(features, axis=0)
    with np.errstate(over="ignore", invalid="ignore"):  # `check_range` refuses what is too large
        rows = [
            read_rows(arms, matrices, different)
            for (_, arms), matrices in zip(systems, read_outs.matrices, strict=True)
        ]
    if all((one == one[0]).all() for one in rows):
        rows = [one[:1] for one in rows]
    every = (np.moveaxis(one, 0, 1) if len(one) > 1 else one[0] for one in rows)
    return [(lgds, one) for (lgds, _), one in zip(systems, every, strict=True)]
