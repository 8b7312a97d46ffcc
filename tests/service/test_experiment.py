"""An experiment is the fold of its events, bit for bit, whatever its life was."""

import json
import random

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from driftbandit import LGDS, Agent, System
from driftbandit.agent import history
from driftbandit.errors import Conflict, InvalidInput
from driftbandit.io import model_file
from driftbandit.service.experiment import REFIT_LEASE, Experiment
from driftbandit.service.problems import Problem
from driftbandit.service.reading import sample_of, state_of, summary_of
from driftbandit.service.settings import checked

NAMES = ("left", "right", "both", 7)
SYSTEM = System(
    LGDS([[0.9, 0.1], [-0.1, 0.8]], [[0.2, 0.0], [0.0, 0.1]], 0.5),
    np.array([[1.0, 0.0], [0.0, 1.0], [0.7, 0.7], [-0.5, 0.5]]),
    NAMES,
)
OTHER = System(LGDS([[0.5, 0.0], [0.0, 0.5]], np.eye(2), 1.0), SYSTEM.arms, NAMES)
DOCUMENT = model_file.to_document(SYSTEM)
POLICIES = (
    "reach",
    "idea",
    "kode",
    "kalman_ucb(width=2)",
    "thompson",
    "random",
    "discounted_linucb",
    "ucb",
)
MANY = 10**6


def made(**options):
    return Experiment.create("one", checked({"system": DOCUMENT, **options}, MANY), 1000.0)


def folded(events):
    """The fold of events that were stored and read back."""
    first, *rest = json.loads(json.dumps(events))
    experiment = Experiment.of_event("one", first)
    for event in rest:
        experiment.apply(event)
    return experiment


class Life:
    """Random commands; every one that is refused changes nothing."""

    def __init__(self, seed, **options):
        self.rng = random.Random(seed)
        self.experiment = made(**options)
        self.events = self.experiment.new
        self.now = 1000.0

    def step(self):
        self.now += self.rng.expovariate(1.0)
        names = ["decide", "reward"] * 8 + ["add", "retire", "replace", "pause", "refit"]
        before = self.experiment.version, self.experiment.to_snapshot()
        try:
            getattr(self, self.rng.choice(names))()
        except (Problem, InvalidInput):
            assert before == (self.experiment.version, self.experiment.to_snapshot())

    def decide(self):
        given = {}
        form = self.rng.randrange(6)
        own = list(self.experiment.agent.names)
        if form == 0:
            given["arms"] = self.rng.sample(own, self.rng.randint(1, len(own)))
        elif form == 1:
            given["features"] = [[0.5, 0.5], [1.0, -1.0]]
        elif form == 2:
            given |= {"arms": ["new", "newer"], "features": [[0.5, 0.5], [1.0, -1.0]]}
        if self.rng.random() < 0.2:
            given["round"] = self.experiment.agent.round + self.rng.randint(-2, 3)
        if self.rng.random() < 0.3:
            given |= {"count": self.rng.randint(1, 4), "distinct": self.rng.random() < 0.7}
        self.experiment.decide(self.now, **given, most_open=50)

    def reward(self):
        known = self.experiment.tally.decisions
        told = [
            {
                "decision": self.rng.randint(max(-1, known - 9), known),
                "reward": self.rng.gauss(0, 1),
            }
            for _ in range(self.rng.randint(1, 4))
        ]
        if self.rng.random() < 0.2:
            told[0]["reward"] = self.rng.choice([None, True, 3])
        self.experiment.reward(self.now, told)

    def add(self):
        features = self.rng.choice([None, [0.3, -0.8]])
        self.experiment.add_arm(self.now, f"arm {self.rng.randrange(9)}", features)

    def retire(self):
        self.experiment.retire_arm(self.now, self.rng.choice(list(self.experiment.agent.names)))

    def replace(self):
        system = self.rng.choice([OTHER, SYSTEM])
        self.experiment.replace_model(self.now, model_file.to_document(system))

    def pause(self):
        if self.rng.random() < 0.5:
            self.experiment.pause(self.now, "a reason")
        self.experiment.resume(self.now)

    def refit(self):
        started = self.experiment.start_refit(self.now)
        if self.rng.random() < 0.5:
            self.experiment.continue_refit(self.now, started)
        if self.rng.random() < 0.3:
            started = self.experiment.take_over_refit(self.now, started, ended=True)
            if started is None:
                return
        start = self.rng.choice([0, max(0, self.experiment.agent.round - 8)])
        agent = self.experiment.agent
        model = LGDS(0.9 * agent.model.transition, agent.model.process_cov, 0.7)
        system = System(model, agent.problem.arms, agent.names)
        found = {"system": model_file.to_document(system), "start": start, "rewards": 12}
        found = self.rng.choice([found, {"reason": "no luck"}])
        self.experiment.finish_refit(self.now, found, started)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    seed=st.integers(0, 2**32),
    policy=st.sampled_from(POLICIES),
    window=st.sampled_from([0, 3, 20]),
    memory=st.sampled_from([5, 1000]),
    by_clock=st.booleans(),
)
def test_the_fold_of_the_events_is_the_experiment(seed, policy, window, memory, by_clock):
    time = {"seconds": 2.0} if by_clock else "rounds"
    life = Life(seed, policy=policy, window=window, memory=memory, time=time)
    cut = None
    for number in range(120):
        life.step()
        if number == seed % 120:
            cut = life.experiment.version, life.experiment.to_snapshot()
    experiment = life.experiment
    again = folded(life.events)
    assert again.to_snapshot() == experiment.to_snapshot()
    assert [event["number"] for event in life.events] == list(range(1, experiment.version + 1))
    # From a snapshot in the middle, too.
    version, texts = cut
    middle = Experiment.from_snapshot("one", *texts)
    for event in json.loads(json.dumps(life.events[version:])):
        middle.apply(event)
    assert middle.to_snapshot() == experiment.to_snapshot()
    # And what readers see is the same, but for the scores of the last decision.
    views = [state_of(one, life.now) | {"last": None} for one in (experiment, again, middle)]
    assert views[0] == views[1] == views[2]
    assert summary_of(experiment, full=True) == summary_of(again, full=True)
    json.dumps([views[0], sample_of(experiment, life.now)], allow_nan=False)


