"""Without the extras, tests that need one are skipped and say which: see `make light`."""

import importlib.util
import sys
from pathlib import Path

import pytest

from driftbandit import errors

LIGHT = importlib.util.find_spec("jax") is None
MAPS, MOST_MAPS = Path("/proc/self/maps"), 30_000
OPTIONAL = {*errors.EXTRAS, "filterpy", "pykalman", "statsmodels"}


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


@pytest.fixture(autouse=True, scope="module")
def few_compiled_programs():
    """Forget what JAX compiled before its memory maps reach the limit of a process, 65,530."""
    yield
    if "jax" in sys.modules and MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        sys.modules["jax"].clear_caches()
