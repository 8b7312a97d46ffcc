"""Rewards that are absurdly far from the others get a note; heavy tails and constants do not."""

import numpy as np
import pytest

import driftbandit as db
from driftbandit.identify import read_log
from driftbandit.io.log_reader import far_out
from driftbandit.io.logs import split_notes
from log_files import csv_text, put

RNG = np.random.default_rng(0)


def rows(rewards):
    n = len(rewards)
    return {"round": range(n), "arm": ["a", "b"] * (n // 2), "reward": list(rewards)}


def test_the_row_is_named():
    rewards = RNG.standard_normal(200)
    rewards[57] = 1e6
    log = read_log(rows(rewards))
    scale = np.median(np.abs(rewards - np.median(rewards)))
    (note,) = log.notes
    assert note.startswith("Row 58 (round 57, arm 'b') pays 1e+06, ")
    times = int(note.split("1e+06, ")[1].split(" times")[0].replace(",", ""))
    assert times == pytest.approx(1e6 / scale, rel=0.01)
    assert note.endswith(" times as far from the median as most: check it.")
    assert split_notes([note]) == ([], [note])
    file = put(
        "log.csv",
        "\n".join(
            [
                *csv_text(rows(rewards)).splitlines()[:3],
                "",
                *csv_text(rows(rewards)).splitlines()[3:],
            ]
        ),
    )
    (other,) = read_log(file).notes
    assert other.startswith("Line 60 (round 57, arm 'b') pays")  # after the header and a blank line
    assert note in db.fit(log, structure="constant(arm)", starts=1).warnings


def test_the_row_is_named_among_sequences_and_times():
    rewards = RNG.standard_normal(200)
    rewards[[57, 90]] = 3e7, -1e6
    times = np.datetime64("2026-01-05") + np.arange(200)
    data = rows(rewards) | {"round": times, "sequence": ["p", "q", "q", "q"] * 50}
    (note,) = [note for note in read_log(data).notes if "pays" in note]
    assert note.startswith("Row 58 (round 2026-03-03, arm 'b') pays 3e+07, ")
    assert note.endswith("check it; 1 more is far away, too.")


ORDINARY = {
    "normal": lambda rng, n: rng.standard_normal(n),
    "t3": lambda rng, n: rng.standard_t(3, n),
    "lognormal": lambda rng, n: rng.lognormal(0, 1, n),
    "revenue": lambda rng, n: rng.lognormal(3, 1.5, n) * (rng.random(n) < 0.1),
    "clicks": lambda rng, n: (rng.random(n) < 0.02).astype(float),
    "rare clicks": lambda rng, n: (np.arange(n) == n // 2).astype(float),
    "constant": lambda rng, n: np.full(n, 0.1 + 0.2),
    "constant arms": lambda rng, n: np.where(np.arange(n) % 2, 1e6, 1e-3),
    "rounded sums": lambda rng, n: np.where(
        np.arange(n) == 3, 1.3, np.where(np.arange(n) % 2, 0.1 + 0.2, 0.3)
    ),
    "random walk": lambda rng, n: np.cumsum(rng.standard_normal(n)),
    "missing": lambda rng, n: np.where(np.arange(n) < n - 2, np.nan, rng.standard_normal(n)),
}


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_rewards_get_no_note(name):
    rng = np.random.default_rng(1)
    for n in (2, 10, 200, 200, 200, 20_000):
        rewards = ORDINARY[name](rng, n)
        assert read_log(rows(rewards)).notes in ((), ("1 row repeats another one",)), n


def test_few_can_be_far_out_and_many_cannot():
    rewards = RNG.standard_normal(1000)
    rewards[:10] = 1e7
    assert sorted(far_out(rewards)[0].tolist()) == list(range(10))
    rewards[10] = 1e7
    assert far_out(rewards)[0].size == 0
    clicks = (RNG.random(1000) < 0.3).astype(float)
    clicks[5] = 1e6  # most clicks are equal, and one is no click
    assert far_out(clicks)[0].tolist() == [5]
    assert far_out(np.array([]))[0].size == 0
