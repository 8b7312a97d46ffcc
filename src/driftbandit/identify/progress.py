"""How far a fit is: climbs one after another, each a share of the work."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Meter", "Share"]


class Share(float):
    """A share of the work of a fit, and EM's ``iterations`` so far."""

    iterations: int


class Meter:
    """Adds up climbs and tells a caller."""

    def __init__(self, told: Callable[[Share], None] | None) -> None:
        self._told = told
        self._done = 0
        self.share = 0.0
        """Of the work that has been given out."""

    def climb(self, share: float, iterations: int) -> Callable[[float], None]:
        """What the next climb, ``share`` of the work, calls with the share of it that is done."""
        begin, done = self.share, self._done
        self.share += share

        def moved(part: float) -> None:
            self._done = done + round(part * iterations)
            if self._told is not None:
                now = Share(begin + part * share)
                now.iterations = self._done
                self._told(now)

        return moved
