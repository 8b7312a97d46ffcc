"""What the service counts for Prometheus."""

from __future__ import annotations

from collections import Counter as Counts
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)


class Metrics:
    """All counters, in a registry of their own: several servers may run in one process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        given: dict[str, Any] = {"registry": self.registry}
        self.events = Counter("driftbandit_events", "Events stored", ["kind"], **given)
        self.commits = Counter("driftbandit_commits", "Transactions with events", **given)
        self.grouped = Counter(
            "driftbandit_grouped_requests", "Requests in transactions with events", **given
        )
        self.commit_seconds = Histogram(
            "driftbandit_commit_seconds", "Time of a transaction", buckets=SECONDS, **given
        )
        self.store_failures = Counter("driftbandit_store_failures", "Failed transactions", **given)
        self.outcomes = Counter("driftbandit_rewards", "Rewards told", ["outcome"], **given)
        self.requests = Counter(
            "driftbandit_requests", "Requests answered", ["route", "status"], **given
        )
        self.request_seconds = Histogram(
            "driftbandit_request_seconds", "Time to answer", ["route"], buckets=SECONDS, **given
        )
        self.pages = Gauge("driftbandit_live_pages", "Pages that watch an experiment", **given)
        self._labels: dict[tuple[str, ...], Any] = {}

    def committed(self, new: list[dict[str, Any]], requests: int, seconds: float) -> None:
        """Count a transaction and its events."""
        self.commits.inc()
        self.grouped.inc(requests)
        self.commit_seconds.observe(seconds)
        for kind, number in Counts(event["kind"] for event in new).items():
            self.events.labels(kind).inc(number)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        found = self._labels.get((route, str(status)))
        if found is None:  # looking labels up takes longer than counting
            labels = self.requests.labels(route, str(status)), self.request_seconds.labels(route)
            found = self._labels[route, str(status)] = labels
        found[0].inc()
        found[1].observe(seconds)

    def text(self) -> bytes:
        """Everything in Prometheus's text format."""
        return generate_latest(self.registry)
