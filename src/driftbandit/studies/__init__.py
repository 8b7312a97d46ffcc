"""Studies: a specification, split into chunks, which are stored as they finish and resumed."""

from driftbandit.studies.engines import ENGINES, Engine, Outcome, Progress, local, on_ray, run
from driftbandit.studies.specification import Cell, Chunk, Specification
from driftbandit.studies.store import Store
from driftbandit.studies.target import Options, Reproduced, Size, Summary, Target, reproduce

__all__ = ["ENGINES", "Cell", "Chunk", "Engine", "Options", "Outcome", "Progress", "Reproduced"]
__all__ += ["Size", "Specification", "Store", "Summary", "Target"]
__all__ += ["local", "on_ray", "reproduce", "run"]
