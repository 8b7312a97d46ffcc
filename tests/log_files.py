"""Logs as files, and how what is wrong with them is said."""

import csv
import io

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import driftbandit as db
from driftbandit import InvalidInput

GOOD = {
    "sequence": ["b", "a", "b", "a", "b"],
    "round": [4, 0, 4, 3, 9],
    "arm": ["up", "left", "left", "up", "down"],
    "reward": [0.25, None, -1e-7, 3.0, None],
}


def plain(log):
    """A log as lists, None for a missing reward."""
    return log.names, [
        (
            one.label,
            one.rounds.tolist(),
            one.arms.tolist(),
            [None if np.isnan(reward) else reward for reward in one.rewards.tolist()],
        )
        for one in log.sequences
    ]


def csv_text(columns, end="\n", quoting=csv.QUOTE_MINIMAL):
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=end, quoting=quoting)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def put(name, content):
    content = content.encode() if isinstance(content, str) else content
    with open(name, "wb") as file:
        file.write(content)
    return name


def put_parquet(name, columns):
    pq.write_table(pa.table(columns), name)
    return name


def refused(call, start):
    with pytest.raises(InvalidInput) as caught:
        call()
    message = str(caught.value)
    assert message.startswith(start)
    assert message.isprintable()
    assert len(message) < 300


CALLED = {"round": "day", "arm": "variant", "reward": "clicks"}
OTHERS = {"variant": ["b", "a", "b"], "clicks": [1.0, 0.0, 2.0]}


def refused_exactly(call, message):
    with pytest.raises(db.InvalidInput) as caught:
        call()
    assert str(caught.value) == message
    assert message.isprintable()


def write_clicks():
    """A log of 60 days with columns of its own, in the current folder, and the same with ours."""
    rng = np.random.default_rng(0)
    days = np.datetime64("2024-01-01") + np.arange(60)
    arms, rewards = rng.choice(["new", "old"], 60), rng.normal(size=60)
    frame = pd.DataFrame({"day": days, "variant": arms, "clicks": rewards, "country": "fr"})
    frame.to_csv("clicks.csv", index=False)
    pd.DataFrame({"variant": ["old", "new"], "size": [1.0, 2.0]}).to_csv("arms.csv", index=False)
    return {"round": np.arange(60), "arm": arms, "reward": rewards}
