"""Rewards that come too late are not learned: the log says so, but not once for each."""

from __future__ import annotations

import logging

PAUSE = 60.0  # seconds between two lines about the same experiment, at least

logger = logging.getLogger("driftbandit.service")


class LateRewards:
    """Counts rewards that came after their window, and writes a line now and then."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}  # since the last line
        self._next: dict[str, float] = {}  # when the next line may come

    def add(self, experiment: str, count: int, window: int, now: float) -> None:
        """Note that ``count`` rewards of an experiment came too late; ``now``: in seconds."""
        count += self._counts.pop(experiment, 0)
        if now < self._next.get(experiment, now):
            self._counts[experiment] = count
            return
        self._next[experiment] = now + PAUSE
        what = "1 reward" if count == 1 else f"{count} rewards"
        unit = "round" if window == 1 else "rounds"
        logger.warning(
            "experiment %s: %s came too late and changed nothing: its window is %d %s; tell rewards"
            " sooner, or make an experiment with a larger window",
            *(experiment, what, window, unit),
        )
