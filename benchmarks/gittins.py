"""How close the index of `reach` comes to the Gittins index of an arm that never changes.

    python benchmarks/gittins.py [--json FILE]

An arm pays N(m, σ²) with m ~ N(0, v), and rewards are discounted so that they count for S rounds.
Its Gittins index over √v depends on S and on r = v/σ² alone. It is computed by dynamic programming
(Gauss–Hermite rule, blocks of plays that grow by 4%), and printed beside the published values.
`reach` has max_n f(H/n^p) / √(1 + 1/(n r)) with H = 2S − 1. Printed and stored: for several powers
p, the root mean square and the range of log(Gittins / reach), over r from 0.001 to 10 and S from 30
to 10⁶. p = 0.7 is closest.
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
from numpy.polynomial.hermite_e import hermegauss

from driftbandit.policies.reach import index_factor

STORE = Path(__file__).parent / "results" / "gittins.json"
RATIOS = (10.0, 1.0, 0.1, 0.01, 0.001)
LENGTHS = (30.0, 100.0, 300.0, 1e3, 1e4, 1e5, 1e6)
POWERS = (1.0, 0.9, 0.8, 0.75, 0.7, 0.65, 0.6, 0.5)
PUBLISHED = {(1, 20): 0.9956, (1, 100): 1.5758, (2, 100): 1.0415}
"""Of an arm seen once or twice, σ = 1 (Gittins 1989; Powell and Ryzhov 2012, Optimal Learning)."""
GRID = np.concatenate([-np.geomspace(8, 1e-6, 700), np.geomspace(1e-6, 8, 300)])
POINTS, WEIGHTS = hermegauss(41)


def gittins(ratio: float, length: float) -> float:
    """The index over √v.

    Args:
        ratio: r = v/σ².
        length: S = 1/(1 − discount).

    Example:
        >>> round(gittins(1.0, 100.0), 2)
        1.58
    """
    seen, blocks = [1 / ratio], []
    while seen[-1] - seen[0] < 30 * length + 10 and seen[-1] < 1e7 * length / ratio:
        blocks.append(max(1, int(0.04 * (seen[-1] - seen[0]))))
        seen.append(seen[-1] + blocks[-1])
    weights, discount = WEIGHTS / WEIGHTS.sum(), 1 - 1 / length
    scale = seen[-1] ** -0.5
    value = np.maximum(GRID * scale, 0) * length
    for plays, block in zip(seen[-2::-1], blocks[::-1], strict=True):
        mean = GRID / math.sqrt(plays)
        shift = math.sqrt(1 / plays - 1 / (plays + block))
        after = (mean[:, None] + shift * POINTS) / scale
        later = np.where(after > GRID[-1], after * scale * length, np.interp(after, GRID, value))
        kept = discount**block
        goes_on = mean * (1 - kept) * length + kept * (later @ weights)
        value, scale = np.maximum(goes_on, 0), plays**-0.5
    best = int((goes_on > 0).argmax())
    share = goes_on[best] / (goes_on[best] - goes_on[best - 1])
    return float(-(GRID[best] - share * (GRID[best] - GRID[best - 1])))


def ours(ratio: float, length: float, power: float) -> float:
    """The index of `reach` over √v."""
    horizon = 2 * length - 1
    plays = 4.0 ** np.arange(1 + int(math.log(horizon, 4)))
    factors = index_factor(math.log(horizon) - power * np.log(plays))
    return float((factors / np.sqrt(1 + 1 / (plays * ratio))).max())


def main() -> None:
    """Compute, print and store."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--json", type=Path, default=STORE)
    given = parser.parse_args()
    for (seen, length), value in PUBLISHED.items():
        found = gittins(1 / seen, length) / math.sqrt(seen)
        print(f"seen {seen} times, S = {length}: {found:.4f}, published {value}")
    exact = np.array([[gittins(r, s) for s in LENGTHS] for r in RATIOS])
    stored = {"ratios": RATIOS, "lengths": LENGTHS, "gittins": exact.round(5).tolist()}
    powers = {}
    for power in POWERS:
        own = np.array([[ours(r, s, power) for s in LENGTHS] for r in RATIOS])
        log = np.log(exact / own)
        rms, low, high = math.sqrt((log**2).mean()), *np.exp([log.min(), log.max()])
        powers[str(power)] = {"rms": rms, "lowest": float(low), "highest": float(high)}
        print(f"power {power:4}: rms {rms:.3f}, Gittins over ours {low:.2f} to {high:.2f}")
    given.json.write_text(json.dumps(stored | {"powers": powers}, indent=1) + "\n")


if __name__ == "__main__":
    main()
