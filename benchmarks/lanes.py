"""Speed, compile time and bits of the rounds that `lanes` compiles, on a CPU.

    python benchmarks/lanes.py                     # everything: six minutes on two quiet cores
    python benchmarks/lanes.py --section policies  # every policy, against XLA's engine of a commit
    python benchmarks/lanes.py --section cpp       # IDEA, against idea_loop.cpp; needs a compiler
    python benchmarks/lanes.py --section sizes     # states, arms and precision, against XLA
    python benchmarks/lanes.py --section compile   # compile times, without and with the cache
    python benchmarks/lanes.py --section bits      # a run's bits in any block, thread and CPU
    python benchmarks/lanes.py --quick             # a tenth of the rounds, to try the script

Prints tables and, with --json FILE, stores them. Every checkout plays in a process of its own. What
is compared takes turns, so that a busy machine slows both alike. Times are CPU seconds of whole
`simulate` calls, all threads together: the best of a few, after a first call that compiles.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import platform
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
PINNED = "9d3b845"  # the last commit before lanes
STATES = ARMS = 10
ROUNDS, RUNS = 1000, 2000
REPEATS = 3
CLOSE = 1e-10  # of the largest regret
SLOW = {"information_directed": 100, "lookahead": 32}  # runs of slow policies
FEW_ROUNDS = {"lookahead": 100}
PAGE = ("mixed", "epsilon_greedy")  # policies of add_a_policy.md
TABLE2 = "Table II, nine together"
WANTED = {"idea": 4.5, "kalman_ucb": 4.0, "kode": 3.5, TABLE2: 4.0}
WANTED |= dict.fromkeys(PAGE, 4.0)
WANTED |= dict.fromkeys(
    ("kalman_oracle", "ucb", "sliding_window_ucb", "rexp3", "oful", "random"), 4.0
)
WANTED_OF_CPP = 0.8
SHAPES = [(2, 2), (5, 5), (10, 2), (10, 10), (10, 100), (20, 20), (30, 30), (100, 100)]
SIZED = ("idea", "kode", "ucb", "oful")
BITS = ("idea", "oful", "rexp3")
MACHINES = {
    "SSE4.2, no FMA": ("x86-64-v2", ""),
    "AVX2": ("x86-64-v3", "+avx,+avx2,+fma"),
    "AVX-512": ("x86-64-v4", "+avx,+avx2,+fma,+avx512f,+avx512dq,+avx512vl,+avx512bw,+avx512cd"),
}
Figures = dict[str, Any]


# What runs in the processes that play. It also works with the sources of PINNED.


class Played(NamedTuple):
    """One measured call."""

    cpu: float  # seconds, all threads
    wall: float
    regret: np.ndarray
    engine: str


def timed(call: Callable[[], tuple[np.ndarray, str]]) -> Played:
    cpu, wall = time.process_time(), time.perf_counter()
    regret, engine = call()
    return Played(time.process_time() - cpu, time.perf_counter() - wall, regret, engine)


@functools.cache
def system(d: int = STATES, k: int = ARMS) -> Any:
    import driftbandit as db

    return db.families.sample("gaussian", n_states=d, n_arms=k, seed=1)[0]


@functools.cache
def policy(name: str) -> Any:
    """A registered name, or the policy of add_a_policy.md with that name, its code unchanged."""
    if name not in PAGE:
        return name
    page = (ROOT / "docs/do/add_a_policy.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    code = next(block for block in blocks if f"\n{name} = " in block)
    names: dict[str, Any] = {"__name__": "page"}
    exec(code.partition("\nmodel, arms = ")[0], names)
    return names[name]


def play(
    name: str, runs: int, rounds: int, d: int = STATES, k: int = ARMS, **options: Any
) -> Played:
    """One policy on one system; the options are `simulate`'s."""
    import driftbandit as db

    def call() -> tuple[np.ndarray, str]:
        one = db.simulate(*system(d, k), [policy(name)], rounds=rounds, runs=runs, **options)
        return one.regret[name], getattr(one.timing, "engine", "xla")

    return timed(call)


