# %% [markdown]
# # One decision among a million arms
#
# A shop has a million products, each with ten features. How long does one decision take? The
# least that anybody can do is to look at every arm once: one product of the arms with a vector.
# IDEA needs more, since its bonus takes two products of the arms with a 10 × 10 matrix.
#
# `Agent` first *screens*: it looks at all arms once in single precision, with a bound on the error,
# and scores only those arms that can be the best
# ([why screening never changes a decision](../understand/screening.md)).

# %%
import time

import numpy as np

import driftbandit as db
from driftbandit.report import figures

model, _ = db.families.sample("gaussian", n_states=10, n_arms=2, seed=1)[0]
catalog = np.random.default_rng(3).standard_normal((10**6, 10))  # 80 MB
sizes = [10**3, 3 * 10**3, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6]


def timed(call):
    """What a call returns, and how many milliseconds it took."""
    begin = time.perf_counter()
    found = call()
    return found, 1e3 * (time.perf_counter() - begin)


# %% [markdown]
# Two agents decide side by side, one with screening and one that scores every arm. Both learn from
# the same rewards. The time is that of the fastest of ten rounds, so that other programs on the
# machine matter little.

# %%
took = {"score every arm": [], "Agent.ask": [], "one product": []}
same = 0
for size in sizes:
    arms, rng = catalog[:size], np.random.default_rng(5)
    exact, screened = db.Agent(model, arms, "idea", screen=False), db.Agent(model, arms, "idea")
    times, vector = [], rng.standard_normal(10)
    for _ in range(10):
        (one, slow), (other, fast) = timed(exact.ask), timed(screened.ask)
        _, product = timed(lambda arms=arms, vector=vector: arms @ vector)
        times.append((slow, fast, product))
        same += one == other  # the arm, its expected reward, its bonus: all numbers
        reward = 5 * rng.standard_normal()
        exact.tell(one, reward)
        screened.tell(other, reward)
    for name, fastest in zip(took, np.min(times, axis=0), strict=True):
        took[name].append(fastest)

print(f"Same decision in {same} of {10 * len(sizes)} rounds.")

# %%
figure, (axis,) = figures.grid(1, 1, 5.6, 3.8)
for place, (name, fastest) in enumerate(took.items()):
    look = {"color": figures.COLORS[(1, 0, 7)[place]], "marker": figures.MARKERS[place], "lw": 2}
    axis.loglog(sizes, fastest, label=f"{name}: {fastest[-1]:.0f} ms", **look)
axis.axvline(65_536, color="black", lw=1, ls=":")
axis.text(75_000, took["one product"][0], "screening starts", va="center")
axis.set(xlabel="number of arms", ylabel="milliseconds per decision")
axis.set_title("One decision of IDEA, 10 states")
axis.legend(title="among a million arms", alignment="left", frameon=False)
axis.grid(alpha=0.3)

# %% [markdown]
# The time grows in proportion to the number of arms. Below 65 536 arms the agent scores all of
# them. Above, it screens, which is several times faster. At a million arms a decision takes little
# longer than a single product, because both wait for the memory: 1.6 times as long when nothing
# else runs (`python benchmarks/huge.py`). The times in the picture are those of the machine that
# made this page. The decisions are the same, number by number.
#
# The screen takes half as much memory as the arms do. `Agent(…, screen=False)` leaves it out.
#
# Next: [deciding online](../do/decide_online.md), and arms without end: [every direction is an
# arm](sphere.md).
