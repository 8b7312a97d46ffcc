"""Write the tables in README and docs from the stored results, so that they always agree.

    python benchmarks/tables.py            # rewrite the pages that differ
    python benchmarks/tables.py --check    # list the pages that differ; exit 1 if there are any

A table sits between ``<!-- table: NAME -->`` and ``<!-- end -->``. Each number comes from a script
in this folder, which stores it in results/. A test compares the pages with `made`.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
MARKED = re.compile(r"(<!-- table: ([\w ]+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TITLES = {
    "lookahead": "Lookahead",
    "kode": "KODE",
    "rollout": "Rollout",
    "information_directed": "IDS",
    "thompson": "Thompson",
    "kalman_ucb": "Kalman-UCB",
    "idea": "IDEA",
}


def stored(name: str) -> Any:
    return json.loads((ROOT / "benchmarks/results" / f"{name}.json").read_text())


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(line) + " |\n" for line in (head, *rows)]
    lines.insert(1, "|" + "---|" * len(head) + "\n")
    return "".join(lines).replace("|  |", "| |")


def number(value: float, digits: int = 2) -> str:
    """Round to this many significant digits, without an exponent."""
    text = f"{value:.{digits}g}"
    return f"{float(text):.0f}" if "e+" in text else text


def speed() -> str:
    cpu, gpu, huge = stored("engine_cpu"), stored("engine_gpu"), stored("huge")
    pair = stored("agent")["ask and tell"]
    over = pair["median over the textbook's"]
    ask = huge["one ask, d = 10"]["idea, first round"]
    idea = 1e6 / cpu["idea rounds/s"]
    rows = [["IDEA, driftbandit", f"{number(idea, 3)} µs", ""]]
    for rival, title in (
        ("NumPy loop", "IDEA, the same loop in NumPy, one run at a time"),
        ("filterpy loop", "IDEA, with filterpy's filter, one run at a time"),
    ):
        times = cpu[f"times {rival}"]
        rows.append([title, f"{number(idea * times, 3)} µs", f"{times:.0f} times slower"])
    if "ucb rounds/s" in cpu:
        rows.append(["UCB, driftbandit", f"{number(1e6 / cpu['ucb rounds/s'])} µs", ""])
    pymab = f"{cpu['times pymab']:.0f} times slower than UCB here"
    rows.append(["UCB, pymab's Rust engine, 10 Gaussian arms", "", pymab])
    rows += [
        [
            "IDEA, driftbandit on an H200, 10⁶ runs at once",
            f"{number(1e6 / gpu['idea rounds/s'])} µs",
            f"{gpu['idea rounds/s'] / cpu['idea rounds/s']:.0f} times faster than the CPU",
        ],
        [
            "`Agent`, ask and tell, NumPy only, 10⁶ times (`benchmarks/agent.py`)",
            f"{pair['ours median us']:.0f} µs (median)",
            f"{over:.2f} times as long as a textbook loop",
        ],
        [
            "`Agent`, one decision among 10⁶ arms, d = 10 (`benchmarks/huge.py`)",
            f"{ask['ms']['screened']:.0f} ms",
            f"{ask['over one pass']:.1f} times as long as one matrix-vector product",
        ],
    ]
    share = f"{100 * cpu['share of peak']:.0f}%"
    growth = textwrap.fill(
        f"IDEA reaches {share} of the floating-point rate of a large matrix product on the same "
        "cores. Ten times the rounds take "
        f"{cpu['x10 rounds']:.1f} times as long; ten times the runs, {cpu['x10 runs']:.1f} times.",
        100,
    )
    return f"{table(['', 'time per round', 'ratio'], rows)}\n{growth}\n"


def lanes_policies() -> str:
    rows = [
        [f"`{name}`" if name.isidentifier() else name]
        + [f"{figures[f'{engine} ns']:,.0f} ns" for engine in ("lanes", "xla")]
        + [f"{figures['ratio']:.1f}"]
        for name, figures in stored("lanes")["policies"].items()
    ]
    head = ["policy", "CPU time per round, lanes", "XLA", "times faster"]
    return table(head, rows)


def lanes_loop() -> str:
    figures = stored("lanes")["cpp"]
    by_hand, ours = (f"{figures[f'{title} ns']:.0f} ns" for title in ("by hand", "lanes"))
    text = (
        "A hand-written C++ loop of IDEA that plays eight runs side by side takes "
        f"{by_hand} per round (`benchmarks/idea_loop.cpp`). `lanes` takes {ours}: "
        f"{100 * figures['share, CPU']:.0f}% of that speed."
    )
    return textwrap.fill(text, 100) + "\n"


def lanes_sizes() -> str:
    figures = stored("lanes")["sizes"]
    names = list(dict.fromkeys(key.split(",")[0] for key in figures))
    sizes = list(dict.fromkeys(key.partition(", ")[2] for key in figures))
    rows = [
        [size.replace(", float64", "")] + [f"{figures[f'{n}, {size}']['ratio']:.1f}" for n in names]
        for size in sizes
    ]
    return table(["size", *(f"`{name}`" for name in names)], rows)


def gpu() -> str:
    figures = stored("engine_gpu")

    def rate(key: str) -> str:
        return f"{number(figures[key] / 1e6, 3)} M rounds/s"

    rows = []
    for name in ("idea", "kode", "kalman_ucb", "ucb", "oful", "thompson"):
        ours, xla = f"{name} rounds/s", f"{name} rounds/s, XLA"
        times = f"{figures[ours] / figures[xla]:.0f}"
        rows.append([f"`{name}`, 270,336 runs of one system", rate(ours), rate(xla), times])
    for runs in (2_000, 33_792, 1_048_576):
        rows.append([f"`idea`, {runs:,} runs", rate(f"idea rounds/s at {runs} runs"), "", ""])
    many = rate("idea rounds/s, 10000 systems x 10 runs")
    rows.append(["`idea`, 10,000 systems × 10 runs", many, "", ""])
    rows.append(["`idea`, float32", rate("idea rounds/s, float32"), "", ""])
    seconds = f"{figures['Table II, again: seconds']:.1f} s"
    rows.append(["all of Table II, once compiled", seconds, "", ""])
    return table(["", "lanes", "XLA", "times faster"], rows)


def install() -> str:
    figures = stored("install")
    what = {
        "plain": (
            "`driftbandit`",
            "model, filter, policies, `Agent`, theory, model files, CSV logs",
        ),
        "sim": ("`driftbandit[sim]`", "+ JAX: `simulate`, `fit`, `advise`, `replay`"),
        "cli": ("`driftbandit[cli]`", "+ the command line"),
        "all": ("`driftbandit[all]`", "+ plots and pages (`report`), Parquet files (`io`)"),
    }
    rows = [
        [name, gives, f"{figures[key]['MB']} MB", f"{figures[key]['import CPU seconds']:.2f} s"]
        for key, (name, gives) in what.items()
    ]
    before = figures["before"]
    note = (
        "\n*Measured in fresh environments by `python benchmarks/install.py`. Before the extras "
        f"were\nintroduced, every install took {before['MB']} MB and `import driftbandit` took "
        f"{before['import CPU seconds']:.2f} s.*\n"
    )
    return table(["install", "includes", "size", "CPU time of `import driftbandit`"], rows) + note


def late() -> str:
    figures = stored("agent")["late reward"].values()
    ends = sorted({f"{value:.0f}" for value in (min(figures), max(figures))}, key=float)
    return (
        f"Each round that is filtered again takes {' to '.join(ends)} µs (d = k = 10, `python "
        "benchmarks/agent.py`).\n"
    )


def compiled() -> str:
    rows = []
    for name, figures in stored("agent")["compiled"].items():
        policy, size = name.split(", ")
        title = TITLES.get(policy, f"`{policy}`")
        times = [f"{figures[key]:.0f} µs" for key in ("NumPy us", "compiled us")]
        rows.append([title, size, *times, f"{figures['times faster']:.1f}"])
    numpy, ours = (
        list(stored("agent")["calls"][key].values()) for key in ("NumPy us", "compiled us")
    )
    rest = stored("agent")["compiled"]["idea, d = k = 10"]["compiled us"] - sum(ours)
    note = (
        "*One ask and tell, median (`python benchmarks/agent.py --only compiled`). With NumPy, "
        "IDEA at d = k = 10 needs {:.0f} µs to choose, {:.0f} µs to learn and {:.0f} µs to "
        "predict the next round; compiled, {:.1f}, {:.1f} and {:.1f} µs, most of it for the call "
        "and for copies. The other {:.0f} µs are checks, ids and the window.*"
    )
    note = textwrap.fill(note.format(*numpy, *ours, rest), 100)
    return table(["policy", "size", "NumPy", "compiled", "times faster"], rows) + f"\n{note}\n"


def sphere() -> str:
    rows = []
    for name in ("kode", "thompson", "kalman_ucb", "idea"):
        row = stored("sphere")["speed"][name]
        rival = row.get("SLSQP, ten starts, median us")
        ours = f"{number(row['median us'] / 1e3)} ms"
        rows.append([TITLES[name], ours, f"{rival / 1e3:.0f} ms" if rival else ""])
    head = ["one `Agent` decision, 10 states", "median time", "SLSQP from ten starts"]
    return table(head, rows)


def beyond(measure: str) -> str:
    rows: dict[str, dict[str, str]] = {}
    for row in stored("beyond"):
        middle, low, high = row[measure]
        title = TITLES[row["policy"]]
        title += f" ({row['systems']} systems)" if row["systems"] != 1000 else ""
        text = f"{middle:.4f} ({low:.4f}–{high:.4f})"
        rows.setdefault(title, {})[row["family"]] = text
    families = list(next(iter(rows.values())))
    body = [[title, *(cells[family] for family in families)] for title, cells in rows.items()]
    return table(["", *families], body)


def agreement() -> str:
    """Share of runs that agree with the default CPU, by policy."""
    figures = stored("agreement")
    rows = [
        [f"`{policy}`", *(_share(figures[name][policy]) for name in figures)]
        for policy in next(iter(figures.values()))
    ]
    counts = {name: next(iter(figures[name].values()))["runs"] for name in figures}
    rows.append(["runs of each policy", *(f"{count:,}" for count in counts.values())])
    return table(["policy", *figures], rows)


def _share(cell: dict[str, int]) -> str:
    return "100%" if cell["agree"] == cell["runs"] else f"{cell['agree'] / cell['runs']:.3%}"


def earns() -> str:
    """Regret of IDEA on the default fit: a table of cold starts, and counts for warm starts."""
    figures = stored("fit_earns")
    players = {
        "idea, fitted": "IDEA, fitted",
        "idea, true": "IDEA, true model",
        "ucb": "UCB",
        "sliding_window_ucb": "SW-UCB",
        "discounted_ucb": "D-UCB",
    }
    cells: dict[str, list[dict]] = {"cold": [], "warm": []}
    for cell in figures["cells"]:
        cells[cell["start"]].append(cell)
    rows = [
        [
            cell["kind"],
            str(cell["rows"]),
            *(f"{cell[name]:.3f}" for name in players),
            f"{cell['difference']:+.3f} ({cell['low']:+.3f} to {cell['high']:+.3f})",
            cell["verdict"],
        ]
        for cell in cells["cold"]
    ]
    head = ["system", "rows", *players.values(), "fitted minus best baseline", "fitted is"]
    logs = len(cells["cold"][0]["chosen"])
    counted = {
        verdict: [f"{c['kind']}, {c['rows']}" for c in cells["warm"] if c["verdict"] == verdict]
        for verdict in ("better", "even", "worse")
    }
    told = ", ".join(f"{len(found)} {verdict}" for verdict, found in counted.items() if found)
    even = "; ".join(counted["even"]) or "none"
    short = figures["short logs"]
    notes = [
        f"Each row has {logs} logs. Intervals are 95% Student's t intervals over the logs. With a "
        f"warm start (every policy first sees the rewards in the log), the fitted IDEA is, in the "
        f"{len(rows)} rows: {told} (even: {even}).",
        f"Short logs: trained on 100 rewards of four independent arms, the default fit predicts "
        f"the next 100 rewards better than one AR(1) model per arm fitted by maximum likelihood "
        f"(statsmodels). The difference is {short['difference']:+.3f} nats per reward (95% "
        f"interval {short['interval'][0]:+.3f} to {short['interval'][1]:+.3f}); the fit is ahead "
        f"in {short['fit ahead in']} of {short['logs']} logs (`python benchmarks/fit_earns.py "
        "--ar`).",
    ]
    return table(head, rows) + "".join(f"\n{textwrap.fill(note, 100)}\n" for note in notes)


def replay(name: str) -> str:
    """Rewards on a public data set; every policy played the training part first."""
    found = stored("replay")["data"][name]["warm"]
    head = ["", "mean", "95% interval", "std over runs", f"minus `{found['baseline']}`"]
    head += ["95% interval", ""]
    rows = []
    for row in found["rows"]:
        own = row["kind"] == "policy"
        label = f"`{row['label']}`" if own else f"*{row['label'].replace('_', ' ')}*"
        label += f" ({row['arm']})" if row["arm"] else ""
        apart = ends = ""
        if row["verdict"]:
            apart = f"{row['difference']:+.2f}"
            ends = f"{row['difference_low']:.2f} to {row['difference_high']:.2f}"
        spread = "" if row["spread"] is None else f"{row['spread']:.2f}"
        mean = [f"{row['mean']:.2f}", f"{row['low']:.2f} to {row['high']:.2f}"]
        rows.append([label, *mean, spread, apart, ends, row["verdict"]])
    explained = found["predictability"]
    note = (
        f"The model: {found['model']['summary']} One round ahead, a filter that sees all rewards "
        f"explains {100 * explained['rewards']:.1f}% of their variance in the test part, and "
        f"{100 * explained['differences']:.1f}% of the variance between arms within a round."
    )
    text = table(head, rows) + f"\n{textwrap.fill(note, 100)}\n"
    return text.replace(" -", " −")


def off_policy() -> str:
    """Bias, coverage and width of replays of logs, over the policies of each case."""
    found = stored("off_policy")
    groups: dict[tuple[str, str, str], list[dict[str, float]]] = {}
    apart: list[dict[str, float]] = []
    alone: list[dict[str, float]] = []
    for case, figures in found["cases"].items():
        method, log, model, policy = case.split(", ")
        if policy.endswith("minus ucb"):
            apart.append(figures)
        elif method.endswith("deployed"):
            alone.append(figures)
        else:
            groups.setdefault((method, log, model), []).append(figures)
    rows = []
    for (method, log, model), own in sorted(groups.items(), key=_order):
        inside = [100 * figures["coverage"] for figures in own]
        width = sum(figures["half_width"] for figures in own) / len(own)
        worst = max(abs(figures["z"]) for figures in own)
        coverage = f"{min(inside):.1f} to {max(inside):.1f}%"
        rows.append([f"`{method}`", log, model, f"{worst:.1f}", coverage, f"± {width:.2f}"])
    every = [figures for own in groups.values() for figures in own]
    beyond = sum(abs(figures["z"]) > 2 for figures in every)
    mean = sum(figures["coverage"] for figures in every) / len(every)
    least, most = (100 * end(figures["coverage"] for figures in apart) for end in (min, max))
    logs, test = found["settings"]["logs"], found["settings"]["test"]
    note = (
        f"{logs:,} simulated logs of {test} test rounds with four arms that drift. Each row has "
        "the policies IDEA, Thompson, UCB, D-UCB and a fixed arm (`rejection`: IDEA and UCB). The "
        "mean error is given in standard errors, for the worst of them; coverage of 95% intervals "
        f"is given from the lowest to the highest. Of {len(every)} cases, {beyond} have a mean "
        f"error of more than two standard errors; {0.0455 * len(every):.1f} are expected by "
        f"chance. Coverage is {100 * mean:.1f}% on average. Intervals of the difference of IDEA "
        f"and UCB cover {least:.1f} to {most:.1f}%. What `rejection` estimates differs from the "
        "reward of a policy that plays by itself and sees each reward with the chance p_min by at "
        f"most {max(abs(figures['z']) for figures in alone):.1f} standard errors."
    )
    head = ["", "log", "model", "mean error", "coverage", "95% interval"]
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n"


def off_policy_small() -> str:
    """Coverage and width of intervals that rest on few rounds, before and after."""
    groups: dict[tuple[str, float], list[dict[str, float]]] = {}
    settings = stored("off_policy_small")["settings"]
    for setting in settings:
        rows = [setting[case] for case in ("arm 3", "leader", "difference") if case in setting]
        groups.setdefault((setting["rewards"], setting["chance"]), []).extend(rows)
    lines = []
    for (rewards, chance), own in groups.items():
        shares = [100 * row[name] for name in ("normal", "coverage") for row in own]
        before, after = shares[: len(own)], shares[len(own) :]
        ends = [f"{min(part):.1f}%, {sum(part) / len(part):.1f}%" for part in (before, after)]
        wider = sum(row["width"] / row["normal width"] for row in own) / len(own)
        lines.append([rewards, f"{chance:g}", f"{len(own)}", *ends, f"{100 * (wider - 1):+.1f}%"])
    note = (
        f"{settings[0]['logs']} logs of each case; one with 800 intervals has a standard error of "
        "0.8% to 1.1%, so the lowest of many is low by luck. Cases in which fewer than half of "
        "the rows have an interval are left out."
    )
    head = ["rewards", "smallest chance", "cases", "before: lowest, mean", "now", "width"]
    return f"{table(head, lines)}\n{textwrap.fill(note, 100)}\n"


def replay_support() -> str:
    """Intervals and verdicts of fixed arms, with and without the rule for rows of few rounds."""
    found = stored("replay_support")
    rows = []
    for title, figures in found["cases"].items():
        setting = found["settings"][title]
        size = f"{setting['arms']}, {setting['rounds']:,}"
        before, after = (figures[key] for key in ("missed_before", "missed"))
        missed = [f"{100 * before:.1f}%", "" if after is None else f"{100 * after:.1f}%"]
        wrong = [f"{figures[f'wrong{when}']} of {figures[f'verdicts{when}']}" for when in OLD_NEW]
        rows.append([title, size, f"{figures['rows']}", f"{figures['trusted']}", *missed, *wrong])
    head = ["log", "arms, rounds", "rows", "with interval"]
    return f"{table([*head, 'miss before', 'miss', 'wrong before', 'wrong'], rows)}\n"


OLD_NEW = ("_before", "")  # ends of the names of stored figures


def _order(item: tuple[tuple[str, str, str], Any]) -> tuple[int, ...]:
    (method, log, model), _ = item
    logs, models = ["uniform", "uneven", "adaptive"], ["true", "wrong"]
    return logs.index(log), models.index(model), ["ips", "dr", "rejection"].index(method)


def monitoring_seen() -> str:
    """How often `monitor` calls a model wrong, by what changed."""
    rows = []
    figures = stored("monitoring")
    tests = list(figures["seen"][0]["tests"])
    for row in figures["seen"]:
        shares = [f"{100 * row['tests'][name]:.0f}%" for name in tests]
        right = f"{100 * row['right arm']:.0f}%" if "right arm" in row else ""
        rows.append([row["change"], f"{100 * row['wrong']:.1f}%", *shares, right])
    head = ["change", "called wrong", *tests, "the right arm alone is named"]
    jump = next(row for row in figures["seen"] if row["change"] == "jump")
    note = (
        f"{jump['logs']} logs each, level {100 * figures['level']:.0f}%. For a jump, the estimated"
        f" round is off by {jump['median error of since']:.0f} rounds (median)."
    )
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n"


def monitoring_level() -> str:
    """How often the test within arms calls a true model wrong, and sees faster drift."""
    figures = stored("monitoring_level")
    shares = [f"{name}{share}" for share in ("0.05", "0.00125") for name in ("Ljung–Box ", "")]
    rows = [
        [f"{row['rounds']}, {row['arms']}", row["rule"], *(f"{100 * row[x]:.2f}%" for x in shares)]
        for row in figures["level"]
    ]
    power = figures["power"]
    note = (
        f"{figures['level'][0]['logs']:,} logs each. On {power['logs']} logs of drift that is four "
        f"times as fast since 200 rounds, the test of Ljung and Box fails "
        f"{100 * power['Ljung–Box 0.05']:.0f}% at 5% and "
        f"{100 * power['Ljung–Box 0.00125']:.0f}% at 0.125%, this one "
        f"{100 * power['0.05']:.0f}% and {100 * power['0.00125']:.0f}%."
    )
    head = ["rounds, arms", "which arm", "Ljung–Box at 5%", "now", "Ljung–Box at 0.125%", "now"]
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n"


def monitoring_remedies() -> str:
    """What the remedies win or cost."""

    def shown(cell: dict[str, float]) -> str:
        low, high = f"{cell['low']:+.1f}", f"{cell['high']:+.1f}"
        return f"{cell['percent']:+.1f} ({low} to {high})".replace("-", "−").replace("+0.0", "0.0")

    figures = stored("monitoring")
    forms = {row["change"]: row for row in figures["forms"]}
    by_change: dict[str, dict[str, Any]] = {}
    for row in figures["remedies"]:
        by_change.setdefault(row["change"], {})[row["remedy"]] = row
    rows = [
        [
            change,
            f"{100 * found['widen']['alarms']:.0f}%",
            shown(found["widen"]),
            shown(forms[change]["P"]) if change in forms else "",
            shown(found["refit"]),
        ]
        for change, found in by_change.items()
    ]
    widen, refit = (by_change["none"][name]["runs"] for name in ("widen", "refit"))
    cost = figures["cost"]
    note = (
        f"{widen} runs each, {refit} for refits (diagonal Γ, 20 iterations of EM). The watch takes "
        f"{cost['watched us'] - cost['not watched us']:.1f} µs of CPU time per reward, "
        f"{cost['percent slower']:.0f}% of ask and tell at d = k = 10."
    )
    head = ["change", "runs with an alarm", "widen: Q ← λQ", "P ← λP instead", "refit"]
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n"


def products() -> str:
    """Regret on simulated products, with the difference from IDEA on the fitted structure."""
    found = stored("products")["recovery"]
    rows = []
    for name, (mean, low, high) in sorted(found["regret"].items(), key=lambda item: item[1][0]):
        apart, least, most = found["minus fitted"][name]
        ends = (
            "" if name == "idea, fitted structure" else f"{apart:+.3f} ({least:.3f} to {most:.3f})"
        )
        label = name.replace("idea", "IDEA") if name.startswith("idea") else f"`{name}`"
        rows.append([label, f"{mean:.3f}", f"{low:.3f} to {high:.3f}", ends])
    inside = ", ".join(f"`{name}` {100 * part:.0f}%" for name, part in found["inside"].items())
    note = (
        f"{found['products']} products, 300 rounds × 8 runs each; 95% Student's t intervals over "
        f"products. True drifts inside their 95% intervals: {inside}. IDEA's regret on the fitted "
        f"structure is {100 * (found['fitted over true'] - 1):.1f}% above that on the true model."
    )
    head = ["policy", "regret per round", "95% interval", "minus IDEA, fitted structure"]
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n".replace(" -", " −").replace(
        "(-", "(−"
    )


def product_seasons() -> str:
    """What a season in the model wins, measured and expected."""
    found = stored("products")["seasons"]
    rows = []
    for case in ("with season", "without season"):
        own = found[case]
        for key, label in (
            ("measured", "recommends, measured"),
            ("theory", "recommends, theory"),
            ("idea", "IDEA plays"),
        ):
            with_, without = own["regret"][key]
            gain, low, high = own["gain of the season"][key]
            share = f"{100 * (with_ / without - 1):+.1f}%"
            gains = f"{gain:+.4f} ({low:.4f} to {high:.4f})"
            rows.append([f"truth {case}", label, f"{with_:.4f}", f"{without:.4f}", gains, share])
    head = ["", "", "regret with season(7, arm)", "without", "gain", "change"]
    off, low, high = found["with season"]["measured minus theory"]
    note = (
        f"{found['products']} products each. The gain measured with a season in the truth differs "
        f"from the expected one by {off:+.4f} ({low:.4f} to {high:.4f})."
    )
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n".replace(" -", " −").replace(
        "(-", "(−"
    )


def structure_series() -> str:
    """Fitted log-likelihoods next to those of statsmodels."""
    rows = [
        [name, f"{row['rounds']}", f"{row['driftbandit']:.4f}", f"{row['statsmodels']:.4f}"]
        for name, row in stored("structures").items()
    ]
    return table(["series and structure", "rounds", "driftbandit", "statsmodels"], rows).replace(
        " -", " −"
    )


def structure_speed() -> str:
    """A gradient in units of a forward pass, and whole fits."""
    found = stored("structure_speed")
    rows = []
    for row in found["gradients"].values():
        times = [f"{row[key]:.2f}" for key in ("forward, µs per row", "gradient, µs per row")]
        over = f"{row['gradient over forward']:.2f}"
        rows.append([f"`{row['structure']}`", str(row["parameters"]), *times, over])
    first, fits = found["gradients"]["variances"], found["fits"]
    note = (
        f"10⁵ rows, {first['states']} states, {found['cores']} cores. With dense matrices in JAX a "
        f"forward pass takes {first['dense forward over ours']:.1f} times as long as here, and its "
        f"gradient by reverse mode {first[REVERSE]:.1f} forward passes. A fit of 8 arms × 2000 "
        f"rounds with its intervals takes {fits['single']['seconds']:.1f} s with one reward per "
        f"round and {fits['full']['seconds']:.1f} s with all eight, compiling included."
    )
    head = ["structure", "parameters", "forward, µs per row", "gradient, µs per row", "ratio"]
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n"


REVERSE = "JAX's gradient over its dense forward"


def replay_structures(name: str) -> str:
    """A public data set with the default fit and with a structure."""
    found = stored("replay_structures")[name]
    gains, rows = found["structure minus default"], []
    for label, (mean, low, high, arm) in found["structure"]["rows"].items():
        own = label in gains
        text = (
            f"`{label}`" if own and label != "full_information" else f"*{label.replace('_', ' ')}*"
        )
        text += f" ({arm})" if arm else ""
        before = f"{found['default fit']['rows'][label][0]:.3f}"
        gain = "{:+.3f} ({:.3f} to {:.3f})".format(*gains[label]) if own else ""
        rows.append([text, before, f"{mean:.3f}", f"{low:.3f} to {high:.3f}", gain])
    shares = [
        found[model]["predictability"]["differences"] for model in ("default fit", "structure")
    ]
    note = (
        f"Structure: `{found['components']}`. Default: "
        f"{found['default fit']['summary']} One round ahead, a filter that sees all rewards "
        f"explains {100 * shares[0]:.1f}% of the variance between arms within a round with the "
        f"default fit, and {100 * shares[1]:.1f}% with the structure."
    )
    head = ["", "default fit", "structure", "95% interval", "structure minus default"]
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n".replace(" -", " −").replace(
        "(-", "(−"
    )


def service() -> str:
    found = stored("service")
    rows = []
    for store in ("SQLite", "PostgreSQL"):
        loads = {
            "one client": f"{store}: closed, 1 clients",
            "16 clients": f"{store}: closed, 16 clients",
            "64 clients": f"{store}: closed, 64 clients",
            "8 clients, batches of 10": f"{store}: batches of 10, 8 clients",
            "1000 decisions and 1000 rewards per second, by the clock": f"{store}: open",
        }
        for title, key in loads.items():
            one = found[key]
            p50 = max(one["decision p50 ms"], one["reward p50 ms"])
            p99 = max(one["decision p99 ms"], one["reward p99 ms"])
            rates = [f"{one[f'{what}/s']:.0f}" for what in ("decisions", "rewards")]
            cpu = f"{100 * one['server CPU']:.0f}%"
            rows.append([store, title, *rates, f"{p50:.1f} ms", f"{p99:.0f} ms", cpu])
    head = ["store", "load", "decisions/s", "rewards/s", "p50", "p99", "server's CPU"]
    reference = found["reference"]
    agent, empty = reference["plain ask and tell/s"], reference["empty endpoint/s, 16 clients"]
    said = f"""*d = k = 10, IDEA, one server process; clients and store are on the same
    {found["cores"]} cores (`python benchmarks/service.py`). Latencies are those of the slower kind
    of request. Measured beside it, a plain `Agent` asks and learns {agent:,.0f} times per second,
    an empty endpoint answers {empty:,.0f} requests per second, and the disk confirms
    {reference["fdatasync/s"]:,.0f} writes per second. So Python's work per request, on one core, is
    the limit, not the disk: batches help most.*"""
    large = [found[f"{store}: million"] for store in ("SQLite", "PostgreSQL")]
    opened = max(one[f"{how}: seconds until the first decision"] for one in large for how in ENDS)
    begins, ends = (max(one["memory MiB"][at] for one in large) for at in ("10%", "100%"))
    more = f"""With 10⁶ events, a server that was stopped or killed makes its first decision at most
    {opened:.1f} s after its start. Its memory is {begins:.0f} MiB after 10⁵ events and {ends:.0f}
    MiB after 10⁶."""
    notes = [textwrap.fill(" ".join(text.split()), 100) + "\n" for text in (said, more)]
    return "\n".join([table(head, rows), *notes])


ENDS = ("stopped", "killed")


def _times(ratio: float) -> str:
    """A ratio of times in words."""
    if 0.95 < ratio < 1.05:
        return "the same"
    slow = ratio > 1
    return f"{number(ratio if slow else 1 / ratio)} times {'slower' if slow else 'faster'}"


def comparison_decide() -> str:
    """One choice and its update, by package."""
    rows = [
        [
            f"{one['package']}: {one['policy']}",
            f"{number(one['us'])} µs",
            f"{number(one['least'])} to {number(one['most'])}",
            "" if one["ratio"] == 1 else _times(one["ratio"]),
        ]
        for one in sorted(stored("comparison")["decide"].values(), key=lambda one: one["us"])
    ]
    return table(
        ["package and policy", "median", "over the turns", "against the first `Agent`"], rows
    )


def comparison_simulate() -> str:
    """The simulators, per round."""
    found = stored("comparison")["simulate"]
    rows = [
        [
            name,
            f"{one['runs']:,}",
            f"{number(one['us per round'])} µs",
            "" if one["ratio"] == 1 else _times(one["ratio"]),
        ]
        for name, one in sorted(found.items(), key=lambda item: item[1]["ratio"])
    ]
    ours = found["driftbandit"]
    note = (
        f"Without compiling. driftbandit's first call takes {ours['first call']:.1f} s, of which "
        f"{ours['compile']:.1f} s compile the policy; the program is kept on disk."
    )
    head = ["package", "runs in one call", "time per round", "against driftbandit"]
    return f"{table(head, rows)}\n{textwrap.fill(note, 100)}\n"


def comparison_filter() -> str:
    """The filters on one log."""
    rows = [
        [
            name,
            f"{number(1e3 * one['first call'])} ms",
            f"{number(1e3 * one['seconds'])} ms",
            "" if one["ratio"] == 1 else _times(one["ratio"]),
            f"{one['log-likelihood']:.4f}",
        ]
        for name, one in sorted(
            stored("comparison")["filter"].items(), key=lambda item: item[1]["seconds"]
        )
    ]
    head = ["package and function", "first call", "later calls, best", "against `one_step`"]
    return table([*head, "log-likelihood"], rows).replace(" -", " −")


def comparison_learn() -> str:
    """Fits of the same structure to the same logs."""
    titles = {"series": "one series", "arms": "four arms"}
    rows = [
        [
            titles[case],
            name,
            f"{number(one['first call'])} s",
            f"{number(one['seconds'])} s",
            f"{one['log-likelihood']:.2f}",
        ]
        for case, found in stored("comparison")["learn"].items()
        for name, one in found.items()
    ]
    head = [
        "log",
        "package and function",
        "first fit",
        "later fits, best",
        "log-likelihood reached",
    ]
    return table(head, rows).replace(" -", " −")


def comparison_regret() -> str:
    """Regret of driftbandit's policies and of each other package's best policy in each world."""
    worlds = stored("comparison")["regret"]
    ours = {
        one["policy"]: ""
        for one in next(iter(worlds.values())).values()
        if one["package"] == "driftbandit"
    }
    rivals = {one["package"] for one in next(iter(worlds.values())).values()}
    rows = [
        [f"driftbandit: {policy}"]
        + [_regret_cell(found[f"driftbandit: {policy}"]) for found in worlds.values()]
        for policy in ours
    ]
    for package in sorted(rivals - {"driftbandit", ""}, key=str.lower):
        cells = []
        for found in worlds.values():
            best = best_rival(found, package)
            cells.append(f"{_regret_cell(best)} {best['policy']}")
        rows.append([package, *cells])
    rows.append(["random play", *(_regret_cell(found["random play"]) for found in worlds.values())])
    notes = []
    for kind, found in worlds.items():
        best = best_rival(found)
        mean, low, high = best["minus fitted"]
        notes.append(
            f"{kind}, {best['package']} ({best['policy']}): {mean:+.3f} ({low:+.3f} to {high:+.3f})"
        )
    sizes = stored("comparison")["sizes"]
    note = (
        f"Regret per round, mean of {sizes['tables']} tables ± half a 95% Student's t interval. "
        "The tables differ much, so the intervals are wide; paired differences are sharper. The "
        f"best policy of all other packages minus IDEA on its fitted model: {'; '.join(notes)}."
    )
    text = f"{table(['', *worlds], rows)}\n{textwrap.fill(note, 100)}\n"
    return re.sub(r"(?<=[ (])-(?=\d)", "−", text)


def best_rival(found: dict[str, Any], package: str | None = None) -> dict[str, Any]:
    """The policy with the lowest regret, of one package or of all others."""
    able = [
        one
        for one in found.values()
        if one["package"] not in ("", "driftbandit") and package in (None, one["package"])
    ]
    return dict(min(able, key=lambda one: one["regret"][0]))


def _regret_cell(one: dict[str, Any]) -> str:
    mean, low, _ = one["regret"]
    return f"{mean:.3f} ± {mean - low:.3f}"


def tuning() -> str:
    """Loss in the end relative to the filter's, one table for single runs and populations."""
    found = stored("tuning")
    problems = list(found["problems"].values())
    words = {"better": "lower", "worse": "higher"}
    rows, group = [], ""
    for name, first in problems[0]["methods"].items():
        cells = [problem["methods"][name] for problem in problems]
        verdicts = [words.get(cell["verdict"], "tie") for cell in cells]
        if first["group"] != group:
            group = first["group"]
            title = f"**{group}, {first['epochs']} epochs**"
            rows.append([title, *[""] * (len(cells) + 1)])
        if first["verdict"] == "reference":
            own = [f"loss {number(math.exp(cell['log loss']))}" for cell in cells]
            rows.append([name, *own, ""])
            continue
        shown = [
            f"{_ratio(cell['difference'])} {word}"
            for cell, word in zip(cells, verdicts, strict=True)
        ]
        tally = "–".join(str(verdicts.count(word)) for word in ("higher", "tie", "lower"))
        rows.append([name, *shown, tally])
    head = ["", *found["problems"], "filter wins–ties–losses"]
    first, last = found["seeds"]
    note = f"""*Loss after the last epoch, divided by the filter's, which is the first line of its
    group (for the oracle: of the single runs): geometric mean of {last - first + 1} seeds and 95%
    interval, paired by seed. Lower: the method beats the filter; a tie: the interval contains 1.
    `python benchmarks/tuning.py`,
    {found["seconds"]:.0f} s.*"""
    lines = table(head, rows).replace("|  |", "| |")
    return lines + "\n" + textwrap.fill(" ".join(note.split()), 100) + "\n"


