"""Studies: a specification, split into chunks, which are stored as they finish and resumed."""

from driftbandit.studies.engines import ENGINES, Engine, Outcome, Progress, local, on_ray, run
from driftbandit.studies.specification import Cell, Chunk, Specification
from driftbandit.studies.store import Store

__all__ = [
    "ENGINES",
    "Cell",
    "Chunk",
    "Engine",
    "Outcome",
    "Progress",
    "Specification",
    "Store",
    "local",
    "on_ray",
    "run",
]
