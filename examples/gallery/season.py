# %% [markdown]
# # A season anticipated
#
# What people like depends on the hour. A policy that only follows rewards notices a change after
# it has happened. A policy whose model has a season expects today what happened yesterday at this
# hour, and changes arms on time.
#
# Here three kinds of content have a level that wanders and a daily pattern of their own. The model
# says that there is a pattern of 24 rounds. It does not say what it looks like: the agent has to
# learn that while it plays.

# %%
import numpy as np

import driftbandit as db
from driftbandit.report import figures
from driftbandit.structure import Layout, constant, level, season

names = ["news", "music", "film"]
daily = level("arm", drift=0.05, start=0.3) + season(24, 2, "arm", change=0.02, start=1.0)
truth = Layout(daily, names).system({"noise": 0.5}, mean=2.0)
print(truth)

# %% [markdown]
# Three rivals know nothing of the hour: the same filter with levels that forget fast enough to
# follow a day, and no season; UCB; and discounted UCB, which forgets. The model without a season is
# the best of 29, which differ in memory and drift, on 20 worlds that are not used below. UCB and
# discounted UCB have their default parameters. All meet the same ten days.

# %%
forgetting = constant("arm", start=0.3) + level("arm", memory=2, drift=1.5)
no_season = Layout(forgetting, names).system({"noise": 0.5}, mean=2.0)
rivals = {
    "IDEA, season": {},
    "IDEA, no season": {"assumed": no_season},
    "UCB": {"policy": "ucb"},
    "D-UCB": {"policy": "discounted_ucb"},
}


def play(seed):
    """Ten days of every rival."""
    return {name: db.trace(truth, rounds=240, seed=seed, **one) for name, one in rivals.items()}


def on_time(trace, first=72):
    """Of the changes of the best arm after three days: the share played in that very round."""
    changes = np.flatnonzero(np.diff(trace.best)) + 1
    changes = changes[changes >= first]
    return np.mean(trace.chosen[changes] == trace.best[changes])


worlds = [play(seed) for seed in range(20)]
for name in rivals:
    lost = np.mean([world[name].regret[-1] / 240 for world in worlds])
    share = np.mean([on_time(world[name]) for world in worlds])
    print(f"{name:16} regret per round {lost:.2f}, changes followed at once {share:.0%}")

# %%
shown = worlds[0]
figure, axes = figures.grid(3, 1, 5.4, 1.9, sharex=True)
for axis, name in zip(axes, ("IDEA, season", "IDEA, no season"), strict=False):
    shown[name].draw(axis)
    axis.set_title(name, fontsize=10)
    axis.set_ylabel("reward", fontsize=9)
for name, look in zip(rivals, ("-", "--", ":", "-."), strict=True):
    axes[2].plot(shown[name].regret, look, color="black", label=name)
axes[2].set(xlim=(-2, 146), xticks=range(0, 145, 24), ylim=(0, 110))
axes[2].set_ylabel("regret so far", fontsize=9)
axes[2].set_xlabel("hour, six of the ten days", fontsize=9)
axes[2].legend(frameon=False, fontsize=8, loc="upper left")
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside upper center", ncols=3, frameon=False, fontsize=9)

# %% [markdown]
# The first of the 20 worlds. Dots are choices, lines the expected rewards. On the first day, the
# agent with the season makes a few mistakes. From the second day on it changes arms when the lines
# cross, in three of four cases in that very hour. Without the season the filter has to find every
# change by trying.
#
# These patterns are strong, so a season is worth much here. If you do not know whether there is
# one, `db.fit(log, structure="auto")` compares structures by how well they predict. Next:
# [Models from components](../do/structures.md), which measures what a season is worth with less
# regular rewards.