def _ratio(logs: Sequence[float]) -> str:
    """The exponential of a value and of its interval."""
    values = [math.exp(x) for x in logs]
    value, low, high = (f"{x:.2f}" if 0.1 <= x < 10 else number(x) for x in values)
    return f"{value} ({low}–{high})" if values[0] < 1000 else "above 1000"


def advise_log() -> str:
    figures = stored("advise_log")

    def row(what: str, counts: dict[str, int], right: str) -> list[str]:
        total = sum(counts.values())
        said = sorted(counts.items(), key=lambda item: -item[1])
        share = f"{counts.get(right, 0)} of {total}" if right else ""
        return [what, ", ".join(f"{name} {number}" for name, number in said), share]

    rows = []
    for step, counts in figures["drift"].items():
        right = {"0": "no", "0.05": "yes"}.get(step, "")
        steps = "no drift" if step == "0" else f"steps of {step} per round"
        rows.append(row(f"drift: {steps}", counts, right))
    for truth, counts in figures["seasons"].items():
        scope, _, shape = truth.partition(" ")
        what = f"{'shared by all arms' if scope == 'shared' else 'one for each arm'}, a {shape}"
        rows.append(row(f"season: {what if shape else 'none'}", counts, scope))
    note = textwrap.fill(
        "Drift: 3 arms, 240 rounds, noise 0.3. Seasons: 4 arms, about 1000 rows, noise 2.5, a "
        "daily pattern that moves rewards by 10. "
        f"Comparing the models of one such log takes "
        f"{figures['CPU seconds per seasonal log']:.0f} s of CPU time on average, compiling "
        "included.",
        100,
    )
    return f"{table(['truth', 'said', 'right'], rows)}\n{note}\n"


