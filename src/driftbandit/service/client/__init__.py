"""Clients of the service, with the methods of an `Agent`: `Client` waits, `AsyncClient` is awaited.

    with db.Client("http://127.0.0.1:8080", experiment="shop") as client:
        decision = client.ask()
        client.tell(decision, reward)

An attempt that fails is repeated, and its Idempotency-Key lets the service carry it out once.
"""

from driftbandit import errors
from driftbandit.service.client.retries import Unavailable

with errors.needing("Client"):
    from driftbandit.service.client.asynchronous import AsyncClient
    from driftbandit.service.client.blocking import Client

__all__ = ["AsyncClient", "Client", "Unavailable"]
