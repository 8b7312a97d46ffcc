"""When the clients try again, and when they give up; without a clock, a network or a sleep."""

import email.utils
import pickle
import time

import pytest

pytest.importorskip("httpx")

from driftbandit.service.client.retries import (
    FIRST,
    LONGEST,
    SHORTEST,
    Damaged,
    Failure,
    Patience,
    Reply,
    Request,
    Unavailable,
    exchange,
    retry_after,
)

REQUEST = Request("POST", "http://here/v1", {"Idempotency-Key": "k1"}, b"{}", 10.0)
REFUSED = Failure("ConnectError: refused")
OK = Reply(200, {}, b"fine")


def busy(status, after=None):
    return Reply(status, {} if after is None else {"retry-after": after})


class World:
    """Gives one answer after another, the last one for ever; each takes ``seconds``."""

    def __init__(self, *answers, seconds=0.0):
        self.answers, self.seconds, self.now = list(answers), seconds, 100.0
        self.sent, self.pauses = [], []

    def run(self, patience, draw=1.0, read=lambda reply: reply.content):
        steps = exchange(REQUEST, Patience(patience, lambda: self.now, lambda: draw), read)
        answer = None
        while True:
            try:
                step = steps.send(answer)
            except StopIteration as done:
                return done.value
            answer = None
            if isinstance(step, Request):
                self.sent.append(step)
                self.now += self.seconds
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
            else:
                self.pauses.append(step)
                self.now += step


def test_an_answer_ends_it():
    world = World(OK)
    assert world.run(60.0) == b"fine"
    assert (world.sent, world.pauses) == ([REQUEST], [])


def test_pauses_double_up_to_a_bound_and_are_drawn_below_it():
    world = World(*[REFUSED] * 8, OK)
    assert world.run(60.0) == b"fine"
    doubled = [FIRST * 2**n for n in range(6)]
    assert world.pauses == pytest.approx([*doubled, LONGEST, LONGEST])
    world = World(*[REFUSED] * 8, OK)
    world.run(60.0, draw=0.5)
    assert world.pauses == pytest.approx([0.5 * pause for pause in [*doubled, LONGEST, LONGEST]])


@pytest.mark.parametrize("answer", [REFUSED, *map(busy, (429, 502, 503, 504))])
def test_patience_is_used_up_and_not_exceeded(answer):
    world = World(answer)
    with pytest.raises(Unavailable, match="got no answer in") as caught:
        world.run(30.0)
    assert sum(world.pauses) == pytest.approx(30.0)  # the last attempt is at the very end
    assert len(world.sent) == len(world.pauses) + 1
    assert caught.value.key == "k1"


def test_an_unlucky_draw_of_no_pause_at_all_does_not_overflow():
    world = World(*[REFUSED] * 3000, OK)
    assert world.run(60.0, draw=0.0) == b"fine"


def test_without_patience_there_is_one_attempt():
    world = World(REFUSED)
    with pytest.raises(Unavailable, match=r"in 1 attempt and 0\.0 s"):
        world.run(0.0)
    assert world.sent == [REQUEST]


def test_all_attempts_are_the_same_request():
    world = World(REFUSED, busy(503), busy(502), Failure("ReadTimeout"), OK)
    world.run(60.0)
    assert len(world.sent) == 5
    assert {(one.headers["Idempotency-Key"], one.body, one.url) for one in world.sent} == {
        ("k1", b"{}", "http://here/v1")
    }


def test_late_attempts_do_not_wait_longer_than_the_patience():
    world = World(REFUSED, seconds=0.01)
    with pytest.raises(Unavailable):
        world.run(15.0)
    timeouts = [one.timeout for one in world.sent]
    assert timeouts[0] == 10.0
    assert timeouts == sorted(timeouts, reverse=True)
    assert timeouts[-1] == SHORTEST


@pytest.mark.parametrize("status", [429, 503])
def test_retry_after_is_waited_for(status):
    world = World(busy(status, "7"), OK)
    assert world.run(60.0) == b"fine"
    assert world.pauses == [7.0 + FIRST]


def test_a_retry_after_beyond_the_patience_ends_it_at_once():
    world = World(busy(429, "120"))
    with pytest.raises(Unavailable, match=r"too many requests \(429\), and asks to wait 120 s"):
        world.run(60.0)
    assert world.pauses == []


@pytest.mark.parametrize("text", ["", "soon", "-3", "Wed, 99 Foo 2020", "٣"])
def test_a_strange_retry_after_is_ignored(text):
    assert retry_after({"retry-after": text}) == 0.0
    assert retry_after({}) == 0.0


def test_retry_after_may_be_a_date():
    assert retry_after({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}) == 0.0
    later = email.utils.formatdate(time.time() + 1000, usegmt=True)
    assert 900 < retry_after({"retry-after": later}) <= 1000


def test_a_failure_that_stays_ends_it_at_once():
    world = World(Failure("ConnectError: certificate verify failed", final=True))
    with pytest.raises(Unavailable, match="certificate verify failed"):
        world.run(60.0)
    assert len(world.sent) == 1


def test_a_damaged_answer_is_fetched_again_and_other_errors_pass():
    def read(reply):
        if reply.content == b"fi":
            raise Damaged("it is cut off")
        if reply.status == 404:
            raise KeyError("refused")
        return reply.content

    world = World(Reply(200, {}, b"fi"), OK)
    assert world.run(60.0, read=read) == b"fine"
    assert len(world.sent) == 2
    world = World(busy(404))
    with pytest.raises(KeyError):
        world.run(60.0, read=read)
    assert len(world.sent) == 1


def test_the_message_says_what_how_long_why_and_what_to_do():
    world = World(REFUSED)
    with pytest.raises(Unavailable) as caught:
        world.run(10.0)
    assert str(caught.value) == (
        "service: POST http://here/v1 got no answer in 11 attempts and 10.0 s (the last time: "
        "ConnectError: refused); the same call can be repeated; with idempotency_key='k1' it acts "
        "only once"
    )
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.key) == (str(caught.value), "k1")
    assert isinstance(copy, ConnectionError)
