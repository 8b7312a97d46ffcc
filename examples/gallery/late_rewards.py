# %% [markdown]
# # Rewards that arrive late
#
# A purchase is reported days after the recommendation, a yield weeks after the setting. How much
# does a delay cost? And does it matter how the late reward is used?
#
# `Agent.tell` puts a late reward into the round in which it was earned and filters the rounds since
# then again ([Decide online](../do/decide_online.md#late-repeated-and-missing-rewards)). The naive
# way treats the reward as if it had been earned in the round in which it arrives.

# %%
import numpy as np

import driftbandit as db
from driftbandit.report import figures

angle = 2 * np.pi / 40
turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
process_std = np.sqrt(1 - 0.98**2)  # so that each state has variance 1
models = {  # both forget at the same rate; the first also turns, once in 40 rounds
    "The state turns": db.LGDS(0.98 * turn, process_std**2 * np.eye(2), reward_std=0.5),
    "The state only fades": db.LGDS(0.98 * np.eye(2), process_std**2 * np.eye(2), reward_std=0.5),
}
directions = 2 * np.pi * np.arange(5) / 5
arms = np.stack([np.cos(directions), np.sin(directions)], axis=1)


def world(model, seed, rounds=150):
    """The expected and the noisy reward of every arm in every round."""
    rng = np.random.default_rng(seed)
    state, expected = rng.standard_normal(2), []
    for _ in range(rounds):
        expected.append(arms @ state)
        state = model.transition @ state + process_std * rng.standard_normal(2)
    return np.array(expected), expected + 0.5 * rng.standard_normal((rounds, len(arms)))


def regret_per_round(model, delay, naive, expected, rewards):
    """Play one world with rewards that arrive ``delay`` rounds late."""
    agent, decisions, lost = db.Agent(model, arms, "idea", window=delay), [], 0.0
    for now in range(len(rewards)):
        decisions.append(agent.ask(round=now))
        lost += expected[now].max() - expected[now, decisions[now].arm]
        if now >= delay:
            old = decisions[now - delay]  # its reward arrives in this round
            reward = rewards[old.round, old.arm]
            if naive:
                agent.tell_play(old.arm, reward, round=now)
            else:
                agent.tell(old, reward)
    return lost / len(rewards)


# %% [markdown]
# Eight runs for each model. Both ways see the same states and the same noise, so that their
# difference can be measured run by run.

# %%
delays = (0, 2, 4, 8, 16)
regret, random_play = {}, {}
for title, model in models.items():
    worlds = [world(model, seed) for seed in range(8)]
    random_play[title] = np.mean([(e.max(axis=1) - e.mean(axis=1)).mean() for e, _ in worlds])
    for naive in (False, True):
        regret[title, naive] = np.array(
            [[regret_per_round(model, delay, naive, *one) for one in worlds] for delay in delays]
        )
    found = db.statistics.paired(regret[title, True][3], regret[title, False][3])
    interval = f"{found.mean_low:.2f} to {found.mean_high:.2f}"
    print(f"{title}, 8 rounds late: naive − exact is {found.mean_difference:.2f} ({interval})")

# %%
figure, axes = figures.grid(2, 2, 5.6, 3.2, sharey=True)
for axis, title in zip(axes, models, strict=True):
    for naive, label in ((True, "as if earned now"), (False, "in its own round")):
        look = {"color": figures.COLORS[int(naive)], "marker": "so"[int(not naive)]}
        axis.plot(delays, regret[title, naive], alpha=0.12, **(look | {"marker": ""}))
        axis.plot(delays, regret[title, naive].mean(axis=1), lw=2.5, label=label, **look)
    axis.axhline(random_play[title], color=figures.GRAY, ls="--", label="random play")
    axis.set(title=title, xlabel="delay in rounds", xticks=delays, ylim=(0, None))
    axis.grid(alpha=0.3)
axes[0].set_ylabel("regret per round")
axes[1].legend(frameon=False, loc="upper left")

# %% [markdown]
# Thin lines are single runs, thick lines are means. A delay costs reward in any case: nobody can
# know what has happened since. But where the state turns, the naive way does much worse. After 16
# rounds the state points nearly the opposite way. An agent that takes the old reward for a new one
# then plays nearly the worst arm, and loses more than random play.
#
# Where the state only fades, the naive way is about as good. The old reward still says which arm is
# best, only less surely. So the exact way is safe in both cases. You call the same `tell` whenever
# the reward comes, within a `window` that you set; filtering the rounds since then again takes tens
# of microseconds per round.
#
# Next: [deciding online](../do/decide_online.md), which has more about late, repeated and missing
# rewards, and [how the filter works](../understand/filter.md).
