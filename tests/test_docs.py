"""Every code block and command of README and docs runs, and prints what the page shows."""

import re
from pathlib import Path

import pytest

import pages

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def relative(page):
    return str(page.relative_to(ROOT))


RUN = [page for page in PAGES if any(one.runs(False) for one in pages.blocks(page.read_text()))]
SLOW = [page for page in PAGES if "<!-- slow: " in page.read_text()]


@pytest.mark.parametrize("page", RUN, ids=relative)
def test_blocks_run_and_print_what_is_shown(page):
    """If only an output is wrong: `python tools/pages.py PAGE` writes it anew."""
    assert not (found := pages.mistakes(page)), "\n\n".join(found)


@pytest.mark.nightly
@pytest.mark.parametrize("page", SLOW, ids=relative)
def test_slow_blocks_run(page):
    assert not (found := pages.mistakes(page, nightly=True)), "\n\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_every_block_has_a_language(page):
    """So that no code hides in a block that nobody runs."""
    plain = [block.line for block in pages.blocks(page.read_text()) if not block.language]
    assert plain == [], f"lines {plain}: write ```text, or the language"
    other = {block.language for block in pages.blocks(page.read_text())} - {*pages.RUN}
    assert other <= {"text", "json", "toml", "csv", "yaml", "bibtex"}, other


PRINTS = "```python\nprint(0.5)\n```\n\n```text\n{}\n```\n"
SH = "{}\n```sh\n{}\n```\n"


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        (PRINTS.format("0.5"), 0),
        (PRINTS.format("0.6"), 0),  # one in the last digit: another processor
        (PRINTS.format("0.7"), 1),
        (PRINTS.format("..."), 0),
        (PRINTS.format(""), 1),
        (PRINTS.format("0.5").replace("print(0.5)", "print(5)"), 1),
        (SH.format("", "echo hi") + "\n```text\nhi\n```\n", 0),
        (SH.format("", "echo hi") + "\n```text\nho\n```\n", 1),
        (SH.format("<!-- not run: a reason -->", "exit 1"), 0),
        (SH.format("<!-- fails -->", "echo hi >&2; exit 2") + "\n```text\nhi\n```\n", 0),
        ('```csv title="a.csv"\nx\n```\n' + SH.format("", "cat a.csv") + "```text\nx\n```\n", 0),
    ],
)
def test_wrong_outputs_are_noticed(text, wrong, tmp_path):
    page = tmp_path / "page.md"
    page.write_text(text)
    assert len(pages.mistakes(page)) == wrong


@pytest.mark.parametrize("mark", ["", "<!-- not run -->", "<!-- not run: -->"])
def test_commands_that_fail_are_noticed(mark, tmp_path):
    """A mark needs a reason."""
    page = tmp_path / "page.md"
    page.write_text(SH.format(mark, "exit 3"))
    with pytest.raises(AssertionError, match="code 3"):
        pages.mistakes(page)


def test_wrong_outputs_are_rewritten(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(PRINTS.format("?"))
    page.write_text(pages.rewritten(page))
    assert page.read_text() == PRINTS.format("0.5")


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_local_links_exist(page):
    made = ("gallery/", "lookup/api/", "lookup/changelog.md")  # by the site's tools
    for target in re.findall(r"\]\(([^)#\s]+)\)", page.read_text()):
        path = (page.parent / target).resolve()
        if "://" not in target and not path.exists():
            assert str(path.relative_to(ROOT / "docs")).startswith(made), target


def test_readme_has_only_absolute_links():
    """PyPI shows it without the repository around it."""
    text = (ROOT / "README.md").read_text()
    assert [t for t in re.findall(r"\]\(([^)]+)\)", text) if not t.startswith("https://")] == []


def test_readme_links_lead_to_pages():
    text = (ROOT / "README.md").read_text()
    site = re.findall(r"https://driftbandit\.github\.io/driftbandit/([\w/]+)\.html", text)
    assert len(site) > 10
    for name in site:
        assert (ROOT / "docs" / f"{name}.md").exists() or name == "lookup/api/index", name
    files = re.findall(r"driftbandit/driftbandit/(?:blob/)?main/([\w./]+)", text)
    assert len(files) > 3
    assert [name for name in files if not (ROOT / name).exists()] == []


def test_every_policy_is_described():
    from driftbandit.policies import available

    page = (ROOT / "docs/lookup/policies.md").read_text()
    assert [name for name in available() if f"`{name}`" not in page] == []


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