def drift_verdicts() -> str:
    """How often fit says that arms drift."""
    kinds = {"season only": "a season, nothing else", "memory 50": "memory of 50 rounds"}
    rows = []
    for row in stored("drift_verdicts")["table"]:
        counts = [str(row[word]) for word in ("yes", "no", "cannot tell")]
        kind = kinds.get(row["kind"], row["kind"])
        rows.append([kind, "yes" if row["drifts"] else "no", str(row["logs"]), *counts])
    return table(["logs", "drift", "number", "said yes", "no", "cannot tell"], rows)


def memory() -> str:
    """Regret on independent arms, by the memory of their states."""
    names = [name for name in stored("memory")["table"][0] if name in TITLES and name != "idea"]
    rows = []
    for figures in stored("memory")["table"]:
        own, error = figures["idea"][:2]
        row = [f"{figures['rho']:g}", f"{own:.3f} ± {error:.3f}"]
        for name in names:
            ratio, spread = figures[name][2:]
            worst = "**" if abs(ratio - 1) > 2 * spread else ""
            row.append(f"{worst}{ratio:.2f}{worst} ± {spread:.2f}")
        rows.append(row)
    return table(["ρ", "IDEA, per round", *(TITLES[name] for name in names)], rows)


def least_regret() -> str:
    """The least possible regret and the Whittle index's, ten independent arms."""
    found = [one for one in stored("least_regret")["table"] if "whittle" in one]
    noises = sorted({one["sigma"] for one in found})
    rows = []
    for rho in sorted({one["rho"] for one in found}):
        row = [f"{rho:g}"]
        for one in (one for one in found if one["rho"] == rho):
            loose = "*" if one["least"] == one["oracle"] else ""
            row.append(f"{one['least']:.3f}{loose} / {one['whittle']:.3f} ± {one['± s.e.']:.3f}")
        rows.append(row)
    return table(["ρ", *(f"σ = {noise:g}" for noise in noises)], rows)


