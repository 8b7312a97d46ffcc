"""Models are learned by a worker process while decisions go on; a new model is an event."""

import json
import time

import numpy as np
import pytest

from driftbandit import LGDS, Agent, Refit
from driftbandit.service.experiment import Experiment
from driftbandit.service.problems import Problem
from driftbandit.service.refitting import Refitter, task_of, worked
from driftbandit.service.settings import checked
from driftbandit.service.store import Store
from driftbandit.service.writer import Job, Writer, parsed

MODEL = LGDS([[0.95, 0.0], [0.0, 0.6]], [[0.1, 0.0], [0.0, 0.5]], 0.3)
SEASON = [2.0, -1.0, -2.0, 1.0]
ARMS = {"left": [1.0, 0.2], "right": [-0.3, 1.0], "both": [0.7, -0.7]}


class World:
    """Rewards that drift; three arms."""

    def __init__(self, seed=0):
        self.rng, self.z = np.random.default_rng(seed), np.zeros(2)

    def pays(self, arm):
        noise = np.sqrt(np.diag(MODEL.process_cov)) * self.rng.standard_normal(2)
        self.z = MODEL.transition @ self.z + noise
        return float(np.dot(ARMS[arm], self.z) + 0.3 * self.rng.standard_normal())


class Service:
    """A writer with a refitter, as the application makes them.

    Without settings, it joins another one that has made the experiment.
    """

    def __init__(self, url, **settings):
        self.store = Store(url)
        self.refitter = Refitter(self.store)
        self.writer = Writer(self.store, on_refit_due=self.refitter.request)
        self.refitter.writer = self.writer
        if not settings:
            return
        done = []
        job = Job("shop", None, done.append, settings=checked(settings, 100))
        self.writer.submit(job)
        while not done:
            time.sleep(0.01)

    def run(self, work):
        return parsed(self.writer.run("shop", lambda one, now: (200, work(one, now))))

    def play(self, world, rounds):
        for _ in range(rounds):
            arm = self.run(lambda one, now: one.decide(now, most_open=10**6)[0].to_dict())
            told = [{"decision": arm["id"], "reward": world.pays(arm["arm"])}]
            self.run(lambda one, now, told=told: one.reward(now, told))

    def events(self):
        with self.store.read() as transaction:
            return list(transaction.events("shop", 0))

    def wait(self, kind, number=1, seconds=90):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            found = [event for event in self.events() if event["kind"] == kind]
            if len(found) >= number:
                return found[-1]
            time.sleep(0.1)
        raise AssertionError([event["kind"] for event in self.events()][-3:])

    def close(self):
        self.refitter.close()
        self.writer.close()
        self.store.close()


@pytest.fixture
def service(tmp_path):
    made = []

    def make(**settings):
        made.append(Service(f"sqlite:///{tmp_path / 'one.db'}", **settings))
        return made[-1]

    yield make
    for one in made:
        one.close()


def assert_folds(service):
    first, *rest = service.events()
    folded = Experiment.of_event("shop", first)
    for event in rest:
        folded.apply(event)
    kept = []
    service.run(lambda one, now: kept.append(one.to_snapshot()))
    assert folded.to_snapshot() == kept[0]


def test_a_scheduled_refit_learns_the_model_while_decisions_go_on(service):
    one = service(arms=ARMS, window=5, refit={"after": 60, "iterations": 20})
    world = World()
    one.play(world, 60)
    started = one.wait("refit_started")
    one.play(world, 10)  # decisions do not wait for the worker
    found = one.wait("refitted")
    assert found["number"] > started["number"]
    assert found["rewards"] >= 60
    assert found["seconds"] > 0
    one.play(world, 10)
    assert_folds(one)
    learned = found["system"]
    assert 0.02 < learned["reward_std"] < 1.0
    assert np.abs(np.linalg.eigvals(learned["transition"])).max() < 1
    view = one.run(lambda experiment, now: experiment.tally.models)
    assert [model["kind"] for model in view] == ["created", "refitted"]
    kinds = [event["kind"] for event in one.events()]
    assert kinds.count("refit_started") == kinds.count("refitted") == 1  # the next is far off


def refitted(service):
    """Learn the model in this process; return what the event holds."""
    started = service.run(lambda e, now: e.start_refit(now))
    with service.store.read() as transaction:
        found = worked(json.loads(json.dumps(task_of(transaction, "shop"))))
    service.run(lambda e, now: e.finish_refit(now, found, started))
    event = service.events()[-1]
    assert event["kind"] == "refitted", event
    return event


