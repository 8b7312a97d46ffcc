"""Errors name the argument and travel between processes."""

import pickle

import pytest

from driftbandit import InvalidInput
from refusals import lgds


def test_the_argument_is_on_the_error():
    with pytest.raises(InvalidInput, match="reward_std") as caught:
        lgds(reward_std=-1)
    assert caught.value.argument == "reward_std"


def test_an_error_travels_between_processes():
    """As from a Ray worker to whoever waits for it."""
    error = InvalidInput("arms", "are none", "give some")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.argument) == (str(error), "arms")
