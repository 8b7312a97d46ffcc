"""Ctrl-C at any moment: exit code 130, one line, nothing half-written, no crash."""

import contextlib
import os
import pty
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = ["--systems", "20", "--runs", "2", "--rounds", "300"]
FEW = ["--policies", "idea, kode, oful, ucb"]
COMMANDS = {
    "simulate": ["simulate", "--model", EXAMPLES / "plant.json", "--plot", "x.png", *FEW],
    "advise": ["advise", EXAMPLES / "plant.json", "--html", "x.html"],
    "fit": ["fit", EXAMPLES / "plant_log.csv", "--out", "x.json", "--plot", "x.png"],
    "replay": ["replay", "log.csv", "--chances", "uniform", "--runs", "40", "--plot", "x.png"],
    "reproduce": ["reproduce", "table2", *SMALL, "--out", "made"],
    "leaderboard": ["reproduce", "leaderboard", *SMALL, "--memories", "10", "--out", "made"],
}
LINES = {
    "simulate": "Nothing was kept. Run the same command again, with fewer --runs or --rounds.",
    "advise": "Nothing was kept. Run the same command again, or give fewer --runs.",
    "fit": "Nothing was written. Run the same command again, or give fewer --iterations.",
    "replay": "Nothing was kept. Run the same command again, or name fewer --policies.",
    "reproduce": "Finished parts are kept in made. Run the same command again to resume.",
    "leaderboard": "Finished parts are kept in made. Run the same command again to resume.",
}


def write_log(folder):
    """A log for `replay`: three arms that drift, one of them shown in every round."""
    draw = random.Random(0)
    rows, levels = ["round,arm,reward"], [0.0, 0.0, 0.0]
    for number in range(400):
        levels = [0.95 * level + draw.gauss(0, 0.3) for level in levels]
        arm = draw.randrange(3)
        rows.append(f"{number},{'abc'[arm]},{levels[arm] + draw.gauss(0, 0.2):.4f}")
    (folder / "log.csv").write_text("\n".join(rows) + "\n")


def begin(folder, *arguments, code=None, **options):
    """Start the program, with Ctrl-C as a shell would leave it."""
    start = ["-m", "driftbandit"] if code is None else ["-c", code]
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # not ignored, if it was
    try:
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | options
        words = [sys.executable, *start, *map(str, arguments)]
        environment = dict(os.environ, DRIFTBANDIT_CACHE="off", COLUMNS="80")
        return subprocess.Popen(words, cwd=folder, env=environment, **streams)
    finally:
        signal.signal(signal.SIGINT, before)


def wait_for(process, library):
    """Wait until the process has loaded a library: a moment that is the same on every machine."""
    maps = Path(f"/proc/{process.pid}/maps")
    while library not in maps.read_text():
        assert process.poll() is None, process.communicate()
        time.sleep(0.01)


def interrupted(process):
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(timeout=60)
    return process.returncode, out.decode(), error.decode()


def leftovers(folder):
    """Every file but the study's parts, which are kept."""
    made = [path for path in folder.rglob("*") if path.is_file() and path.name != "log.csv"]
    kept = (".parquet", "specification.json", "log.jsonl", "manifest.json")
    return [path for path in made if not path.name.endswith(kept)]


linux = pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="needs /proc")


@linux
@pytest.mark.parametrize(
    "name",
    [
        "fit",
        "reproduce",
        *(pytest.param(n, marks=pytest.mark.nightly) for n in ("simulate", "advise", "replay")),
    ],
)
def test_interrupted_while_jax_is_at_work(name, tmp_path):
    write_log(tmp_path)
    process = begin(tmp_path, *COMMANDS[name])
    wait_for(process, "_jax.so")
    time.sleep(0.4)  # in the middle of an import, a compilation or a game: all are to end alike
    code, out, error = interrupted(process)
    assert code == 130
    if name == "advise" and out:  # some questions were answered before
        assert "Not asked: interrupted." in out
        assert error.splitlines()[-1].startswith("Interrupted. What is ready is shown above.")
    else:
        assert out == ""
        assert error.splitlines()[-1] == f"Interrupted. {LINES[name]}"
    assert "Traceback" not in error
    assert leftovers(tmp_path) == []


@linux
def test_interrupted_while_it_loads(tmp_path):
    process = begin(tmp_path, "simulate")
    wait_for(process, "_multiarray_umath")
    code, out, error = interrupted(process)
    assert (code, out, error) == (130, "", "Interrupted. No work had begun.\n")


PREAMBLE = """
import os, pathlib, sys, threading, time
from driftbandit.io import atomic
from driftbandit.cli import interrupt
def ready():
    os.write(1, b"ready")
"""


def ready(process):
    assert process.stdout.read(5) == b"ready"


def test_advice_that_is_ready_is_shown(tmp_path):
    write_log(tmp_path)
    code = PREAMBLE + (
        "from driftbandit.advice import from_log\n"
        "from driftbandit.cli import main\n"
        "def compare(log, **_):\n"
        "    sys.stderr.write('!'), sys.stderr.flush(), time.sleep(1e5)\n"
        "from_log.compare = compare\n"
        "sys.argv = ['driftbandit', 'advise', 'log.csv', *sys.argv[1:]]\n"
        "main()\n"
    )
    for options, kept in ((), "What is ready is shown above."), (["--json"], "Nothing was kept."):
        process = begin(tmp_path, *options, code=code)
        assert process.stderr.read(1) == b"!"
        status, out, error = interrupted(process)
        assert status == 130
        assert error.splitlines()[-1].startswith(f"Interrupted. {kept} Run the same command again")
        assert ("400 rewards of 3 arms in 400 rows" in out) == (not options)
        assert out.count("Not asked: interrupted.") == (0 if options else 4)