PAYS = {"a": 0.2, "b": 0.5, "c": 0.9, "d": 0.4}


def play_among(service, rng, arms, rounds):
    """Play the arms in turn, each paying its level and noise."""
    for round_ in range(rounds):
        offer = {"arms": [arms[round_ % len(arms)]], "most_open": 10**6}
        made = service.run(lambda e, now, offer=offer: e.decide(now, **offer)[0].to_dict())
        paid = PAYS[made["arm"]] + 0.1 * float(rng.standard_normal())
        told = [{"decision": made["id"], "reward": paid}]
        service.run(lambda e, now, told=told: e.reward(now, told))


def beliefs(service):
    return service.run(lambda e, now: {one.arm: list(one[1:]) for one in e.agent.scores()})


def test_arms_with_levels_come_and_go_and_refits_know_them(service, tmp_path):
    """After a refit, exactly as if all arms had been there from the start, and never left."""
    # Of all policies, reach's bonus would depend on the arms that are there.
    given = {"policy": "idea", "window": 7, "refit": {"after": 5000, "check": False}}
    one = service(names=["a", "b", "d"], **given)
    other = Service(f"sqlite:///{tmp_path / 'other.db'}", names=["a", "b", "c", "d"], **given)
    for which in (one, other):
        rng = np.random.default_rng(5)
        play_among(which, rng, ["a", "b", "d"], 40)
        if which is one:
            one.run(lambda e, now: e.add_arm(now, "c", None))
            started = beliefs(one)
            prior = one.run(lambda e, now: float(e.agent.model.initial_mean[0]))
        play_among(which, rng, ["a", "b", "c", "d"], 40)
        if which is one:
            one.run(lambda e, now: e.retire_arm(now, "d"))
        play_among(which, rng, ["a", "b", "c"], 3)  # plays of d are inside the window
    assert started["c"][0] == prior  # of all levels, from the first rewards: it was not played yet
    assert started["c"][2] > max(started[arm][2] for arm in ("a", "b", "d"))
    ours, theirs = refitted(one), refitted(other)
    assert ours["system"]["names"] == ["a", "b", "c", "d"]
    assert ours["rewards"] == theirs["rewards"] == 83
    assert one.run(lambda e, now: list(e.agent.names)) == ["a", "b", "c"]
    for arm, belief in beliefs(one).items():
        assert belief == pytest.approx(beliefs(other)[arm], rel=1e-9), arm
    assert abs(beliefs(one)["c"][0] - PAYS["c"]) < 0.1
    assert_folds(one)
    learned = beliefs(one)
    one.run(lambda e, now: e.add_arm(now, "e", None))  # the same prior as that of the others
    first = ours["system"]
    scores = beliefs(one)
    assert scores["e"][0] == pytest.approx(first["initial_mean"][0])
    assert {arm: belief[0] for arm, belief in learned.items()} == pytest.approx(
        {arm: belief[0] for arm, belief in scores.items() if arm != "e"}
    )
    one.run(lambda e, now: e.add_arm(now, "d", None))  # its old plays are its own again
    again = refitted(one)
    assert again["system"]["names"] == ["a", "b", "c", "e", "d"]
    assert beliefs(one)["d"][0] == pytest.approx(PAYS["d"], abs=0.1)
    assert_folds(one)
    other.close()


def test_a_refit_forgets_arms_that_were_played_long_ago(service):
    refit = {"after": 20, "memory": 20, "growth": 1000}
    one = service(names=["a", "b", "d"], window=2, memory=1000, refit=refit | {"after": 20})
    one.refitter.close()  # refits are made here
    rng = np.random.default_rng(5)
    play_among(one, rng, ["a", "b", "d"], 15)
    one.run(lambda e, now: e.retire_arm(now, "d"))
    play_among(one, rng, ["a", "b"], 3)
    assert refitted(one)["system"]["names"] == ["a", "b", "d"]
    play_among(one, rng, ["a", "b"], 30)  # the experiment still keeps plays of d
    assert refitted(one)["system"]["names"] == ["a", "b"]
    assert one.run(lambda e, now: e.agent.model.n_states) == 2
    assert_folds(one)


