"""The batch engine: any policy, systems × runs × rounds, on CPU or GPU, paired by common noise."""

from driftbandit.simulation.engine import simulate

__all__ = ["simulate"]
