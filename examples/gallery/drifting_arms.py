# %% [markdown]
# # Drifting arms and a policy's choices
#
# Four arms, whose expected rewards drift. Which arm is best changes again and again, and you see
# only the reward of the arm that you play. What does a policy do if it knows how fast they drift?
#
# `db.trace` plays one run in a simulated world and records every round. Each arm's expected reward
# is a hidden state that returns to zero with a memory of 33 rounds and has variance 1.

# %%
import numpy as np

import driftbandit as db

fading = 0.97
model = db.LGDS(fading * np.eye(4), (1 - fading**2) * np.eye(4), reward_std=0.3)
system = db.System(model, np.eye(4), ["a", "b", "c", "d"])

idea = db.trace(system, policy="idea", rounds=200, seed=1)
print(idea)

# %% [markdown]
# ## What the policy knows
#
# IDEA runs a Kalman filter. While it plays arm b, its belief (the band) follows the rewards (dots).
# When it plays something else, the belief fades to "about zero" and widens, as fast as the arm can
# drift. The expected reward itself, the line, is never seen.

# %%
figure = idea.plot(arm="b")

# %% [markdown]
# IDEA plays the arm with the highest sum of predicted reward and bonus. The bonus is high for arms
# about which there is much to learn. So every arm gets a look from time to time: the single dots
# between the long stretches.
#
# ## What it costs
#
# UCB assumes that nothing drifts. It averages all rewards of an arm, old and new, and the longer it
# has played, the more certain it is. Both policies meet the same states and, on the same arm in the
# same round, the same noise.

# %%
ucb = db.trace(system, policy="ucb", rounds=200, seed=1)
for trace in (idea, ucb):
    share = np.mean(trace.chosen == trace.best)
    print(f"{trace.title:4}  best arm in {share:.0%} of the rounds, regret {trace.regret[-1]:.0f}")

figure = idea.plot(against=ucb)

# %% [markdown]
# The dots are the choices, on the line of the arm that was played. IDEA changes arms soon after the
# lines cross. After round 100 arm c overtakes the others: IDEA plays it from round 115 on. UCB,
# which still counts the low rewards of the first 100 rounds, loses more than one unit per round on
# average from then on.
#
# This is one run. `db.simulate` plays many of them at once:
# [Exploration](exploration.md) does so for several memories. Next:
# [Decide online](../do/decide_online.md), or [which policy to use](../do/advise.md).
