"""Run the code blocks of the documentation, and compare or rewrite the outputs that pages show.

    python tools/pages.py                      # rewrite the outputs of all pages that differ
    python tools/pages.py docs/do/fit.md       # of this page

A page's ``python`` and ``sh`` blocks run in order, in one namespace and one folder. A block
directly below one of them shows its standard output. A comment above a fence changes that:

    <!-- not run: REASON -->    the block is not run
    <!-- slow: REASON -->       the block runs only in the nightly tests
    <!-- fails -->              the command fails, and the output below includes its error message

A fence with ``title="log.csv"`` is a file: it is written to the folder before the next block runs.
In an output, ``...`` stands for any text, and a decimal number may differ by one in its last digit:
processors round differently.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import itertools
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).parent.parent
SERVER = "http://127.0.0.1:8080"
"""What pages write for the address of a running service."""
WIDTH = 80
"""Columns of the terminal: what fits on a page beside its table of contents."""
RUN = ("python", "sh")
FENCE = re.compile(
    r"(?:^(?P<comment>[ ]*<!-- (?:not run: \S.*?|slow: \S.*?|fails) -->)\n+)?"
    r"^(?P<indent>[ ]*)```[ ]*(?P<language>\w*)(?P<options>[^\n`]*)\n"
    r"(?P<code>.*?)^(?P=indent)```[ ]*$",
    re.DOTALL | re.MULTILINE,
)
NUMBER = re.compile(r"[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?")
VARIES = re.compile(r"[\d.]+ M rounds in .*? compiled in [\d.]+ s", re.DOTALL)
"""What outputs say about speed: pages show ``...`` instead."""
SHELL = set("|&;<>$`*")
"""Characters that need a real shell."""


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        language: the word after the fence: python, sh, text, ...
        code: what is inside, without the indentation of the fence.
        line: of the opening fence, from 1.
        title: the name of the file that the block shows, or "".
        mark: "", "fails", "slow: REASON" or "not run: REASON".
        after: whether the block directly follows another one.
        start, end: where `code` is in the page.
        indent: of the fence.
    """

    language: str
    code: str
    line: int
    title: str
    mark: str
    after: bool
    start: int
    end: int
    indent: str

    def runs(self, nightly: bool = True) -> bool:
        """Whether the block is code that is run."""
        skipped = ("not run",) if nightly else ("not run", "slow")
        return self.language in RUN and not self.mark.startswith(skipped)


def blocks(text: str) -> list[Block]:
    r"""Return the fenced blocks of a page, in order.

    Example:
        >>> [python, output] = blocks("```python\nprint(1)\n```\n\n```text\n1\n```\n")
        >>> python.runs(), output.after
        (True, True)
    """
    found = []
    last = None
    for match in FENCE.finditer(text):
        indent = match["indent"]
        title = re.search(r'title="([^"]+)"', match["options"])
        between = None if last is None else text[last : match.start()]
        code = "".join(
            line.removeprefix(indent) for line in match["code"].splitlines(keepends=True)
        )
        found.append(
            Block(
                match["language"],
                code,
                text.count("\n", 0, match.start("language")) + 1,
                title[1] if title else "",
                (match["comment"] or "").strip().removeprefix("<!-- ").removesuffix(" -->"),
                between is not None and not between.strip(),
                match.start("code"),
                match.end("code"),
                indent,
            )
        )
        last = match.end()
    return found


def shown_outputs(text: str) -> Iterator[tuple[Block, Block | None]]:
    """Yield every block of a page, with the block that shows its output or None."""
    found = blocks(text)
    for block, following in itertools.pairwise([*found, None]):
        output = following if following is not None and following.after else None
        if output is not None and (output.language in RUN or output.title):
            output = None
        yield block, output if block.language in RUN else None


def played(
    page: Path, nightly: bool = True, pictures: Path | None = None
) -> Iterator[tuple[Block, Block | None, str]]:
    """Run a page in a folder of its own; yield block, shown output and real output.

    Pictures that the page both saves and shows are copied to ``pictures``.
    """
    text = page.read_text()
    namespace: dict[str, object] = {"__name__": "__main__"}
    with working_folder(SERVER in text) as (folder, url):
        for block, shown in shown_outputs(text):
            if block.title:
                (folder / block.title).write_text(block.code)
            if not block.runs(nightly):
                continue
            code, place = block.code.replace(SERVER, url), f"{page.name}, line {block.line}"
            if block.language == "python":
                output = _python(code, place, namespace)
            else:
                output = "".join(_command(one, block, place) for one in commands(code))
            yield block, shown, output.replace(url, SERVER)
        for name in re.findall(r"\]\([./]*pictures/(\w+\.png)\)", text):
            if pictures is not None and (folder / name).exists():
                shutil.copy(folder / name, pictures)


