"""What the default `fit` predicts and earns, compared with another version of driftbandit.

    git worktree add ../older COMMIT
    python benchmarks/versions.py --old ../older/src [--seeds 6] [--workers 2]

Logs of random play over 8 arms: the systems of `fit_earns` (300, 1000 and 3000 rows) and the two
kinds of products of `products` (400 rows). Three fits learn from each: the old default, the old
``structure="auto"`` and the new default. Each predicts the next 500 rewards of random play one step
ahead: log-density per reward. Then agents of each fit, which know the log, play 300 rounds of the
true system: share of the possible gain, 0 for random play and 1 for the best arm of every round.

Prints, for each cell, the new fit's differences from the old ones, ± standard error over the logs,
and the median seconds of a fit; stores benchmarks/results/versions.json.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
STORE = HERE / "results" / "versions.json"
SYSTEMS = ("independent arms", "one shared factor", "full system", "no drift")
CELLS = [(kind, rows) for kind in SYSTEMS for rows in (300, 1000, 3000)]
CELLS += [("product, shared season", 400), ("product, own seasons", 400)]
AHEAD, PLAYED = 500, 300
POLICIES = ("idea", "reach")


def world(kind: str, rows: int, seed: int) -> tuple[dict[str, Any], np.ndarray, np.ndarray]:
    """A log of random play, and the means and noise of all arms in the rounds after it."""
    import fit_earns
    import products

    rng = np.random.default_rng([seed, rows, *kind.encode()])
    total = rows + AHEAD + PLAYED
    if kind.startswith("product"):
        _, system = products.truth(rng, "shared" if "shared" in kind else "arm")
        path = products.states(system, total, rng)[:-1]
        means, noise = path @ system.arms.T, float(system.model.reward_std)
    else:
        model, arms = fit_earns.system(kind, rng)
        means = fit_earns.future(model, arms, total, 1, rng)[:, 0]
        noise = float(model.reward_std)
    shocks = noise * rng.standard_normal(means.shape)
    played = rng.integers(means.shape[1], size=total)
    rewards = (means + shocks)[np.arange(total), played]
    log = {"round": np.arange(total), "arm": played, "reward": rewards}
    return log, means, shocks


def earned(system: Any, policy: str, log: dict[str, Any], means: np.ndarray, shocks: Any) -> float:
    """The share of the possible gain in the last rounds, by an agent that knows the log."""
    import driftbandit as db

    start = len(means) - PLAYED
    agent = db.Agent(system, policy=policy, rounds=len(means), window=0, seed=0)
    rows = np.arange(start)
    if system.first_round:
        rows = rows[rows >= system.first_round]
    agent.tell_log({name: values[rows] for name, values in log.items()})
    total = 0.0
    for mean, shock in zip(means[start:], shocks[start:], strict=True):
        decision = agent.ask()
        total += mean[int(decision.arm)]
        agent.tell(decision, mean[int(decision.arm)] + shock[int(decision.arm)])
    later = means[start:]
    low, high = later.mean(), later.max(axis=1).mean()
    return float((total / PLAYED - low) / max(high - low, 1e-12))


def worked(kind: str, rows: int, seed: int, structure: str | None) -> dict[str, Any]:
    """What one fit of this version predicts and earns."""
    from driftbandit.identify import fit, one_step

    log, means, shocks = world(kind, rows, seed)
    first = {name: values[:rows] for name, values in log.items()}
    whole = {name: values[: rows + AHEAD] for name, values in log.items()}
    begun = time.perf_counter()
    found = fit(first, structure=structure)
    seconds = time.perf_counter() - begun
    ahead = one_step(found, whole)
    wrong = (ahead.rewards - ahead.means)[rows:]
    stds = ahead.stds[rows:]
    density = float(np.mean(-0.5 * np.log(2 * np.pi * stds**2) - 0.5 * (wrong / stds) ** 2))
    shares = {name: earned(found.system, name, log, means, shocks) for name in POLICIES}
    return {"density": density, "seconds": seconds} | shares


def worker() -> None:
    """Answer tasks, a line each, until there are no more."""
    sys.path.insert(0, str(HERE))
    for line in sys.stdin:
        task = json.loads(line)
        try:
            answer = worked(*task)
        except Exception as error:  # an older version may refuse what a newer one fits
            answer = {"error": repr(error)}
        print(json.dumps(answer), flush=True)


def asked(source: str | None, tasks: list[list[Any]], workers: int) -> list[dict[str, Any]]:
    """The answers of a version to all tasks, by several processes."""
    environment = dict(os.environ)
    if source is not None:
        paths = [source, environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    pieces = [tasks[i::workers] for i in range(workers)]

    def answers(piece: list[list[Any]]) -> list[dict[str, Any]]:
        command = [sys.executable, __file__, "--worker"]
        text = "".join(json.dumps(task) + "\n" for task in piece)
        run = subprocess.run(command, input=text, text=True, capture_output=True, env=environment)
        found = [json.loads(line) for line in run.stdout.splitlines()]
        missing = [{"error": run.stderr[-300:]}] * (len(piece) - len(found))
        return [*found, *missing]

    with ThreadPoolExecutor(workers) as pool:
        parts = list(pool.map(answers, pieces))
    return [parts[i % workers][i // workers] for i in range(len(tasks))]


def difference(new: list[dict[str, Any]], old: list[dict[str, Any]], name: str) -> list[float]:
    """The mean of new minus old, and its standard error, over logs that both could fit."""
    pairs = zip(new, old, strict=True)
    apart = np.array([a[name] - b[name] for a, b in pairs if name in a and name in b])
    if not len(apart):
        return [float("nan")] * 2
    error = float(apart.std(ddof=1) / np.sqrt(len(apart))) if len(apart) > 1 else float("nan")
    return [round(float(apart.mean()), 4), round(error, 4)]


def main() -> None:
    """Ask both versions, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--old", help="the folder src of another version")
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--json", type=Path, default=STORE)
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.worker:
        worker()
        return
    tasks = [[*cell, seed, None] for seed in range(given.seeds) for cell in CELLS]
    chosen = [[*task[:3], "auto"] for task in tasks]
    some = max(given.workers // 3, 1)  # an old fit takes longer, and there are two
    with ThreadPoolExecutor(2) as pool:
        news = pool.submit(asked, None, tasks, some)
        olds = asked(given.old, tasks + chosen, max(given.workers - some, 1))
        new = news.result()
    table = []
    for place, (kind, rows) in enumerate(CELLS):
        own = new[place :: len(CELLS)]
        row: dict[str, Any] = {"kind": kind, "rows": rows, "logs": given.seeds}
        row["seconds"] = _median(own)
        for label, all_old in (("default", olds[: len(tasks)]), ("auto", olds[len(tasks) :])):
            old = all_old[place :: len(CELLS)]
            names = ("density", *POLICIES)
            row[f"over old {label}"] = {name: difference(own, old, name) for name in names}
            row[f"old {label}, seconds"] = _median(old)
            row["errors"] = [x["error"] for x in (*own, *old) if "error" in x][:3]
        table.append(row)
        print(json.dumps(row), flush=True)
    given.json.write_text(json.dumps({"table": table}, indent=1) + "\n")


def _median(answers: list[dict[str, Any]]) -> float:
    return round(float(np.median([x["seconds"] for x in answers if "seconds" in x] or [0.0])), 2)


if __name__ == "__main__":
    main()
