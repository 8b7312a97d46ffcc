"""A watch on whether a model still holds: are its surprises standard normal and independent?

`monitor` judges a log, `Agent.health` an agent's own rewards; both return a `Health`.
"""

from driftbandit.monitor.health import ArmHealth, Change, Health, Test, monitor
from driftbandit.monitor.parts import PartHealth

__all__ = ["ArmHealth", "Change", "Health", "PartHealth", "Test", "monitor"]
