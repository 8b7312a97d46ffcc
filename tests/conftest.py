"""Without the extras, tests that need one are skipped and say which: see `make light`."""

import importlib.util

import pytest

from driftbandit import errors

LIGHT = importlib.util.find_spec("jax") is None
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
