"""The program computes with one thread: its matrices are small, and waiting threads cost time."""

import os
import subprocess
import sys

import pytest

from driftbandit.cli import ONE_THREAD

PROGRAM = """
import sys
import driftbandit.cli
assert "numpy" not in sys.modules  # which reads the variables once
sys.argv = ["driftbandit", "--version"]
try:
    driftbandit.cli.main()
except SystemExit:
    pass
import ctypes, glob, os, numpy
print(*(os.environ[name] for name in driftbandit.cli.ONE_THREAD))
for library in glob.glob(os.path.join(os.path.dirname(numpy.__file__), "../numpy.libs/*openblas*")):
    print(ctypes.CDLL(library).scipy_openblas_get_num_threads64_())
"""


@pytest.mark.parametrize("chosen", [None, "2"])
def test_one_thread_unless_the_user_chose(chosen):
    environment = {name: value for name, value in os.environ.items() if name not in ONE_THREAD}
    if chosen is not None:
        environment["OPENBLAS_NUM_THREADS"] = chosen
    asked = [sys.executable, "-c", PROGRAM]
    ran = subprocess.run(asked, capture_output=True, text=True, env=environment, timeout=120)
    assert ran.returncode == 0, ran.stderr
    _, variables, *threads = ran.stdout.splitlines()
    assert variables.split() == [chosen or "1", "1", "1"]
    assert all(int(number) <= int(chosen or 1) for number in threads)
