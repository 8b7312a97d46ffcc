"""Data frames whose index is not 0, 1, 2, …: filtered ones, and those with rounds or times."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import driftbandit as db
from driftbandit.identify import as_log, read_arms, read_log
from driftbandit.replays import as_table
from log_files import refused

RNG = np.random.default_rng(0)
WIDE = pd.DataFrame(RNG.standard_normal((60, 3)), columns=list("abc"))
LONG = pd.DataFrame(
    {"round": range(60), "arm": np.array(list("abc"))[RNG.integers(3, size=60)], "reward": WIDE.a}
)
DAYS = pd.date_range("2026-01-05", periods=60, name="day")
KEPT = WIDE.a > -0.5
SYSTEM = db.System(db.LGDS(0.9 * np.eye(3), np.eye(3), 1.0), np.eye(3), list("abc"))


def forms(frame):
    """A frame as pandas holds it, as Arrow holds it, and read back from a file."""
    frame.to_parquet("frame.parquet")
    return frame, pa.table(frame), pq.read_table("frame.parquet"), pd.read_parquet("frame.parquet")


def told(log):
    agent = db.Agent(SYSTEM, window=0)
    agent.tell_log(log)
    return agent.round, agent.to_json()


def assert_same_log(one, other):
    assert one.names == other.names
    for ours, theirs in zip(one.sequences, other.sequences, strict=True):
        for field in ("rounds", "arms", "rewards"):
            np.testing.assert_array_equal(getattr(ours, field), getattr(theirs, field))


INDICES = {
    "filtered": pd.RangeIndex(60),
    "text": pd.Index([f"row {i}" for i in range(60)]),
    "reversed": pd.RangeIndex(60, 0, -1),
    "named": pd.Index(range(60), name="shop"),
    "named as an arm": pd.Index(range(60), name="a"),
    "two levels": pd.MultiIndex.from_product([range(6), range(10)], names=["shop", None]),
}


@pytest.mark.parametrize("name", INDICES)
def test_no_index_is_an_arm(name):
    plain = as_table(WIDE[KEPT].to_dict("list"))
    for form in forms(WIDE.set_index(INDICES[name])[KEPT.to_numpy()]):
        table = as_table(form)
        assert table.names == ("a", "b", "c")
        np.testing.assert_array_equal(table.rewards, plain.rewards)
        assert table.times.tolist() == list(range(len(table)))
        (note,) = table.notes
        assert note == {
            "named": "Ignored columns: shop.",
            "two levels": "Ignored columns: shop, index.",
        }.get(name, "Ignored columns: index.")
    assert as_table(WIDE).notes == as_table(WIDE[::2]).notes == ()  # row numbers are no index


@pytest.mark.parametrize("name", INDICES)
def test_a_log_is_the_same_with_any_index(name):
    log = LONG.set_index(INDICES[name])[KEPT.to_numpy()]
    plain = LONG[KEPT].to_dict("list")
    for form in (*forms(log), "frame.parquet"):
        assert_same_log(as_log(form), as_log(plain))
        assert told(form) == told(plain)
    assert as_log(log).notes[0].startswith("Ignored columns: ")


@pytest.mark.parametrize("form", range(4))
def test_an_index_of_rounds_or_times_says_when_each_row_was(form):
    rounds = np.flatnonzero(KEPT)
    shifted = WIDE.rename_axis("round")[KEPT]
    table = as_table(forms(shifted)[form])
    assert (table.names, table.notes) == (("a", "b", "c"), ())
    np.testing.assert_array_equal(table.times, rounds - rounds[0])
    for days in (DAYS, DAYS.rename(None), DAYS.rename("round"), DAYS.tz_localize("UTC")):
        table = as_table(forms(WIDE.set_index(days)[KEPT.to_numpy()])[form])
        assert table.names == ("a", "b", "c")
        np.testing.assert_array_equal(table.times, rounds - rounds[0])
        assert table.notes[0].startswith("Rounds are days since 2026-01-05")
    hours = pd.date_range("2026-01-05", periods=60, freq="90min")
    table = as_table(forms(WIDE.set_index(hours))[form], every="30 minutes")
    np.testing.assert_array_equal(table.times, 3 * np.arange(60))


@pytest.mark.parametrize("form", range(4))
def test_an_index_of_rounds_or_times_is_that_of_a_log(form):
    plain, others = LONG[KEPT], LONG.set_index(DAYS.rename(None))[["arm", "reward"]]
    for log in (plain.set_index("round"), plain.set_index(["round", "arm"])):
        log = forms(log)[form]
        assert_same_log(as_log(log), as_log(plain.to_dict("list")))
        assert told(log) == told(plain.to_dict("list"))
    log = forms(others[KEPT.to_numpy()])[form]
    assert str(as_log(log).clock) == f"days since {DAYS[KEPT][0].date()}"
    shift = plain.assign(round=plain["round"] - plain["round"].min())
    assert_same_log(as_log(log), as_log(shift.to_dict("list")))
    assert told(log)[0] == told(shift.to_dict("list"))[0]


def test_periods_and_columns_that_no_arrow_column_holds():
    weeks = WIDE.set_index(pd.period_range("2026-01-05", periods=60, freq="W"))
    assert as_table(weeks).times.tolist() == list(range(0, 420, 7))
    mixed = LONG.assign(arm=[1, "b"] * 30).set_index("round")
    assert as_log(mixed).sequences[0].rounds.tolist() == list(range(60))


def test_an_index_is_no_feature_of_an_arm():
    arms = pd.DataFrame({"arm": list("abcd"), "x": [1.0, 2.0, 3.0, 4.0]})
    arms[arms["arm"] != "b"].to_parquet("arms.parquet")
    assert read_arms("arms.parquet").features.tolist() == [[1.0], [3.0], [4.0]]
    arms.set_index("arm").to_parquet("arms.parquet")
    assert read_arms("arms.parquet").names == tuple("abcd")


def test_what_replays_and_fits_take_a_filtered_frame():
    plain = WIDE[KEPT].to_dict("list")
    ours, theirs = (db.replay(data, policies=["ucb"]) for data in (WIDE[KEPT], plain))
    assert ours.names == theirs.names == ("a", "b", "c")
    log = LONG[KEPT]
    fits = [db.fit(data, n_states=1, starts=1) for data in (log, log.to_dict("list"))]
    assert fits[0].system == fits[1].system
    assert (
        db.monitor(SYSTEM, log.set_index("round")).tests
        == db.monitor(SYSTEM, log.to_dict("list")).tests
    )


def test_what_is_wrong_with_an_index_is_said():
    days = WIDE.set_index(DAYS)
    refused(
        lambda: as_table(days[::-1]),
        "data row 2: comes in the round of the row before, or earlier; sort the rows by the index",
    )
    refused(lambda: as_table(pd.concat([days, days[-1:]])), "data row 61: comes in the round")
    gap = days.set_index(DAYS.where(np.arange(60) != 3))
    refused(lambda: as_table(gap), "data row 4: round is missing; give it as 2024-01-31 or")
    refused(lambda: as_table(WIDE[KEPT], every="day"), "every: was given, and no index of a w")
    refused(lambda: as_table(WIDE.rename_axis("round") - 1, every="day"), "every: was given, and")
    refused(lambda: as_table(WIDE.set_index(DAYS)[[]]), "data: has type DataFrame; give a path")


def test_metadata_that_is_not_pandas():
    for stored in (b"{", b"3", b'{"index_columns": 3}', b'{"index_columns": [3, {}]}'):
        wide, long = (
            pa.table(frame[KEPT]).replace_schema_metadata({b"pandas": stored})
            for frame in (WIDE, LONG)
        )
        pq.write_table(long, "l.parquet")
        assert as_table(wide).names == ("a", "b", "c")
        assert read_log("l.parquet").rows == KEPT.sum()
