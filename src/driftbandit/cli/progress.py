"""Progress of long commands on stderr: bars in a terminal, otherwise plain lines."""

from __future__ import annotations

import contextlib
import datetime
import sys
import threading
from collections.abc import Callable, Iterator

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

FIRST, EVERY = 2.0, 10.0  # seconds until the first plain line, and between lines
MEASURABLE = 0.2  # seconds after which a speed is shown
NARROW = 90  # terminals with fewer columns get short bars


@contextlib.contextmanager
def bars(*, transient: bool = False) -> Iterator[Progress]:
    """Bars with share, speed and time left, or plain lines if stderr is not a terminal.

    Tasks need a field ``rate``: ``bars.add_task(name, total=1.0, start=False, rate="")``. If
    ``transient``, the bars disappear at the end; on wrong input they always do.
    """
    console = Console(stderr=True)
    made = _Bars(console) if console.is_terminal else _Lines(console)
    interrupt.at_exit(made.vanish)
    made.live.transient = transient
    with made:
        try:
            yield made
        except ValueError:
            made.live.transient = True
            raise


class _TimeLeft(ProgressColumn):
    max_refresh = 0.5

    def render(self, task: Task) -> Text:
        over = task.finished or task.total is None
        return Text("" if over else f"{_clock(_left(task))} left")


def _left(task: Task) -> float | None:
    """Seconds that a task needs: by its recent speed if that is known, else by that so far."""
    if task.time_remaining is not None or not task.completed or task.elapsed is None:
        return task.time_remaining
    return task.elapsed * (task.remaining or 0.0) / task.completed


def _clock(seconds: float | None) -> str:
    if seconds is None:
        return "-:--"
    clock = str(datetime.timedelta(seconds=int(seconds)))  # 0:00:08, 1:02:05
    return clock.removeprefix("0:").removeprefix("0")


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
        """Remove the bars from the screen."""
        self.live.transient = True
        self.stop()


class _Lines(Progress):
    """A line for every unfinished task, after two seconds and then every ten."""

    def __init__(self, console: Console) -> None:
        super().__init__(console=console, disable=True)
        self._over = threading.Event()
        self._writing = threading.Lock()

    def start(self) -> None:
        self._over.clear()
        threading.Thread(target=self._write, daemon=True).start()

    def stop(self) -> None:
        with self._writing:  # no line comes after what the command says at its end
            self._over.set()

    vanish = stop

    def _write(self) -> None:
        pause = FIRST
        while not self._over.wait(pause):
            pause = EVERY
            with self._writing:
                for line in [] if self._over.is_set() else self.lines():
                    print(line, file=sys.stderr, flush=True)

    def lines(self) -> list[str]:
        """One line for each task that has started and is not finished."""
        found = []
        for task in self.tasks:
            if not task.started or task.finished or not task.visible:
                continue
            share = left = ""
            if task.total is not None:
                share = f"{task.percentage:.0f}%"
                left = "" if _left(task) is None else f"{_clock(_left(task))} left"
            spent = f"{_clock(task.elapsed)} so far"
            parts = (task.description, share, task.fields["rate"], spent, left)
            found.append(", ".join(filter(None, parts)))
        return found


def stages(bars: Progress, compiled: str) -> Callable[..., None]:
    """A callback for `fit`, `replay` and `advise`: one bar per stage, with its speed.

    The stage ``compiled`` begins by compiling.
    """
    tasks: dict[str, TaskID] = {}

    def moved(stage: str, share: float, rounds: int = 0) -> None:
        if stage not in tasks:
            tasks[stage] = bars.add_task(stage, total=1.0, rate="")
        elapsed = bars.tasks[tasks[stage]].elapsed or 0.0
        text = "compiling" if stage == compiled and share == 0 else ""
        iterations = getattr(share, "iterations", 0)
        if elapsed > MEASURABLE and iterations:
            text = f"{iterations / elapsed:.3g} iterations/s"
        elif elapsed > MEASURABLE and rounds and stage != compiled:
            text = f"{share * rounds / elapsed:,.0f} rounds/s"
        elif elapsed > FIRST and share:
            text = f"{6000 * share / elapsed:.3g}%/min"
        bars.update(tasks[stage], completed=share, rate=text)

    return moved


def compiling(progress: Progress, programs: int | None = None) -> Callable[[], None]:
    """Show that programs are being compiled, until the returned function is called."""
    rate = "" if programs is None else f"{programs} programs"
    task = progress.add_task("compiling", total=None, rate=rate)

    def done() -> None:
        progress.update(task, visible=False)
        progress.stop_task(task)

    return done


def reporter(
    progress: Progress, task: TaskID, total_rounds: int, programs: int
) -> Callable[[float], None]:
    """A callback for `simulate`: it moves the bar and shows rounds per second."""
    compiled = compiling(progress, programs)

    def report(share: float) -> None:
        if not progress.tasks[task].started:
            compiled()
            progress.start_task(task)
        rounds = share * total_rounds
        progress.update(task, completed=share, rate=speed(rounds, progress.tasks[task].elapsed))

    return report


def speed(rounds: float, elapsed: float | None) -> str:
    """Millions of rounds per second, once that can be measured."""
    if elapsed is None or elapsed <= MEASURABLE:
        return ""
    return f"{rounds / elapsed / 1e6:.2f} M rounds/s"
