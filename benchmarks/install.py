"""Size of an install and time of `import driftbandit`, in clean environments.

    python benchmarks/install.py --before e2a8263 --json benchmarks/results/install.json

Each install gets a fresh virtual environment. The size is that of its site-packages on disk,
including pip. The time is the CPU time (user and system) of a Python process that imports the
package and its `Agent` (names are loaded on first use) and exits: the median of ten, after one
warm-up. It alternates with `import numpy` in the same environment, so that a busy machine slows
both.
"""

from __future__ import annotations

import argparse
import json
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
INSTALLS = {"plain": "", "sim": "[sim]", "cli": "[cli]", "all": "[all]"}
REPEATS = 10


def cpu_seconds(python: Path, code: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([python, "-c", code], check=True, cwd="/", env={})
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(source: Path, extra: str) -> dict[str, float]:
    """Install ``source`` with an extra into a fresh environment and measure it."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder, "bin/python")
        quiet = ["--quiet", "--disable-pip-version-check"]
        subprocess.run([python, "-m", "pip", "install", *quiet, f"{source}{extra}"], check=True)
        (packages,) = Path(folder, "lib").glob("python*/site-packages")
        size = sum(file.lstat().st_blocks * 512 for file in packages.rglob("*"))
        times: dict[str, list[float]] = {"driftbandit": [], "numpy": []}
        for _ in range(REPEATS + 1):
            for name, took in times.items():
                used = "; driftbandit.Agent" if name == "driftbandit" else ""
                took.append(cpu_seconds(python, f"import {name}{used}"))
        return {
            "MB": round(size / 2**20),
            "import CPU seconds": round(statistics.median(times["driftbandit"][1:]), 3),
            "import numpy CPU seconds": round(statistics.median(times["numpy"][1:]), 3),
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--before", help="also measure the plain install of this revision")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args()
    figures: dict[str, object] = {
        "machine": platform.machine(),
        "python": platform.python_version(),
    }
    if options.before:
        with tempfile.TemporaryDirectory() as folder:
            archive = ["git", "-C", ROOT, "archive", options.before]
            tar = subprocess.run(archive, check=True, capture_output=True).stdout
            subprocess.run(["tar", "-x", "-C", folder], input=tar, check=True)
            figures["before"] = measure(Path(folder), "")
    for name, extra in INSTALLS.items():
        figures[name] = measure(ROOT, extra)
    for name, figure in figures.items():
        print(f"{name}: {figure}")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
