"""Public data sets: from the columns of their files, and from the packages where installed."""

import bz2
import importlib.util
import types
import zipfile

import numpy as np
import pytest

from driftbandit import InvalidInput
from driftbandit.replays import datasets, replay
from reward_tables import NAN


def test_french_is_read():
    rng = np.random.default_rng(0)
    columns = {name: rng.normal(size=5) for name in ("MktRF", "RF", *datasets.INDUSTRIES)}
    table = datasets.french(columns)
    assert table.names[0] == "NoDur"
    beyond = 100 * (columns["NoDur"] - columns["MktRF"] - columns["RF"])
    np.testing.assert_allclose(table.rewards[:, 0], beyond)
    with pytest.raises(InvalidInput, match="has no column 'RF'"):
        datasets.french({"MktRF": [0.1]})


def test_flights_are_read():
    rows = [  # month, day, hour, carrier, delay
        *((1, day, hour, "AA", 10.0) for day in (1, 2) for hour in range(6, 22)),
        *((1, day, hour, "UA", -5.0) for day in (1, 2) for hour in range(6, 22)),
        (1, 1, 6, "AA", 200.0),  # 60 at most
        (1, 1, 7, "AA", NAN),  # canceled: 60
        (1, 1, 5, "AA", 50.0),  # night
        (1, 2, 8, "HA", 0.0),  # flies too seldom
    ]
    month, day, hour, carrier, delay = zip(*rows, strict=True)
    columns = {"month": month, "day": day, "hour": hour, "carrier": carrier, "dep_delay": delay}
    table = datasets.flights(columns | {"year": [2013] * len(rows)})
    assert table.names == ("AA", "UA")
    assert table.rewards.shape == (32, 2)
    assert table.rewards[:3].tolist() == [[-35.0, 0.0], [-35.0, 0.0], [-10.0, 0.0]]


def test_holidays_are_read():
    days = np.array(["2017-01-01", "2017-01-02", "2017-01-04"], dtype="M8[D]")
    views = {"Christmas": [10, 100, 1000], "Easter": [1, 10, NAN]}
    views |= {"Thanksgiving": [1, 1, 1], "Chinese_New_Year": [10000, 1, 1]}
    columns = {"datetime": days} | {f"wiki_{name}": own for name, own in views.items()}
    table = datasets.holidays(columns)
    assert table.names == ("Chinese New Year", "Christmas", "Easter", "Thanksgiving")
    np.testing.assert_allclose(table.rewards, [[4, 1, 0, 0], [0, 2, 1, 0], [0, 3, NAN, 0]])
    assert table.times.tolist() == [0, 1, 3]
    with pytest.raises(InvalidInput, match="has no column 'wiki_Chinese_New_Year' of numbers"):
        datasets.holidays({"datetime": days})
    for wrong in ({}, {"datetime": ["yesterday"]}):
        with pytest.raises(InvalidInput, match="has no column 'datetime' of times"):
            datasets.holidays(wrong)


def test_weather_is_read():
    rows = [  # hour, airport, temperature
        (3, "JFK", 50.0),
        (0, "LGA", 60.0),
        (0, "EWR", 58.0),
        (0, "JFK", 13.0),  # a wrong reading
        (1, "JFK", NAN),  # the only row of its hour: the hour is a gap
        (3, "LGA", NAN),
        (3, "EWR", 79.0),
        (3, "JFK", 52.0),  # a second reading: their mean counts
    ]
    hours, origin, temperature = zip(*rows, strict=True)
    start = np.datetime64("2013-11-03T04", "ns")
    clock = start + np.array(hours) * np.timedelta64(1, "h")
    table = datasets.weather({"time_hour": clock, "origin": origin, "temp": temperature})
    assert table.names == ("EWR", "JFK", "LGA")
    np.testing.assert_array_equal(table.rewards, [[-58, NAN, -60], [-79, -51, NAN]])
    assert table.times.tolist() == [0, 3]


@pytest.mark.parametrize(
    ("name", "shape", "last", "season", "same_for_all"),
    [
        # shares of variance: of each arm by its season, of all arms by their mean
        ("holidays", (2869, 4), 2868, (0.6, 0.9), (0.2, 0.5)),
        ("weather", (8714, 3), 8729, (0.02, 0.06), (0.98, 1.0)),
    ],
)
def test_what_moves_the_arms(name, shape, last, season, same_for_all):
    """Every arm is best in some season. Holidays differ; all airports have the same weather."""
    pytest.importorskip("pyarrow")
    if importlib.util.find_spec(datasets.DATASETS[name][1]) is None:
        pytest.skip("the package is not installed")
    table = datasets.load(name)
    assert table.rewards.shape == shape
    assert table.times[-1] == last
    whole = np.isfinite(table.rewards).all(axis=1)
    rewards, times = table.rewards[whole], table.times[whole]
    part = times % 24
    if name == "holidays":  # months
        part = (np.datetime64("2017-01-01") + times).astype("M8[M]").astype(int) % 12
    by_part = np.array([rewards[part == value].mean(axis=0) for value in range(part.max() + 1)])
    assert set(by_part.argmax(axis=1)) == set(range(shape[1]))
    shares = by_part[part].var(axis=0) / rewards.var(axis=0)
    assert season[0] < shares.min()
    assert shares.max() < season[1]
    share = rewards.mean(axis=1).var() / rewards.var(axis=0).mean()
    assert same_for_all[0] < share < same_for_all[1]


def test_packed_files_are_read(monkeypatch, tmp_path):
    """As the packages hold them: .csv, .csv.bz2 and .zip; a missing number is NaN."""
    pytest.importorskip("pyarrow")
    rows = b"time_hour,origin,temp\n2013-01-01T06:00:00Z,JFK,40\n2013-01-01T06:00:00Z,LGA,NA\n"
    place = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(datasets.importlib.util, "find_spec", lambda name: place)
    for name in ("data.csv", "data.csv.bz2", "data.csv.zip"):
        path = tmp_path / name
        path.write_bytes(bz2.compress(rows) if name.endswith("bz2") else rows)
        if name.endswith("zip"):
            with zipfile.ZipFile(path, "w") as packed:
                packed.writestr("data.csv", rows)
        monkeypatch.setitem(datasets.DATASETS, "weather", (datasets.weather, "any", name))
        table = datasets.load("weather")
        assert table.names == ("JFK", "LGA")
        np.testing.assert_array_equal(table.rewards, [[-40, NAN]])


def test_a_package_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setattr(datasets.importlib.util, "find_spec", lambda name: None)
    for name in datasets.DATASETS:
        with pytest.raises(InvalidInput, match=r"pip install 'driftbandit\[data\]'"):
            replay(name)
    with pytest.raises(InvalidInput, match="did you mean 'flights'"):
        datasets.load("fligths")
