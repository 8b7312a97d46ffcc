"""What a specification covers, and how it is distinguished from others."""

import dataclasses
import importlib.resources
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftbandit as db
from driftbandit import studies
from driftbandit.paper.perturbation import TARGETS
from driftbandit.paper.readings import CHOICES, Cell, Reading
from driftbandit.simulation import Options
from driftbandit.studies import Specification
from driftbandit.studies import specification as specifications
from refusals import Case, assert_refused, each
from stored_studies import METRIC, REGRET


@given(
    cells=st.lists(st.sampled_from(list(db.families.FAMILIES)), min_size=1, unique=True),
    systems=st.integers(1, 60),
    chunk=st.integers(1, 70),
)
def test_chunks_cover_every_system_once(cells, systems, chunk):
    specification = Specification(
        tuple(map(Cell, cells)), ("random",), systems=systems, chunk=chunk
    )
    cut = list(specification.chunks())
    covered = [
        (part.cell.family, number)
        for part in cut
        for number in range(part.first, part.first + part.systems)
    ]
    assert covered == [(family, number) for family in cells for number in range(systems)]
    assert len({part.name for part in cut}) == len(cut)
    assert all(1 <= part.systems <= chunk for part in cut)


READINGS = st.builds(Reading, **{q: st.sampled_from(list(a)) for q, a in CHOICES.items()})
CELLS = st.builds(
    Cell,
    st.sampled_from(list(db.families.FAMILIES)),
    reading=READINGS,
    perturbed=st.sampled_from(["", *TARGETS]),
    strength=st.floats(0, 100),
) | st.builds(
    Cell,
    st.sampled_from(list(db.families.FAMILIES)),
    n_states=st.integers(1, 50),
    n_arms=st.none() | st.integers(1, 2**31),
    absent=st.just(()) | st.just(("random",)),
)


@given(
    cells=st.lists(CELLS, min_size=1, max_size=4, unique_by=lambda cell: cell.label),
    policies=st.lists(st.sampled_from(db.policies.available()), min_size=1, unique=True),
    sizes=st.tuples(*[st.integers(1, 2**31)] * 3),
    seed=st.integers(0, 2**63 - 1),
    n_states=st.integers(1, 50),
    kind=st.tuples(*map(st.sampled_from, (["regret", "metric"], ["float64", "float32"]))),
    platform=st.sampled_from(["cpu", "gpu"]),
    chunk=st.integers(1, 2**31),
)
def test_a_specification_survives_json(
    cells, policies, sizes, seed, n_states, kind, platform, chunk
):
    if kind[0] == "metric":  # which is measured of bonuses alone
        policies = ["idea", "kalman_ucb"]
        cells = [dataclasses.replace(cell, absent=()) for cell in cells]
    elif any(cell.absent for cell in cells):
        policies = {"idea": None, "random": None, **dict.fromkeys(policies)}
    given = Specification(
        tuple(cells), tuple(policies), *sizes, seed, n_states, n_states, *kind, platform, chunk
    )
    again = Specification.from_dict(json.loads(json.dumps(given.as_dict())), Cell)
    assert again == given
    assert again.identity == given.identity


CHANGES = {
    "cells": METRIC.cells[:1],
    "policies": ("kode", "idea"),
    "systems": 8,
    "runs": 3,
    "rounds": 41,
    "seed": 1,
    "n_states": 4,
    "n_arms": 4,
    "measure": "regret",
    "dtype": "float32",
    "platform": "gpu",
    "chunk": 3,
}
CELL_CHANGES = {
    "family": "cauchy",
    "perturbed": "transition",
    "strength": 0.2,
    "n_states": 5,
    "n_arms": 5,
    "absent": ("kode",),
    **{f"reading.{question}": list(answers)[1] for question, answers in CHOICES.items()},
}


@pytest.mark.parametrize("field", [*CHANGES, *CELL_CHANGES])
def test_any_change_changes_the_identity(field):
    # "n_arms" may not differ from "n_states" where arms are perturbed.
    cell = Cell("gaussian", perturbed="process_cov", strength=0.1)
    base = dataclasses.replace(METRIC, cells=(cell,))
    if field in CHANGES:
        changed = dataclasses.replace(base, **{field: CHANGES[field]})
    elif field.startswith("reading."):
        reading = Reading(**{field.removeprefix("reading."): CELL_CHANGES[field]})
        changed = dataclasses.replace(base, cells=(dataclasses.replace(cell, reading=reading),))
    else:
        other = dataclasses.replace(cell, **{field: CELL_CHANGES[field]})
        changed = dataclasses.replace(base, cells=(other,))
    assert changed.identity != base.identity


