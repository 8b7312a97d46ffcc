"""The time of `import driftbandit` and of the first use of `Agent`, and what they load.

    python benchmarks/imports.py [--against PATH_TO_OTHER_SRC] [--repeats 20]

Every measurement is a fresh Python process; the checkouts take turns, so that a busy machine slows
all of them alike. The times are CPU seconds inside the process after Python itself has started:
the median of 20, with the smallest and the largest, after one process that is not counted.
"""

from __future__ import annotations

import argparse
import json
import platform
import statistics
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).resolve().parent.parent / "src"
STEPS = {
    "import driftbandit": "import driftbandit as db",
    "first use of Agent": """
agent = db.Agent(db.LGDS([[0.9]], [[1.0]], 1.0), [[1.0], [-1.0]])
agent.tell(agent.ask(), 0.5)
""",
}
HEAVY = ["numpy", "scipy", "scipy.special", "scipy.linalg", "scipy.optimize", "scipy.stats"]
HEAVY += ["jax", "pandas", "pyarrow", "matplotlib", "rich"]

CODE = f"""
import json, sys, time
steps, heavy, found = {STEPS!r}, {HEAVY!r}, {{}}
names = {{}}
for name, code in steps.items():
    start = time.process_time()
    exec(code, names)
    seconds = time.process_time() - start
    found[name] = seconds, [module for module in heavy if module in sys.modules]
print(json.dumps(found))
"""


def measured(source: Path) -> dict[str, tuple[float, list[str]]]:
    """Seconds of every step in a fresh process, and the heavy modules loaded after it."""
    code = f"import sys; sys.path.insert(0, {str(source)!r})\n{CODE}"
    done = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={}
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--against", type=Path, help="the src folder of another checkout")
    parser.add_argument("--repeats", type=int, default=20)
    options = parser.parse_args()
    sources = {"this checkout": SOURCE}
    if options.against:
        sources = {str(options.against): options.against.resolve()} | sources
    runs: dict[str, list] = {name: [] for name in sources}
    for repeat in range(options.repeats + 1):
        for name, source in sources.items():
            found = measured(source)
            if repeat:
                runs[name].append(found)
    print(f"{platform.machine()}, Python {platform.python_version()}, {options.repeats} processes")
    for step in STEPS:
        print(step)
        for name, found in runs.items():
            times = [1e3 * run[step][0] for run in found]
            loaded = ", ".join(found[-1][step][1]) or "none of the large libraries"
            spread = f"{min(times):.1f} to {max(times):.1f}"
            print(f"  {name:<24} {statistics.median(times):7.1f} ms ({spread}); loads {loaded}")


if __name__ == "__main__":
    main()
