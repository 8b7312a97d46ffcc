"""What holds for all tests.

Without the extras, tests that need one are skipped and say which: see `make light`. Programs are
compiled once for all processes of a run, and forgotten at its end.
"""

import importlib.util
import os
import shutil
import tempfile

import pytest

from driftbandit import errors, program_cache

LIGHT = importlib.util.find_spec("jax") is None
OPTIONAL = {*errors.EXTRAS, "filterpy", "pykalman", "statsmodels"}


def pytest_configure(config):
    worker = hasattr(config, "workerinput")
    if not worker:  # workers and other processes inherit the variable
        config.programs = os.environ[program_cache.VARIABLE] = tempfile.mkdtemp()
    if not LIGHT and (worker or not getattr(config.option, "numprocesses", None)):
        program_cache.enable()


def pytest_unconfigure(config):
    if hasattr(config, "programs"):
        shutil.rmtree(config.programs, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    return (yield from _skipped_without_extras())


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item):
    return (yield from _skipped_without_extras())


def _skipped_without_extras():
    try:
        return (yield)
    except ImportError as error:
        if LIGHT and (error.name or "").partition(".")[0] in OPTIONAL:
            pytest.skip(f"needs {error.name}")
        raise
