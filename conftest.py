"""What the examples in docstrings need: a folder for their files and, for the clients, a server."""

import contextlib

import pytest
from _pytest.doctest import DoctestItem

SERVED = ("driftbandit.service.client.blocking", "driftbandit.service.client.asynchronous")


@pytest.fixture(autouse=True)
def _example_folder(request, tmp_path_factory, monkeypatch):
    """Examples write their files to a folder of their own, and read them there."""
    if isinstance(request.node, DoctestItem):
        monkeypatch.chdir(tmp_path_factory.mktemp("example"))


@pytest.fixture(autouse=True)
def _example_server(request, _example_folder, doctest_namespace, tmp_path_factory):
    """The examples of the clients find the address of a new, empty server as ``url``."""
    with contextlib.ExitStack() as stack:
        node = request.node
        if isinstance(node, DoctestItem) and node.name.startswith(SERVED):
            from service.inprocess import Service

            service = stack.enter_context(Service(tmp_path_factory.mktemp("server")))
            doctest_namespace["url"] = f"http://127.0.0.1:{service.port}"
            stack.callback(doctest_namespace.pop, "url")
        yield
