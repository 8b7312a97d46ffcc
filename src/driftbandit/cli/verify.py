"""`driftbandit verify`: does the store of the decision service hold what it says?"""

from __future__ import annotations

import json

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from driftbandit import errors
from driftbandit.cli import interrupt, options, progress

EXAMPLES = """
**Examples**

    driftbandit verify
    driftbandit verify --store postgresql://bandit@db/shop --experiment red
"""

NOT_COMPARED = "no snapshot to compare; all events can be applied"


def command(
    store: options.Store = "sqlite:///decisions.db",
    experiment: str | None = typer.Option(None, help="Only this one.", show_default="all"),
    as_json: options.Json = False,
) -> None:
    """Apply all events of the store again, and compare the snapshots with the result.

    It only reads, and may run beside a server. Exit code 0: all events can be applied, and the
    snapshots are the same, bit for bit; 1: something differs, and the table says what.
    """
    with errors.needing("verify"):
        from driftbandit.service.store import using
        from driftbandit.service.verifying import verify
    interrupt.keeps("Nothing was changed.")
    with using(store, make=False) as opened, progress.bars() as bars:
        tasks: dict[str, object] = {}

        def show(id_: str, done: int, total: int) -> None:
            if id_ not in tasks:
                tasks[id_] = bars.add_task(id_, total=max(total, 1), rate="")
            bars.update(tasks[id_], completed=done)  # type: ignore[arg-type]

        found = verify(opened, experiment, show)
    if as_json:
        rows = [one._asdict() | {"clean": one.clean} for one in found]
        print(json.dumps({"clean": all(one.clean for one in found), "experiments": rows}))
    else:
        table = Table("experiment", "events", "snapshots", "verdict")
        for one in found:
            same = "the same, bit for bit" if one.snapshots else NOT_COMPARED
            verdict = one.problem or same
            row = (one.experiment, f"{one.events:,}", str(one.snapshots), errors.printable(verdict))
            table.add_row(*map(Text, row))
        Console().print(table if found else "There are no experiments.")
    if not all(one.clean for one in found):
        raise typer.Exit(1)
