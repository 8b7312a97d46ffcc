"""What the page about the service lists is what the service has."""

import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from driftbandit import Unavailable, errors
from driftbandit.io import model_file
from driftbandit.service.client import refusals
from driftbandit.service.client.retries import BUSY, Patience, Reply, Request, exchange
from driftbandit.service.experiment import Experiment
from driftbandit.service.reading import state_of
from driftbandit.service.routes_experiments import STATUSES
from driftbandit.service.settings import checked
from driftbandit.system import System
from service.inprocess import Service

DOCS = Path(__file__).parents[2] / "docs"
SERVE, ERRORS = ((DOCS / name).read_text() for name in ("do/serve.md", "lookup/errors.md"))
NAMED = {"Conflict": errors.Conflict, "InvalidInput": errors.InvalidInput}
NAMED |= {"PermissionError": PermissionError, "RuntimeError": RuntimeError}
NAMED |= {"Unavailable": Unavailable}


def rows(page, head):
    """The rows of the table whose first line begins so, as lists of cells."""
    (_, table) = page.split(f"\n| {head}", 1)
    lines = table.split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("| ").split(" | ")] for line in lines]


def names(cell):
    return re.findall(r"`([^`]+)`", cell)


# Metrics.


def test_every_metric_is_listed(tmp_path):
    listed = {}
    for cells in rows(SERVE, "metric |"):
        ((name, labels),) = re.findall(r"`(\w+)(?:\{([\w, ]+)\})?`", cells[0])
        listed[name] = set(labels.split(", ")) if labels else set()
    with Service(tmp_path) as service:
        one = service.create("shop", names=["a", "b"])
        one.tell(one.decide()["decision"], 1.0)
        text = service.get("/metrics").text
    served = {}
    for family in text_string_to_metric_families(text):
        if family.name.endswith("_created"):  # the page says that they are there
            continue
        name = f"{family.name}_total" if family.type == "counter" else family.name
        labels = {label for sample in family.samples for label in sample.labels} - {"le"}
        served[name] = labels
    assert listed == served


def test_alerts_use_metrics_that_are_listed():
    listed = {name for cells in rows(SERVE, "metric |") for name in re.findall(r"\w+", cells[0])}
    (block,) = re.findall(r"```yaml\n(.*?)```", SERVE, re.DOTALL)
    used = set(re.findall(r"driftbandit_\w+", block))
    assert len(used) == block.count("alert:") == 2
    assert used <= listed


# The state.


def fields(document, place=""):
    """The names of all fields, as the page writes them."""
    found = set()
    for key, value in document.items():
        name = f"{place}{key}"
        if isinstance(value, dict) and key != "rounds_are":
            found |= fields(value, f"{name}.")
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            for one in value:
                found |= fields(one, f"{name}[].")
        else:
            found.add(name)
    return found


def test_every_field_of_the_state_is_described():
    given = {"names": ["a", "b"], "window": 2, "refit": {"after": 500}}
    experiment = Experiment.create("one", checked(given, 10), 0.0)
    for number in range(40):
        experiment.decide(0.0, most_open=99)
        experiment.reward(0.0, [{"decision": number, "reward": (-1.0) ** number}])
    agent = experiment.agent
    started = experiment.start_refit(0.0)
    system = model_file.to_document(System(agent.model, agent.problem.arms, agent.names))
    experiment.finish_refit(0.0, {"system": system, "start": 0, "rewards": 40}, started)
    experiment.add_arm(0.0, "c", None)
    experiment.retire_arm(0.0, "a")
    state = state_of(experiment, 0.0)
    assert state["calibration"]
    described = [name for cells in rows(SERVE, "field |") for name in names(cells[0])]
    assert len(described) == len(set(described))
    whole = {"calibration", "refit"}  # which may be null
    assert set(described) - whole == fields(state)


# Exceptions.


def raised(status):
    """The exception of a client that gets this status again and again."""
    steps = exchange(
        Request("GET", "http://x/", {}),
        Patience(0.0),
        lambda reply: refusals.check(reply, None),
    )
    next(steps)
    with pytest.raises((OSError, RuntimeError, ValueError)) as caught:
        steps.send(Reply(status, {}, b'{"detail": "is wrong; do this"}'))
    return caught.type


def test_every_status_and_its_exception_are_listed():
    listed = {}
    for statuses, _, exception in rows(SERVE, "status |"):
        kind = NAMED[names(exception)[0]]
        listed |= {int(status): kind for status in re.findall(r"\d+", statuses)}
    assert listed.keys() == STATUSES.keys() | BUSY.keys() | {500}
    for status, kind in listed.items():
        assert raised(status) is kind, status


def test_every_exception_of_the_clients_is_listed():
    seen = set()
    for exception, base, when in rows(ERRORS, "exception |"):
        kind = NAMED[names(exception)[0].rpartition(".")[2]]
        seen.add(kind)
        if base:
            assert names(base)[0] in {one.__name__ for one in kind.__mro__[1:]}
        for status in re.findall(r"\d\d\d", when):
            assert raised(int(status)) is kind, status
    assert seen == set(NAMED.values())