def test_it_decides_and_learns_as_a_plain_agent():
    experiment, agent = made(seed=3, window=100), Agent(SYSTEM, seed=3)
    rng = random.Random(1)
    for round_ in range(200):
        (found,) = experiment.decide(0.0, most_open=MANY)
        assert found == agent.ask()
        if round_ % 3:
            reward = rng.gauss(0, 1)
            late = max(0, round_ - rng.randrange(5))
            told = [{"decision": late, "reward": reward}]
            try:
                expected = [agent.tell(late, reward)]
            except Conflict:
                with pytest.raises(Conflict):
                    experiment.reward(0.0, told)
            else:
                assert experiment.reward(0.0, told) == expected
    assert experiment.agent.to_json() == agent.to_json()


def test_rounds_follow_the_clock():
    experiment = Experiment.create(
        "one", checked({"system": DOCUMENT, "time": {"seconds": 3600}}, 9), 5000.0
    )
    rounds = [
        experiment.decide(at, most_open=9)[0].round for at in (5000.0, 7199.0, 7200.0, 18001.0)
    ]
    assert rounds == [0, 0, 1, 4]  # hours begin at 3600, 7200, … seconds
    assert experiment.decide(3000.0, most_open=9)[0].round == 4  # a clock that was set back
    with pytest.raises(Problem, match="follow the clock"):
        experiment.decide(18002.0, round=9, most_open=9)
    assert state_of(experiment, 40000.0)["round"] == 10
    wide = [arm["uncertainty"] for arm in state_of(experiment, 40000.0)["arms"]]
    narrow = [arm["uncertainty"] for arm in state_of(experiment, 18001.0)["arms"]]
    assert all(late >= early for late, early in zip(wide, narrow, strict=True))


def test_a_batch_of_rewards_is_learned_whole_or_not_at_all():
    experiment = made()
    experiment.decide(0.0, count=3, most_open=9)
    before = experiment.to_snapshot()
    for wrong, status in [
        ({"decision": 9, "reward": 1.0}, 404),
        ({"decision": 0, "reward": 2.0}, 409),
    ]:
        with pytest.raises((Problem, Conflict)) as caught:
            experiment.reward(0.0, [{"decision": 0, "reward": 1.0}, wrong])
        assert getattr(caught.value, "status", 409) == status
        assert experiment.to_snapshot() == before
    told = [
        {"decision": 2, "reward": 1},
        {"decision": 0, "reward": True},
        {"decision": 2, "reward": 1},
    ]
    assert experiment.reward(0.0, told) == ["learned", "learned", "duplicate"]
    assert [e["reward"] for e in experiment.new if e["kind"] == "rewarded"] == [1, 1.0]


