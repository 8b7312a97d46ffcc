"""Agents on the sphere."""

import hashlib
import json

import numpy as np
import pytest

import driftbandit as db
from driftbandit.actions import FINITE, sphere
from sphere_cases import PLANE, PLAYED


@pytest.mark.parametrize("name", PLAYED)
def test_agents_play_unit_vectors(name, tmp_path):
    """Late, missing and repeated rewards, and a restart, as on a list of arms."""
    rng = np.random.default_rng(9)
    size = (2,) if name == "kalman_oracle" else ()
    rewards = [rng.standard_normal(size) for _ in range(12)]
    agent, late = (db.Agent(PLANE, "sphere", name, seed=5) for _ in range(2))
    decisions = []
    for reward in rewards:
        decision = agent.ask()
        assert not decision.arm.flags.writeable
        assert decision.arm @ decision.arm == pytest.approx(1, abs=1e-12)
        assert agent.tell(decision, reward) == "learned"
        decisions.append(decision)
    assert agent.tell(decisions[-1], rewards[-1]) == "duplicate"
    opened = [late.ask() for _ in rewards]
    for decision, before, reward in zip(opened[::-1], decisions[::-1], rewards[::-1], strict=True):
        if name in ("random", "kalman_oracle"):  # who learns nothing, or the same from any vector
            late.tell(decision, reward)
            assert name == "kalman_oracle" or (decision.arm == before.arm).all()
    agent.save(tmp_path / "agent.json")
    back = db.Agent.load(tmp_path / "agent.json")
    assert back.to_json() == agent.to_json()
    again, other = agent.ask(), back.ask()
    assert (again.arm == other.arm).all()
    assert again[2:] == other[2:]
    if name == "kalman_oracle":
        assert (late.ask().arm == again.arm).all()
    back.tell(decisions[-1].id, rewards[-1])
    with pytest.raises(db.InvalidInput, match=r"decision: 11 is arm .* in round 11, not Decision"):
        back.tell(decisions[-1]._replace(arm=-decisions[-1].arm), rewards[-1])


def test_agents_fold_vectors_as_the_filter_does():
    agent = db.Agent(PLANE, "sphere", "kalman_ucb(width=2)")
    belief = db.kalman.prior(PLANE)
    for reward in (0.5, -1.0, 2.0):
        decision = agent.ask()
        assert decision.arm == pytest.approx(
            sphere.best(belief, PLANE, "kalman_ucb", width=2).arm, abs=1e-12
        )
        assert decision.mean == pytest.approx(decision.arm @ belief.mean)
        assert decision.uncertainty**2 == pytest.approx(decision.arm @ belief.cov @ decision.arm)
        agent.tell(decision, reward)
        belief = db.kalman.step(belief, PLANE, decision.arm, reward)
    assert agent.state.mean == pytest.approx(belief.mean, abs=1e-12)


def test_agents_stored_before_there_was_a_sphere_are_read():
    agent = db.Agent(PLANE, np.eye(2))
    agent.tell(agent.ask(), 1.0)
    whole = json.loads(agent.to_json())
    whole["driftbandit_agent"] = 2
    del whole["agent"]["sphere"]
    text = json.dumps(whole["agent"])
    whole["checksum"] = hashlib.sha256(text.encode()).hexdigest()
    back = db.Agent.from_json(json.dumps(whole))
    assert back.actions == FINITE
    assert back.ask() == agent.ask()
