"""`exploration.png`: what three policies add to the same predictions, and what they play."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

import driftbandit as db

from . import canvas

SIZE = 720, 430
POLICIES = {"kalman_ucb": "Kalman-UCB", "idea": "IDEA", "lookahead": "Lookahead"}
ARMS = {"tried": [1, 0, 0], "mixed": [0.7, 0.7, 0], "untried": [0, 1, 0], "lottery": [0, 0, 1]}
REWARDS = 1.0, 1.3, 1.1, 1.2


def agent(policy: str) -> db.Agent:
    """An agent that has seen four rewards of the arm *tried*, as on the page."""
    model = db.LGDS(np.diag([0.95, 0.95, 0.0]), np.diag([0.1, 0.1, 3.0]), reward_std=0.5)
    made = db.Agent(db.System(model, list(ARMS.values()), list(ARMS)), policy=policy)
    for reward in REWARDS:
        made.tell_play("tried", reward)
    return made


@canvas.styled
def frame(step: int = 0, scale: float = 1.0) -> Figure:
    """One panel per policy: predicted reward in gray, bonus in color, the highest sum marked."""
    figure = canvas.figure(*SIZE, scale)
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    figure.subplots_adjust(left=0.125, right=0.98, top=0.77, bottom=0.07, wspace=0.14)
    for axes, (policy, title) in zip(panels, POLICIES.items(), strict=True):
        scores = agent(policy).scores()
        means = np.array([score.mean for score in scores])
        bonuses = np.array([score.bonus for score in scores])
        rows = np.arange(len(scores))
        axes.barh(rows, means, color="#B5B5B5", height=0.6)
        axes.barh(rows, bonuses, left=means, color=canvas.BLUE, height=0.6)
        best = int((means + bonuses).argmax())
        axes.text(means[best] + bonuses[best] + 0.06, best, "◀", va="center", color=canvas.RED)
        axes.set_title(title, fontsize=15, weight="bold", loc="left")
        axes.set(xticks=[], xlim=(0, 2.05), yticks=rows, yticklabels=list(ARMS))
        axes.tick_params(length=0, labelcolor=canvas.INK)
        axes.spines["bottom"].set_visible(False)
    panels[0].invert_yaxis()
    figure.text(0.02, 0.92, "■ predicted reward", color=canvas.GRAY, weight="bold")
    figure.text(0.36, 0.92, "■ bonus", color=canvas.BLUE, weight="bold")
    figure.text(0.54, 0.92, "◀ the arm that is played", color=canvas.RED, weight="bold")
    return figure