def test_a_refit_on_demand_with_components_keeps_the_phase(service):
    names = ["a", "b"]
    one = service(structure="level(arm) + season(4)", names=names, window=3, refit={"after": 500})
    rng = np.random.default_rng(3)
    for round_ in range(80):
        arm = one.run(lambda e, now: e.decide(now, most_open=10**6)[0].to_dict())
        paid = SEASON[round_ % 4] + (0.5 if arm["arm"] == "b" else 0.0)
        told = [{"decision": arm["id"], "reward": paid + 0.1 * float(rng.standard_normal())}]
        one.run(lambda e, now, told=told: e.reward(now, told))
    one.refitter.begin("shop", one.run(lambda e, now: e.start_refit(now)))
    found = one.wait("refitted")
    assert found["start"] == 0
    assert_folds(one)
    for round_ in range(80, 88):  # it anticipates the season
        scores = one.run(lambda e, now: [s.to_dict() for s in e.agent.scores()])
        means = {score["arm"]: score["mean"] for score in scores}
        assert abs(means["b"] - 0.5 - SEASON[round_ % 4]) < 0.3
        one.run(lambda e, now: e.decide(now, most_open=10**6)[0].to_dict())


@pytest.mark.parametrize(("memory", "rewarded"), [(5000, range(1, 40)), (20, range(40))])
def test_the_model_starts_before_the_oldest_open_decision(service, memory, rewarded):
    """Though that one was never rewarded, or the memory is shorter than the window."""
    refit = {"after": 10, "memory": memory, "iterations": 5}
    one = service(arms=ARMS, window=100, refit=refit | {"after": memory})
    world = World()
    for number in range(40):
        arm = one.run(lambda e, now: e.decide(now, most_open=10**6)[0].to_dict())
        if number in rewarded and number != 30:
            told = [{"decision": arm["id"], "reward": world.pays(arm["arm"])}]
            one.run(lambda e, now, told=told: e.reward(now, told))
    with one.store.read() as transaction:
        task = json.loads(json.dumps(task_of(transaction, "shop")))
    assert task["plays"][0][0] == 0
    assert len(task["plays"]) == 40
    found = worked(task | {"options": refit})
    assert found["rewards"] == len([n for n in rewarded if n != 30])
    if one.run(lambda e, now: not e.refit_in_progress(now)):
        one.run(lambda e, now: e.start_refit(now))
    one.run(lambda e, now: e.finish_refit(now, found, e.tally.refit_started))
    one.wait("refitted")
    assert_folds(one)


def test_a_server_that_stops_says_so(service):
    one = service(arms=ARMS, window=5, refit={"after": 12, "iterations": 2000})
    one.play(World(), 12)
    one.wait("refit_started")
    one.refitter.close()
    assert one.wait("refit_failed")["lost"]
    assert one.run(lambda e, now: e.refit_is_due())
    assert_folds(one)


def test_a_worker_that_fails_leaves_the_model_and_says_why(service, monkeypatch):
    one = service(arms=ARMS, window=5, refit={"after": 20})
    monkeypatch.setattr("driftbandit.service.refitting.sys.executable", "/bin/false")
    one.play(World(), 20)
    found = one.wait("refit_failed")
    assert "ended with 1" in found["reason"]
    state = one.run(lambda e, now: e.tally.refit_failure)
    assert state == found["reason"]
    one.play(World(), 5)
    assert_folds(one)


def test_refits_that_cannot_begin_are_refused(service):
    one = service(arms=ARMS, window=5, refit={"after": 500})
    with pytest.raises(Problem, match="0 rewards"):
        one.run(lambda e, now: e.start_refit(now))
    one.play(World(), 12)
    one.run(lambda e, now: e.start_refit(now))
    with pytest.raises(Problem, match="in progress"):
        one.run(lambda e, now: e.start_refit(now))


def test_what_the_worker_learns_is_what_an_agent_learns(service):
    one = service(arms=ARMS, window=0, refit={"after": 5000})
    one.play(World(5), 70)
    with one.store.read() as transaction:
        task = json.loads(json.dumps(task_of(transaction, "shop")))
    assert len(task["plays"]) == 70
    options = {"after": 70, "iterations": 15}
    found = worked(task | {"options": options, "model": None})["system"]
    # A plain agent that refits by itself, from the same settled rewards.
    names, rows = list(ARMS), np.array(list(ARMS.values()))
    agent = Agent(None, rows, names=names, window=0, refit=Refit(**options, background=False))
    agent.tell_log([(round_, names[arm], reward) for round_, arm, reward in task["plays"]])
    agent.advance()  # the last reward leaves the window, and a refit is due
    assert agent.refit_failure is None
    assert found["transition"] == agent.model.transition.tolist()
    assert found["process_cov"] == agent.model.process_cov.tolist()
    assert found["reward_std"] == agent.model.reward_std
