"""What a simulation gives back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from driftbandit import errors

__all__ = ["Result", "Timing"]


class Timing(NamedTuple):
    """Seconds spent, and on what."""

    prepare: float
    """Steady states, tuning constants and stacking, in NumPy."""
    compile: float
    """Compiling programs that this process had not compiled before."""
    play: float
    """Playing."""
    device: str
    """Where it ran."""


class Result(NamedTuple):
    """Regret of every policy in every run, all runs paired by common noise.

    With one system the leading axis is runs; with many it is systems × runs.
    """

    regret: dict[str, np.ndarray]
    """Dynamic regret Σ_t max_b ⟨b, z⟩ − ⟨a, z⟩ over all rounds (P4), by policy."""
    curves: dict[str, np.ndarray]
    """The same up to each of ``checkpoints``: one more, last axis."""
    checkpoints: np.ndarray
    """Log-spaced round numbers, the last one ``rounds``."""
    rounds: int
    seed: int
    timing: Timing

    def normalized(self, against: str = "kalman_oracle") -> dict[str, np.ndarray]:
        """(R − R_oracle) / R_oracle run by run, the quantity of Table II (P21).

        Runs in which the yardstick itself has no regret give infinity, or zero if both have none.
        """
        if against not in self.regret:
            raise errors.InvalidInput(
                "against", f"{against!r} was not simulated", f"valid: {', '.join(self.regret)}"
            )
        base = self.regret[against]
        result = {}
        for name, regret in self.regret.items():
            if name == against:
                continue
            excess = regret - base
            with np.errstate(divide="ignore", invalid="ignore"):
                share = excess / base
            result[name] = np.where((base == 0) & (excess == 0), 0.0, share)
        return result

    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, standard error, median and interquartile range of the regret, by policy."""
        return {name: _summary(regret) for name, regret in self.regret.items()}

    def __str__(self) -> str:
        rows = [f"{'policy':<20} {'mean regret':>12} {'± s.e.':>10} {'median':>12} {'IQR':>10}"]
        for name, row in sorted(self.summary().items(), key=lambda item: item[1]["mean"]):
            rows.append(
                f"{name:<20} {row['mean']:>12.4g} {row['standard_error']:>10.2g} "
                f"{row['median']:>12.4g} {row['iqr']:>10.3g}"
            )
        return "\n".join(rows)


def _summary(values: Any) -> dict[str, float]:
    values = np.asarray(values).ravel()
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    spread = values.std(ddof=1) / np.sqrt(values.size) if values.size > 1 else float("nan")
    return {
        "mean": float(values.mean()),
        "standard_error": float(spread),
        "median": float(middle),
        "iqr": float(high - low),
    }
