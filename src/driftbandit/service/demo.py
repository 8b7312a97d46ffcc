"""Simulated visitors of an experiment, so that a newcomer sees the service at work."""

from __future__ import annotations

import threading
from collections import deque

import numpy as np

from driftbandit.model import LGDS
from driftbandit.service.client import Client, Unavailable
from driftbandit.system import System

PACE = 0.1  # seconds between two visitors
NAMES = ("banner", "video", "carousel", "story")


def demo_system() -> System:
    """Four ways to show an offer, whose appeal drifts; two of them drift together."""
    model = LGDS(
        transition=np.diag([0.985, 0.97, 0.99]),
        process_cov=np.diag([0.03, 0.06, 0.02]),
        reward_std=0.6,
    )
    arms = np.array([[1.0, 0.0, 0.4], [0.8, 0.0, -0.6], [0.0, 1.0, 0.3], [0.0, -0.7, 0.8]])
    return System(model, arms, NAMES)


class Visitors(threading.Thread):
    """A thread that asks, waits a little, and tells simulated rewards; some never come."""

    experiment = "demo"

    def __init__(self, seed: int = 8) -> None:
        super().__init__(name="driftbandit demo", daemon=True)
        self._stopped = threading.Event()
        self._seed = seed
        self._url = ""

    def start(self, url: str = "") -> None:
        """Begin to visit a server."""
        self._url = url
        super().start()

    def stop(self) -> None:
        """Stop visiting."""
        self._stopped.set()

    def run(self) -> None:
        """Visit until stopped."""
        try:
            with Client(self._url, patience=5.0) as server:
                self._visit(server)
        except Unavailable:  # the server has ended
            return

    def _visit(self, server: Client) -> None:
        system, rng = demo_system(), np.random.default_rng(self._seed)
        client = server.create(self.experiment, system, window=60)
        model = system.model
        factor = np.linalg.cholesky(model.process_cov)
        state = np.linalg.cholesky(model.stationary_cov()) @ rng.standard_normal(model.n_states)
        late: deque = deque()
        while not self._stopped.is_set():
            state = model.transition @ state + factor @ rng.standard_normal(model.n_states)
            decision = client.ask()
            pays = float(system.arms[NAMES.index(decision.arm)] @ state)
            pays += float(model.reward_std) * float(rng.standard_normal())
            if rng.random() < 0.9:  # every tenth reward never comes
                late.append((decision, round(pays, 3)))
            while late and rng.random() < 0.8 and not self._stopped.is_set():
                client.tell(*late.popleft())
            self._stopped.wait(PACE)