def test_a_decision_of_another_experiment_is_noticed():
    experiment = made()
    (decision,) = experiment.decide(0.0, most_open=9)
    told = {"decision": decision.id, "reward": 1.0, "arm": decision.arm, "round": decision.round}
    for wrong in ({"round": 5}, {"round": 5, "arm": None}, {"arm": "both", "round": None}):
        with pytest.raises(Conflict):
            experiment.reward(0.0, [told | wrong])
    assert experiment.reward(0.0, [told]) == ["learned"]


def test_limits_and_pauses():
    experiment = made()
    experiment.decide(0.0, count=3, most_open=3)
    with pytest.raises(Problem, match="the most"):
        experiment.decide(0.0, most_open=3)
    experiment.pause(0.0, "stock-taking")
    experiment.pause(0.0, "again")  # changes nothing
    with pytest.raises(Problem, match=r"paused \(stock-taking\); resume"):
        experiment.decide(0.0, most_open=9)
    assert experiment.reward(0.0, [{"decision": 0, "reward": 1.0}]) == ["learned"]
    experiment.resume(0.0)
    assert len(experiment.decide(0.0, most_open=9)) == 1
    assert [e["kind"] for e in experiment.new[4:]] == ["paused", "rewarded", "resumed", "decided"]


@pytest.mark.parametrize("time", ["rounds", {"seconds": 3600}])
def test_only_decisions_that_wait_for_a_reward_count(time, monkeypatch):
    """And those with one leave memory, though their rounds are inside the window."""
    monkeypatch.setattr(history, "KEPT", 20)
    experiment = made(window=50 if time == "rounds" else 20, time=time, memory=10)
    for number in range(30):
        batch = experiment.decide(3600.0 * number / 7, count=40, distinct=False, most_open=60)
        told = [{"decision": one.id, "reward": 0.5} for one in batch]
        assert set(experiment.reward(0.0, told)) == {"learned"}
    assert experiment.kept <= 90  # of 1200, all of which are inside the window
    experiment.decide(20_000.0, count=60, distinct=False, most_open=60)
    with pytest.raises(Problem, match="60 decisions wait for their rewards"):
        experiment.decide(20_000.0, most_open=60)
    assert folded(experiment.new).to_snapshot() == experiment.to_snapshot()


def test_a_fast_clock_goes_on_after_days_without_a_question():
    experiment = made(time={"seconds": 0.001})
    assert experiment.decide(1000.0, most_open=9)[0].round == 0
    later = experiment.decide(1000.0 + 2 * 86400, most_open=9)
    assert later[0].round == 2 * 86400 * 1000
    assert experiment.reward(0.0, [{"decision": 1, "reward": 0.5}]) == ["learned"]


def test_decisions_that_left_the_window_do_not_count_as_open():
    for time, later in (("rounds", {"round": 9}), ({"seconds": 1.0}, {})):
        experiment = made(window=1, time=time)
        experiment.decide(1000.5, count=3, most_open=3)
        with pytest.raises(Problem, match="the most"):
            experiment.decide(1000.6, most_open=3)
        assert len(experiment.decide(1010.0, count=3, most_open=3, **later)) == 3


def test_a_clock_before_the_first_round_is_harmless():
    experiment = made(time={"seconds": 10.0})
    assert experiment.decide(990.0, most_open=9)[0].round == 0


def test_rounds_cannot_run_away():
    experiment = made()
    experiment.decide(0.0, round=1_790_000_000, most_open=9)  # Unix seconds
    with pytest.raises(InvalidInput, match="rounds ahead"):
        experiment.decide(0.0, round=2**53, most_open=9)
    assert experiment.decide(0.0, round=1_790_600_000, most_open=9)[0].id == 1


def test_a_small_request_makes_no_large_events():
    experiment = made()
    with pytest.raises(InvalidInput, match="count: is 100, each with 400"):
        experiment.decide(0.0, count=100, distinct=False, arms=["left"] * 400, most_open=MANY)
    assert len(experiment.decide(0.0, arms=["left"] * 400, most_open=MANY)) == 1


