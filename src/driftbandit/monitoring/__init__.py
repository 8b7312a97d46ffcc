"""A watch on whether a model still holds: are its surprises standard normal and independent?

`monitor` judges a log, `Agent.health` an agent's own rewards; both return a `Health`.
"""

from driftbandit.monitoring.findings import ArmHealth, Change, Test
from driftbandit.monitoring.health import Health, monitor
from driftbandit.monitoring.parts import PartHealth

__all__ = ["ArmHealth", "Change", "Health", "PartHealth", "Test", "monitor"]
