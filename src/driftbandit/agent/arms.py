"""The arms of an agent: their names, and which arms are on offer in a round."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors
from driftbandit.actions import FINITE
from driftbandit.model import checked_arms
from driftbandit.policies import Policy, Problem
from driftbandit.system import Name, checked_names


class ArmNames:
    """The names of k arms (None: their row numbers), and the row that each name stands for.

    Example:
        >>> names = ArmNames(["left", "right"], 2)
        >>> names.row("right"), names[0]
        (1, 'left')
    """

    def __init__(self, names: Any, n_arms: int) -> None:
        known = range(n_arms) if names is None else checked_names(names, n_arms)
        self.plain = names is None or known == tuple(range(n_arms))
        """Whether the names are the row numbers; a million of them need no dictionary."""
        self.all: Sequence[Name] = range(n_arms) if self.plain else known
        self._rows = {} if self.plain else {name: row for row, name in enumerate(known)}

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, row: int) -> Name:
        return self.all[row]

    def __contains__(self, name: Any) -> bool:
        return self.find(name) is not None

    def find(self, name: Any) -> int | None:
        """The row of the arm with that name; None: there is none."""
        if isinstance(name, bool) or not isinstance(name, int | np.integer | str):
            return None
        if not self.plain:
            return self._rows.get(name)
        return int(name) if not isinstance(name, str) and 0 <= name < len(self.all) else None

    def row(self, name: Any, argument: str = "arm", *, may_be_new: bool = True) -> int:
        """The row of the arm with that name; an unknown name is refused."""
        row = self.find(name)
        if row is None:
            shown = errors.printable(repr(name)[:60])
            problem = f"{shown} is not the name of an arm"
            remedy = self.remedy(name)
            if may_be_new and isinstance(name, str) and not self.plain:
                remedy += " (add_arm adds a new one)"
            raise errors.InvalidInput(argument, problem, remedy)
        return row

    def row_in_log(self, name: Any) -> int:
        """As `row`, but the text "5" also stands for an arm named 5, and the other way round."""
        row = self.find(name)
        if row is None and isinstance(name, str):
            if name.removeprefix("-").isdecimal() and len(name) < 300 and str(int(name)) == name:
                row = self.find(int(name))  # "02" is not a name
        elif row is None and isinstance(name, int | np.integer) and not isinstance(name, bool):
            row = self.find(str(int(name)))
        return self.row(name) if row is None else row

    def rows(self, names: Sequence[Any] | np.ndarray, argument: str = "arms") -> np.ndarray:
        """The rows of several arms."""
        return np.array([self.row(name, argument) for name in names], np.intp)

    def remedy(self, name: Any = None) -> str:
        """The valid names, for error messages; the one that ``name`` is closest to comes first."""
        if self.plain:
            return f"give indices of 0..{len(self.all) - 1}"
        more = ", …" if len(self.all) > 20 else ""
        hint = errors.suggestion(name, self.all)
        return f"{hint}valid: {', '.join(map(repr, self.all[:20]))}{more}"


class Offer(NamedTuple):
    """The arms to choose from in a round, and who chooses."""

    policy: Policy
    problem: Problem  # with the features that the agent's own arms have in this round
    arms: np.ndarray  # the features of those on offer, one row each
    names: ArmNames | Sequence[Name]  # of the agent's own arms; if ``new``, of those on offer
    in_context: bool = False  # whether a context gave the agent's own arms their features
    rows: np.ndarray | None = None  # rows of the agent's own arms; None: all of them, or new arms
    new: bool = False  # whether they are not the agent's own

    def distinct(self) -> np.ndarray:
        """Places of the arms on offer; an arm that was named twice is counted once."""
        if self.rows is None:
            return np.arange(len(self.arms))
        return np.sort(np.unique(self.rows, return_index=True)[1])

    def part(self, places: np.ndarray) -> Offer:
        """Some of the arms on offer, by their places."""
        if self.new:
            names = [self.names[place] for place in places]
            return self._replace(arms=self.arms[places], names=names)
        rows = places if self.rows is None else self.rows[places]
        return self._replace(arms=self.arms[places], rows=rows)


def offered(arms: Any, names: ArmNames, own: Offer, fixed: str | None) -> Offer:
    """The offer given by names of the agent's arms or, unless ``fixed``, by features of others.

    ``own``: all of the agent's arms, whose names are ``names``.
    """
    if isinstance(arms, Mapping) and arms:
        labels = checked_names(arms, len(arms), "arms")
        rows = new_arms(list(arms.values()), own.policy, own.problem, fixed)
        return own._replace(arms=rows, names=labels, new=True)
    try:
        array = np.asarray(arms)
    except ValueError:  # ragged
        array = np.empty((), object)
    if isinstance(arms, Mapping) or array.shape == (0,):
        raise errors.InvalidInput("arms", "is empty", names.remedy())
    if array.ndim == 2:
        rows = new_arms(arms, own.policy, own.problem, fixed)
        return own._replace(arms=rows, names=range(len(rows)), new=True)
    if array.ndim != 1 or array.dtype.kind not in ("iu" if names.plain else "iuUO"):
        what = "indices" if names.plain else "names"
        remedy = f"give a list of {what} of the agent's arms, or rows of features"
        raise errors.InvalidInput("arms", f"is {errors.printable(repr(arms)[:60])}", remedy)
    if not (names.plain and array.min() >= 0 and array.max() < len(names)):
        array = names.rows(arms)  # not of ``array``, in which numbers may have become text
    check_can_choose_from_part(own.policy, "arms", "choose a policy with scores")
    return own.part(array)


def check_can_choose_from_part(policy: Policy, argument: str, remedy: str) -> None:
    """Refuse a policy that always chooses among all of its arms."""
    if policy.full_information or not (policy.scores or policy.agent.reads_features):
        problem = f"{policy.name} always chooses among all of its arms"
        raise errors.InvalidInput(argument, problem, remedy)


def new_arms(
    arms: Any, policy: Policy, problem: Problem, fixed: str | None, argument: str = "arms"
) -> np.ndarray:
    """Features of arms that are not the agent's own, if the policy can play such arms.

    ``fixed`` says what is unknown of such arms, if something is.
    """
    if not policy.agent.reads_features:
        wrong = f"are new, and {policy.name} keeps a score for each of its own arms"
        raise errors.InvalidInput(argument, wrong, "choose a policy that reads features")
    policy.check_plays(FINITE, len(arms))
    if fixed:
        wrong = f"are new, and {fixed} is unknown"
        raise errors.InvalidInput(argument, wrong, "name the agent's own arms")
    return checked_arms(arms, problem.model, argument)
