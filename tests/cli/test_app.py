"""The command line as a whole: help, version, errors."""

import importlib
import re
import shlex
import subprocess
import sys

import pytest
from typer.main import get_command
from typer.testing import CliRunner

import driftbandit as db
from driftbandit.cli import simulate
from driftbandit.cli.app import COMMANDS, app
from terminals import fails


@pytest.mark.parametrize("command", [[], *([name] for name in COMMANDS)])
def test_short_help_everywhere(command):
    short, long = (CliRunner().invoke(app, [*command, option]) for option in ("-h", "--help"))
    assert short.exit_code == 0
    assert short.output == long.output
    assert "-h" in short.output


@pytest.mark.parametrize("width", ["60", "80"])
@pytest.mark.parametrize("command", ["simulate", "advise", "replay"])
def test_help_names_every_policy_whole(command, width):
    output = CliRunner().invoke(app, [command, "-h"], env={"COLUMNS": width}).output
    listed = output.split("Policies")[-1].split("Examples")[0]
    assert [name for name in db.policies.available() if name not in listed] == []


@pytest.mark.parametrize("width", ["60", "80"])
@pytest.mark.parametrize("command", COMMANDS)
def test_help_cuts_no_word(command, width):
    output = CliRunner().invoke(app, [command, "-h"], env={"COLUMNS": width}).output
    assert re.findall(r"\w\w…", output) == []


@pytest.mark.parametrize("command", [[], ["keys", "create"], *([name] for name in COMMANDS)])
def test_help_shows_no_type_beside_flags(command):
    """They take no value."""
    output = CliRunner().invoke(app, [*command, "-h"], env={"COLUMNS": "100"}).output
    assert "--help" in output
    assert "bool" not in output.lower()


@pytest.mark.parametrize("command", COMMANDS)
def test_examples_in_the_help_can_be_parsed(command):
    module = importlib.import_module(f"driftbandit.cli.{command}")
    lines = re.findall(r"^    driftbandit (.*)$", module.EXAMPLES, re.MULTILINE)
    assert lines
    for line in lines:
        name, *words = shlex.split(line.partition(" > ")[0])
        assert name == command
        get_command(app).commands[name].make_context(name, words)


def test_completion_is_offered():
    assert "--install-completion" in CliRunner().invoke(app, ["--help"]).output


def test_python_m():
    done = subprocess.run(
        [sys.executable, "-m", "driftbandit", "--version"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (0, f"{db.__version__}\n")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (MemoryError("Unable to allocate 75 GiB"), "out of memory: Unable to allocate 75 GiB"),
        (RuntimeError("RESOURCE_EXHAUSTED: no\nroom"), "out of memory on the device"),
        (OSError(28, "No space left on device", "a\nb"), "'a\\nb': No space left on device"),
    ],
)
def test_errors_from_anywhere_are_one_line(error, words, monkeypatch, capsys):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(simulate, "_random", fail)
    assert words in fails(monkeypatch, capsys, "simulate", "--systems", "1")


def test_help_teaches():
    for arguments in ([], ["--help"], ["simulate", "--help"]):
        output = CliRunner().invoke(app, arguments).output
        assert "simulate" in output
    assert "Examples" in output


def test_version():
    assert CliRunner().invoke(app, ["--version"]).stdout.strip() == db.__version__