def test_every_field_is_changed_above():
    def fields(kind):
        return {field.name for field in dataclasses.fields(kind)}

    assert set(CHANGES) == fields(Specification)
    plain = {name for name in CELL_CHANGES if "." not in name}
    assert plain | {"reading"} == fields(Cell)
    assert {f"reading.{name}" for name in fields(Reading)} == set(CELL_CHANGES) - plain


def test_equal_specifications_have_one_identity():
    """Whatever kinds of numbers and sequences they were given as."""
    cells = [Cell("gaussian", perturbed="transition", strength=1)]
    loose = Specification(cells, ["random"], np.int64(5), seed=np.uint32(3))
    cells = (Cell("gaussian", perturbed="transition", strength=1.0),)
    strict = Specification(cells, ("random",), 5, seed=3)
    assert loose == strict
    assert loose.identity == strict.identity
    assert hash(loose) == hash(strict)


@pytest.mark.parametrize("strength", [float("nan"), float("inf"), "0.1"])
def test_a_strength_is_a_number(strength):
    with pytest.raises(db.InvalidInput, match=r"^strength: "):
        Cell("gaussian", perturbed="arms", strength=strength)


@pytest.mark.parametrize(
    ("field", "value"), [("n_states", 0), ("n_arms", 2.0), ("n_arms", "3"), ("n_states", -1)]
)
def test_what_a_cell_changes_is_checked(field, value):
    with pytest.raises(db.InvalidInput, match=f"^{field}: "):
        Cell("gaussian", **{field: value})


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        (Cell("gaussian", absent=("kod",)), "absent: unknown name 'kod'; did you mean 'kode'"),
        (Cell("gaussian", absent=("idea", "kode")), "absent: leaves no policy to play gaussian"),
        (Cell("gaussian", perturbed="arms", n_arms=4), "n_arms: is 4 with 3 states"),
    ],
)
def test_a_cell_that_does_not_fit_its_study(cell, words):
    with pytest.raises(db.InvalidInput) as caught:
        dataclasses.replace(METRIC, cells=(cell,))
    assert str(caught.value).startswith(words)


@each(
    [
        Case("n_arms", lambda: specified("arms", n_arms=7), "n_arms", "7 with 10 states"),
        Case("perturbed", lambda: specified("noise"), "perturbed", "'noise'"),
        Case("family", lambda: specified("arms", "gausian"), "family", "'gaussian'"),
    ]
)
def test_bad_arguments_are_refused(case):
    assert_refused(case)


def specified(perturbed, family="gaussian", n_arms=10):
    return Specification(
        (Cell(family, perturbed=perturbed, strength=1.0),), ("idea",), n_arms=n_arms
    )


def test_a_study_stored_before_cells_could_change_their_systems():
    """Its cells say nothing of states, arms and absent policies."""
    stored = METRIC.as_dict()
    later = ("n_states", "n_arms", "absent")
    stored["cells"] = [
        {name: value for name, value in cell.items() if name not in later}
        for cell in stored["cells"]
    ]
    assert Specification.from_dict(json.loads(json.dumps(stored)), Cell) == METRIC


def test_cells_of_several_shapes_in_one_study(tmp_path):
    """Each is what `simulate` plays on the systems it names, by those who play there."""
    cells = (
        Cell("gaussian"),
        Cell("gaussian", n_states=2, n_arms=4, absent=("kode",)),
    )
    several = dataclasses.replace(
        REGRET, cells=cells, policies=("kode", "random"), systems=4, chunk=4
    )
    found = studies.run(several, tmp_path).results()
    assert list(found) == ["gaussian", "gaussian.d-2.k-4"]
    for cell, changes in zip(cells, ({}, {"n_states": 2, "n_arms": 4}), strict=True):
        systems = db.families.sample("gaussian", 4, **{"n_states": 3, "n_arms": 3} | changes)
        players = ["random"] if cell.absent else ["kode", "random"]
        size = {"rounds": REGRET.rounds, "runs": REGRET.runs}
        alone = db.simulate(
            systems, None, players, **size, options=Options(stream="gaussian", checkpoints=1)
        )
        regret = found[cell.label].regret
        assert list(regret) == players
        for policy in players:
            np.testing.assert_array_equal(regret[policy], alone.regret[policy])


