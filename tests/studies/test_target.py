"""Targets: verdicts, and which study a request is."""

import pytest

from driftbandit import paper
from driftbandit.paper.readings import Reading
from driftbandit.studies import Summary
from published_table import FAMILIES, SEED, SIZE


@pytest.fixture(scope="module")
def options():
    return paper.Options(SIZE, SEED, families=FAMILIES)


def test_a_verdict_counts_what_came_out():
    assert Summary.counted(0, 6, "medians") == (
        "did not reproduce: 0 of 6",
        "0 of 6 medians.",
        "bad",
    )
    assert Summary.counted(2, 6, "medians").verdict == "partly reproduced: 2 of 6"
    assert Summary.counted(6, 6, "medians")[::2] == ("reproduced: 6 of 6", "good")


def test_another_seed_or_reading_is_another_study(options):
    specification = paper.TARGETS["table2"].specification
    others = [
        options,
        paper.Options(SIZE, SEED + 1, families=FAMILIES),
        paper.Options(SIZE, SEED, FAMILIES, reading=Reading(arms="unit")),
        paper.Options(SIZE, SEED, families=FAMILIES, dtype="float32"),
    ]
    assert len({specification(other).identity for other in others}) == len(others)
