"""A watch on whether a model still holds: are its surprises standard normal and independent?

`monitor` judges a log, `Agent.health` an agent's own rewards; both return a `Health`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from driftbandit import errors

if TYPE_CHECKING:
    from driftbandit.monitoring.findings import ArmHealth, Change, Test
    from driftbandit.monitoring.health import Health, monitor
    from driftbandit.monitoring.parts import PartHealth

__all__ = ["ArmHealth", "Change", "Health", "PartHealth", "Test", "monitor"]

HOMES = {"ArmHealth": "findings", "Change": "findings", "Test": "findings"}
HOMES |= {"Health": "health", "monitor": "health", "PartHealth": "parts"}
__getattr__ = errors.lazy(__name__, HOMES)  # agents need little of it, and start sooner
