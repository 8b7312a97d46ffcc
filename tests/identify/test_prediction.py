"""One-step predictions of a fitted model."""

import numpy as np
from statsmodels.tsa.statespace.sarimax import SARIMAX

from driftbandit.identify import fit, one_step
from random_logs import drifting


def test_a_short_log_is_predicted_as_well_as_by_an_ar_for_each_arm():
    """100 rewards of four arms: shared states lost 0.2 per reward here."""
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
