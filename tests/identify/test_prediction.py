"""One-step predictions of a fitted model."""

import numpy as np
import pytest
from statsmodels.tsa.statespace.sarimax import SARIMAX

from driftbandit.identify import fit, one_step, selection
from random_logs import drifting


@pytest.mark.parametrize("tried", [2, pytest.param(None, marks=pytest.mark.nightly)])
def test_a_short_log_is_predicted_as_well_as_by_an_ar_for_each_arm(tried, monkeypatch):
    """100 rewards of four arms: shared states, which are slow to compile, lost 0.2 per reward."""
    few = selection.candidates(4, None, True)[:tried]
    monkeypatch.setattr(selection, "candidates", lambda *_: few)
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
