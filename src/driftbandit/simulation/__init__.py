"""The batch engine: any policy, systems × runs × rounds, on CPU or GPU, paired by common noise."""

from driftbandit.simulation.engine import simulate
from driftbandit.simulation.result import Result

__all__ = ["Result", "simulate"]
