"""The documentation's Python blocks run, in order, page by page."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from driftbandit import Client, load_model
from service.servers import Server

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)


SERVER = "http://127.0.0.1:8080"  # what pages write for the address of a running service


@pytest.fixture
def running(tmp_path):
    """A server, for pages that talk to one: `running(text)` is the text with its address."""
    server = Server(f"sqlite:///{tmp_path / 'decisions.db'}", tmp_path)

    def addressed(text):
        if SERVER in text and server.process is None:
            server.start()
        return text.replace(SERVER, server.url)

    yield addressed
    if server.process is not None:
        assert server.stop() == 0


@pytest.mark.parametrize(
    "page", [page for page in PAGES if BLOCK.search(page.read_text())], ids=lambda page: page.name
)
def test_python_blocks_run(page, tmp_path, monkeypatch, capsys, running):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for number, block in enumerate(BLOCK.findall(running(page.read_text()))):
        code = compile(block, f"{page.name}, block {number}", "exec")
        exec(code, {"__name__": "__main__"})
    assert capsys.readouterr().out


def test_the_requests_of_the_service_page_work(running, tmp_path):
    """Its curl commands, after its tutorial has made an experiment with some decisions."""
    if shutil.which("curl") is None:
        pytest.skip("curl is not installed")
    text = running((ROOT / "docs/do/serve.md").read_text())
    url = re.search(r"http://127\.0\.0\.1:\d+", text)[0]
    client = Client(url).create("plant", load_model(ROOT / "examples/plant.json"))
    for _ in range(4):
        client.ask_many(2)
    commands = re.findall(r"^curl .*?[^\\]\n", text, re.DOTALL | re.MULTILINE)
    answers = [
        json.loads(subprocess.run(["sh", "-c", f"{one.strip()} -s"], capture_output=True).stdout)
        for one in commands
    ]
    assert [next(iter(answer)) for answer in answers] == ["decision", "outcome"]
    client.close()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_local_links_exist(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        if "://" not in target:
            assert (page.parent / target).exists(), target


def test_every_policy_is_described():
    from driftbandit.policies import available

    readme = (ROOT / "README.md").read_text()
    assert [name for name in available() if f"`{name}`" not in readme] == []


ROW = re.compile(r"^\| (P\d+) \|(.*)\|$", re.MULTILINE)


def test_every_item_of_the_paper_has_its_line():
    rows = dict(ROW.findall((ROOT / "docs/understand/paper.md").read_text()))
    assert list(rows) == [f"P{number}" for number in range(1, 25)]
    for item, row in rows.items():
        tests = re.findall(r"`((?:\w+/)?test_\w+\.py)`", row)
        assert tests, item
        for name in tests:
            text = (ROOT / "tests" / name).read_text()
            named = {int(n) for n in re.findall(r"P(\d+)", text)}
            for first, last in re.findall(r"P(\d+)–P(\d+)", text):
                named |= set(range(int(first), int(last) + 1))
            assert int(item[1:]) in named, f"{name} does not name {item}"


def test_every_function_of_the_theory_is_described():
    from driftbandit import theory

    notation = (ROOT / "docs/lookup/notation.md").read_text()
    paper = (ROOT / "docs/understand/paper.md").read_text()
    functions = [name for name in theory.__all__ if name[0].islower()]
    assert [name for name in functions if name not in notation] == []
    assert [name for name in functions if f"`theory.{name}`" not in paper] == []
    for name in re.findall(r"`theory\.(\w+)", notation + paper):
        assert hasattr(theory, name), name
