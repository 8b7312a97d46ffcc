"""The paper's table and figures, one small file each (P20–P24), and the report they make."""

from driftbandit.paper import figure1, figure2, figure3, table2
from driftbandit.paper.reproduce import Reproduced, reproduce, write_report
from driftbandit.paper.target import Options, Size, Target

__all__ = ["TARGETS", "Options", "Reproduced", "Size", "Target", "reproduce", "write_report"]

TARGETS: dict[str, Target] = {
    module.TARGET.name: module.TARGET for module in (table2, figure1, figure2, figure3)
}
"""What `driftbandit reproduce` can make, in the paper's order."""
