"""An agent that is killed while it saves itself: `python killed_agent.py FOLDER KILLS`.

One warm process forks a player for every kill: it goes on from the file, and saves after every
round. Writes FOLDER/summary.json at its end, or fails.
"""

import collections
import json
import os
import random
import signal
import sys
import time
from pathlib import Path

import numpy as np

from driftbandit import Agent, families


def beginning():
    model, arms = families.sample("gaussian", n_states=2, n_arms=4, seed=1)[0]
    return Agent(model, arms, window=4)


def played(agent):
    """One round: what it pays depends on the round alone, so that all agents of a round agree."""
    decision = agent.ask()
    agent.tell(decision, float(np.cos(decision.round)))


def slow_disk(seconds):
    """Leave files half-written for long enough that kills meet them there."""
    fdopen = os.fdopen

    def opened(handle, mode):
        file = fdopen(handle, mode)
        write = file.write

        def halves(content):
            write(content[: len(content) // 2])
            file.flush()
            time.sleep(seconds)
            write(content[len(content) // 2 :])

        file.write = halves
        return file

    os.fdopen = opened


def play(path, pipe):
    """Go on from the file until killed; say before and after every save which round it is of."""
    agent = Agent.load(path)
    while True:
        played(agent)
        os.write(pipe, b"b%d\n" % agent.round)  # begun
        agent.save(path)
        os.write(pipe, b"d%d\n" % agent.round)  # done


def start(path):
    """A player's process and what it says."""
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        os.close(reading)
        play(path, writing)
    finally:
        os._exit(1)


def kill(child, reading, saves, pause):
    """Kill it in the middle of so many saves; the rounds of the last save begun and done."""
    said = b""
    while said.count(b"b") < saves:
        more = os.read(reading, 4096)
        assert more, "it ended by itself"
        said += more
    time.sleep(pause)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status)
    while more := os.read(reading, 4096):
        said += more
    os.close(reading)
    rounds = {b"b": 0, b"d": 0}
    for line in said.splitlines():
        rounds[line[:1]] = int(line[1:])
    return rounds[b"b"], rounds[b"d"]


def main(folder, kills):
    slow_disk(0.0005)
    rng = random.Random(3)
    path, witness = Path(folder) / "agent.json", beginning()
    witness.save(path)
    begin = time.perf_counter()
    for _ in range(20):
        witness.save(path)
    longest = 1.5 * (time.perf_counter() - begin) / 20
    texts = [witness.to_json()]
    counts, round_ = collections.Counter(), 0
    for _ in range(int(kills)):
        begun, done = kill(*start(path), rng.randint(1, 2), rng.uniform(0, longest))
        agent = Agent.load(path)
        assert agent.round in (begun, done or round_), (agent.round, begun, done, round_)
        while len(texts) <= agent.round:
            played(witness)
            texts.append(witness.to_json())
        assert agent.to_json() == texts[agent.round] == path.read_text()
        saving = begun != done
        counts["saving"] += saving
        counts["new" if saving and agent.round == begun else "old"] += saving
        round_ = agent.round
    left = [one for one in path.parent.iterdir() if one.name != path.name]
    assert all(one.name.endswith("~") for one in left)
    size = len(texts[-1])
    counts["left"], counts["torn"] = len(left), sum(one.stat().st_size < size / 2 for one in left)
    counts["rounds"] = round_
    (Path(folder) / "summary.json").write_text(json.dumps(counts))


if __name__ == "__main__":
    main(*sys.argv[1:])
