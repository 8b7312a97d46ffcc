# %% [markdown]
# # Learning from a log
#
# Usually nobody knows the model. There is a log: which arm was played in which round, and what it
# paid. How well does `db.fit` learn from it, does it know how uncertain it is, and does the model
# predict what comes next?
#
# To check this, the log is simulated: the rewards of three ads have a level each, a weekly pattern
# and a level that they share, all of which drift. The log has 400 days of random play.

# %%
import numpy as np

import driftbandit as db
from driftbandit.identify import estimates, one_step
from driftbandit.report import figures
from driftbandit.structure import Layout

known = {"level(arm).drift": 0.06, "season(7).size": 0.5, "season(7).change": 0.01}
known |= {"level(shared).drift": 0.1, "noise": 0.4}
structure = "level(arm) + season(7) + level(shared)"
truth = Layout(structure, ["banner", "story", "video"]).system(known, mean=2.0)
days = db.trace(truth, policy="random", rounds=400, seed=0)
log = days.to_dataframe()[["round", "arm", "reward"]]
print(log.head(3).round(2).to_string(index=False))

# %% [markdown]
# ## Learn from the first 300 days
#
# You say what rewards are made of; `fit` learns the numbers, with 95% intervals.

# %%
found = db.fit(log[:300], structure=structure)
rows = estimates(found)
for row in rows:
    interval = f"{row.low:.2f} to {row.high:.2f}"
    print(f"{row.name:20} {row.value:.2f} ({interval}), truth {known[row.name]}")

# %% [markdown]
# ## Predict the last 100 days
#
# Each reward is predicted from the rewards before it, with the numbers learned from the first 300
# days.

# %%
ahead = one_step(found, log)
predicted, stds, real = (part[300:] for part in (ahead.means, ahead.stds, ahead.rewards))
inside = np.mean(np.abs(real - predicted) < 1.96 * stds)
print(f"{inside:.0%} of the rewards lie in their 95% interval")

recent = log.groupby("arm")["reward"].transform(lambda paid: paid.shift().rolling(5).mean())
for title, means in (("the model", predicted), ("mean of the arm's last 5", recent[300:])):
    print(f"{title:25} mean square error {np.mean((real - means) ** 2):.2f}")

figure, axes = figures.grid(2, 1, 5.4, 2.5, height_ratios=[2, 3])
figures.interval_rows(axes[0], [(r.low, r.value, r.high) for r in rows], [figures.COLORS[0]] * 5)
axes[0].plot([known[r.name] for r in rows], range(len(rows)), "x", color="black", label="truth")
figures.name_rows(axes[0], [row.name for row in rows])
axes[0].set(title="Learned from 300 days, 95% intervals", xlim=(0, None))
axes[0].legend(frameon=False, fontsize=9)
for arm, color in zip(found.names, figures.COLORS, strict=False):
    own = np.flatnonzero(log["arm"][300:] == arm)
    look = {"color": color, "fmt": "none", "elinewidth": 3, "alpha": 0.3}
    axes[1].errorbar(300 + own, predicted[own], 1.96 * stds[own], **look)
    axes[1].plot(300 + own, real[own], ".", color=color, label=arm)
axes[1].set(title="Rewards (dots) and their predictions (bars)", xlabel="day", ylabel="reward")
axes[1].set_ylim(bottom=0)
axes[1].legend(frameon=False, fontsize=9, ncols=3)

# %% [markdown]
# The noise and the two drifts are known to within a factor of two. How fast the weekly pattern
# changes hardly shows in 300 days: its interval begins near zero. An interval like that is a
# result, too. The intervals are approximate: of five seeds tried, one had two or three of the five
# true values outside.
#
# About 95% of the new rewards lie in their intervals: the predictions are as good as they say, and
# that is what an agent needs. `db.Agent(found.system)` plays on from the day after the log. Next:
# [From a log to a model](../do/fit.md), [Models from components](../do/structures.md), and
# [Does the model still hold?](../do/monitor.md)