def clicks() -> str:
    """What an agent earns that knows only the arms' names."""
    rows = []
    for figures in stored("clicks")["table"]:
        memory = figures["memory"]
        cells = [f"{100 * mean:.0f}% ± {100 * error:.0f}" for mean, error in
                 (figures["default"], figures["free"])]  # fmt: skip
        rows.append(["no drift" if memory is None else f"{memory}", str(figures["arms"]), *cells])
    head = ["memory in rounds", "arms", "`level(arm)`, the default", '`structure="free"`']
    return table(head, rows)


def advise() -> str:
    """The recommendation that the command prints for the example, verbatim."""
    code = "from driftbandit.cli import main; main()"
    command = [sys.executable, "-c", code, "advise", "examples/plant.toml", "--json"]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(command, check=True, capture_output=True, cwd=ROOT, env=environment)
    said = json.loads(done.stdout)["recommendation"]
    lines = [said["headline"], *said["reasons"], *said["warnings"]]
    return "```text\n" + "\n".join(textwrap.fill(line, 100) for line in lines) + "\n```\n"


TABLES: dict[str, Callable[[], str]] = {
    "speed": speed,
    "lanes policies": lanes_policies,
    "lanes loop": lanes_loop,
    "lanes sizes": lanes_sizes,
    "gpu": gpu,
    "install": install,
    "advise": advise,
    "advise log": advise_log,
    "drift verdicts": drift_verdicts,
    "service": service,
    "agreement": agreement,
    "earns": earns,
    "late": late,
    "compiled": compiled,
    "products": products,
    "product seasons": product_seasons,
    "structure series": structure_series,
    "structure speed": structure_speed,
    "replay structures holidays": lambda: replay_structures("holidays"),
    "replay structures weather": lambda: replay_structures("weather"),
    "replay flights": lambda: replay("flights"),
    "replay french": lambda: replay("french"),
    "off policy": off_policy,
    "off policy small": off_policy_small,
    "replay support": replay_support,
    "sphere": sphere,
    "tuning": tuning,
    "monitoring level": monitoring_level,
    "monitoring seen": monitoring_seen,
    "monitoring remedies": monitoring_remedies,
    "comparison decide": comparison_decide,
    "comparison simulate": comparison_simulate,
    "comparison filter": comparison_filter,
    "comparison learn": comparison_learn,
    "comparison regret": comparison_regret,
    "memory": memory,
    "least regret": least_regret,
    "clicks": clicks,
    "beyond": lambda: beyond("ratio"),
    "beyond geometric": lambda: beyond("geometric"),
}


def made(text: str) -> str:
    """The page with every marked table regenerated."""
    return MARKED.sub(lambda found: found[1] + TABLES[found[2]]() + found[4], text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only list the pages that differ")
    check = parser.parse_args().check
    differ = [page for page in PAGES if made(page.read_text()) != page.read_text()]
    for page in differ:
        print(page.relative_to(ROOT))
        if not check:
            page.write_text(made(page.read_text()))
    sys.exit(bool(differ) and check)


if __name__ == "__main__":
    main()
