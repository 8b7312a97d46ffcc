"""Studies: a specification, cut into chunks, stored as they finish, resumed where they stopped."""

from driftbandit.study.engines import ENGINES, local, on_ray
from driftbandit.study.run import Outcome, run
from driftbandit.study.specification import Cell, Chunk, Specification
from driftbandit.study.store import Store

__all__ = [
    "ENGINES",
    "Cell",
    "Chunk",
    "Outcome",
    "Specification",
    "Store",
    "local",
    "on_ray",
    "run",
]
