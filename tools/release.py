"""Build the release, and check everything about it that can be checked before it is published.

    python tools/release.py                # what `make release-check` runs
    python tools/release.py --tag v0.2.0   # for the commit that is released

The archives are left in dist/. Each check prints one line. The exit code is 1 if one of them
failed.
"""

from __future__ import annotations

import argparse
import contextlib
import email.parser
import os
import queue
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import yaml

import release_rules as rules

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
PROGRAMS = "Scripts" if os.name == "nt" else "bin"
SHOWN = 6  # problems of one check that are printed

AGENT = """
import sys
import driftbandit as db

model, arms = db.families.sample("gaussian", n_states=3, n_arms=4, seed=1)[0]
agent = db.Agent(model, arms)
agent.tell(agent.ask(), 0.5)
agent.save("agent.json")
assert db.Agent.load("agent.json").ask() == agent.ask()
assert "site-packages" in db.__file__, db.__file__
heavy = {"jax", "typer", "matplotlib", "pyarrow", "httpx"} & set(sys.modules)
assert not heavy, heavy
"""

USER = """
from typing import assert_type

import driftbandit as db

model = db.LGDS(transition=[[0.9]], process_cov=[[0.1]], reward_std=0.5)
arms = [[1.0], [-1.0]]
agent = db.Agent(model, arms)
decision = agent.ask()
assert_type(decision, db.Decision)
agent.tell(decision, 0.5)
result = db.simulate(model, arms, policies=["idea", "random"], rounds=10, runs=2)
assert_type(result, db.Result)
client = db.Client("http://127.0.0.1:8080", experiment="shop")
assert_type(client, db.Client)
assert_type(db.load_model("model.json"), db.System)
assert_type(db.families.sample("gaussian")[0][0], db.LGDS)
system = db.System(model, arms, ["left", "right"])
db.simulte  # type: ignore[attr-defined]  # mypy complains about this line if it finds the name
try:
    db.theory.finite_lower_bound(model, arms)
except db.InvalidInput:
    pass
"""


class Failed(Exception):
    """A command that should have worked did not; the text says how it ended."""


class Checks:
    """Prints one line per check and counts those that failed."""

    def __init__(self) -> None:
        self.failed = 0

    def say(self, what: str, problems: Iterable[str]) -> None:
        """Print the result of a check."""
        found = list(problems)
        self.failed += bool(found)
        print(f"{'✗' if found else '✓'} {what}", flush=True)
        for problem in found[:SHOWN]:
            print(f"    {problem}", flush=True)
        if len(found) > SHOWN:
            print(f"    and {len(found) - SHOWN} more", flush=True)

    def run(self, what: str, check: Callable[[], Iterable[str] | None]) -> bool:
        """Run a check, which may raise `Failed`; return whether it found nothing wrong."""
        before = self.failed
        try:
            self.say(what, check() or ())
        except Failed as failure:
            self.say(what, str(failure).splitlines()[-SHOWN:])
        return self.failed == before


def ran(*command: str | Path, folder: Path, code: int = 0, **environment: str) -> str:
    """What a command wrote, standard output and error together; its exit code must be ``code``."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=folder,
        env=clean_environment() | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=1200,
    )
    if done.returncode != code:
        name = Path(command[0]).name
        raise Failed(f"{done.stdout[-2000:]}\n{name} ended with exit code {done.returncode}")
    return done.stdout


def clean_environment() -> dict[str, str]:
    """The environment without what would let an installed package see other sources or programs."""
    left_out = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "DRIFTBANDIT_STORE")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {"PYTHONNOUSERSITE": "1", "PYTHONUTF8": "1", "DRIFTBANDIT_CACHE": "off"}


# Build.


def build(folder: Path) -> tuple[Path, Path, Path]:
    """Build an sdist and a wheel of the sources, and a wheel of the sdist, where no git is."""
    shutil.rmtree(DIST, ignore_errors=True)
    maker = (sys.executable, "-m", "build")
    ran(*maker, "--sdist", "--outdir", DIST, ROOT, folder=folder)
    ran(*maker, "--wheel", "--outdir", folder / "direct", ROOT, folder=folder)
    (sdist,) = DIST.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(folder / "unpacked", filter="data")
    (sources,) = (folder / "unpacked").iterdir()
    ran(*maker, "--wheel", "--outdir", DIST, sources, folder=folder, PATH=str(folder))
    (direct,), (wheel,) = (folder / "direct").glob("*.whl"), DIST.glob("*.whl")
    return sdist, direct, wheel


def same_files(one: Path, other: Path) -> list[str]:
    """Compare the names and checksums of the files in two wheels."""
    with zipfile.ZipFile(one) as left, zipfile.ZipFile(other) as right:
        pair = [{(part.filename, part.CRC) for part in each.infolist()} for each in (left, right)]
    return [f"{name} differs" for name in sorted({name for name, _ in pair[0] ^ pair[1]})]


def metadata_of(wheel: Path) -> dict[str, list[str]]:
    """The fields of a wheel's METADATA."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        message = email.parser.Parser().parsestr(archive.read(name).decode())
    return {field: message.get_all(field, []) for field in set(message.keys())}


