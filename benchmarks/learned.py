"""Learned models on real tables: fit the first part, then decide with one reward seen per round.

    python benchmarks/learned.py tables/*.csv     # made by learned_tables.py

Each file is a table of rewards, one column per arm and one row per round, all of them known. The
default `fit` learns from the first 40% of the rows. Then every policy plays the others and sees
the reward of the arm it chose. Printed and stored in benchmarks/results/learned.json: the mean
reward over that of the best single arm of the part that was played, in units of what a policy that
always knew the best arm would gain; and the standard error of the difference from the default,
over blocks of 50 rows.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd

import driftbandit as db

STORE = Path(__file__).parent / "results" / "learned.json"
POLICIES = ("reach", "idea", "kode", "kalman_ucb", "lookahead", "thompson", "information_directed")
PLAIN = ("ucb", "sliding_window_ucb", "discounted_ucb")
TRAIN, BLOCK = 0.4, 50


def played(system: db.System, names: list[str], rewards: np.ndarray, policy: str) -> np.ndarray:
    """The rewards that a policy earns, round by round."""
    agent = db.Agent(system, policy=policy, rounds=len(rewards), seed=0)
    earned = np.empty(len(rewards))
    for t, row in enumerate(rewards):
        decision = agent.ask()
        earned[t] = row[names.index(decision.arm)]
        agent.tell(decision, earned[t])
    return earned


def main() -> None:
    """Fit, play, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("tables", type=Path, nargs="+")
    parser.add_argument("--json", type=Path, default=STORE)
    given = parser.parse_args()
    stored = json.loads(given.json.read_text()) if given.json.exists() else {}
    for path in given.tables:
        table = pd.read_csv(path)
        cut = int(TRAIN * len(table))
        clock = time.perf_counter()
        first = table.iloc[:cut].reset_index(names="round")
        log = first.melt("round", var_name="arm", value_name="reward")
        found = db.fit(log.sort_values("round", kind="stable", ignore_index=True))
        seconds = time.perf_counter() - clock
        rewards, names = table.iloc[cut:].to_numpy(), list(table.columns)
        fixed, best = rewards.mean(axis=0).max(), rewards.max(axis=1).mean()
        players = (*POLICIES, *PLAIN)
        earned = {name: played(found.system, names, rewards, name) for name in players}
        blocks = len(rewards) // BLOCK
        rows = {}
        for name, values in earned.items():
            apart = (values - earned["reach"])[: blocks * BLOCK].reshape(blocks, BLOCK).mean(axis=1)
            rows[name] = {
                "gain": float((values.mean() - fixed) / (best - fixed)),
                "± s.e. of the difference": float(
                    apart.std(ddof=1) / np.sqrt(blocks) / (best - fixed)
                ),
            }
        stored[path.stem] = {"rows": len(table), "arms": table.shape[1], "fit seconds": seconds}
        stored[path.stem] |= {"states": found.system.model.n_states, "policies": rows}
        text = ", ".join(
            f"{name} {row['gain']:.3f}±{row['± s.e. of the difference']:.3f}"
            for name, row in sorted(rows.items(), key=lambda one: -one[1]["gain"])
        )
        print(f"{path.stem} ({seconds:.0f} s): {text}", flush=True)
        given.json.write_text(json.dumps(stored, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