@dataclasses.dataclass(frozen=True)
class Longer(Cell):
    """Plays twice the rounds with one run fewer, and knows a bound."""

    def runs_and_rounds(self, runs, rounds, n_states, n_arms):
        return runs - 1, rounds * n_states

    def least_regret(self, systems, rounds):
        return [0.1 * number for number in range(len(systems))]


def test_a_cell_may_have_a_length_and_a_bound_of_its_own(tmp_path):
    cells = Cell("gaussian"), Longer("cauchy", n_states=2)
    study = dataclasses.replace(REGRET, cells=cells, policies=("random",), systems=3, runs=4)
    assert [study.runs_and_rounds(cell) for cell in cells] == [(4, 40), (3, 80)]
    usual, longer = studies.run(study, tmp_path).results().values()
    assert (usual.rounds, longer.rounds, set(usual.regret)) == (40, 80, {"random"})
    assert longer.regret["random"].shape == (3, 3)
    least = np.repeat([[0.0], [8.0], [16.0]], 3, axis=1)  # of 80 rounds
    np.testing.assert_allclose(longer.regret["least_regret"], least)
    systems = db.families.sample("cauchy", 3, n_states=2, n_arms=3)
    alone = db.simulate(
        systems, None, ["random"], 80, 3, options=Options(stream="cauchy", checkpoints=1)
    )
    np.testing.assert_array_equal(longer.regret["random"], alone.regret["random"])


def test_other_code_has_another_identity(monkeypatch):
    before = METRIC.identity
    monkeypatch.setattr(specifications, "code_fingerprint", lambda *_: "0" * 16)
    assert METRIC.identity != before


def played_by_sources(root):
    places = [root / place for place in (*specifications.SOURCES_OF_NUMBERS, *Cell.SOURCES)]
    return {
        file for place in places for file in (place.glob("*.py") if place.is_dir() else [place])
    }


def test_the_fingerprint_sees_every_byte_of_the_code(tmp_path, monkeypatch):
    """Of the code that numbers come from, and of no other."""
    root = tmp_path / "driftbandit"
    shutil.copytree(importlib.resources.files("driftbandit"), root)
    monkeypatch.setattr(importlib.resources, "files", lambda package: root)
    fresh = getattr(specifications.code_fingerprint, "__wrapped__", specifications.code_fingerprint)
    before = fresh(Cell.SOURCES)
    counting = played_by_sources(root)
    assert len(counting) > 20
    for source in root.rglob("*.py"):
        text = source.read_bytes()
        source.write_bytes(text + b"#")
        assert (fresh(Cell.SOURCES) != before) == (source in counting), source
        source.write_bytes(text)
    assert fresh(Cell.SOURCES) == before


BESIDE_THE_NUMBERS = {
    "__init__.py",
    "io/__init__.py",
    "io/atomic.py",
    "io/model_file.py",
    "_version.py",
    "machine.py",
    "paper/__init__.py",
    "paper/figure1.py",
    "paper/figure2.py",
    "paper/figure3.py",
    "paper/table2.py",
    "result.py",
    "statistics.py",
    "studies/__init__.py",
    "studies/engines.py",
    "studies/store.py",
    "studies/target.py",
    "system.py",
}
"""Loaded by a study, but no number of a chunk comes from there."""


def test_the_fingerprint_knows_all_code_that_plays():
    code = """
import sys, driftbandit, pathlib
from driftbandit import studies
from driftbandit.paper.readings import Cell
for measure in ("regret", "metric"):
    small = studies.Specification(
        (Cell("gaussian", perturbed="arms", strength=0.1),),
        ("idea",), 1, 1, 2, n_states=2, n_arms=2, measure=measure,
    )
    studies.engines.compute(small, next(small.chunks()))
root = pathlib.Path(driftbandit.__file__).parent
for name, module in list(sys.modules.items()):
    if name.partition(".")[0] == "driftbandit":
        print(pathlib.Path(module.__file__).relative_to(root).as_posix())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    root = Path(db.__file__).parent
    known = {path.relative_to(root).as_posix() for path in played_by_sources(root)}
    loaded = set(done.stdout.split())
    beside = {name for name in loaded if name.startswith(("agent/", "report/", "theory/"))}
    assert {"theory/checks.py", "theory/metric.py"} <= known
    assert loaded - known - beside <= BESIDE_THE_NUMBERS
