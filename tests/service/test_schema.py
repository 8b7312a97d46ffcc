"""Random requests made from the OpenAPI description: none fails, and answers are as described.

Some fit the description, some do not, and some have documents that are likely to get further. Most
of them go to experiments that exist.
"""

import collections
import random
import time

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from requests import Session
from schemathesis import GenerationMode
from schemathesis.specs.openapi import checks

from driftbandit.io import model_file
from driftbandit.service import wire
from driftbandit.service.refitting import Refitter
from driftbandit.service.store import Store
from driftbandit.service.verifying import verify
from service.inprocess import Service
from service.refused import check_headers, check_refused
from service.systems_served import DOCUMENT, OTHER_DOCUMENT, PRICED_DOCUMENT, UNSTABLE_DOCUMENT

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
]
REFUSALS = [checks.negative_data_rejection]  # not of queries: unknown names in them are ignored
EXPERIMENTS = {
    "idea": {"system": DOCUMENT, "window": 20},
    "refitted": {"arms": {"left": [1.0, 0.5], "right": [0.5, 1.0]}, "refit": {"after": 10}},
    "clock": {"system": DOCUMENT, "time": {"seconds": 0.5}, "policy": "thompson"},
    "ucb": {"system": DOCUMENT, "policy": "ucb", "memory": 5, "window": 0},
    "priced": {"system": PRICED_DOCUMENT},
    "wild": {"system": UNSTABLE_DOCUMENT, "window": 2**53},
    "oracle": {"system": DOCUMENT, "policy": "kalman_oracle"},
}
SHARES = [6, 4, 3, 2, 2, 1, 1]  # of the requests

