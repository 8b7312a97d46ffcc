"""What a terminal shows, and results to show."""

import io
import sys

import numpy as np
import pytest
from rich.console import Console

from driftbandit import cli
from driftbandit.report.terminal import show
from driftbandit.result import Result, Timing

LABELS = [
    "kalman_oracle",
    "idea",
    "sliding_window_linucb",
    "kalman_ucb(width=2)",
    "information_directed",
]


def terminal(width):
    return Console(width=width, force_terminal=False, file=io.StringIO(), highlight=False)


def shown(blocks, width):
    """What a terminal of that width shows of a report, or of blocks."""
    console = terminal(width)
    show(blocks, console)
    return console.file.getvalue()


def result(systems, runs, seed=0):
    draw = np.random.default_rng(seed)
    regret = {
        label: 1000 * (place + 1) * draw.uniform(0.9, 1.1, (systems, runs))
        for place, label in enumerate(LABELS)
    }
    curves = {label: values[..., None] for label, values in regret.items()}
    return Result(regret, curves, np.array([100]), 100, seed, Timing(0, 0, 1, "cpu"))


def fails(monkeypatch, capsys, *words):
    """Run the program in this process; return the one line that it leaves with."""
    monkeypatch.setattr(sys, "argv", ["driftbandit", *map(str, words)])
    monkeypatch.setenv("DRIFTBANDIT_CACHE", "off")
    with pytest.raises(SystemExit) as ended:
        cli.main()
    shown = capsys.readouterr()
    error = shown.err
    assert ended.value.code == 2
    assert shown.out == ""
    assert error.startswith("error ")
    assert len(error.splitlines()) == 1
    return error
