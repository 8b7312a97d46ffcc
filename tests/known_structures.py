"""Structures with known parameters on logs, and slow loops over their rounds."""

import math

import numpy as np

from driftbandit.identify import Log, Sequence
from driftbandit.identify.structured.fitting import Fit, Problem
from driftbandit.identify.structured.rows import Described, rows_of
from driftbandit.structure import Layout
from driftbandit.structure.layout import Units


def log_of(rounds, arms, rewards, features=None, names=None, feature_names=()):
    """A log with one sequence, or with several if the rounds are a list of arrays."""
    several = isinstance(rounds, list)
    given = (rounds, arms, rewards) if several else ([rounds], [arms], [rewards])
    features = features if several else [features]
    features = [None] * len(given[0]) if features is None else features
    ones = [
        Sequence(*map(np.asarray, one), features=x)
        for *one, x in zip(*given, features, strict=True)
    ]
    k = 1 + max(int(one.arms.max()) for one in ones)
    return Log(tuple(ones), names or tuple(f"a{i}" for i in range(k)), (), feature_names)


def known(structure, log, values, groups=None, center=0.0, prior=0.0):
    """What `fit` returns, with given parameters, in the rewards' own units.

    Its log-likelihood is not computed, because that compiles a program.
    """
    layout = Layout(structure, log.names, groups)
    units = Units(1.0, np.ones(len(layout.structure.features)))
    own = Described(None, center, units, 0, None, None)
    problem = Problem(layout, rows_of(log, layout, own), prior)
    return Fit(layout, problem, layout.theta_of(values), math.nan, True, ())


def naive_filter(found, log):
    """A loop over single rounds with dense matrices: densities, predictions, the last belief.

    Predictions are those before each reward's round; the belief is that after the last reward.
    """
    layout, theta, data = found.layout, found.theta, found.problem.described
    model = layout.model(theta, units=data.units)
    persistent = layout.persistent[layout.block_of]
    start = np.array(model.start_cov())
    mean, cov, now = np.zeros(layout.n_states), start, None
    density, means, variances = 0.0, [], []
    read = read_outs(found, log)
    arms = np.concatenate([one.arms for one in log.sequences])
    row = 0
    for number, sequence in enumerate(log.sequences):
        if number:  # what never moves is turned to the new round; the rest is drawn anew
            steps = int(sequence.rounds[0]) - now
            keeps, turn = np.ix_(persistent, persistent), np.zeros_like(start)
            turn[keeps] = np.linalg.matrix_power(model.transition[keeps], steps)
            mean, cov = turn @ mean, turn @ cov @ turn.T
            cov = cov + np.where(np.outer(~persistent, ~persistent), start, 0.0)
        now = int(sequence.rounds[0])
        ahead = mean, cov
        for t, reward in zip(sequence.rounds, sequence.rewards, strict=True):
            if t > now:
                for _ in range(int(t) - now):
                    mean = model.transition @ mean
                    cov = model.transition @ cov @ model.transition.T + model.process_cov
                now, ahead = int(t), (mean, cov)
            h = read[row]
            row += 1
            center = np.broadcast_to(data.centers, len(log.names))[arms[row - 1]]
            means.append(h @ ahead[0] + center)
            variances.append(h @ ahead[1] @ h + model.reward_std**2)
            if math.isnan(reward):
                continue
            variance = h @ cov @ h + model.reward_std**2
            surprise = reward - center - h @ mean
            density -= 0.5 * (math.log(2 * math.pi * variance) + surprise**2 / variance)
            gain = cov @ h / variance
            mean, cov = mean + gain * surprise, cov - np.outer(gain, h @ cov)
    return density, np.array(means), np.array(variances), (mean, cov)


def read_outs(found, log):
    """How each row's reward reads the state, by `System.arms_in`."""
    system, rows = found.start_system, []
    for one in log.sequences:
        for i, arm in enumerate(one.arms):
            arms = system.arms
            if system.contexts:
                features = dict(zip(log.feature_names, one.features[i], strict=True))
                arms = system.arms_in({name: features[name] for name in system.contexts})
            rows.append(arms[arm])
    return rows
