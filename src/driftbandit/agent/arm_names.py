"""What an agent's arms are called: row numbers, unless names were given."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.system import Name, checked_names

__all__ = ["ArmNames"]


class ArmNames:
    """Names of k arms and their rows, each found from the other at once.

    Args:
        names: k different texts or whole numbers; None: the row numbers.
        arms: k.

    Example:
        >>> names = ArmNames(["left", "right"], 2)
        >>> names.row("right"), names[0]
        (1, 'left')
    """

    def __init__(self, names: Any, n_arms: int) -> None:
        self.all: Sequence[Name] = range(n_arms)
        """The names in the order of rows."""
        self._rows: dict[Name, int] | None = None
        self._texts: dict[str, int] | None = None
        """Rows by names as files hold them, once they are asked for."""
        if names is not None:
            self.all = checked_names(names, n_arms)
            self._rows = {name: row for row, name in enumerate(self.all)}
            if self.all == tuple(range(n_arms)):  # a million row numbers need no dictionary
                self.all, self._rows = range(n_arms), None

    @property
    def plain(self) -> bool:
        """Whether the names are the row numbers."""
        return self._rows is None

    def __len__(self) -> int:
        return len(self.all)

    def __getitem__(self, row: int) -> Name:
        return row if self._rows is None else self.all[row]

    def __contains__(self, name: Any) -> bool:
        return self.find(name) is not None

    def find(self, name: Any) -> int | None:
        """The row of the arm with that name; None: there is none."""
        if isinstance(name, int | np.integer) and not isinstance(name, bool):
            name = int(name)
        elif not isinstance(name, str):
            return None
        if self._rows is not None:
            return self._rows.get(name)
        return name if isinstance(name, int) and 0 <= name < len(self.all) else None

    def row(self, name: Any, argument: str = "arm") -> int:
        """The row of the arm with that name, which must be one."""
        row = self.find(name)
        if row is None:
            shown = errors.printable(repr(name)[:60])
            raise errors.InvalidInput(argument, f"{shown} is no arm's name", self.remedy())
        return row

    def by_text(self, name: Any) -> int:
        """The row of the arm whose name reads the same: files hold "5" where an arm is 5."""
        found = None
        if self._rows is None:
            short = isinstance(name, str) and len(name) <= len(str(len(self.all)))
            if short and name.isdecimal() and str(int(name)) == name:  # "02" is no arm's name
                found = self.find(int(name))
        elif isinstance(name, str | int | np.integer) and not isinstance(name, bool):
            if self._texts is None:
                self._texts = {str(own): row for row, own in enumerate(self.all)}
            found = self._texts.get(str(name))
        return self.row(name) if found is None else found

    def rows(self, names: Sequence[Any] | np.ndarray, argument: str = "arms") -> np.ndarray:
        """The rows of several arms."""
        return np.array([self.row(name, argument) for name in names], np.intp)

    def remedy(self) -> str:
        """What to say to whoever gave a wrong name."""
        if self._rows is None:
            return f"give indices of 0..{len(self.all) - 1}"
        more = ", …" if len(self.all) > 20 else ""
        return f"valid: {', '.join(map(repr, self.all[:20]))}{more}"