def play_table2(systems: int, rounds: int) -> Played:
    """A chunk of Table II, all of its policies, as `reproduce table2` plays it."""
    from driftbandit.paper.table2 import POLICIES
    from driftbandit.studies.specification import Cell, Specification, compute

    study = Specification((Cell("gaussian"),), POLICIES, systems, rounds=rounds, chunk=systems)

    def call() -> tuple[np.ndarray, str]:
        columns, timing = compute(study, next(study.chunks()))
        return np.stack([columns[name] for name in POLICIES]), getattr(timing, "engine", "xla")

    return timed(call)


def play_by_hand(library: str, runs: int, rounds: int) -> Played:
    """IDEA on the same system with the same random numbers, by idea_loop.cpp in two threads."""
    from driftbandit.model import factor
    from driftbandit.simulation import draws

    model, arms = system()
    assert model.reward_std > 0
    roots = factor(model.process_cov), factor(model.start_cov())
    start = model.start_mean(), model.start_cov()
    parts = (model.transition, model.process_cov, *roots, arms, *start, model.reward_std)
    numbers = np.concatenate([np.ravel(part) for part in parts])
    roles = draws.START, draws.PROCESS, draws.REWARD
    keys = np.array([[int(word) for word in draws.role_key(0, "", role)] for role in roles])
    keys, regret = keys.astype(np.uint32), np.empty(runs)
    system_, keys_, regret_ = (ctypes.c_void_p(x.ctypes.data) for x in (numbers, keys, regret))
    function = ctypes.CDLL(library).play

    def call() -> tuple[np.ndarray, str]:
        function(system_, keys_, runs, rounds, 2, regret_)
        return regret, "C++"

    return timed(call)


def compile_policy(name: str) -> Figures:
    """Wall seconds until a policy and the environment can be played, and where they go."""
    from driftbandit.lanes import machine_code, program

    stages: dict[str, list[float]] = {}

    def watch(module: Any, attribute: str, stage: str) -> None:
        function = getattr(module, attribute)

        def watched(*given: Any, **named: Any) -> Any:
            start = time.perf_counter()
            try:
                return function(*given, **named)
            finally:
                stages.setdefault(stage, []).append(time.perf_counter() - start)

        setattr(module, attribute, watched)

    watch(program, "traced", "trace")
    watch(program, "_written", "write")
    watch(machine_code, "object_code", "LLVM")
    watch(program, "compiled", "policy")
    import driftbandit as db

    whole = db.simulate(*system(), [policy(name)], rounds=1, runs=8, engine="lanes").timing.compile
    policy_alone = stages.pop("policy")[-1]  # the environment's two programs come first
    parts = {stage: sum(seconds) for stage, seconds in stages.items()}
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"all": whole, "policy": policy_alone, **parts, "peak MiB": memory}


@contextlib.contextmanager
def compiled_for(**target: Any) -> Iterator[None]:
    """Compile for so many lanes, or for another machine, until the block ends."""
    from driftbandit.lanes import program
    from driftbandit.simulation import with_lanes

    usual = program.compiled
    program.compiled = functools.partial(usual, **target)
    with_lanes._kept.clear()
    try:
        yield
    finally:
        program.compiled = usual
        with_lanes._kept.clear()


def digest(name: str, runs: int, rounds: int, **options: Any) -> str:
    """Of the regret of the first three runs of the second of two systems, at all checkpoints."""
    import driftbandit as db
    from driftbandit.simulation import Options

    systems = list(db.families.sample("gaussian", 2, STATES, ARMS, seed=1))
    first = options.get("first_system", 0)
    study = {"policies": [name], "rounds": rounds, "runs": runs, "engine": "lanes"}
    result = db.simulate(systems[first:], **study, options=Options(**options))
    curves = np.ascontiguousarray(result.curves[name][-1][:3])
    return hashlib.sha256(curves.tobytes()).hexdigest()[:16]


def digests(name: str, rounds: int) -> dict[str, str]:
    """The digest of the same runs, played and compiled in different ways."""
    from driftbandit.lanes.machine_code import Machine

    found = {}
    for workers in (1, 2):
        for runs in (3, 8, 100):
            found[f"{runs} runs, workers {workers}"] = digest(name, runs, rounds, workers=workers)
    found["second chunk alone"] = digest(name, 8, rounds, first_system=1)
    for count in (2, 4, 8, 16):
        with compiled_for(lanes=count):
            found[f"{count} lanes"] = digest(name, 8, rounds)
    for title, (cpu, features) in MACHINES.items():
        with compiled_for(machine=Machine(cpu, features)):
            found[title] = digest(name, 8, rounds)
    return found


