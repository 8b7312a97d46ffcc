"""Progress of long commands, on stderr: bars in a terminal, else a plain line now and then."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from driftbandit.cli import interrupt

__all__ = ["bars", "compiling", "reporter"]

FIRST, EVERY = 2.0, 10.0
"""Seconds until the first plain line, and between lines."""
NARROW = 90
"""Below this many columns bars are short."""


def bars() -> Progress:
    """Bars with share, speed and time left, or plain lines where stderr is no terminal.

    Tasks need a field: ``bars().add_task(name, total=1.0, start=False, rate="")``.
    """
    console = Console(stderr=True)
    made = _Bars(console) if console.is_terminal else _Lines(console)
    interrupt.at_exit(made.vanish)
    return made


class _TimeLeft(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        return Text("" if task.finished or task.total is None else f"{_left(task)} left")


def _left(task: Task) -> str:
    return _clock(task.time_remaining)


def _clock(seconds: float | None) -> str:
    """Minutes and seconds.

    Example:
        >>> _clock(8.2), _clock(3725), _clock(None)
        ('0:08', '1:02:05', '-:--')
    """
    if seconds is None:
        return "-:--"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Bars(Progress):
    def __init__(self, console: Console) -> None:
        super().__init__(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=30 if console.width >= NARROW else 8),
            TextColumn("{task.percentage:>3.0f}%"),
            TextColumn("{task.fields[rate]}", markup=False),
            TimeElapsedColumn(),
            _TimeLeft(),
            console=console,
        )

    def vanish(self) -> None:
        """Leave the screen as it was."""
        self.live.transient = True
        self.stop()


class _Lines(Progress):
    """No bars, but a line about every unfinished task, after two seconds and every ten."""

    def __init__(self, console: Console) -> None:
        super().__init__(console=console, disable=True)
        self._over = threading.Event()

    def start(self) -> None:
        self._over.clear()
        threading.Thread(target=self._write, daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    vanish = stop

    def _write(self) -> None:
        pause = FIRST
        while not self._over.wait(pause):
            pause = EVERY
            for line in self.lines():
                print(line, file=sys.stderr, flush=True)

    def lines(self) -> list[str]:
        """One for each task that has begun and is not finished."""
        found = []
        for task in self.tasks:
            if not task.started or task.finished or not task.visible:
                continue
            parts = [task.description]
            if task.total is not None:
                parts.append(f"{task.percentage:.0f} %")
            if task.fields["rate"]:
                parts.append(task.fields["rate"])
            parts.append(f"{_clock(task.elapsed)} so far")
            if task.total is not None and task.time_remaining is not None:
                parts.append(f"{_left(task)} left")
            found.append(", ".join(parts))
        return found


def compiling(progress: Progress, programs: int | None = None) -> Callable[[], None]:
    """Show that programs are being compiled; call what is returned when they are."""
    rate = "" if programs is None else f"{programs} programs"
    task = progress.add_task("compiling", total=None, rate=rate)

    def done() -> None:
        progress.update(task, visible=False)
        progress.stop_task(task)

    return done


def reporter(
    progress: Progress, task: TaskID, total_rounds: int, programs: int
) -> Callable[[float], None]:
    """Return what `simulate` calls with the share done: it moves the bar and shows rounds/s."""
    compiled = compiling(progress, programs)
    started = False

    def report(share: float) -> None:
        nonlocal started
        if not started:
            compiled()
            progress.start_task(task)
            started = True
        elapsed = progress.tasks[task].elapsed or 0.0
        rate = f"{share * total_rounds / elapsed / 1e6:.2f} M rounds/s" if elapsed > 0.2 else ""
        progress.update(task, completed=share, rate=rate)

    return report
