"""The one-step predictions of a fit."""

import numpy as np
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX

from driftbandit.identify import Log, Sequence, fit, one_step
from random_logs import drifting
from random_structures import random_log


def test_a_short_log_is_predicted_as_well_as_by_an_ar_for_each_arm():
    """100 rewards of four arms: shared states lost 0.2 per reward."""
    log = drifting(200, memory=0.97, noise=0.5)
    seen = one_step(fit({name: column[:100] for name, column in log.items()}), log)
    ours = -0.5 * (np.log(2 * np.pi * seen.stds**2) + seen.surprises**2)[100:].mean()
    theirs = 0.0
    for arm in range(4):
        rewards = np.where(log["arm"] == arm, log["reward"], np.nan)
        options = {"order": (1, 0, 0), "measurement_error": True}
        ones = np.ones((200, 1))
        model = SARIMAX(rewards[:100], ones[:100], **options)
        params = model.fit(disp=0, maxiter=50, warn_convergence=False).params
        theirs += SARIMAX(rewards, ones, **options).smooth(params).llf_obs[100:].sum() / 100
    assert ours > theirs - 0.02


@pytest.mark.parametrize("text", ["level(arm)", "constant(arm) + factors(2) + season(5)"])
def test_the_filters_under_jax_and_numpy_predict_the_same(text):
    """Rounds with several plays, pauses and missing rewards."""
    (sequence,) = random_log(0, rows=40, sequences=1).sequences
    log = Log((Sequence(sequence.rounds, sequence.arms, sequence.rewards),), ("a", "b", "c"))
    found = fit(log, structure=text, starts=1)
    ours, theirs = one_step(found, log), one_step(found.start_system, log)
    for name in ("rewards", "means", "stds", "own"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9)