def test_a_second_time_leaves_at_once(tmp_path):
    """Even where the first one hangs in its cleaning up."""
    code = PREAMBLE + (
        "interrupt.PATIENCE = 1e5\n"
        "with interrupt.handled():\n"
        "    interrupt.at_exit(lambda: (ready(), time.sleep(1e5)))\n"
        "    ready()\n"
        "    time.sleep(1e5)\n"
    )
    process = begin(tmp_path, code=code)
    ready(process)
    process.send_signal(signal.SIGINT)
    ready(process)
    assert interrupted(process) == (130, "", "")


def test_nobody_waits_forever_for_the_cleaning_up(tmp_path):
    code = PREAMBLE + (
        "interrupt.PATIENCE = 0.1\n"
        "with interrupt.handled():\n"
        "    interrupt.at_exit(lambda: time.sleep(1e5))\n"
        "    ready()\n"
        "    time.sleep(1e5)\n"
    )
    process = begin(tmp_path, code=code)
    ready(process)
    assert interrupted(process)[0] == 130


def test_a_half_written_file_is_removed_and_a_whole_one_is_named(tmp_path):
    code = PREAMBLE + (
        "with interrupt.handled():\n"
        "    for name in ('one.json', 'two.json'):\n"
        "        interrupt.output(pathlib.Path(name))\n"
        "    atomic.write_whole(pathlib.Path('one.json'), b'1')\n"
        "    os.fsync = lambda number: (ready(), time.sleep(1e5))\n"
        "    atomic.write_whole(pathlib.Path('two.json'), b'2')\n"
    )
    process = begin(tmp_path, code=code)
    ready(process)
    assert len(list(tmp_path.iterdir())) == 2
    code, _, error = interrupted(process)
    assert (code, error) == (130, "Interrupted. one.json was written before that.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["one.json"]


def test_a_command_that_ends_while_it_is_interrupted_does_not_crash(tmp_path):
    code = PREAMBLE + (
        "with interrupt.handled():\n"
        "    interrupt.at_exit(lambda: time.sleep(0.3))\n"
        "    ready()\n"
        "    interrupt._arrived.wait()\n"
    )
    process = begin(tmp_path, code=code)
    ready(process)
    assert interrupted(process) == (130, "", "Interrupted. No work had begun.\n")


def test_too_late_changes_nothing(tmp_path):
    """While the interpreter shuts down, an exception would be printed, or crash JAX's threads."""
    code = PREAMBLE + (
        "import atexit\n"
        "atexit.register(lambda: (ready(), sys.stdin.read(1)))\n"
        "sys.argv = ['driftbandit', '--version']\n"
        "from driftbandit.cli import main\n"
        "main()\n"
    )
    process = begin(tmp_path, code=code, stdin=subprocess.PIPE)
    version = process.stdout.readline()
    ready(process)
    process.send_signal(signal.SIGINT)
    out, error = process.communicate(b"x", timeout=60)
    assert version[0:1].isdigit()
    assert (process.returncode, out, error) == (0, b"", b"")


def test_who_ignores_it_goes_on(tmp_path):
    """As under nohup, or in the background of a script."""
    code = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n" + PREAMBLE
    code += "with interrupt.handled():\n    ready()\n    sys.stdin.read(1)\nprint('done')\n"
    process = begin(tmp_path, code=code, stdin=subprocess.PIPE)
    ready(process)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(b"x", timeout=60)
    assert (process.returncode, out) == (0, b"done\n")


def test_the_handler_is_given_back():
    from driftbandit.cli import interrupt

    outside = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for _ in range(2):
            with interrupt.handled():
                assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
            assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, outside)


@linux
def test_the_terminal_gets_its_cursor_back(tmp_path):
    screen, end = pty.openpty()
    process = begin(tmp_path, *COMMANDS["simulate"], stdout=end, stderr=end, stdin=end)
    os.close(end)
    seen = b""
    while b"compiling" not in seen:
        seen += os.read(screen, 4096)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # the other end is closed
        while more := os.read(screen, 4096):
            seen += more
    os.close(screen)
    assert process.wait(timeout=60) == 130
    assert seen.count(b"\x1b[?25l") == seen.count(b"\x1b[?25h") == 1
    assert seen.rstrip().splitlines()[-1].endswith(LINES["simulate"].encode())


@linux
@pytest.mark.nightly
@pytest.mark.parametrize("name", COMMANDS)
def test_twenty_random_moments(name, tmp_path):
    """From the interpreter's own start-up, which is Python's business, to the last line."""
    write_log(tmp_path)
    clock = time.perf_counter()
    whole = begin(tmp_path, *COMMANDS[name])
    _, error = whole.communicate()
    assert whole.returncode == 0, error.decode()
    length = time.perf_counter() - clock
    draw = random.Random(name)
    codes, moments = [], []
    while codes.count(130) < 20:
        moment = draw.uniform(0, 0.98 * length)
        folder = tmp_path / f"{len(codes)}"
        folder.mkdir()
        write_log(folder)
        process = begin(folder, *COMMANDS[name])
        wait_for(process, "_socket")  # which the handler is made of
        clock = time.perf_counter()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(moment)
            length = min(length, time.perf_counter() - clock)  # it was done before
        code, _, error = interrupted(process)
        codes.append(code)
        assert code in (130, 0), f"at {moment:.3f} s: exit code {code}\n{error}"
        assert "Traceback" not in error
        assert [path for path in folder.rglob("*~") if path.is_file()] == []
        if code == 130:
            moments.append(f"{moment:.1f}")
            assert error.splitlines()[-1].startswith("Interrupted. "), error
    print(f"\n{name}: exit codes {codes}, interrupted after {' '.join(moments)} s")
