"""What readers are told of an experiment: its summary, its state, a sample for the page."""

from __future__ import annotations

import math
from typing import Any

from driftbandit import errors, policies
from driftbandit.io import model_file
from driftbandit.monitoring import health as _health  # noqa: F401 - else the first reader waits
from driftbandit.service.experiment import Experiment

MOST_SURPRISES = 500
MOST_SAMPLED = 30  # arms in a sample, the most played ones
SHOWN = ("policy", "seed", "window", "rounds", "memory", "time", "refit", "on_alarm")


def summary_of(experiment: Experiment, *, full: bool = False) -> dict[str, Any]:
    """The experiment in a list; ``full``: with its arms and present model."""
    tally, agent = experiment.tally, experiment.agent
    found: dict[str, Any] = {
        "policy": agent.policy.label,
        "n_arms": len(agent.names),
        "round": agent.round,
        "decisions": tally.decisions,
        "rewards": tally.rewards,
        "paused": tally.paused is not None,
        "refit_started": tally.refit_started,
    }
    if not full:
        return found
    found = {"id": experiment.id, "created": experiment.created, **found}
    found |= {key: experiment.settings[key] for key in SHOWN}
    found |= {"names": list(agent.names), "n_states": agent.model.n_states}
    found |= {"version": experiment.version, "open": len(agent.open_decisions)}
    contexts = agent.contexts
    document = model_file.to_document(agent.model, agent.problem.arms, agent.names, contexts)
    return found | {"system": document}


def state_of(experiment: Experiment, now: float) -> dict[str, Any]:
    """What the experiment believes in the present round, and what it has done.

    Many readers may ask; it is computed once for each version and round.
    """
    moment = experiment.version, experiment.round_at(now), experiment.refit_in_progress(now)
    if experiment.view is None or experiment.view[0] != moment:
        experiment.view = moment, _state(experiment, now)
    return experiment.view[1] | {"time": now}


def _state(experiment: Experiment, now: float) -> dict[str, Any]:
    tally, agent, model = experiment.tally, experiment.agent, experiment.agent.model
    by_clock = experiment.round_at(now)
    return {
        "id": experiment.id,
        "version": experiment.version,
        "time": now,
        "created": experiment.created,
        "policy": agent.policy.label,
        "policy_title": policies.title(agent.policy.label),
        "round": agent.round if by_clock is None else by_clock,
        "paused": tally.paused is not None,
        "paused_reason": tally.paused or None,
        "decisions": tally.decisions,
        "rewards": tally.rewards,
        "open": len(agent.open_decisions),
        "window": agent.window,
        "rounds_are": experiment.settings["time"],
        "n_states": model.n_states,
        "reward_std": float(model.reward_std),
        "arms": _arms(experiment, by_clock),
        "retired": list(tally.retired),
        "calibration": _calibration(experiment),
        "models": tally.models,
        "refit": _refit(experiment, now),
        "last": _last(experiment),
    }


def _arms(experiment: Experiment, round: int | None) -> list[dict[str, Any]]:
    scores = _scores(experiment, round)
    plays = experiment.tally.plays
    total = sum(counts[0] for counts in plays.values()) or 1
    rows = []
    for place, name in enumerate(experiment.agent.names):
        played, rewards, paid = plays.get(name, (0, 0, 0.0))
        expected: dict[str, Any] = {"mean": None, "bonus": None, "uncertainty": None}
        if scores is not None:
            expected = scores[place].to_dict()
        row = {"arm": name, **expected, "plays": played, "share": played / total}
        mean = paid / rewards if rewards and math.isfinite(paid / rewards) else None
        rows.append(row | {"rewards": rewards, "mean_reward": mean})
    return rows


def _scores(experiment: Experiment, round: int | None) -> list[Any] | None:
    """The scores of all arms; None: they depend on a context, or cannot be computed."""
    try:
        return experiment.agent.scores(round=round)
    except errors.InvalidInput:
        return None


def _calibration(experiment: Experiment) -> dict[str, Any] | None:
    """Are surprises of the size that the filter says? None: too few rewards, or no filter."""
    try:
        health = experiment.agent.health()
    except errors.InvalidInput:
        return None
    test, values = health.tests["mean square"], health.surprises.values
    return {
        "holds": health.holds,
        "rewards": len(values),
        "mean_square": test.value,
        "low": test.low,
        "high": test.high,
        "summary": health.summary(),
        "advice": None if health.holds else _advice(experiment),
        "surprises": [round(float(value), 4) for value in values[-MOST_SURPRISES:]],
    }


def _advice(experiment: Experiment) -> str:
    """What to do about a model that does not hold."""
    if (left := _first_refit_after(experiment)) is not None:
        when = f"after {left:,} more rewards" if left else "which is due"
        return f"Wait for the first refit, {when}: this is still the initial model."
    if experiment.refit is None:
        learn = "Learn a new model from the log (driftbandit fit)"
        return f"{learn} and replace this one, or make an experiment that refits its model."
    left = experiment.rewards_until_refit()
    when = f"after {left:,} more rewards" if left else "which is due"
    return (
        f"Wait for the next refit, {when}, or begin one now (client.refit()). If the model does "
        "not hold after it, it lacks something: try another structure on the log (driftbandit fit)."
    )


def _first_refit_after(experiment: Experiment) -> int | None:
    """How many rewards until the first refit; None: none will come, or the model is not the first.

    The system that was given, or a random walk, is the first.
    """
    changed = ("refitted", "model_replaced")
    if any(model["kind"] in changed for model in experiment.tally.models):
        return None
    return experiment.rewards_until_refit()


def _refit(experiment: Experiment, now: float) -> dict[str, Any] | None:
    tally = experiment.tally
    if experiment.refit is None and tally.refit_started is None and not tally.rewards_at_refit:
        return None
    return {
        "in_progress": experiment.refit_in_progress(now),
        "next_after": experiment.rewards_until_refit(),
        "failure": tally.refit_failure,
    }


def _last(experiment: Experiment) -> dict[str, Any] | None:
    """The last decision and the scores that it was chosen from."""
    last, scores = experiment.last, experiment.agent.explain()
    if last is None or scores is None:
        return None
    keys = ("decision", "arm", "round", "time")
    found = {key: last[key] for key in keys}
    return found | {"scores": [score.to_dict() for score in scores[:1000]]}


def sample_of(experiment: Experiment, now: float) -> dict[str, Any] | None:
    """What is expected of the most played arms now; None: the policy expects nothing."""
    by_clock = experiment.round_at(now)
    scores = _scores(experiment, by_clock)
    if not scores or scores[0].mean is None:
        return None
    plays = experiment.tally.plays
    if len(scores) > MOST_SAMPLED:
        scores = sorted(scores, key=lambda one: -plays.get(one.arm, [0])[0])[:MOST_SAMPLED]
    documents = [score.to_dict() for score in scores]
    return {
        "round": experiment.tally.last_round,
        "time": now,
        "arms": [one["arm"] for one in documents],
        "mean": [_short(one["mean"]) for one in documents],
        "uncertainty": [_short(one["uncertainty"]) for one in documents],
    }


def _short(value: float | None) -> float | None:
    """Six digits are enough for a picture."""
    return None if value is None else float(f"{value:.6g}")
