"""The verdict on a model in plain words."""

from __future__ import annotations

import numpy as np

from driftbandit.monitoring.findings import Change, Findings
from driftbandit.report.numbers import short
from driftbandit.system import label

MOST_ARMS = 4  # that a summary names
KINDS = {
    "higher": "pays more than predicted since round {}",
    "lower": "pays less than predicted since round {}",
    "larger": "pays farther from the predictions than the model says since round {}",
    "smaller": "pays closer to the predictions than the model says since round {}",
    "peak": "paid what the model all but excludes in round {}",
    "jump": "jumped farther than the model allows in round {}",
}


def summary(health: Findings) -> str:
    """One sentence for each test that fails, and for each part that is off."""
    said = [
        sentence
        for name, test in health.tests.items()
        if not test.holds
        for sentence in _SENTENCES[name](health)
    ]
    said = said or ["The model holds."]
    return " ".join([*said, *_parts(health)])


def _mean_square(health: Findings) -> list[str]:
    test = health.tests["mean square"]
    how = "larger" if test.value > test.high else "smaller"
    normal = f"normal: {short(test.low)} to {short(test.high)}"
    return [
        f"Surprises are {how} than the model says: their mean square is {short(test.value)} "
        f"({normal})."
    ]


def _rounds(health: Findings) -> list[str]:
    return [
        f"Surprises of successive rounds are correlated ({_strongest(health, 'rounds')}): the "
        "rewards follow a pattern in time that the model lacks."
    ]


def _arms(health: Findings) -> list[str]:
    first = health.correlations["arms"][0][0]
    drift = "faster" if first > 0 else "slower"
    return [
        f"Surprises of the same arm are correlated ({_strongest(health, 'arms')}): rewards drift "
        f"{drift} than the model says, or follow a pattern that it lacks."
    ]


def _strongest(health: Findings, name: str) -> str:
    found, spread = health.correlations[name]
    ratios = np.divide(np.abs(found), spread, out=np.zeros_like(found), where=spread > 0)
    place = int(ratios.argmax())
    unit = "rounds" if name == "rounds" else "plays"
    lag = f"{place + 1} {unit if place else unit[:-1]} apart"
    return f"{found[place]:+.2f} {lag}, normal: ±{2 * spread[place]:.2f}".replace("-", "−")


def _outliers(health: Findings) -> list[str]:
    test = health.tests["outliers"]
    return [
        f"There are outliers: {test.value:.0f} of {len(health.surprises.values):,} surprises are "
        f"beyond three robust standard deviations (normal: at most {test.high:.0f})."
    ]


def _changes(health: Findings) -> list[str]:
    charted = [one for one in health.changes if one.kind != "jump"]
    arms = list({one.arm: one for one in reversed(charted) if one.arm is not None}.values())[::-1]
    said = [change_sentence(one) for one in arms[:MOST_ARMS]]
    if len(arms) > MOST_ARMS:
        more = len(arms) - MOST_ARMS
        said.append(f"{more} more {'arm is' if more == 1 else 'arms are'} off.")
    if not arms:
        said = [change_sentence(charted[0])]
    return said


def _jumps(health: Findings) -> list[str]:
    jumps = [one for one in health.changes if one.kind == "jump"]
    return [change_sentence(one) for one in jumps[:MOST_ARMS]]


def change_sentence(change: Change) -> str:
    """What a chart says."""
    who = "The average arm" if change.arm is None else f"Arm {label(change.arm)}"
    of = f" of sequence {label(change.sequence)}" if change.sequence else ""
    return f"{who} {KINDS[change.kind].format(change.since)}{of}."


def _parts(health: Findings) -> list[str]:
    said, least = [], health.level / max(2 * len(health.parts), 1)
    for part in health.off_parts():
        if part.speed_p_value <= least:
            how = "more" if part.speed > 0 else "less"
            said.append(f"Part {label(part.name)} moves {how} than the model says.")
        if part.jump_p_value <= least:
            said.append(f"Part {label(part.name)} jumped in round {part.jump_round}.")
    return said


_SENTENCES = {
    "mean square": _mean_square,
    "rounds": _rounds,
    "arms": _arms,
    "outliers": _outliers,
    "changes": _changes,
    "jumps": _jumps,
}