def test_arms_stay_if_refits_learn_something_for_each():
    settings_ = checked({"structure": "level(arm) + season(7)", "names": ["a", "b"]}, MANY)
    experiment = Experiment.create("one", settings_, 0.0)
    for change in (
        lambda: experiment.add_arm(0.0, "c", None),
        lambda: experiment.retire_arm(0.0, "a"),
    ):
        with pytest.raises(InvalidInput, match=r"components that arms share; make a new"):
            change()
    with pytest.raises(InvalidInput, match="features: were given, and refits learn what belongs"):
        experiment.decide(0.0, features=[[1.0, 0.0]], most_open=9)


def test_arms_with_levels_have_no_features():
    """By default refits learn a level for each arm, so arms may come and go, by their names."""
    experiment = Experiment.create("one", checked({"names": ["a", "b"]}, MANY), 0.0)
    with pytest.raises(
        InvalidInput, match=r"features: were given, .* components for each arm; leave"
    ):
        experiment.add_arm(0.0, "c", [1.0, 0.0])
    experiment.add_arm(0.0, "c", None)
    experiment.retire_arm(0.0, "a")
    assert experiment.agent.names == ("b", "c")
    with pytest.raises(InvalidInput, match="features: were given"):
        experiment.decide(0.0, features=[[1.0, 0.0, 0.0]], most_open=9)


def test_a_refit_does_not_undo_later_changes_and_a_lost_one_is_due_again():
    experiment = made(refit={"after": 12})
    for _ in range(12):
        (decision,) = experiment.decide(0.0, most_open=MANY)
        experiment.reward(0.0, [{"decision": decision.id, "reward": 1.0}])
    assert experiment.refit_is_due()
    experiment.start_refit(0.0)
    experiment.finish_refit(0.0, {"reason": "the server stopped", "lost": True}, 0.0)
    assert experiment.refit_is_due()
    experiment.start_refit(1.0)
    assert not experiment.refit_is_due()
    experiment.replace_model(2.0, model_file.to_document(OTHER))
    found = {"system": model_file.to_document(SYSTEM), "start": 0, "rewards": 12}
    experiment.finish_refit(3.0, found, 1.0)
    assert experiment.tally.refit_failure == "the model or the arms were changed meanwhile"
    assert experiment.agent.model.reward_std == OTHER.model.reward_std
    assert not experiment.refit_is_due()
    assert folded(experiment.new).to_snapshot() == experiment.to_snapshot()


def rewarded(**options):
    """An experiment with twelve rewards."""
    experiment = made(**options)
    for _ in range(12):
        (decision,) = experiment.decide(0.0, most_open=MANY)
        experiment.reward(0.0, [{"decision": decision.id, "reward": 1.0}])
    return experiment


def kinds_since_rewards(experiment):
    return [event["kind"] for event in experiment.new[25:]]


def test_a_refit_is_taken_over_when_its_lease_is_over():
    experiment, late = rewarded(refit={"after": 12}), 5.0 + REFIT_LEASE
    experiment.start_refit(0.0)
    experiment.continue_refit(5.0, 0.0)
    with pytest.raises(Problem, match="goes on"):
        experiment.take_over_refit(late - 0.1, 0.0, ended=False)
    with pytest.raises(Problem, match="in progress"):
        experiment.start_refit(late - 0.1)
    assert experiment.take_over_refit(late, 0.0, ended=False) == late
    for again in (experiment.continue_refit, experiment.take_over_refit):  # two servers do it once
        with pytest.raises(Problem, match="another server"):
            again(late + 1, 0.0, **({"ended": True} if "take" in again.__name__ else {}))
    found = {"system": model_file.to_document(OTHER), "start": 0, "rewards": 12}
    with pytest.raises(Problem, match="another server"):  # the first server was only slow
        experiment.finish_refit(late + 2, found, 0.0)
    experiment.finish_refit(late + 3, found, late)
    with pytest.raises(Problem, match="has ended it"):
        experiment.finish_refit(late + 4, found, late)
    expected = ["refit_started", "refit_continues", "refit_failed", "refit_started", "refitted"]
    assert kinds_since_rewards(experiment) == expected
    assert experiment.tally.refits_lost == 0
    assert folded(experiment.new).to_snapshot() == experiment.to_snapshot()