def check_archives(checks: Checks, folder: Path, version: str) -> Path | None:
    """Build the archives and check them; return the wheel, or None if there is none."""
    built: list[Path] = []
    if not checks.run(
        "sdist and wheel build, also from the sdist without git",
        lambda: built.extend(build(folder)),
    ):
        return None
    sdist, direct, wheel = built
    package = rules.files_below(ROOT / "src" / rules.NAME)
    with zipfile.ZipFile(wheel) as archive:
        names = [name for name in archive.namelist() if not name.endswith("/")]
    checks.say("both wheels have the same files", same_files(direct, wheel))
    wrong = rules.wheel_contents(names, package, version)
    checks.say(f"the wheel has the package's {len(package)} files and no others", wrong)
    with tarfile.open(sdist) as archive:
        names = [one.name for one in archive.getmembers() if not one.isdir()]
    wrong = rules.sdist_contents(names, package, version)
    checks.say(f"the sdist has sources, tests and documents: {len(names)} files", wrong)
    sizes = {path.name: path.stat().st_size for path in (wheel, sdist)}
    told = ", ".join(f"{n_bytes / 1e6:.1f} MB" for n_bytes in sizes.values())
    checks.say(f"sizes: {told}", [p for name, n in sizes.items() for p in rules.size(name, n)])
    from trove_classifiers import classifiers  # only installed for a release

    wrong = rules.metadata(metadata_of(wheel), version, classifiers)
    checks.say("metadata: license, Python, URLs, classifiers", wrong)
    twine = (sys.executable, "-m", "twine", "check", "--strict", sdist, wheel)
    checks.run("twine accepts both archives", lambda: ran(*twine, folder=folder) and None)
    return wheel


# Install.


def environment(folder: Path, name: str, requirement: str) -> Path:
    """A new virtual environment with one package; returns the folder of its programs."""
    ran(sys.executable, "-m", "venv", folder / name, folder=folder)
    programs = folder / name / PROGRAMS
    install(programs, requirement, folder)
    return programs


