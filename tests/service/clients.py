"""Fixtures: a fake service, and a way to connect either client to it, with the same calls."""

import asyncio

import pytest

from driftbandit.service.client import AsyncClient, Client
from service.fake_service import FakeService


class Awaited:
    """An `AsyncClient` whose calls are waited for, so that one test is for both clients."""

    def __init__(self, client, runner):
        self.client, self._runner = client, runner

    def __getattr__(self, name):
        if name in ("names", "round"):
            return self._runner.run(getattr(self.client, name)())

        def call(*given, **named):
            found = getattr(self.client, name)(*given, **named)
            if name == "events":
                found = _listed(found)
            found = self._runner.run(found)
            return Awaited(found, self._runner) if isinstance(found, AsyncClient) else found

        return call


async def _listed(events):
    return [event async for event in events]


@pytest.fixture(params=["Client", "AsyncClient"])
def connect(request):
    """Makes either client of a url; all of them are closed at the end."""
    made = []
    with asyncio.Runner() as runner:

        def connected(url, *given, **named):
            named = {"timeout": 2.0, "patience": 5.0} | named
            kind = Client if request.param == "Client" else AsyncClient
            client = kind(url, *given, **named)
            made.append(client if kind is Client else Awaited(client, runner))
            return made[-1]

        yield connected
        for client in made:
            client.close()


@pytest.fixture
def service():
    with FakeService("shop") as running:
        yield running
