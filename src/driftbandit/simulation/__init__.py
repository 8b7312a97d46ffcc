"""The batch engine: any policy, systems × runs × rounds, on CPU or GPU, paired by common noise.

`engine.simulate` checks its input (`checks`), makes a `jobs.Job`, compiles two kinds of `programs`,
and plays; every random number comes from `draws`.
"""

from driftbandit import errors

with errors.needing("simulate"):
    from driftbandit.simulation.checks import Options
    from driftbandit.simulation.engine import simulate

__all__ = ["Options", "simulate"]
