"""Which columns of a table belong to a log."""

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from driftbandit.identify import as_log, read_log
from log_files import (
    CALLED,
    OTHERS,
    refused_exactly,
)


def test_columns_have_the_names_they_have():
    table = {"day": [3, 4, 4]} | OTHERS | {"run": ["x", "x", "y"]}
    pq.write_table(pa.table(table), "log.parquet")
    pd.DataFrame(table).to_csv("log.csv", index=False)
    for data in ("log.csv", "log.parquet", table, pa.table(table), pd.DataFrame(table)):
        log = read_log(data, columns=CALLED)
        assert log.sequences[0].rounds.tolist() == [3, 4, 4]
        assert log.notes == ("Ignored columns: run.",)
        log = read_log(data, columns=CALLED | {"sequence": "run"})
        assert [one.label for one in log.sequences] == ["x", "y"]
        assert log.notes == ()


def test_columns_that_are_not_asked_for_may_hold_anything():
    columns = {"": ["x"], "round": [0], "arm": ["a"], "reward": [1], 7: 3, "nested": [{"a": []}]}
    columns |= {"short": []}
    log = as_log(columns)
    assert log.notes == ("Ignored columns: '', 7, nested, short.",)
    many = {f"c{i}": [0] for i in range(9)} | {"round": [0], "arm": ["a"], "reward": [1]}
    assert as_log(many).notes == ("Ignored columns: c0, c1, c2, c3, c4, c5 and 3 more.",)
    near = columns | {"sequnce": [1]}
    assert (
        as_log(near).notes[0].endswith("If sequnce is the sequence, say --sequence-column sequnce.")
    )
    twice = pa.table([[0], ["x"], [1], [1], [2]], names=["round", "arm", "reward", "x", "x"])
    assert as_log(twice).notes == ("Ignored columns: x, x.",)


def test_a_default_column_may_stand_for_another():
    columns = {"round": ["x", "y"], "t": [0, 1], "reward": [1, 2]}
    log = read_log(columns, columns={"arm": "round", "round": "t"})
    assert log.names == ("x", "y")
    columns = {"sequence": ["x", "y"], "round": [0, 1], "reward": [1, 2]}
    log = read_log(columns, columns={"arm": "sequence"})
    assert (len(log.sequences), log.names) == (1, ("x", "y"))


def test_what_is_wrong_with_columns_is_said():
    data = {"day": [0]} | {key: values[:1] for key, values in OTHERS.items()}
    has = "it has day, variant, clicks; say --{0}-column NAME (in Python, "
    has += "read_log(…, columns={{'{0}': NAME}}))"
    two = "it has day, variant, clicks; say --arm-column NAME --reward-column NAME (in Python, "
    two += "read_log(…, columns={'arm': NAME, …}))"
    three = two.replace("say ", "say --round-column NAME ").replace("{'arm'", "{'round'")
    for columns, message in (
        (None, "log: has no column 'round', 'arm', 'reward'; " + three),
        ({"round": "day"}, "log: has no column 'arm', 'reward'; " + two),
        (
            CALLED | {"reward": "click"},
            "log: has no column 'click'; did you mean 'clicks'? " + has.format("reward"),
        ),
        (CALLED | {"sequence": "run"}, "log: has no column 'run'; " + has.format("sequence")),
        ("day", 'columns: is \'day\'; give a mapping, such as {"round": "day"}'),
        (
            CALLED | {"arms": "day"},
            "columns: unknown name 'arms'; did you mean 'arm'? valid: arm, chance, reward, round, "
            "sequence",
        ),
        (
            CALLED | {"arm": "day"},
            "columns: name 'day' twice; give each column once",
        ),
    ):
        refused_exactly(lambda columns=columns: read_log(data, columns=columns), message)
    log = read_log(data, columns=CALLED)
    message = "log: has type Log; it is read already: use it as it is"
    refused_exactly(lambda: read_log(log, columns=CALLED), message)
