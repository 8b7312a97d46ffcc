"""Policies by their titles."""

import pytest

import driftbandit as db
from driftbandit import errors


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("IDEA", "idea"),
        ("Idea", "idea"),
        ("Kalman-UCB", "kalman_ucb"),
        ("kalman-ucb", "kalman_ucb"),
        ("Kalman Oracle", "kalman_oracle"),
        ("D-LinUCB", "discounted_linucb"),
        ("SW-UCB(window=50)", "sliding_window_ucb"),
        ("IDS", "information_directed"),
    ],
)
def test_policies_are_read_by_their_titles_too(text, name):
    assert db.policies.make(text).name == name


def test_every_title_is_read():
    for name, title in db.policies.TITLES.items():
        assert db.policies.make(title).name == name


def test_linucb_is_called_oful_here():
    with pytest.raises(errors.InvalidInput, match="'linucb'; did you mean 'oful'"):
        db.policies.make("linucb")
