"""Speed of learning structures: the gradient, and whole fits.

    python benchmarks/structure_speed.py

- One gradient of the likelihood of 10⁵ rows with 20 states, in units of one forward pass; a
  structure whose parameters are all variances, and one that also learns a memory and loadings.
  Dense: the same forward pass with Γ as a d × d matrix, by JAX; and JAX's own reverse mode.
- Fits of 8 arms × 2000 rounds with their intervals, compile included, in a fresh process: one
  reward per round, and all eight.

Stores benchmarks/results/structure_speed.json.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results" / "structure_speed.json"
ROWS, ARMS = 100_000, 8
GRADIENTS = {
    "variances": "level(arm) + season(7) + season(12, harmonics=2) + trend(shared)",
    "memory": "constant(arm) + level(arm, memory=free) + trend(shared) + season(4, harmonics=1)",
    "memory and loadings": "constant(arm) + level(arm, memory=free) + trend(shared, loadings=free)"
    " + season(4, harmonics=1)",
}
FIT = "level(arm) + season(7) + level(shared)"


def log(rounds, full, seed=0):
    """A product's log: levels, a season and a shared level."""
    rng = np.random.default_rng(seed)
    levels = rng.standard_normal(ARMS) + np.cumsum(
        0.1 * rng.standard_normal((rounds, ARMS)) + 0.1 * rng.standard_normal((rounds, 1)), axis=0
    )
    means = levels + rng.standard_normal(7)[np.arange(rounds) % 7][:, None]
    arms = np.tile(np.arange(ARMS), (rounds, 1)) if full else rng.integers(ARMS, size=(rounds, 1))
    rewards = np.take_along_axis(means, arms, axis=1) + rng.standard_normal(arms.shape)
    rounds = np.repeat(np.arange(rounds), arms.shape[1])
    return {"round": rounds, "arm": arms.ravel(), "reward": rewards.ravel()}


def seconds(call, repeats=5):
    """The least time of several calls, after one that compiles."""
    import jax

    jax.block_until_ready(call())
    found = []
    for _ in range(repeats):
        clock = time.perf_counter()
        jax.block_until_ready(call())
        found.append(time.perf_counter() - clock)
    return min(found)


def gradients():
    """Time of a gradient and of a forward pass."""
    import jax

    from driftbandit.identify import as_log
    from driftbandit.identify.structured import likelihood
    from driftbandit.identify.structured.fitting import Problem
    from driftbandit.identify.structured.rows import rows_of
    from driftbandit.structure import Layout

    read, found = as_log(log(ROWS, False)), {}
    for name, structure in GRADIENTS.items():
        layout = Layout(structure, read.names)
        data = rows_of(read, layout)
        theta = np.array([free.center for free in layout.free])
        problem = Problem(layout, data, 1.0)
        with jax.enable_x64(True):
            given = *problem.moves(theta)[0], problem.keeps
            forward = seconds(lambda given=given: likelihood.objective(*given))
            both = seconds(lambda given=given: likelihood.objective_and_slopes(*given))
        found[name] = {
            "structure": structure,
            "states": layout.n_states,
            "parameters": len(theta),
            "forward, µs per row": 1e6 * forward / ROWS,
            "gradient, µs per row": 1e6 * both / ROWS,
            "gradient over forward": both / forward,
        }
        if name == "variances":
            found[name] |= _dense(layout, theta, data, forward)
    return found


def _dense(layout, theta, data, forward):
    """The same filter with dense matrices, and its gradient by JAX's reverse mode."""
    import jax
    import jax.numpy as jnp

    rows, short = data.rows.plays, 20_000

    def value(scale, rows):
        model = layout.model(theta, units=data.units)
        turn, noise = jnp.asarray(model.transition), jnp.asarray(model.process_cov) * scale
        reads = jnp.asarray(layout.matrices(theta, data.units).reads)

        def step(belief, row):
            mean, cov = turn @ belief[0], turn @ belief[1] @ turn.T + noise
            read = reads[row.arms]
            cross = cov @ read
            variance = read @ cross + model.reward_std**2
            surprise = row.rewards - read @ mean
            gain = cross / variance
            after = mean + gain * surprise, cov - cross[:, None] * gain
            return after, -0.5 * (jnp.log(2 * jnp.pi * variance) + surprise**2 / variance)

        start = jnp.zeros(layout.n_states), jnp.asarray(model.start_cov())
        return jax.lax.scan(step, start, rows)[1].sum()

    with jax.enable_x64(True):
        part = jax.tree.map(lambda x: jnp.asarray(x[:short]), rows)
        forwards, both = jax.jit(value), jax.jit(jax.value_and_grad(value))
        plain = seconds(lambda: forwards(1.0, part)) / short
        reverse = seconds(lambda: both(1.0, part)) / short
    return {
        "dense forward over ours": plain * ROWS / forward,
        "JAX's gradient over its dense forward": reverse / plain,
    }


def whole_fit(full):
    """Seconds of a fit with intervals, in this process."""
    from driftbandit.identify import estimates, fit

    given = log(2000, full)
    clock = time.perf_counter()
    found = fit(given, structure=FIT)
    rows = estimates(found)
    return {"seconds": time.perf_counter() - clock, "drifts": [r.value for r in rows if r.is_drift]}


def main():
    """Measure, print and store."""
    if "--fit" in sys.argv:
        print(json.dumps(whole_fit(sys.argv[-1] == "full")))
        return
    found = {"cores": os.cpu_count(), "gradients": gradients(), "fits": {}}
    for name in ("single", "full"):
        command = [sys.executable, __file__, "--fit", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found["fits"][name] = json.loads(done.stdout.splitlines()[-1])
    RESULTS.write_text(json.dumps(found, indent=1) + "\n")
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