SERVED = (play, play_table2, play_by_hand, compile_policy, digests)
PLAYING = ("play", "play_table2", "play_by_hand")


def serve() -> None:
    """Answer the calls that arrive on standard input until it ends."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the package prints is no answer
    functions = {function.__name__: function for function in SERVED}
    for line in sys.stdin:
        name, given, named = json.loads(line)
        try:
            answer = functions[name](*given, **named)
            if isinstance(answer, Played):
                answer = answer._replace(regret=answer.regret.tolist())
            made = {"answer": answer}
        except Exception as problem:
            made = {"problem": f"{name}{given}: {type(problem).__name__}: {problem}"}
        print(json.dumps(made), file=answers, flush=True)


# What runs in the first process.


class Checkout:
    """A process that plays with the package of one source folder."""

    def __init__(self, source: Path, **variables: str) -> None:
        folders = {"PYTHONPATH": os.pathsep.join([str(source), str(HERE)])}
        self._process = subprocess.Popen(
            [sys.executable, "-c", "import lanes; lanes.serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | folders | variables,
        )

    def __call__(self, function: Callable[..., Any], *given: Any, **named: Any) -> Any:
        """The result of one of the functions SERVED."""
        assert self._process.stdin
        assert self._process.stdout
        print(json.dumps((function.__name__, given, named)), file=self._process.stdin, flush=True)
        found = json.loads(self._process.stdout.readline())
        if "problem" in found:
            raise RuntimeError(found["problem"])
        if function.__name__ not in PLAYING:
            return found["answer"]
        cpu, wall, regret, engine = found["answer"]
        return Played(cpu, wall, np.array(regret), engine)

    def __enter__(self) -> Checkout:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        self._process.wait()


class Call:
    """A measured call of one side, repeated in turns with the other side's."""

    def __init__(self, checkout: Checkout, function: Callable[..., Played], **named: Any) -> None:
        self._ask = functools.partial(checkout, function, **named)
        self.first = self._ask()
        self.cpu = self.wall = np.inf

    def repeat(self) -> None:
        """Measure once more and keep the best."""
        again = self._ask()
        self.cpu, self.wall = min(self.cpu, again.cpu), min(self.wall, again.wall)


def in_turns(*calls: Call, repeats: int = REPEATS) -> None:
    for _ in range(repeats):
        for call in calls:
            call.repeat()


def equal_share(ours: Call, other: Call) -> float:
    """The share of runs whose regret is the same up to rounding."""
    mine, theirs = ours.first.regret, other.first.regret
    return float((abs(mine - theirs) <= CLOSE * abs(theirs).max()).mean())


@contextlib.contextmanager
def sources_of(commit: str) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        made = subprocess.run(
            ["git", "archive", commit, "src"], cwd=ROOT, check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=made.stdout, check=True)
        yield Path(folder) / "src"


def compared(ours: Call, other: Call, rounds: float, title: str) -> Figures:
    """Print and return one line of a comparison with XLA."""
    in_turns(ours, other)
    found = {
        "lanes ns": ours.cpu / rounds * 1e9,
        "xla ns": other.cpu / rounds * 1e9,
        "ratio": other.cpu / ours.cpu,
        "equal": equal_share(ours, other),
    }
    wanted = f"≥ {WANTED[title]}" if title in WANTED else ""
    print(
        f"  {title:<24} {found['lanes ns']:9.0f} {found['xla ns']:9.0f} {found['ratio']:6.2f}"
        f" {wanted:>6} {found['equal']:9.2%}",
        flush=True,
    )
    return found


