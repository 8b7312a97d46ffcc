"""How much the service takes from one request, one experiment and one key."""

from __future__ import annotations

import dataclasses

from driftbandit import errors


@dataclasses.dataclass(frozen=True)
class Limits:
    """Limits; each is an option of `driftbandit serve`."""

    body: int = 2**20  # bytes of a request
    batch: int = 1000  # decisions or rewards in a request
    arms: int = 10_000  # of an experiment
    open: int = 100_000  # decisions of an experiment that wait for a reward
    rate: int = 10_000  # requests per second and key
    patience: float = 10.0  # seconds in which a request's body must arrive

    def __post_init__(self) -> None:
        for field in ("body", "batch", "arms", "open", "rate"):
            errors.whole_number(getattr(self, field), field, low=1)
        errors.number(self.patience, "patience", low=0, strict=True)


class Buckets:
    """Requests per second of every key: a bucket that fills up again within a second.

    Example:
        >>> buckets = Buckets(rate=2)
        >>> [buckets.takes("key", now=10.0) for _ in range(3)], buckets.takes("key", now=10.5)
        ([True, True, False], True)
    """

    def __init__(self, rate: int) -> None:
        self.rate = rate
        self._levels: dict[str, tuple[float, float]] = {}

    def takes(self, key: str, now: float) -> bool:
        """Whether one more request is within the limit."""
        level, then = self._levels.get(key, (float(self.rate), now))
        level = min(float(self.rate), level + max(0.0, now - then) * self.rate)
        allowed = level >= 1
        self._levels[key] = (level - 1 if allowed else level), now
        return allowed
