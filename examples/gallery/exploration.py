# %% [markdown]
# # What exploration buys
#
# KODE always plays the arm with the highest predicted reward. IDEA, Kalman-UCB and Lookahead use
# the same Kalman filter and sometimes play another arm in order to learn. Is that worth its price?
#
# On many systems it hardly matters. On the random systems of the
# [leaderboard](../understand/leaderboard.md), KODE has 1.022 times the best policy's regret (95%
# interval 1.016 to 1.029), and IDEA 1.016 times (1.010 to 1.022). There, states mix: every reward
# tells something about all arms.
#
# So this example chooses the opposite: four arms that drift independently, where a reward tells
# nothing about the other arms. One thing varies, how long a level lasts.

# %%
import numpy as np

import driftbandit as db
from driftbandit.report import figures
from driftbandit.result import policy_styles


def system(memory, n_arms=4):
    """Arms with independent AR(1) levels of variance 1, and noise of standard deviation 0.5."""
    fading = np.exp(-1 / memory)
    drift = (1 - fading**2) * np.eye(n_arms)
    return db.LGDS(fading * np.eye(n_arms), drift, reward_std=0.5), np.eye(n_arms)


memories = (2, 5, 10, 20, 50, 100, 200)  # in rounds
names = ["kode", "idea", "kalman_ucb", "lookahead", "random"]
result = db.simulate([system(m) for m in memories], policies=names, rounds=400, runs=200)
regret = {name: values.mean(axis=1) / result.rounds for name, values in result.regret.items()}
print("memory", *(f"{m:6}" for m in memories))
for name in ("kode", "random"):
    print(f"{name:6}", *(f"{value:6.2f}" for value in regret[name]), " regret per round")

# %% [markdown]
# ## Where greedy play gets stuck
#
# One run with a memory of 100 rounds, chosen because it shows the difference well. KODE stays with
# an arm that pays a little more than zero, because it expects zero from arms that it has not played
# for long. It does not find out that others pay twice as much.

# %%
figure, axes = figures.grid(2, 1, 5.4, 2.3, sharex=True, sharey=True)
for axis, name in zip(axes, ("kode", "idea"), strict=True):
    trace = db.trace(*system(100), policy=name, rounds=300, seed=3)
    trace.draw(axis)
    axis.set_title(f"{trace.title}: regret {trace.regret[-1]:.0f}", fontsize=10)
axes[1].set_xlabel("round", fontsize=9)

# %% [markdown]
# ## How much it buys
#
# All policies see the same states and noise, so their regrets are compared run by run: the mean
# difference from KODE with its 95% interval, in percent of KODE's regret.

# %%
figure, (axis,) = figures.grid(1, 1, 5.4, 3.4)
styles = policy_styles(names)
for name in ("idea", "kalman_ucb", "lookahead"):
    pairs = zip(result.regret[name], result.regret["kode"], strict=True)
    found = [db.statistics.paired(ours, kode) for ours, kode in pairs]
    percent = 100 / (regret["kode"] * result.rounds)
    middle, low, high = (
        percent * [getattr(one, end) for one in found]
        for end in ("mean_difference", "mean_low", "mean_high")
    )
    axis.plot(memories, middle, label=db.policies.title(name), lw=1.8, ms=5, **styles[name])
    axis.fill_between(memories, low, high, color=styles[name]["color"], alpha=0.15, lw=0)
    print(f"{name:10} with a memory of 200: {middle[-1]:.0f}% ({low[-1]:.0f} to {high[-1]:.0f})")
axis.axhline(0, color="black", lw=1)
axis.set(xscale="log", xticks=memories, xticklabels=memories, xlabel="memory in rounds")
axis.set(ylabel="regret compared with KODE, %", title="Exploration pays if levels last")
axis.minorticks_off()
axis.grid(alpha=0.3)
axis.legend(frameon=False, fontsize=9, loc="lower left")

# %% [markdown]
# With a memory of 2 to 5 rounds, exploration buys next to nothing: what it finds is gone before it
# can be used. With a memory of 50 rounds it saves about a third of the regret, and with 200 rounds
# more. Random play, which only explores, has 1.4 to 5 times KODE's regret.
#
# Which policy explores best depends on the system, too. Kalman-UCB does as well as IDEA here; on
# the leaderboard's random systems it has 1.363 times the best policy's regret (1.333 to 1.393).
# Lookahead, the best policy there, values what a reward teaches for the next three rounds only, and
# explores too little if levels last for hundreds. `reach`, the default, does well on both.
#
# For your own system, [`db.advise`](../do/advise.md) makes this comparison. Next:
# [Lookahead](../understand/lookahead.md) and the [leaderboard](../understand/leaderboard.md).
