"""Wrong arguments of model files, studies and advice: refused in one line."""

import json
import tempfile
from pathlib import Path

import numpy as np

import driftbandit as db
from driftbandit.io import model_file
from driftbandit.paper import perturbation, readings
from driftbandit.paper.readings import Cell as StudyCell
from driftbandit.studies import Specification
from refusals import EYE, NAN, STABLE, Case, assert_refused, each


def read(content, name="model.json"):
    """model_file.load_model of a file with this text, or with this JSON."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return model_file.load_model(path)


def document(without=None, **changes):
    result = model_file.to_document(STABLE, EYE) | changes
    result.pop(without, None)
    return result


reading = readings.named


def perturbed(target="arms", states=2, arms=2):
    systems = db.families.sample("gaussian", n_states=states, n_arms=arms)
    return perturbation.perturb(systems, target, [np.eye(states)])


def specified(n_arms=10, perturbed="arms", family="gaussian"):
    return Specification(
        (StudyCell(family, perturbed=perturbed, strength=1.0),), ("idea",), n_arms=n_arms
    )


CASES = [
    Case(
        "absent",
        lambda: model_file.load_model("/no/such/model.json"),
        "model file",
        "/no/such/model",
    ),
    Case("folder", lambda: model_file.load_model("/"), "model file", "cannot read /"),
    Case("file not JSON", lambda: read("{transition"), "model file", "model.json is not JSON"),
    Case("file empty", lambda: read("", "empty.json"), "model file", "empty.json is not JSON"),
    Case("file list", lambda: read([1, 2]), "model file", "list"),
    Case("file lacks arms", lambda: read(document(without="arms")), "model file", "'arms'"),
    Case(
        "file lacks reward_std",
        lambda: read(document(without="reward_std")),
        "model file",
        "'reward_std'",
    ),
    Case(
        "file unknown key",
        lambda: read(document(initial_kov=[[1]])),
        "model file",
        "'initial_kov'; did you mean 'initial_cov'?",
    ),
    Case("file null arms", lambda: read(document(arms=None)), "model file arms", "null"),
    Case("file text std", lambda: read(document(reward_std="1")), "model file reward_std", "'1'"),
    Case("file NaN", lambda: read(document(reward_std=NAN)), "model file reward_std", "nan"),
    Case(
        "file with 5000 digits",
        lambda: read("1" * 5000),
        "model file",
        "model.json",
    ),
    Case("reading clos", lambda: reading("clos"), "reading", "did you mean 'closest'?"),
    Case("reading empty", lambda: reading(""), "reading", "closest, plain, unit"),
    Case("reading question alone", lambda: reading("arms"), "reading", "'arms'"),
    Case("reading arm=unit", lambda: reading("arm=unit"), "reading", "did you mean 'arms'?"),
    Case("reading arms=uni", lambda: reading("arms=uni"), "reading.arms", "did you mean 'unit'?"),
    Case("reading no answer", lambda: reading("arms="), "reading.arms", "bounded, common, drawn"),
    Case("reading no question", lambda: reading("=unit"), "reading", "arms, belief, interval"),
    Case("reading name and change", lambda: reading("unit, noise=one"), "reading", "'unit'"),
    Case("reading comma", lambda: reading("arms=unit,"), "reading", "''"),
    Case("Reading arms", lambda: readings.Reading(arms="uni"), "reading.arms", "'unit'"),
    Case("Reading None", lambda: readings.Reading(noise=None), "reading.noise", "None"),
    Case(
        "reading family",
        lambda: readings.sample(readings.PLAIN, "gausian", 1, n_states=2, n_arms=2, seed=0),
        "family",
        "did you mean 'gaussian'?",
    ),
    Case("perturb target", lambda: perturbed("gamma"), "target", "arms, process_cov, "),
    Case("perturb wide arms", lambda: perturbed(arms=3), "arms", "(3, 2)"),
    Case("perturb tall arms", lambda: perturbed(states=3), "arms", "(2, 3)"),
    Case("study perturbs arms", lambda: specified(n_arms=7), "n_arms", "7 with 10 states"),
    Case("study perturbs noise", lambda: specified(perturbed="noise"), "perturbed", "'noise'"),
    Case("study family", lambda: specified(family="gausian"), "family", "'gaussian'"),
    Case("advise crowd", lambda: db.advise(STABLE, EYE, runs=10**9), "runs", "1000000000"),
    Case("advise runs", lambda: db.advise(STABLE, EYE, runs=0), "runs", "0"),
    Case("advise arms", lambda: db.advise(STABLE, [[0, 0]]), "arms", "zero vector"),
]


@each(CASES)
def test_bad_arguments_are_refused(case):
    assert_refused(case)