def install(programs: Path, requirement: str, folder: Path) -> None:
    """Install something into an environment."""
    pip = (programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check")
    ran(*pip, requirement, folder=folder)


def remedy(programs: Path, folder: Path) -> list[str]:
    """Without extras the program says in one line what to install."""
    said = ran(programs / rules.NAME, folder=folder, code=1).strip()
    good = "\n" not in said and said.endswith("install driftbandit[cli]")
    return [] if good else [f"it said {said!r:.200}"]


def command_line(programs: Path, folder: Path, version: str) -> list[str]:
    """The command line tells its version, simulates, and makes a page from its template."""
    said = ran(programs / rules.NAME, "--version", folder=folder).strip()
    problems = [] if said == version else [f"--version says {said!r:.80}"]
    small = ("--states", "2", "--arms", "2", "--runs", "2", "--rounds", "20")
    words = ("simulate", "--family", "gaussian", "--systems", "2", "--policies", "idea,random")
    if "idea" not in ran(programs / rules.NAME, *words, *small, folder=folder):
        problems.append("simulate shows no table")
    ran(programs / rules.NAME, "advise", "--family", "gaussian", *small, "--html", "a.html",
        folder=folder)  # fmt: skip
    if "<script" not in (folder / "a.html").read_text(encoding="utf-8"):
        problems.append("the page of advise lacks its script")
    return problems


def service(programs: Path, folder: Path) -> list[str]:
    """`driftbandit serve --demo` starts, answers with API and page, and ends in good order."""
    with serving(programs, folder) as (process, address):
        problems = []
        for path, part in (
            ("healthz", '"ok"'),
            ("", "<html"),
            ("page/main.js", "import"),
            ("page/page.css", "{"),
            ("openapi.json", '"paths"'),
        ):
            with urllib.request.urlopen(address + path, timeout=20) as answer:
                if part not in answer.read().decode():
                    problems.append(f"/{path} answers something else")
        if not _soon(lambda: '"demo"' in _read(f"{address}v1/experiments"), 30):
            problems.append("the demo's experiment does not appear")
        process.send_signal(signal.SIGTERM)
        code = process.wait(30)
    return problems if code == 0 or os.name == "nt" else [*problems, f"it ended with {code}"]


@contextlib.contextmanager
def serving(programs: Path, folder: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server of the demo on a free port, and its address with a slash at the end."""
    words = [str(programs / rules.NAME), "serve", "--demo", "--port", "0"]
    with open(folder / "serve.txt", "w") as log:
        process = subprocess.Popen(words, cwd=folder, env=clean_environment(), text=True,
                                   stdout=subprocess.PIPE, stderr=log)  # fmt: skip
    lines: queue.Queue[str] = queue.Queue()
    reader = threading.Thread(target=lambda: [lines.put(x) for x in process.stdout or ()])
    reader.start()
    try:
        line = lines.get(timeout=60)
        yield process, line.split()[-1].rstrip("/") + "/"
    except (queue.Empty, OSError, subprocess.TimeoutExpired) as error:
        said = (folder / "serve.txt").read_text(errors="replace")[-1500:]
        raise Failed(f"{said}\nthe server failed: {error!r}") from None
    finally:
        process.kill()
        process.wait()
        reader.join(10)


def _read(address: str) -> str:
    with urllib.request.urlopen(address, timeout=20) as answer:
        return str(answer.read().decode())


def _soon(holds: Callable[[], bool], seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if holds():
            return True
        time.sleep(0.2)
    return False


def types(checks: Checks, programs: Path, folder: Path) -> None:
    """A user's file passes the type checkers, against the installed wheel."""
    (folder / "user.py").write_text(USER)
    python = str(programs / "python")
    mypy = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", folder / "mypy")
    checks.run(
        "mypy --strict sees the types of the public names",
        lambda: ran(*mypy, "--python-executable", python, "user.py", folder=folder) and None,
    )
    pyright = (sys.executable, "-m", "pyright")
    try:  # its first start fetches a program
        ran(*pyright, "--version", folder=folder)
    except Failed:
        print("- pyright cannot run here, so its check was left out")
        return
    checks.run(
        "pyright sees the types of the public names",
        lambda: ran(*pyright, "--pythonpath", python, "user.py", folder=folder) and None,
    )


def check_installs(checks: Checks, folder: Path, wheel: Path, version: str) -> None:
    """Install the wheel in clean environments, and use it."""
    plain = folder / "plain" / PROGRAMS
    if checks.run(
        "the wheel installs without extras",
        lambda: environment(folder, "plain", str(wheel)) and None,
    ):
        python = (plain / "python", "-c", AGENT)
        checks.run(
            "an agent asks, learns, saves and loads", lambda: ran(*python, folder=folder) and None
        )
        checks.run("without extras, one line says what to install", lambda: remedy(plain, folder))
        if checks.run("[all] installs", lambda: install(plain, f"{wheel}[all]", folder)):
            checks.run(
                "[all]: --version, simulate, advise --html",
                lambda: command_line(plain, folder, version),
            )
            types(checks, plain, folder)
    if checks.run(
        "[service] installs by itself",
        lambda: environment(folder, "service", f"{wheel}[service]") and None,
    ):
        served = folder / "service" / PROGRAMS
        checks.run("[service]: serve --demo starts, answers, ends", lambda: service(served, folder))


def main() -> int:
    """Run all checks."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tag", help="the tag of the commit that is released, such as v0.2.0")
    tag = parser.parse_args().tag
    checks, start = Checks(), time.monotonic()
    version = rules.version_in((ROOT / "src" / rules.NAME / "_version.py").read_text())
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    checks.say(f"version {version} everywhere", rules.versions(version, changelog, cited))
    checks.say("CITATION.cff is complete", rules.citation(cited))
    if tag:
        checks.say(f"tag {tag}", rules.tagged(tag, version, changelog))
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    checks.say("README.md has no relative links", rules.relative_links(readme))
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = Path(name).resolve()
        wheel = check_archives(checks, folder, version)
        if wheel is not None:
            check_installs(checks, folder, wheel, version)
    seconds = time.monotonic() - start
    failures = f"{checks.failed} checks failed" if checks.failed else "everything is fine"
    print(f"{failures} ({seconds:.0f} s); the archives are in dist/")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
