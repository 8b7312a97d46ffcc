"""The parts of a fit's work, and how much of it is done."""

from __future__ import annotations

from collections.abc import Callable

Report = Callable[[float], None]


class Progress:
    """Adds up the parts of a fit's work and reports the share of it that is done.

    Example:
        >>> shares = []
        >>> work = Progress(shares.append)
        >>> first, second = work.part(0.5), work.part(0.5)
        >>> first(0.5), second(1.0)
        (None, None)
        >>> shares
        [0.25, 1.0]
    """

    def __init__(self, report: Report | None) -> None:
        self._report = report
        self.share = 0.0  # of the work that has been handed out

    def part(self, share: float) -> Report:
        """The callback of the next part, which is ``share`` of all work."""
        begin = self.share
        self.share += share

        def report(part: float) -> None:
            if self._report is not None:
                self._report(begin + part * share)

        return report