number = st.one_of(
    st.floats(-3, 3),
    st.sampled_from([0.0, 1.0, 0.5, 1e-300, 1e150, -1e150, 1e151, 1e308, 2**53, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
)
name = st.sampled_from(["left", "right", "left", "right", "both", 7, "a", "new", "\x00"])
row = st.lists(st.floats(0.1, 3), min_size=2, max_size=2) | st.lists(number, max_size=3)
whole = st.integers(0, 80) | st.sampled_from([-(2**53), -1, 2**53 + 1])
reward = st.floats(-3, 3) | number | st.booleans() | st.none() | st.lists(number, max_size=4)
told = st.fixed_dictionaries({"decision": st.integers(0, 40), "reward": reward})
doubted = st.fixed_dictionaries({"decision": whole, "reward": reward, "arm": name, "round": whole})
price = st.floats(-3, 3) | number | row | st.dictionaries(st.sampled_from(["basic", "2"]), number)
right = st.sampled_from([DOCUMENT, OTHER_DOCUMENT, PRICED_DOCUMENT, UNSTABLE_DOCUMENT])
change = st.one_of(
    st.fixed_dictionaries({"reward_std": number}),
    st.fixed_dictionaries({"transition": st.lists(row, min_size=1, max_size=3)}),
    st.fixed_dictionaries({"initial_mean": row}),
    st.fixed_dictionaries({"names": st.lists(name, min_size=2, max_size=4)}),
)
system = right | st.builds(lambda one, other: one | other, right, change)
QUESTION = {
    "arms": st.lists(name, min_size=1, max_size=2),
    "features": st.lists(row, min_size=1, max_size=2),
    "context": st.fixed_dictionaries({"x_price": price}),
    "round": whole,
    "count": st.integers(1, 3),
    "distinct": st.booleans(),
}
OPTIONS = {
    "policy": st.sampled_from(["idea", "kode", "rexp3", "random", "kalman_ucb(width=1e9)"]),
    "window": whole,
    "memory": whole,
    "seed": whole,
    "time": st.fixed_dictionaries({"seconds": number}),
    "on_alarm": st.just("widen"),
    "refit": st.fixed_dictionaries({"scale": number}, optional={"after": whole}),
}
new_id = st.integers(0, 10**6).map(lambda n: f"new-{n}")


def some_of(needed, optional):
    """Documents with none of the optional fields, with one, or with several."""
    with_one = [st.fixed_dictionaries(needed | {key: optional[key]}) for key in optional]
    several = st.fixed_dictionaries(needed, optional=optional)
    return st.fixed_dictionaries(needed) | st.one_of(with_one) | several


LIKELY = {
    "decisions": some_of({}, QUESTION),
    "rewards": told
    | doubted
    | st.fixed_dictionaries({"rewards": st.lists(told | doubted, min_size=1, max_size=5)}),
    "arms": st.fixed_dictionaries({"arm": name | st.text(max_size=9)}, optional={"features": row}),
    "retire": st.fixed_dictionaries({"arm": name}),
    "model": st.fixed_dictionaries({"system": system}),
    "experiments": some_of({"id": new_id, "system": system}, OPTIONS),
    "pause": st.fixed_dictionaries({"reason": st.text(max_size=20)}),
    "resume": st.just({}),
    "refit": st.just({}),
}
WEIGHTS = {"decisions": 9, "rewards": 9, "experiments": 3, "model": 3, "arms": 3, "resume": 3}
"""How many requests go to a route, compared with others."""
BLOCK = 2000  # requests that Hypothesis draws together: it remembers them all


class Fuzz:
    """Sends what is drawn, counts the answers, and notes what is wrong with them."""

    def __init__(self, service):
        document = service.get("/openapi.json").json()
        self.schema = schemathesis.openapi.from_dict(document)
        self.schema.config.update(base_url=f"http://127.0.0.1:{service.port}")
        self.counts, self.problems, self.reached, self.likely = collections.Counter(), [], 0, 0
        self.random = random.Random(20)

    def run(self, requests, seed_):
        """Send so many requests, each to a random route."""
        operations = [found.ok() for found in self.schema.get_all_operations()]
        operations = [one for one in operations if not one.path.endswith("/live")]  # without an end
        drawn = [_requests(one) for one in operations for _ in range(WEIGHTS.get(last(one), 2))]

        @seed(seed_)
        @settings(
            max_examples=requests,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.one_of(drawn))
        def send(case):
            self.likely += case.meta is None
            in_any = "id" in (case.path_parameters or {})
            if in_any and (case.meta is None or self.random.random() < 0.8):
                id_ = self.random.choices(list(EXPERIMENTS), SHARES)[0]
                case.path_parameters = {"id": "ucb" if last(case.operation) == "pause" else id_}
                self.reached += 1
            self.send(case)

        with Session() as self.session:
            send()

    def send(self, case):
        found = case.call(session=self.session, timeout=30)
        headers = [(name_, value) for name_, values in found.headers.items() for value in values]
        answer = httpx.Response(found.status_code, headers=headers, content=found.content)
        self.counts[case.operation.label, answer.status_code] += 1
        try:
            case.validate_response(found, checks=CHECKS + REFUSALS * (case.method == "POST"))
            check_headers(answer)
            if answer.status_code >= 400:
                check_refused(answer, answer.status_code, answer.json().get("field"))
        except (AssertionError, BaseExceptionGroup) as error:
            said = f"{case.as_curl_command()[:2000]}\n{answer.status_code} {answer.content[:500]}"
            self.problems.append(f"{said}\n{error}"[:5000])

    def report(self, seconds):
        """Print how many requests were sent, and how they were answered."""
        statuses = collections.Counter()
        for (_, status), count in self.counts.items():
            statuses[status] += count
        print(f"\n{statuses.total():,} requests in {seconds:.0f} s,", end=" ")
        print(f"{self.reached:,} to experiments that exist, {self.likely:,} with likely documents")
        print(", ".join(f"{status}: {count:,}" for status, count in sorted(statuses.items())))
        for label in sorted({label for label, _ in self.counts}):
            found = {status: self.counts[label, status] for status in sorted(statuses)}
            shown = ", ".join(f"{status}: {count:,}" for status, count in found.items() if count)
            print(f"    {label}  {shown}")
        return statuses


def _requests(operation):
    """Requests to a route that fit its description, that do not, and likely ones."""
    modes = GenerationMode.POSITIVE, GenerationMode.NEGATIVE
    drawn = [operation.as_strategy(generation_mode=mode) for mode in modes]
    likely = LIKELY.get(last(operation)) if operation.method == "post" else None
    if likely is None:
        return st.one_of(drawn)
    given_ = {"path_parameters": {"id": "any"}, "media_type": "application/json"}
    return st.one_of(*drawn, likely.map(lambda body: operation.Case(body=body, **given_)))


def last(operation):
    """The last word of a route, which says what it does."""
    return operation.path.rpartition("/")[2]


def fuzzed(folder, requests, monkeypatch):
    """Send so many requests; then look whether the store holds what it says."""
    # A worker process for each refit would take seconds; `test_refitting` has real ones.
    found = {"system": OTHER_DOCUMENT, "start": 0, "rewards": 10, "seconds": 0.1}
    monkeypatch.setattr(Refitter, "_worked", lambda *_: dict(found))
    begun = time.monotonic()
    with Service(folder, arms=100, open=10_000) as service:
        for id_, given_ in EXPERIMENTS.items():
            service.create(id_, **given_)
        fuzz = Fuzz(service)
        for block in range(-(-requests // BLOCK)):
            fuzz.run(min(BLOCK, requests), seed_=block)
        states = {id_: _lasting(service, id_) for id_ in EXPERIMENTS}
    statuses = fuzz.report(time.monotonic() - begun)
    assert not fuzz.problems, f"{len(fuzz.problems)} problems\n" + "\n\n".join(fuzz.problems[:5])
    store = Store(service.url)
    verdicts = verify(store)
    store.close()
    assert all(verdict.clean for verdict in verdicts), verdicts
    events = sum(verdict.events for verdict in verdicts)
    print(f"{events:,} events of {len(verdicts):,} experiments")
    with Service(folder) as service:  # another server goes on from there
        assert {id_: _lasting(service, id_) for id_ in EXPERIMENTS} == states
    return statuses


def _lasting(service, id_):
    """What a state document says that depends neither on the clock nor on the process."""
    answer = service.get(f"/v1/experiments/{id_}/state")
    assert answer.status_code == 200, answer.text
    passing = ("time", "round", "arms", "last")
    return {key: value for key, value in answer.json().items() if key not in passing}


def test_many_requests(tmp_path, monkeypatch):
    statuses = fuzzed(tmp_path, 1000, monkeypatch)
    assert statuses.total() >= 1000
    assert min(statuses[200], statuses[201]) > 50  # many got through


@pytest.mark.nightly
def test_a_hundred_thousand_requests(tmp_path, monkeypatch):
    assert fuzzed(tmp_path, 100_000, monkeypatch).total() >= 100_000


def test_the_description_of_a_model_file_has_all_of_its_fields():
    assert {*wire._FIELDS} == {*model_file.REQUIRED, *model_file.OPTIONAL}
