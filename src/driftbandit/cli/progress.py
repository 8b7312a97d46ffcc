"""Progress bars of long commands, on stderr."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

__all__ = ["bars", "reporter"]


def bars() -> Progress:
    """Bars that show share, speed and time left; they vanish where stderr is no terminal.

    Tasks need a field: ``bars().add_task(name, total=1.0, start=False, rate="")``.
    """
    console = Console(stderr=True)
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=30),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[rate]:>16}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
        disable=not console.is_terminal,
    )


def reporter(progress: Progress, task: TaskID, total_rounds: int) -> Callable[[float], None]:
    """Return what `simulate` calls with the share done: it moves the bar and shows rounds/s."""
    progress.update(task, rate="compiling")
    started = False

    def report(share: float) -> None:
        nonlocal started
        if not started:
            progress.start_task(task)
            started = True
        elapsed = progress.tasks[task].elapsed or 0.0
        rate = f"{share * total_rounds / elapsed / 1e6:.2f} M rounds/s" if elapsed > 0.2 else ""
        progress.update(task, completed=share, rate=rate)

    return report
