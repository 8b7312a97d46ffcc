"""What `simulate` shows: regret by policy, whether the first two differ, and a comparison."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import statistics
from driftbandit.io.parsing import first_names
from driftbandit.report import (
    Block,
    Cell,
    Figure,
    Report,
    Table,
    Text,
    figures,
    numbers,
    verdict_cell,
)
from driftbandit.result import ORACLE, Result, median_and_iqr, policy_styles, quartiles
from driftbandit.statistics import Paired

Results = Mapping[str, Result]


def report(
    results: Results,
    baselines: Mapping[str, str] | None = None,
    arms: Mapping[str, Sequence[Any]] | None = None,
    least: Mapping[str, float] | None = None,
) -> Report:
    """Tables, findings, a figure and the data of several simulations.

    All arguments are by study (a family, or a model file's name): ``baselines`` are the policies
    that the others are compared with, ``arms`` the names of the arms, ``least`` the least regret
    per round that a policy can have (`theory.least_regret`).
    """
    blocks: list[Block] = [*_regret(results), *(Text(line) for line in _leaders(results))]
    for name, bound in (least or {}).items():
        blocks.append(Text(_above_least(name, results[name], bound)))
    for name, baseline in (baselines or {}).items():
        blocks.append(_against(name, results[name], baseline))
    if baselines:
        blocks.append(Text(_how_to_read(results), "dim"))
    blocks.append(Text(_speed(results), "dim"))
    for names in (arms or {}).values():
        if list(names) != list(range(len(names))):
            blocks.append(Text(f"arms: {first_names(names)}", "dim"))
    alt = "Regret of every policy, median and quartiles over runs"
    blocks.append(Figure("Regret: lower is better.", alt, lambda: figure(results)))
    studies = {name: _data(result, (baselines or {}).get(name)) for name, result in results.items()}
    for name, names in (arms or {}).items():
        studies[name]["arms"] = list(names)
    for name, bound in (least or {}).items():
        studies[name]["least_regret_per_round"] = bound
    first = next(iter(results.values()))
    runs = _first_regret(first).shape[-1]
    data = {"rounds": first.rounds, "runs": runs, "seed": first.seed, "studies": studies}
    return Report("", "", blocks, data)


def _first_regret(result: Result) -> np.ndarray:
    """The regret of any policy; all have the same shape."""
    return next(iter(result.regret.values()))


def _all_with_oracle(results: Results) -> bool:
    return len(results) > 1 and all(ORACLE in result.regret for result in results.values())


def _regret(results: Results) -> list[Table]:
    """One table over all families if there are several and the Oracle played, else one each."""
    if _all_with_oracle(results):
        return [_excess_by_family(results)]
    return [_regret_of_one(name, result) for name, result in results.items()]


def _median_cell(values: np.ndarray, tone: Any = "") -> Cell:
    middle, spread = median_and_iqr(values)
    text = f"{numbers.multiple(middle)} ({numbers.multiple(spread)})"
    return Cell(text, middle, tone=tone)


def _excess_by_family(results: Results) -> Table:
    excess = {name: result.normalized(ORACLE) for name, result in results.items()}
    rows = []
    for policy in _by_excess(excess):
        cells = [Cell(policy)]
        for found in excess.values():
            least = min(median_and_iqr(values)[0] for values in found.values())
            lowest = median_and_iqr(found[policy])[0] <= least
            cells.append(_median_cell(found[policy], "best" if lowest else ""))
        rows.append(cells)
    means = [f"{result.regret[ORACLE].mean():.3g}" for result in results.values()]
    footer = [[Cell(text, tone="dim") for text in ("(Oracle's mean)", *means)]]
    caption = "Excess regret over the Kalman Oracle's: median (IQR) over runs"
    return Table(caption, ["policy", *results], rows, footer)


def _by_excess(excess: Mapping[str, Mapping[str, np.ndarray]]) -> list[str]:
    """Policies from best to worst over all families."""
    first = next(iter(excess.values()))

    def size(policy: str) -> float:
        middles = [median_and_iqr(found[policy])[0] for found in excess.values()]
        return float(np.log1p(middles).sum())

    return sorted(first, key=size)


def _regret_of_one(name: str, result: Result) -> Table:
    columns = ["policy", "mean", "± s.e.", "median", "IQR"]
    excess = result.normalized(ORACLE) if ORACLE in result.regret else {}
    if excess:
        columns.append("excess over Oracle")
    ordered = sorted(result.summary().items(), key=lambda item: item[1]["mean"])
    best = next((policy for policy, _ in ordered if policy != ORACLE), None)
    forms = {"mean": ",.4g", "standard_error": ",.2g", "median": ",.4g", "iqr": ",.3g"}
    rows = []
    for policy, found in ordered:
        tone: Any = "best" if policy == best else "dim" if policy == ORACLE else ""
        row = [Cell(policy, tone=tone)]
        row += [Cell(f"{found[k]:{form}}", found[k], tone=tone) for k, form in forms.items()]
        if excess:
            row.append(_median_cell(excess[policy], tone) if policy in excess else Cell(""))
        rows.append(row)
    return Table(f"{name}: regret after {result.rounds} rounds", columns, rows)


def _leaders(results: Results) -> Iterator[str]:
    """For each study, whether the lowest mean regret is clearly below the second lowest."""
    explained = False
    for name, result in results.items():
        if len(result.regret.keys() - {ORACLE}) < 2:
            continue
        best = result.best()
        found = result.compare(best, seed=result.seed)
        second = min((p for p in found if p != ORACLE), key=lambda p: found[p].mean_difference)
        row = found[second]
        verdict, ends = row.mean_verdict, f"{row.mean_low:.3g} to {row.mean_high:.3g}"
        more = "--systems" if row.independent < row.runs else "--runs"
        start = f"{name}: {best} is lowest, {second} second"
        if verdict == statistics.WORSE:
            yield f"{start}. The difference is clear: the second has {ends} more regret."
        elif verdict == statistics.TOO_FEW:
            yield f"{start}. {row.runs} runs cannot tell them apart: give more {more}."
        elif row.mean_low == row.mean_high == 0:
            yield f"{start}. Their regret is the same in all {row.runs} runs."
        else:
            yield (
                f"{start}. {row.runs} runs do not tell them apart: the second has {ends} more "
                f"regret. More {more} would narrow that."
            )
        explained |= verdict != statistics.TOO_FEW
    if explained:
        unit = ", in units of the Oracle's" if result.in_oracle_units else ""
        yield f"(95% intervals of the mean difference over paired runs{unit}.)"


def _above_least(name: str, result: Result, least: float) -> str:
    """How far the best policy is above the least possible regret."""
    bound = f"{name}: no policy has less regret per round than {least:.4g} in the long run"
    best = min((p for p in result.regret if p != ORACLE), key=lambda p: result.regret[p].mean())
    found = result.summary()[best]
    per_round = found["mean"] / result.rounds
    if not least or per_round <= least:
        return f"{bound}."
    error = found["standard_error"] / result.rounds / least
    more = f"{100 * (per_round / least - 1):.3g}%"
    if math.isfinite(error):
        more += f" (± {100 * error:.2g} s.e.)"
    return f"{bound}. {best}, at {per_round:.4g}, has at most {more} more."


def _against(name: str, result: Result, baseline: str) -> Table:
    """Every policy against one of them, run by run."""
    rows = []
    found = result.compare(baseline, seed=result.seed)
    for policy, row in sorted(found.items(), key=lambda item: item[1].median_difference):
        middle = row.median_difference
        difference, ends = numbers.estimate(middle, row.low, row.high, signed=True)
        cells = [Cell(difference, middle), Cell(ends, row.low), Cell(_wins(row), row.win_rate)]
        named = Cell(policy, tone="dim" if policy == ORACLE else "")
        rows.append([named, verdict_cell(row.verdict), *cells])
    columns = ["policy", "verdict", "difference", "95% interval", "wins, %"]
    return Table(f"{name}: run by run against the baseline, {baseline}", columns, rows)


def _wins(row: Paired) -> str:
    rate = f"{100 * row.win_rate:.0f}"
    if math.isnan(row.win_low):
        return rate
    return f"{rate} ({100 * row.win_low:.0f}–{100 * row.win_high:.0f})"


def _how_to_read(results: Results) -> str:
    first = next(iter(results.values()))
    regret = _first_regret(first)
    drawn = "systems" if statistics.several_systems(regret) else "runs"
    scale = ", in units of the Oracle's" if first.in_oracle_units else ""
    return (
        f"difference: the policy's regret minus the baseline's{scale}; median over {regret.size} "
        "paired runs. Positive: the policy is worse than the baseline. wins: runs in which it has "
        "less regret than the baseline, ties count half. 95% intervals and verdicts: bootstrap "
        f"over {len(statistics.units(regret))} {drawn}."
    )


def _speed(results: Results) -> str:
    """What was played and how fast."""
    rounds = sum(_first_regret(r).size * len(r.regret) * r.rounds for r in results.values())
    play = sum(result.timing.play for result in results.values())
    compile_ = sum(result.timing.compile for result in results.values())
    first = next(iter(results.values()))
    runs = _first_regret(first).size
    with_ = f" with {first.timing.engine}" if first.timing.engine else ""
    return (
        f"{runs} runs × {first.rounds} rounds per policy, seed {first.seed}; "
        f"{rounds / 1e6:.2f} M rounds in {play:.1f} s ({rounds / play / 1e6:.2f} M/s) on "
        f"{first.timing.device}{with_}, compiled in {compile_:.1f} s"
    )


def _data(result: Result, baseline: str | None) -> dict[str, Any]:
    rows = result.summary()
    if ORACLE in result.regret:
        for policy, values in result.normalized(ORACLE).items():
            middle, spread = median_and_iqr(values)
            rows[policy] |= {"normalized_median": middle, "normalized_iqr": spread}
    timing = result.timing._asdict()
    found = {
        "policies": rows,
        "runs_in_all": _first_regret(result).size,
        "seconds": {key: timing[key] for key in ("prepare", "compile", "play")},
    }
    if baseline is None:
        return found
    compared = result.compare(baseline, seed=result.seed)
    comparison = {
        "baseline": baseline,
        "unit": "regret of kalman_oracle" if result.in_oracle_units else "regret",
        "policies": {p: row._asdict() | {"verdict": row.verdict} for p, row in compared.items()},
    }
    return found | {"comparison": comparison}


def figure(results: Results) -> Any:
    """Quartiles of the excess regret by family; curves for one study, or without the Oracle."""
    return _excess_figure(results) if _all_with_oracle(results) else _curves_figure(results)


def _excess_figure(results: Results) -> Any:
    excess = {name: result.normalized(ORACLE) for name, result in results.items()}
    labels = _by_excess(excess)
    styles = policy_styles(labels)
    colors, markers = ([styles[label][key] for label in labels] for key in ("color", "marker"))
    count = len(results)
    height = 1.3 + 0.34 * len(labels)
    drawing, axes = figures.grid(count, count, 2.2 + 1.9 * count, height, sharey=True)
    for axis, (name, found) in zip(axes, excess.items(), strict=True):
        rows = [quartiles(found[label]) for label in labels]
        figures.interval_rows(axis, rows, colors, markers)
        axis.set_title(name)
        axis.set_xscale("symlog", linthresh=0.1)
        axis.set_xlim(left=min(-0.02, axis.get_xlim()[0]))
        axis.set_xticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
        axis.set_xlim(right=max(10, *(high * 1.3 for _, _, high in rows)))
        figures.name_rows(axis, labels)
        axis.minorticks_off()
    drawing.suptitle("Regret above the Kalman Oracle's: lower is better", fontweight="bold")
    text = "(regret − Oracle's) / Oracle's: median and quartiles over runs, one panel per family"
    drawing.supxlabel(text, fontsize=10)
    return drawing


def _curves_figure(results: Results) -> Any:
    """Regret per round so far, in multiples of the Oracle's final one if it played."""
    count = len(results)
    wider = figures.beside(label for result in results.values() for label in result.curves)
    drawing, axes = figures.grid(count, count, 1 + 4.6 * count + wider, 3.6)
    for axis, (name, result) in zip(axes, results.items(), strict=True):
        rounds = result.checkpoints
        scale: Any = rounds
        axis.set_ylabel("regret per round so far")
        if ORACLE in result.regret and result.regret[ORACLE].all():
            scale = rounds * result.regret[ORACLE].reshape(-1, 1) / result.rounds
            axis.set_ylabel("regret per round so far / Oracle's")
        order = sorted(result.curves, key=lambda label: float(result.curves[label][..., -1].mean()))
        lines = {label: result.curves[label].reshape(-1, len(rounds)) / scale for label in order}
        few = len(lines) <= 4  # more bands than that hide each other
        figures.curves(axis, rounds, lines, policy_styles(lines), bands=few, dashed=(ORACLE,))
        runs = _first_regret(result).size
        axis.set_title(f"{name}: median over {runs} runs, lower is better")
        axis.set_xscale("log")
        axis.set_xlabel("round")
    axes[-1].legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    return drawing
