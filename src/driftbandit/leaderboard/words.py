"""How the leaderboard writes names and numbers."""

from __future__ import annotations

from driftbandit.policies import TITLES

__all__ = ["number", "title"]


def title(policy: str) -> str:
    """A policy's name as papers write it, parameters kept.

    Example:
        >>> title("kalman_ucb(width=2)"), title("mine")
        ('Kalman-UCB(width=2)', 'mine')
    """
    name, bracket, parameters = policy.partition("(")
    return TITLES.get(name, name) + bracket + parameters


def number(value: float | None, decimals: int = 3) -> str:
    """A multiple: ``decimals`` below ten, three digits above, a dash for none.

    Example:
        >>> number(0.98765), number(1.0, 2), number(12.345), number(1234.5), number(None)
        ('0.988', '1.00', '12.3', '1234', '–')
    """
    if value is None:
        return "–"
    if abs(value) < 10:
        return f"{value:.{decimals}f}"
    return f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"
