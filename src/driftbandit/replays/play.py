"""`replay`: learn the model from the first part of real data, play the rest with every policy."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftbandit import errors
from driftbandit.identify.fitting import fit
from driftbandit.io.logs import Log
from driftbandit.policies import REGISTRY, Policy, available, make
from driftbandit.policies import chosen as labeled
from driftbandit.replays import all_arms, naming, off_policy, support, tasks
from driftbandit.replays.baselines import BASELINES
from driftbandit.replays.data import Table, read, table_of
from driftbandit.replays.datasets import DATASETS, is_path, load
from driftbandit.replays.decisions import Decisions, decisions_of, has_chances
from driftbandit.replays.result import Replay

POLICIES = tuple(name for name, entry in REGISTRY.items() if entry.quick)  # by default


def replay(
    data: Any,
    policies: Any = None,
    *,
    features: Any = None,
    train: float = 0.5,
    n_states: int | None = None,
    warm: bool = True,
    runs: int = 10,
    seed: int = 0,
    baseline: str | None = None,
    method: str | None = None,
    chances: str | None = None,
    structure: Any = None,
    starts: int = 3,
    iterations: int = 200,
    progress: tasks.Progress | None = None,
) -> Replay:
    """Learn the model from the first part of the data, then play the rest with every policy.

    If the data shows all arms ("full"), a policy sees only the reward of the arm it chooses, and
    every choice counts. If it is a log of one reward per decision, what a policy would have earned
    is estimated, without bias, from the chances with which the log drew its arms:

    - "dr", doubly robust, and "ips", inverse propensity scoring: the policy learns from all rewards
      of the log and names an arm before each one. "dr" is more precise if the model predicts.
    - "rejection": the policy learns only where its own choice is the logged arm (Li et al. 2011),
      so it sees a small share of the rewards. The estimate is doubly robust.

    All policies have the same information: the model learned from the training part, which gives
    the Kalman policies their filter and the others the scale of the rewards, and the rewards they
    saw while playing the training part (``warm``). Policies play rewards minus the mean training
    reward, because some assume rewards around zero; results show rewards as they are.

    If the data shows all arms, the table also has what people try first; see `replays.baselines`:
    "last_value", "epsilon_greedy" with forgetting, and "seasonal_mean". They see all rewards of the
    training part, on which their parameters are chosen, then only those of the arms they play.
    A policy of the same name takes their place.

    Args:
        data: "french" or "flights", or anything `as_table` takes: a `Log`, a path, a T × k table.
        policies: names or `Policy` objects; None: `POLICIES`, the quick ones; "all": every policy
            that can be replayed.
        features: k × d, the known features of each arm; None: they are learned.
        train: share of the rounds with data, or of the decisions of a log, from the start, that
            form the training part.
        n_states: of the model; None: as `identify.fit` chooses.
        warm: whether policies play the training part first; False: they start in the test part.
        runs: runs of each policy, which are averaged. Each has its own random numbers and starts
            in a later round of the first half of the training part, because the luck of the first
            choices lasts long. A policy without random numbers needs one run if not ``warm``, or
            if it learns from all rewards of a log.
        seed: of the fit, the policies and the intervals.
        baseline: the policy or reference strategy to compare with; None: "training_leader", which
            always plays the best arm of the training part; with a log that cannot tell what that
            arm earns, "logging", what the log earned.
        method: "full", "dr", "ips" or "rejection"; None: "dr" for a log that has chances, or for
            which ``chances`` are given, and "full" for data that shows all arms.
        chances: of a log without a column ``chance``: "uniform", all arms had the same one, or
            "estimated", as often as each arm was played.
        structure: components such as "level(arm) + season(7)", or the form of Γ, as in
            `identify.fit`; ``starts`` and ``iterations`` as well.
        progress: called with "fit" or "play", the share of it that is done, and the total number
            of rounds to play.

    Returns:
        `Replay`; ``print`` shows its table.

    Example:
        >>> t, rng = np.arange(200)[:, None], np.random.default_rng(0)
        >>> waves = np.sin(0.2 * t + np.array([0.0, 2.0, 4.0])) + 0.2 * rng.normal(size=(200, 3))
        >>> result = replay(waves, ["kode", "ucb"], n_states=2, starts=1, iterations=30)
        >>> result.mean("kode") > result.mean("ucb") + 0.5
        True
    """
    runs = errors.whole_number(runs, "runs", low=1)
    seed = errors.whole_number(seed, "seed", low=0, high=2**62)
    source, features = read(_loaded(data), None, features)
    method, warm = _method(method, source, chances), bool(warm)
    title, unit = (source.title, source.unit) if isinstance(source, Table) else ("", "")
    rows: Table | Decisions
    if method == "full":
        rows = table_of(source, features)
        references = [*all_arms.REFERENCES, *BASELINES]
    else:
        rows = decisions_of(source, chances, features)
        references = [*off_policy.REFERENCES, *map(off_policy.always, rows.names)]
    first = rows.split(train)
    chosen, notes = _playable(policies, part=isinstance(rows, Table) and rows.partial)
    if baseline is not None:
        baseline = errors.closest(baseline, "baseline", [*chosen, *references])
    passes = method, first, warm, runs
    begins = [begin for policy in chosen.values() for begin in tasks.begins(policy, *passes)]
    meter = tasks.Meter(progress, sum(len(rows) - begin for begin in begins))
    meter.say("fit", 0.0)
    center = float(np.nanmean(rows.rewards[:first]))
    learned = fit(
        rows.log(first, center),
        rows.features,
        n_states,
        structure=structure,
        starts=starts,
        iterations=iterations,
        progress=lambda share: meter.say("fit", share),
    )
    start = learned.start_system
    model, arms = start.model, start.arms
    if start.contexts and isinstance(rows, Decisions):
        arms = rows.arms_in(arms, start.contexts)
        chosen, left_out = naming.online(chosen, baseline)
        notes += left_out
    meter.say("fit", 1.0)
    meter.say("play", 0.0)
    how = center, method, warm, runs, seed, meter.tick
    task: tasks.Task[Any] = tasks.Task(rows, first, model, arms, *how)
    done = (all_arms.play if method == "full" else off_policy.evaluate)(chosen, task)
    meter.say("play", 1.0)
    means = tasks.training_means(rows.wide[:first], center)
    explained = tasks.predictability(done.predicted, rows.wide[task.counts], means)
    if chances == "estimated" and done.shown is not None:
        notes += support.about_estimated(done.shown._replace(predicted=done.predicted))
    doubts = *done.notes, *learned.warnings, *tasks.doubts(explained)
    return Replay(
        title=title,
        unit=unit,
        names=rows.names,
        method=method,
        train_rounds=first,
        test_rounds=len(rows) - first,
        first_round=int(rows.times[first]),
        rounds=rows.times[task.counts],
        played=done.played,
        references=done.references,
        predictability=explained,
        fit=learned,
        warm=warm,
        seed=seed,
        compared=baseline,
        notes=(*rows.notes, *notes, *doubts),
        shown=done.shown,
        chances=None if method == "full" else chances or "logged",
        feedback=done.feedback,
    )


def _method(method: Any, data: Log | Table, chances: Any) -> str:
    """The method asked for, or the one that fits the data."""
    if method is None:
        drawn = chances is not None or has_chances(data)
        return "dr" if drawn or table_of(data).logged else "full"
    method = errors.closest(method, "method", ("full", *off_policy.METHODS))
    if method == "full" and ((logged := table_of(data).logged) or chances is not None):
        why = "and the data is a log of one arm per round" if logged else "which needs no chances"
        remedy = f"give one of {', '.join(off_policy.METHODS)}"
        raise errors.InvalidInput("method", f"is 'full', {why}", remedy)
    return str(method)


def _loaded(data: Any) -> Any:
    """The data set of that name; anything else as it is."""
    if not isinstance(data, str) or is_path(data):
        return data
    if data not in DATASETS:
        remedy = f"give the path of a CSV or Parquet file, or one of {', '.join(DATASETS)}"
        problem = f"{errors.printable(data)!r} is neither a file nor a data set"
        raise errors.InvalidInput("data", problem, remedy)
    return load(data)


def _playable(policies: Any, *, part: bool) -> tuple[dict[str, Policy], list[str]]:
    """The policies to play, and notes on those left out if some rounds offer a part of the arms."""
    asked = policies is not None and policies != "all"  # for each of them by name
    if policies == "all":
        policies = [name for name in available() if not make(name).full_information]
    chosen = labeled(POLICIES if policies is None else policies)
    if chosen.pop("random", None) is not None and not chosen:
        remedy = "name another policy; random is always in the table"
        raise errors.InvalidInput("policies", "is random alone", remedy)
    notes = []
    for label, policy in list(chosen.items()):
        if label in (*all_arms.REFERENCES, *off_policy.REFERENCES):
            problem = f"{label!r} is the name of a reference strategy"
            raise errors.InvalidInput("policies", problem, "give the policy another name")
        if policy.full_information:
            problem = f"{label} sees all rewards, which no player does"
            remedy = "leave it out; full_information is always in the table"
            raise errors.InvalidInput("policies", problem, remedy)
        if part and policy.scores is None and not policy.agent.reads_features:
            if asked:
                problem = f"{label} cannot choose from a part of the arms, which some rounds offer"
                raise errors.InvalidInput("policies", problem, "leave it out")
            del chosen[label]
            notes.append(f"{label} is left out: it cannot choose from a part of the arms.")
    return chosen, notes
