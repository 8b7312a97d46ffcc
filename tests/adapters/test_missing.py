"""Adapters without their libraries."""

import subprocess
import sys

# ---------------------------------------------------------------- without the libraries


def test_driftbandit_loads_neither_and_says_what_to_install():
    code = """
import sys
import driftbandit, driftbandit.adapters
assert not {"gymnasium", "river"} & set(sys.modules)
import driftbandit.adapters.gymnasium
assert not {"jax", "river"} & set(sys.modules)
for name in ("gymnasium", "driftbandit.adapters.gymnasium", "river"):
    sys.modules[name] = None
del sys.modules["driftbandit.adapters.gymnasium"]
for name in ("gymnasium", "river"):
    try:
        __import__(f"driftbandit.adapters.{name}")
    except ImportError as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [
        "driftbandit.adapters.gymnasium needs gymnasium; install driftbandit[gym]",
        "driftbandit.adapters.river needs river; install driftbandit[river]",
    ]
