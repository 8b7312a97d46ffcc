"""The tables of README and docs are those that the stored results make."""

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
spec = importlib.util.spec_from_file_location("tables", ROOT / "benchmarks/tables.py")
tables = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tables)
MARKED = [page for page in tables.PAGES if "<!-- table: " in page.read_text()]


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.name)
def test_pages_show_the_stored_results(page):
    """If this fails: `python benchmarks/tables.py` writes the tables anew."""
    text = page.read_text()
    assert text.count("<!-- table: ") == len(tables.MARKED.findall(text))
    assert tables.made(text) == text


def test_every_table_is_shown_once():
    names = [found[1] for page in MARKED for found in tables.MARKED.findall(page.read_text())]
    assert sorted(names) == sorted(tables.TABLES)


def test_a_changed_number_is_noticed():
    page = (ROOT / "docs/start/install.md").read_text()
    start = page.index("<!-- table: install -->")
    changed = page[:start] + page[start:].replace(" MB", "1 MB", 1)
    assert tables.MARKED.sub("", changed) == tables.MARKED.sub("", page)
    assert tables.install() in page
    assert tables.install() not in changed


def test_pages_say_where_lookahead_loses():
    """On independent arms of long memory it has clearly more regret than IDEA, the default."""
    long = [row for row in tables.stored("memory")["table"] if row["rho"] >= 0.99]
    assert len(long) == 3
    for row in long:
        ratio, error = row["lookahead"][2:]
        assert ratio - 2 * error > 1
    for page in ("lookup/policies", "understand/exploration", "understand/lookahead"):
        assert "#where-memory-is-long)" in (ROOT / f"docs/{page}.md").read_text()