def policies(options: argparse.Namespace) -> Figures:
    """CPU time per round of every policy, against XLA's engine of another commit."""
    from driftbandit.policies import available

    scale, figures = options.scale, {}
    print(f"CPU ns per round and run; d = k = {STATES}, float64, {RUNS} runs × {ROUNDS // scale}")
    print(f"rounds of one system (slow policies: fewer), against XLA's engine of {options.against}")
    print(f"  {'policy':<24} {'lanes':>9} {'xla':>9} {'ratio':>6} {'wanted':>6} {'equal':>9}")
    with sources_of(options.against) as old, Checkout(ROOT / "src") as ours, Checkout(old) as xla:
        for name in (*available(), *PAGE):
            runs, rounds = SLOW.get(name, RUNS), max(FEW_ROUNDS.get(name, ROUNDS) // scale, 1)
            study = {"name": name, "runs": runs, "rounds": rounds}
            sides = Call(ours, play, **study), Call(xla, play, **study)
            figures[name] = compared(*sides, runs * rounds, name)
        systems, rounds = 50, ROUNDS // scale
        study = {"systems": systems, "rounds": rounds}
        sides = Call(ours, play_table2, **study), Call(xla, play_table2, **study)
        size = sides[0].first.regret.size * rounds
        figures[TABLE2] = compared(*sides, size, TABLE2)
    print(f"  {TABLE2}: {systems} systems × 10 runs, systems drawn and prepared in the call")
    return figures


def built(folder: str) -> str | None:
    """The shared library of idea_loop.cpp; None: no compiler."""
    compiler = next(filter(None, map(shutil.which, ("c++", "g++", "clang++"))), None)
    if compiler is None:
        print("  no C++ compiler (c++, g++, clang++) was found")
        return None
    library = f"{folder}/idea_loop.so"
    flags = ["-O3", "-march=native", "-fno-math-errno", "-std=c++17"]
    shared = ["-shared", "-fPIC", "-pthread", f"-DSTATES={STATES}", f"-DARMS={ARMS}"]
    command = [compiler, *flags, *shared, str(HERE / "idea_loop.cpp"), "-o", library]
    subprocess.run(command, check=True)
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True, check=True)
    print(f"  {' '.join([compiler, *flags])}: {version.stdout.splitlines()[0]}")
    return library


def cpp(options: argparse.Namespace) -> Figures:
    """IDEA's rounds per second as a share of a hand-written loop's."""
    rounds = ROUNDS // options.scale
    print(f"IDEA with its environment, d = k = {STATES}, {RUNS} runs × {rounds} rounds, 2 threads")
    with tempfile.TemporaryDirectory() as folder, Checkout(ROOT / "src") as checkout:
        library = built(folder)
        if library is None:
            return {}
        study = {"runs": RUNS, "rounds": rounds}
        hand = Call(checkout, play_by_hand, library=library, **study)
        ours = Call(checkout, play, name="idea", engine="lanes", **study)
        in_turns(hand, ours, repeats=2 * REPEATS)
    figures: Figures = {"equal": equal_share(ours, hand)}
    size = RUNS * rounds
    for title, side in (("by hand", hand), ("lanes", ours)):
        figures |= {f"{title} ns": side.cpu / size * 1e9, f"{title} rounds/s": size / side.wall}
        print(
            f"  {title:<10} {side.cpu / size * 1e9:6.0f} CPU ns/round"
            f" {size / side.wall / 1e6:7.2f} M rounds/s"
        )
    figures |= {"share, CPU": hand.cpu / ours.cpu, "share, wall": hand.wall / ours.wall}
    print(
        f"  lanes reaches {figures['share, CPU']:.0%} of it by CPU seconds, "
        f"{figures['share, wall']:.0%} by wall time (wanted: {WANTED_OF_CPP:.0%});"
        f" equal regret in {figures['equal']:.2%} of the runs"
    )
    return figures


def sizes(options: argparse.Namespace) -> Figures:
    """Compare lanes with XLA in this checkout, by the number of states and arms, and in float32."""
    figures: Figures = {}
    print("CPU time of XLA / that of lanes in this checkout, and what engine='auto' takes")
    print(f"  {'d':>4} {'k':>4} {'':<8}" + "".join(f"{name:>14}" for name in SIZED))
    cases = [(d, k, "float64") for d, k in SHAPES] + [(STATES, ARMS, "float32")]
    with Checkout(ROOT / "src") as checkout:
        for d, k, dtype in cases:
            shape = {"d": d, "k": k, "dtype": dtype}
            cells = [_size(checkout, name, options.scale, shape) for name in SIZED]
            figures |= {
                f"{name}, d = {d}, k = {k}, {dtype}": cell
                for name, cell in zip(SIZED, cells, strict=True)
            }
            shown = (f"{cell['ratio']:8.2f} {cell['auto']:>5}" for cell in cells)
            print(f"  {d:>4} {k:>4} {dtype:<8}" + "".join(shown), flush=True)
    return figures