@contextlib.contextmanager
def working_folder(server: bool) -> Iterator[tuple[Path, str]]:
    """Enter a folder with the examples; yield it, and the address of a new server or `SERVER`."""
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        folder, url = Path(name).resolve(), SERVER
        shutil.copytree(ROOT / "examples", folder / "examples")
        if server:
            from service.servers import Server  # in tests/

            started = Server(f"sqlite:///{folder / 'decisions.db'}", folder)
            started.start()
            stack.callback(started.stop)
            url = started.url
        stack.enter_context(contextlib.chdir(folder))
        yield folder, url


def commands(code: str) -> list[str]:
    r"""Return the commands of a shell block: without comments, continued lines joined.

    Example:
        >>> commands("# first\ndriftbandit fit \\\n  log.csv   # a log\n\nls\n")
        ['driftbandit fit   log.csv', 'ls']
    """
    joined = code.replace("\\\n", "")
    lines = (re.sub(r"(^|\s+)# .*$", "", line).strip() for line in joined.splitlines())
    return [line for line in lines if line]


def _python(code: str, place: str, namespace: dict[str, object]) -> str:
    caught = io.StringIO()
    with contextlib.redirect_stdout(caught):
        exec(compile(code, place, "exec"), namespace)
    return caught.getvalue()


def _command(command: str, block: Block, place: str) -> str:
    """Run one command; `driftbandit` in this process, which has loaded everything already."""
    simple = command.startswith("driftbandit ") and not SHELL & set(command)
    output, errors, code = (_driftbandit if simple else _shell)(command)
    if (code != 0) != (block.mark == "fails"):
        raise AssertionError(f"{place}: {command!r} ended with code {code}:\n{output}{errors}")
    return output + errors if block.mark == "fails" else output


def _driftbandit(command: str) -> tuple[str, str, int]:
    from driftbandit.cli import main

    output, errors = io.StringIO(), io.StringIO()
    size = {"COLUMNS": str(WIDTH), "LINES": "40"}
    with (
        mock.patch.object(sys, "argv", shlex.split(command)),
        mock.patch.dict(os.environ, size),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
            if isinstance(end.code, str):
                errors.write(end.code + "\n")
    return output.getvalue(), errors.getvalue(), code


def _shell(command: str) -> tuple[str, str, int]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    ended = subprocess.run(
        ["sh", "-c", command],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path, "COLUMNS": str(WIDTH)},
    )
    return ended.stdout, ended.stderr, ended.returncode


def agrees(shown: str, output: str) -> bool:
    """Whether an output is what the page shows.

    Example:
        >>> agrees("regret 0.165 ± ...", "regret 0.166 ± 0.003")
        True
        >>> agrees("arm 3", "arm 4")
        False
    """
    wanted = _tidy(shown)
    pattern, numbers, end = "", [], 0
    for found in re.finditer(rf"\.\.\.|{NUMBER.pattern}", wanted):
        pattern += _spaced(wanted[end : found.start()])
        end = found.end()
        if found[0] == "...":
            pattern += ".*?"
        else:
            numbers.append(found[0])
            pattern += f"({NUMBER.pattern})"
    match = re.fullmatch(pattern + _spaced(wanted[end:]), _tidy(output), re.DOTALL)
    return match is not None and all(map(_close, numbers, match.groups()))


def _tidy(text: str) -> str:
    return "\n".join(line.rstrip() for line in text.strip("\n").splitlines())


def _spaced(text: str) -> str:
    """A pattern for the text in which any number of spaces stands for one space or a rule."""
    return re.sub(r"(?:\\ )+", "[ ]+", re.sub("─{2,}", "─+", re.escape(text)))


def _close(wanted: str, got: str) -> bool:
    """Whether two numbers differ by at most one in the last digit of ``wanted``; integers agree."""
    if wanted == got:
        return True
    mantissa, _, exponent = wanted.partition("e")
    if "." not in mantissa:
        return False
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    return abs(float(wanted) - float(got)) <= 1.001 * unit


def mistakes(page: Path, nightly: bool = False) -> list[str]:
    """Run a page; return a line for every output that is not what the page shows."""
    return [
        f"{page.name}, line {block.line}, shows\n{shown.code}\nbut it printed\n{output}"
        for block, shown, output in played(page, nightly)
        if shown is not None and not agrees(shown.code, output)
    ]


def rewritten(page: Path) -> str:
    """Run a page; return its text with the real outputs where those shown are wrong.

    Pictures that it makes and shows are replaced.
    """
    text = page.read_text()
    for _, shown, output in reversed(list(played(page, pictures=ROOT / "docs/pictures"))):
        if shown is not None and not agrees(shown.code, output):
            lines = _tidy(VARIES.sub("...", output)).splitlines()
            code = "".join(f"{shown.indent}{line}".rstrip() + "\n" for line in lines)
            text = text[: shown.start] + code + text[shown.end :]
    return text


def main() -> None:
    """Rewrite the pages that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path, help="default: README and all of docs/")
    chosen = parser.parse_args().pages or [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))]
    sys.path.insert(0, str(ROOT / "tests"))
    for page in [one.resolve() for one in chosen]:
        text = rewritten(page)
        if text != page.read_text():
            page.write_text(text)
            print(f"rewrote the outputs of {page.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
