"""The plain install, numpy and scipy alone: it works, and a missing extra is named in one line."""

import pickle
import re
import subprocess
import sys
from pathlib import Path

import pytest

from driftbandit import errors

ROOT = Path(__file__).parent.parent
EXTRAS = ("jax", "jaxlib", "llvmlite", "typer", "rich", "matplotlib", "pyarrow", "jinja2")
EXTRAS += ("markupsafe",)
BLOCKED = f"import sys; sys.modules.update(dict.fromkeys({EXTRAS}))\n"


def run(code, *arguments):
    """Run the code in a process where no extra can be imported."""
    return subprocess.run(
        [sys.executable, "-c", BLOCKED + code, *arguments], capture_output=True, text=True
    )


def test_model_agent_theory_and_logs_work(tmp_path):
    code = """
import driftbandit as db
from driftbandit.identify import read_log
model, arms = db.families.sample("gaussian", n_states=3, n_arms=4, seed=2)[0]
for policy in db.policies.available():
    if policy != "kalman_oracle":
        agent = db.Agent(model, arms, policy=policy)
        agent.tell(agent.ask(), 0.5)
agent.save("agent.json")
assert db.Agent.load("agent.json").ask() == agent.ask()
assert db.theory.finite_lower_bound(model, arms).value > 0
assert db.theory.two_step_value(db.kalman.prior(model), model, arms).shape == (4,)
assert db.steady_state.oracle_cov(model, arms).shape == (3, 3)
open("log.csv", "w").write("round,arm,reward\\n0,a,1.5\\n1,b,2\\n")
assert len(read_log("log.csv").sequences) == 1
assert db.System(model, arms).index(2) == 2
log = {"round": range(30), "arm": [0, 1] * 15, "reward": [0.1] * 30}
assert db.monitor(db.System(model, arms), log).report().title
agent = db.Agent(model, arms, window=0)
agent.tell_log(log)
assert len(agent.health().surprises.values) == 29
assert len(db.trace(model, arms, rounds=5).regret) == 5
assert "simulate" not in dir(db)  # help(db) would load it
help(db)
"""
    done = run(f"import os; os.chdir({str(tmp_path)!r})\n" + code)
    assert (done.returncode, done.stderr) == (0, "")


LINES = {
    "db.simulate(model, arms, ['idea'])": "simulate needs JAX; install driftbandit[sim]",
    "db.advise(model, arms)": "advise needs JAX; install driftbandit[sim]",
    "db.replay": "replay needs JAX; install driftbandit[sim]",
    "db.identify.fit": "fit needs JAX; install driftbandit[sim]",
    "db.Agent(None, arms)": "refit needs JAX; install driftbandit[sim]",
    "db.Agent(model, arms, refit=db.Refit())": "refit needs JAX; install driftbandit[sim]",
    "db.Agent(model, arms, compiled=True)": "compiled needs llvmlite; install driftbandit[fast]",
    "db.studies": "studies needs pyarrow; install driftbandit[io]",
    "db.paper": "paper needs pyarrow; install driftbandit[io]",
    "from driftbandit.report import figures; figures.grid(1, 1, 1, 1)": (
        "a plot needs matplotlib; install driftbandit[report]"
    ),
    "from driftbandit import report; from driftbandit.report import html; "
    "html.page(report.Report('', '', []))": "a page needs jinja2; install driftbandit[report]",
    "db.identify.read_log('log.parquet')": (
        "reading log.parquet needs pyarrow; install driftbandit[io]"
    ),
}


def test_a_missing_extra_is_named_in_one_line(tmp_path):
    code = f"""
import os
from pathlib import Path
import driftbandit as db
os.chdir({str(tmp_path)!r})
open("log.parquet", "wb").write(b"PAR1")
model, arms = db.families.sample("gaussian", n_states=3, n_arms=4, seed=2)[0]
for call in {list(LINES)!r}:
    try:
        exec(call)
    except db.MissingExtra as error:
        print(error)
"""
    done = run(code)
    assert done.stderr == ""
    assert done.stdout.splitlines() == list(LINES.values())


@pytest.mark.parametrize("arguments", [(), ("--help",), ("simulate", "--family", "cauchy")])
def test_the_command_line_names_its_extra(arguments):
    done = run("import driftbandit.cli; driftbandit.cli.main()", *arguments)
    line = "error the command line needs typer; install driftbandit[cli]\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_a_command_names_its_extra():
    code = """
import sys
for name in ("typer", "rich"):
    del sys.modules[name]
import driftbandit.cli
driftbandit.cli.main()
"""
    pytest.importorskip("typer")
    done = run(code, "simulate", "--family", "cauchy", "--plot", "a.png")
    line = "error --plot needs matplotlib; install driftbandit[report]\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", line)


def test_other_import_errors_pass_and_ours_travel():
    with pytest.raises(ModuleNotFoundError, match="no_such") as caught, errors.needing("this"):
        import no_such  # noqa: F401
    assert not isinstance(caught.value, errors.MissingExtra)
    error = pickle.loads(pickle.dumps(errors.MissingExtra("simulate", "jax")))
    assert str(error) == "simulate needs JAX; install driftbandit[sim]"
    assert error.name == "jax"


def test_the_light_tests_load_in_the_plain_install():
    """What `make light` runs imports nothing else at the top; running it takes a minute."""
    makefile = (ROOT / "Makefile").read_text()
    names = re.search(r"LIGHT := ((?:.*\\\n)*.*)", makefile)[1].replace("\\\n", " ").split()
    paths = [str(ROOT / f"tests/{name}.py") for name in names]
    code = "import pytest; raise SystemExit(pytest.main(sys.argv[1:]))"
    others = ("pandas", "statsmodels", "filterpy", "pykalman", "gymnasium", "river", "ray")
    code = f"sys.modules.update(dict.fromkeys({others}))\n{code}"
    done = run(code, "--collect-only", "-p", "no:cacheprovider", "--rootdir", str(ROOT), *paths)
    assert done.returncode == 0, done.stdout


def test_the_import_and_an_agent_load_no_large_library():
    """`import driftbandit` loads not even NumPy; an agent loads NumPy and parts of SciPy.

    Only `information_directed` needs scipy.stats, for its quasi-random points.
    """
    code = """
import sys
import driftbandit as db
large = {"numpy", "scipy", "typing"} & set(sys.modules)
assert not large, large
model, arms = db.families.sample("gaussian", n_states=3, n_arms=4)[0]
for policy in db.policies.available():
    if policy not in ("kalman_oracle", "information_directed"):
        agent = db.Agent(model, arms, policy)
        agent.tell(agent.ask(), 0.5)
large = {"jax", "pandas", "pyarrow", "matplotlib", "rich", "scipy.stats", "scipy.optimize"}
assert not large & set(sys.modules), large & set(sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
