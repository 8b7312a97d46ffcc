"""Progress, in bars and in lines."""

import re

from rich.console import Console

from driftbandit.cli import progress


def test_lines_without_a_terminal(monkeypatch):
    bars = progress._Lines(Console(stderr=True))
    done = progress.compiling(bars, 12)
    task = bars.add_task("gaussian", total=1.0, start=False, rate="")
    (line,) = bars.lines()
    assert re.fullmatch(r"compiling, 12 programs, 0:00 so far", line)
    done()
    assert bars.lines() == []  # not started yet
    bars.start_task(task)
    bars.update(task, completed=0.25, rate="1.5 M rounds/s")
    (line,) = bars.lines()
    assert line.startswith("gaussian, 25%, 1.5 M rounds/s, 0:00 so far")
    bars.update(task, completed=1.0)
    assert bars.lines() == []


def test_the_time_left_is_known_after_the_first_step():
    bars = progress._Lines(Console(stderr=True))
    now = 100.0
    bars.get_time = lambda: now
    moved = progress.stages(bars, "structures")
    moved("structures", 0)
    now += 30.0
    moved("structures", 0.25)  # a quarter in 30 seconds
    assert bars.lines() == ["structures, 25%, 50%/min, 0:30 so far, 1:30 left"]
    now += 10.0
    moved("structures", 0.5)  # the next one in 10 seconds: its speed counts
    assert bars.lines() == ["structures, 50%, 75%/min, 0:40 so far, 0:20 left"]


def test_lines_are_written_by_themselves(monkeypatch, capsys):
    monkeypatch.setattr(progress, "FIRST", 0.01)
    monkeypatch.setattr(progress, "EVERY", 0.01)
    with progress._Lines(Console(stderr=True)) as bars:
        bars.add_task("fit", total=1.0, rate="")
        seen = ""
        while "fit, 0%" not in seen:
            seen += capsys.readouterr().err
    assert "Traceback" not in seen


def test_no_line_is_written_after_the_end(monkeypatch, capsys):
    """Not even one whose time had come: an error, the last line, is the only one."""
    bars = progress._Lines(Console(stderr=True))
    bars.add_task("fit", total=1.0, rate="")

    class Ended:
        def wait(self, pause):
            """The time passes; then the command ends."""
            again, over.set_ = over.set_, True
            return again

        def is_set(self):
            return self.set_

    over = Ended()
    over.set_ = False
    bars._over = over
    bars._write()
    assert capsys.readouterr().err == ""


def test_progress_says_how_it_is_compiled_and_then_played():
    bars = progress._Lines(Console(stderr=True))
    task = bars.add_task("gaussian", total=1.0, start=False, rate="")
    report = progress.reporter(bars, task, 1000, 5)
    assert [line.split(",")[0] for line in bars.lines()] == ["compiling"]
    report(0.5)
    assert [line.split(",")[0] for line in bars.lines()] == ["gaussian"]
