"""Distance of every reading (interpretation) of the paper from its Table II (P20, P21).

    python benchmarks/readings.py play --systems 1000 --runs 2 --out readings.json
    python benchmarks/readings.py table readings.json

`play` simulates each reading on each family. `table` prints how far each reading is from the
published medians and interquartile ranges, closest first.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import multiprocessing
import time
from pathlib import Path

import numpy as np

import driftbandit as db
from driftbandit.paper import readings, table2
from driftbandit.result import ORACLE, median_and_iqr
from driftbandit.simulation import Options

POLICIES = ("idea", "kode", "kalman_ucb", "random", ORACLE)
"""The other rows of the table are within a few percent of Random."""


def search() -> list[readings.Reading]:
    """The readings that were tried: every single change, and mixtures of those that matter."""
    singles = [
        dataclasses.replace(readings.PLAIN, **{question: answer})
        for question, answers in readings.CHOICES.items()
        for answer in answers
    ]
    mixed = itertools.product(
        readings.CHOICES["interval"],
        ("drawn", "unit", "bounded", "common"),
        ("scaled", "capped"),
        ("full", "mean", "diagonal"),
        ("drawn", "one", "vector"),
        ("mean", "hindsight"),
    )
    return list(dict.fromkeys([*singles, *(readings.Reading(*answers) for answers in mixed)]))


def cells(wanted: list[readings.Reading]) -> list[tuple[readings.Reading, str]]:
    """Distinct (reading, family) pairs: the interval affects only Uniform, and medians none."""
    found = {}
    for reading in wanted:
        reading = dataclasses.replace(reading, medians="runs")
        for family in table2.PUBLISHED:
            interval = reading.interval if family == "uniform" else "0..1"
            found[dataclasses.replace(reading, interval=interval), family] = None
    return list(found)


def play(task: tuple[readings.Reading, str, int, int, str | None]) -> dict[str, object]:
    reading, family, systems, runs, device = task
    begin = time.perf_counter()
    drawn = readings.sample(reading, family, systems, n_states=10, n_arms=10, seed=0)
    result = db.simulate(
        drawn,
        policies=POLICIES,
        rounds=1000,
        runs=runs,
        assumed=readings.assumed(reading, drawn),
        device=device,
        options=Options(
            stream=family,
            regret=reading.regret,
            common_noise=reading.noise == "common",
            checkpoints=1,
            workers=1,
        ),
    )
    by_system = dataclasses.replace(
        result, regret={p: r.mean(axis=1) for p, r in result.regret.items()}
    )
    return {
        "reading": str(reading),
        "family": family,
        "runs": _rounded(result),
        "systems": _rounded(by_system),
        "seconds": round(time.perf_counter() - begin, 2),
    }


def _rounded(result: db.Result) -> dict[str, list[float]]:
    """Median and IQR of the excess regret of every policy, to five digits."""
    pairs = {policy: median_and_iqr(values) for policy, values in result.normalized().items()}
    return {policy: [float(f"{x:.5g}") for x in pair] for policy, pair in pairs.items()}


def distances(rows: list[dict], reading: readings.Reading) -> dict[str, tuple[float, float]] | None:
    """Mean distance of the medians and of the IQRs, by family."""
    found = {}
    for family, targets in table2.PUBLISHED.items():
        interval = reading.interval if family == "uniform" else "0..1"
        key = dataclasses.replace(reading, interval=interval, medians="runs")
        row = next((r for r in rows if r["family"] == family and r["key"] == key), None)
        if row is None:
            return None
        pairs = [(row[reading.medians][p], targets[p]) for p in POLICIES if p != ORACLE]
        found[family] = (
            float(
                np.mean([table2.log_distance(value[0], target.median) for value, target in pairs])
            ),
            float(np.mean([table2.log_distance(value[1], target.iqr) for value, target in pairs])),
        )
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    player = commands.add_parser("play")
    player.add_argument("--systems", type=int, default=1000)
    player.add_argument("--runs", type=int, default=2)
    player.add_argument("--processes", type=int, default=2)
    player.add_argument("--device", default=None)
    player.add_argument("--out", type=Path, required=True)
    player.add_argument(
        "--readings", nargs="*", help="such as 'arms=unit, noise=one'; default: all"
    )
    tabler = commands.add_parser("table")
    tabler.add_argument("file", type=Path)
    tabler.add_argument("--most", type=int, default=12)
    options = parser.parse_args()
    if options.command == "table":
        print(table(json.loads(options.file.read_text()), options.most))
        return
    wanted = [readings.named(r) for r in options.readings] if options.readings else None
    tasks = [
        (reading, family, options.systems, options.runs, options.device)
        for reading, family in cells(wanted or search())
    ]
    rows, begin = [], time.perf_counter()
    with multiprocessing.get_context("spawn").Pool(options.processes) as pool:
        for row in pool.imap_unordered(play, tasks):
            rows.append(row)
            if len(rows) % 20 == 0 or len(rows) == len(tasks):
                document = {"systems": options.systems, "runs": options.runs, "rows": rows}
                options.out.write_text(json.dumps(document))
                print(f"{len(rows)}/{len(tasks)} {time.perf_counter() - begin:.0f} s", flush=True)


def table(document: dict, most: int) -> str:
    """Two Markdown tables, closest first: single changes, then combinations."""
    rows = document["rows"]
    for row in rows:
        row["key"] = readings.named(row["reading"])
    scored = []
    for reading in search():
        by_family = distances(rows, reading)
        if by_family is not None:
            score = float(np.mean([sum(pair) / 2 for pair in by_family.values()]))
            scored.append((score, reading, by_family))
    scored.sort(key=lambda item: item[0])
    singles = [item for item in scored if len(item[1].changes()) <= 1]
    return f"{_lines(singles)}\n\n{_lines(scored[:most])}\n\n{len(scored)} readings"


def _lines(scored: list) -> str:
    families = list(table2.PUBLISHED)
    lines = [
        "| reading | all | " + " | ".join(families) + " |",
        "|---|---|" + "---|" * len(families),
    ]
    for score, reading, by_family in scored:
        name = f"`{reading}`"
        if len(reading.changes()) == 1:
            [(question, answer)] = reading.changes().items()
            name += f": {readings.CHOICES[question][answer]}".replace("|", "\\|")
        parts = (f"{by_family[f][0]:.2f} / {by_family[f][1]:.2f}" for f in families)
        lines.append(f"| {name} | {score:.2f} | " + " | ".join(parts) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