def test_an_abandoned_refit_can_be_started_by_hand():
    experiment = rewarded()
    experiment.start_refit(0.0)
    assert experiment.start_refit(REFIT_LEASE) == REFIT_LEASE
    assert kinds_since_rewards(experiment) == ["refit_started", "refit_failed", "refit_started"]
    assert folded(experiment.new).to_snapshot() == experiment.to_snapshot()


def test_a_refit_that_ends_its_servers_does_not_begin_for_ever():
    experiment = rewarded(refit={"after": 12})
    started = experiment.start_refit(0.0)
    for now in (1.0, 2.0):
        started = experiment.take_over_refit(now, started, ended=True)
        assert started == now
    assert experiment.take_over_refit(3.0, started, ended=True) is None
    assert "3 times in a row" in experiment.tally.refit_failure
    assert not experiment.refit_is_due()
    assert experiment.rewards_until_refit() == 12
    assert folded(experiment.new).to_snapshot() == experiment.to_snapshot()


def test_events_out_of_order_are_refused():
    experiment = made()
    experiment.decide(0.0, count=2, most_open=9)
    experiment.reward(0.0, [{"decision": 0, "reward": 1.0}])
    first, second, third, reward = experiment.new
    for wrong in ([first, third], [first, second, second], [second]):
        with pytest.raises((InvalidInput, KeyError)):
            folded(wrong)
    with pytest.raises(InvalidInput, match="duplicate"):
        folded([first, second, third, reward, reward | {"number": 5}])
    with pytest.raises(InvalidInput, match="newer version"):
        folded([first, {"number": 2, "kind": "unheard of", "time": 0.0}])


CONTEXT = System(
    LGDS(np.diag([0.9, 0.9, 1.0]), np.diag([0.1, 0.1, 0.0]), 0.5, np.eye(3)),
    np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    ("basic", "premium"),
    {"x_price": np.array([[0.0, 0.0, 1.0], [0.0, 0.0, 1.0]])},
)


def test_contexts():
    settings_ = checked({"system": model_file.to_document(CONTEXT)}, MANY)
    experiment = Experiment.create("one", settings_, 0.0)
    agent = Agent(CONTEXT, window=settings_["window"])
    for context in (
        {"x_price": 1.5},
        {"x_price": [1.0, 2.0]},
        {"x_price": {"basic": 1.0, "premium": 3}},
    ):
        (found,) = experiment.decide(0.0, context=context, most_open=9)
        assert found == agent.ask(context=context)
        experiment.reward(0.0, [{"decision": found.id, "reward": 0.3}])
        agent.tell(found, 0.3)
    assert folded(experiment.new).to_snapshot() == experiment.to_snapshot()
    assert experiment.agent.to_json() == agent.to_json()
    assert state_of(experiment, 0.0)["arms"][0]["mean"] is None  # it depends on the price
    with pytest.raises(InvalidInput):
        experiment.decide(0.0, most_open=9)


CLOCK = {"start": "2026-03-02", "step": 3_600_000_000, "zone": None, "zoned": None, "local": False}
LEARNED = model_file.to_document(SYSTEM) | {"first_round": 899, "clock": CLOCK}


def test_rounds_begin_in_the_first_round_of_the_system():
    experiment = made(system=LEARNED)
    first, second = (experiment.decide(2000.0, most_open=MANY)[0] for _ in range(2))
    assert (first.round, second.round) == (899, 900)
    assert experiment.decide(2000.0, round=911, most_open=MANY)[0].round == 911
    experiment.reward(2001.0, [{"decision": 0, "reward": 0.5}])
    assert folded(experiment.new).to_snapshot() == experiment.to_snapshot()
    early = made(system=LEARNED)
    with pytest.raises(InvalidInput, match="the model starts in round 899"):
        early.decide(2000.0, round=0, most_open=MANY)


def test_rounds_by_the_clock_begin_at_zero_whatever_the_system_says():
    experiment = made(system=LEARNED, time={"seconds": 10})
    assert not {"first_round", "clock"} & set(experiment.settings["system"])
    assert LEARNED["first_round"] == 899  # the caller's own is left alone
    assert experiment.decide(1025.0, most_open=MANY)[0].round == 2
