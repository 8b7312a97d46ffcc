"""`filter.png`: one arm is played, and the belief about the arm beside it changes too."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import driftbandit as db

from . import canvas

SIZE = 720, 600
ROUNDS, GAP, SEED = 45, (18, 32), 0


@canvas.styled
def frame(step: int = 0, scale: float = 1.0) -> Figure:
    """Arm A is played in every round outside of the gap; arm B is never played."""
    z, seen, means, stds = _run()
    figure = canvas.figure(*SIZE, scale)
    panels = figure.subplots(2, 1, sharex=True, sharey=True)
    figure.subplots_adjust(left=0.06, right=0.985, top=0.87, bottom=0.1, hspace=0.22)
    rounds = np.arange(ROUNDS)
    titles = "Arm A: played", "Arm B: never played"
    for i, (axes, title) in enumerate(zip(panels, titles, strict=True)):
        axes.axvspan(GAP[0] - 0.5, GAP[1] - 0.5, color="#EEEEEE", lw=0)
        low, high = means[:, i] - 2 * stds[:, i], means[:, i] + 2 * stds[:, i]
        axes.fill_between(rounds, low, high, color=canvas.BLUE, alpha=0.2, lw=0)
        axes.plot(rounds, means[:, i], color=canvas.BLUE, lw=2.5)
        axes.plot(rounds, z[:, i], color=canvas.INK, lw=2)
        axes.set_title(title, loc="left", fontsize=15, weight="bold")
        axes.set(yticks=[0], xlim=(-1, ROUNDS), ylim=(-2.4, 2.4))
        axes.tick_params(length=0)
        axes.spines["left"].set_visible(False)
    known = ~np.isnan(seen)
    panels[0].scatter(rounds[known], seen[known], s=36, color=canvas.RED, zorder=3)
    panels[0].text(sum(GAP) / 2 - 0.5, -2.15, "no rewards", color=canvas.GRAY, ha="center")
    panels[1].set_xlabel("round")
    figure.text(0.02, 0.95, "● rewards", color=canvas.RED, weight="bold")
    figure.text(0.25, 0.95, "▬ truth", color=canvas.INK, weight="bold")
    figure.text(0.44, 0.95, "▬ belief ± 2 standard deviations", color=canvas.BLUE, weight="bold")
    return figure


def _run() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    model = world()
    random, d = np.random.default_rng(SEED), model.n_states
    root = np.linalg.cholesky(model.process_cov)
    z = np.linalg.cholesky(model.start_cov()) @ random.standard_normal(d)
    belief = db.kalman.prior(model)
    states, means, stds = (np.empty((ROUNDS, d)) for _ in range(3))
    seen = np.full(ROUNDS, np.nan)
    for t in range(ROUNDS):
        states[t], means[t], stds[t] = z, belief.mean, np.sqrt(np.diag(belief.cov))
        if not GAP[0] <= t < GAP[1]:
            seen[t] = z[0] + model.reward_std * random.standard_normal()
            belief = db.kalman.observe(belief, model, np.array([1.0, 0.0]), seen[t])
        belief = db.kalman.advance(belief, model)
        z = model.transition @ z + root @ random.standard_normal(d)
    return states, seen, means, stds


def world() -> db.LGDS:
    """Two arms that read one state each; shocks hit both, with correlation 0.9."""
    return db.LGDS(0.95 * np.eye(2), 0.1 * np.array([[1.0, 0.9], [0.9, 1.0]]), reward_std=0.5)