def _size(checkout: Checkout, name: str, scale: int, shape: Figures) -> Figures:
    d, k = shape["d"], shape["k"]
    runs = 512 if d * max(d, k) <= 1000 else 64  # XLA's blocks have up to 64 runs
    rounds = max(8, min(600, int(1e9 / (runs * d * d * (d + k)))) // scale)
    study = {"name": name, "runs": runs, "rounds": rounds} | shape
    lanes, xla = (Call(checkout, play, engine=engine, **study) for engine in ("lanes", "xla"))
    in_turns(lanes, xla, repeats=2)
    size = runs * rounds / 1e9
    return {
        "lanes ns": lanes.cpu / size,
        "xla ns": xla.cpu / size,
        "ratio": xla.cpu / lanes.cpu,
        "auto": checkout(play, **study | {"rounds": 1}).engine,
        "equal": equal_share(lanes, xla),
    }


def compile_times(options: argparse.Namespace) -> Figures:
    """Seconds from nothing to machine code, in fresh processes."""
    from driftbandit.policies import available

    names = ("idea", "ucb", "mixed") if options.quick else (*available(), *PAGE)
    parts = ("all", "policy", "trace", "write", "LLVM", "peak MiB")
    figures: Figures = {}
    print("Wall seconds to compile a policy and its environment in a fresh process, with an empty")
    print("cache; 'policy': without the environment; 'cached': that, in another, with the cache,")
    print("and whether the cache had all programs")
    print("  " + f"{'policy':<24}" + "".join(f"{part:>9}" for part in (*parts, "cached")))
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            empty, filled = (_compiled(name, folder) for _ in range(2))
        found = "LLVM" not in filled
        again = {"cached": filled["policy"], "cached, all": filled["all"], "found": found}
        figures[name] = empty | again
        cells = [*(empty[part] for part in parts), filled["policy"]]
        shown = (f"{cell:9.0f}" if cell > 90 else f"{cell:9.2f}" for cell in cells)
        print(f"  {name:<24}" + "".join(shown), "yes" if found else "NO", flush=True)
    return figures


def _compiled(name: str, folder: str) -> Figures:
    with Checkout(ROOT / "src", DRIFTBANDIT_CACHE=folder) as fresh:
        return fresh(compile_policy, name)


def bits(options: argparse.Namespace) -> Figures:
    """Whether one run's regret is the same however it is played and compiled."""
    figures: Figures = {}
    print("Regret of the same runs at 40 checkpoints, bit for bit")
    with Checkout(ROOT / "src") as checkout:
        for name in BITS:
            found = checkout(digests, name, max(200 // options.scale, 20))
            usual = next(iter(found.values()))
            different = [title for title, value in found.items() if value != usual]
            figures[name] = {"identical": not different, "digests": found}
            answer = "yes" if not different else f"no: {', '.join(different)}"
            print(f"  {name:<8} {usual}  {len(found)} ways, identical: {answer}", flush=True)
        print(f"  ways: {'; '.join(found)}")
    return figures


SECTIONS: dict[str, Callable[[argparse.Namespace], Figures]] = {
    "policies": policies,
    "cpp": cpp,
    "sizes": sizes,
    "compile": compile_times,
    "bits": bits,
}


def cpu_name() -> str:
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def about() -> Figures:
    """The machine, how busy it is, and the versions."""
    import llvmlite.binding

    versions = {name: metadata.version(name) for name in ("numpy", "jax", "llvmlite")}
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True
    )
    return {
        "CPU": f"{cpu_name()} ({llvmlite.binding.get_host_cpu_name()}), {os.cpu_count()} cores",
        "load": [round(load, 1) for load in os.getloadavg()],
        "commit": commit.stdout.strip(),
        "Python": platform.python_version(),
        **versions,
    }


def main(arguments: Iterable[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--section", choices=SECTIONS, action="append", help="default: all")
    parser.add_argument("--against", default=PINNED, metavar="COMMIT", help="XLA's engine there")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rounds")
    parser.add_argument("--json", type=Path, help="store the numbers here")
    options = parser.parse_args(None if arguments is None else list(arguments))
    options.scale = 10 if options.quick else 1
    figures = {"about": about()}
    for title, fact in figures["about"].items():
        print(f"{title}: {fact}")
    for name in options.section or SECTIONS:
        print(f"\npython benchmarks/lanes.py --section {name}{' --quick' * options.quick}")
        start = time.perf_counter()
        figures[name] = SECTIONS[name](options)
        print(f"  {time.perf_counter() - start:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
