"""Whether a study fits into memory, checked before it starts."""

from __future__ import annotations

import contextlib
import os

from driftbandit import errors
from driftbandit.machine import cores

CHECKPOINTS = 40


def needed(
    *, systems: int, n_states: int, n_arms: int, runs: int, policies: int, curves: bool = True
) -> float:
    """Estimate the bytes that a study takes: its systems, its results and its running programs.

    A system is Γ, Q and the arms: once as drawn, once stacked with its factors for the engine, and
    once for every policy that computes constants of that size.

    Example:
        >>> needed(systems=20, n_states=10, n_arms=10, runs=4, policies=17) < 2e7 * cores()
        True
    """
    d, k = float(n_states), float(n_arms)
    system = 6 * d * d + 4 * k * d
    kept = systems * (2 * system + policies * (d * d + k * d))
    results = float(systems) * runs * policies * (CHECKPOINTS if curves else 1)
    lanes, block = 64, 256e6 / 8  # as in `simulation.jobs` on a CPU
    own = min(lanes * 3 * (d * d + k), block / 8) + 2 * 3 * d * d  # at least two lanes
    own_and_shared = min(lanes * system, block) + 2 * system + policies * own
    playing = 3 * cores() * own_and_shared  # compiled programs make copies
    return 8 * (kept + results + playing)


def available() -> float | None:
    """Bytes of free memory; None if the system does not say."""
    with contextlib.suppress(OSError, ValueError, IndexError), open("/proc/meminfo") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return 1024.0 * int(line.split()[1])
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    return None


def check(arguments: str, asked: str, size: float) -> None:
    """Refuse a study that does not fit.

    Args:
        arguments: the options that set its size, as "--states, --arms".
        asked: their values in words.
        size: bytes, from `needed`.
    """
    room = available()
    if room is not None and size > room:
        problem = f"{asked} need about {_shown(size)} of memory, and {_shown(room)} are free"
        raise errors.InvalidInput(arguments, problem, "give smaller numbers")


def _shown(size: float) -> str:
    """A size in bytes, in a readable unit.

    Example:
        >>> _shown(3e6), _shown(2.5e11), _shown(3e18)
        ('2.86 MiB', '233 GiB', '2.6 EiB')
    """
    units = ("bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
    place = 0
    while size >= 1000 and place < len(units) - 1:
        size, place = size / 1024, place + 1
    return f"{size:.3g} {units[place]}"
