"""The batch engine: any policy, systems × runs × rounds, on CPU or GPU, paired by common noise."""

from driftbandit import errors

with errors.needing("simulate"):
    from driftbandit.simulation.engine import simulate

__all__ = ["simulate"]
