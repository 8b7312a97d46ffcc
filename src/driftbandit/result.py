"""The result of a simulation: every policy's regret in every run."""

from __future__ import annotations

import contextlib
import dataclasses
import html
import itertools
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

import numpy as np

from driftbandit import errors, policies, statistics
from driftbandit.io import atomic
from driftbandit.policies import Policy
from driftbandit.report import figures
from driftbandit.statistics import Paired

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

ORACLE = "kalman_oracle"  # the policy whose regret is the unit in which others are compared
LEAST = "least_regret"  # beside policies: a lower bound on the regret of any of them
ENGINES = ("auto", "lanes", "xla")  # what may play the rounds; see `simulate`
Value = TypeVar("Value")
COLUMNS = ("policy", "mean regret", "± s.e.", "median", "IQR")  # of the table that `print` shows


class Timing(NamedTuple):
    """Seconds spent on each step, and the device."""

    prepare: float  # steady states, tuning constants and stacking, in NumPy
    compile: float  # programs that this process had not compiled before
    play: float
    device: str
    engine: str = ""  # "lanes", "xla", or which policies each of them played


class ByLabel(dict[str, Value]):
    """Values by the label of a policy, which may be written as for `simulate`.

    A name without parameters is enough where it occurs once, as in results of older versions.
    """

    def __missing__(self, written: str) -> Value:
        with contextlib.suppress(errors.InvalidInput):
            bare = isinstance(written, str) and "(" not in written
            label = policies.label_among(self, policies.make(written), any_parameters=bare)
            if label in self:
                return self[label]
        raise KeyError(written)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Result:
    """Regret of every policy in every run; all policies see the same noise.

    Arrays have shape (runs,) for one system and (systems, runs) for several. ``print`` and
    notebooks show a table. Results with equal numbers are equal, whatever their timing.

    Example:
        Two policies and the Oracle on three random systems, four runs each.

        >>> from driftbandit import families, simulate
        >>> systems = families.sample("gaussian", systems=3, n_states=2, n_arms=3)
        >>> players = ["kode", "random", "kalman_oracle"]
        >>> result = simulate(systems, policies=players, rounds=50, runs=4)
        >>> result.regret["kode"].shape, result.curves["kode"].shape[:2], result.rounds
        ((3, 4), (3, 4), 50)
        >>> int(result.checkpoints[-1]), bool((np.diff(result.curves["kode"]) >= 0).all())
        (50, True)
        >>> result.best(), result.in_oracle_units
        ('kode', True)
        >>> bool(np.median(result.normalized()["kode"]) < 1)  # how far above the Oracle
        True
        >>> sorted(result.summary()["kode"])
        ['iqr', 'mean', 'median', 'standard_error']
        >>> result.save("study.npz")
        >>> Result.load("study.npz") == result
        True
    """

    regret: dict[str, np.ndarray]
    """Dynamic regret Σ_t max_b ⟨b, z⟩ − ⟨a, z⟩ over all rounds (P4), by policy: its name, with the
    parameters that are not the default ones."""
    curves: dict[str, np.ndarray]
    """The same up to each of ``checkpoints``, along one more axis, the last."""
    checkpoints: np.ndarray  # log-spaced round numbers, the last one ``rounds``
    rounds: int
    seed: int
    timing: Timing

    def __post_init__(self) -> None:
        vars(self).update(regret=ByLabel(self.regret), curves=ByLabel(self.curves))  # frozen

    def normalized(self, against: str | Policy = ORACLE) -> dict[str, np.ndarray]:
        """(R − R_oracle) / R_oracle run by run, the quantity of Table II (P21).

        Runs in which the baseline has no regret give infinity, or zero if both have none.

        Args:
            against: the baseline, a simulated policy, written as for `simulate`.

        Returns:
            For every other policy, an array with the shape of its regret.

        Example:
            >>> regret = {"kalman_oracle": np.array([2.0, 4.0]), "kode": np.array([3.0, 4.0])}
            >>> result = Result(regret, {}, np.array([9]), 9, 0, Timing(0, 0, 0, "cpu"))
            >>> result.normalized()["kode"].tolist()
            [0.5, 0.0]
        """
        against = self._label(against, "against")
        base = self.regret[against]
        others = {name: regret for name, regret in self.regret.items() if name != against}
        return ByLabel({name: _ratio(regret - base, base) for name, regret in others.items()})

    @property
    def in_oracle_units(self) -> bool:
        """Whether `compare` and `best` divide by the Oracle's regret, run by run.

        True if it played on several systems, whose scales differ by orders of magnitude.
        """
        return ORACLE in self.regret and statistics.several_systems(self.regret[ORACLE])

    def best(self) -> str:
        """The policy with the lowest mean regret, in the units of `compare`; never the Oracle."""
        values = self.normalized() if self.in_oracle_units else self.regret
        rivals = [name for name in values if name != ORACLE]
        if not rivals:
            raise errors.InvalidInput("policies", "the Oracle played alone", "simulate others too")
        # If the Oracle has no regret in some run, all means are infinite; then medians decide.
        return min(rivals, key=lambda name: (values[name].mean(), median_and_iqr(values[name])[0]))

    def compare(
        self, baseline: str | Policy, *, confidence: float = 0.95, seed: int = 0
    ) -> dict[str, Paired]:
        """Compare every other policy with ``baseline``, run by run.

        (R − R_baseline) / R_oracle if the Oracle played on several systems, the difference of two
        normalized regrets (P21); otherwise R − R_baseline.

        Args:
            baseline: a simulated policy, written as for `simulate`: "idea", "IDEA" or a `Policy`.
            confidence, seed: as in `statistics.paired`.

        Returns:
            By policy; `print` shows one on one line. Positive differences mean more regret than the
            baseline, a win rate above one half less regret in most runs.

        Example:
            >>> from driftbandit import families, simulate
            >>> model, arms = families.sample("gaussian", n_states=2, n_arms=3)[0]
            >>> result = simulate(model, arms, ["idea", "random"], rounds=50, runs=20)
            >>> result.compare("IDEA")["random"].verdict
            'worse'
        """
        baseline = self._label(baseline, "baseline")
        base = self.regret[baseline]
        # Divided once: if the Oracle has no regret, both normalized regrets are infinite and
        # their difference is undefined, but this quotient still has a sign.
        unit = self.regret[ORACLE] if self.in_oracle_units else np.ones_like(base)
        found, zero = {}, np.zeros_like(base)
        for name in [name for name in self.regret if name != baseline]:
            more = _ratio(self.regret[name] - base, unit)
            pair = statistics.paired(more, zero, confidence=confidence, seed=seed)
            found[name] = pair._replace(unit=self._unit)
        return ByLabel(found)

    @property
    def _unit(self) -> str:
        return "the Oracle's regret" if self.in_oracle_units else ""

    def _label(self, given: str | Policy, argument: str) -> str:
        """The label of a policy that was simulated, from any name that `simulate` takes."""
        if isinstance(given, Policy):
            return errors.closest(policies.label_among(self.regret, given), argument, self.regret)
        if not isinstance(given, str) or given in self.regret:
            return errors.closest(given, argument, self.regret)
        alike = [name for name in self.regret if policies.plain(name) == policies.plain(given)]
        if len(alike) == 1:  # a policy of one's own, in another case
            return alike[0]
        with contextlib.suppress(errors.InvalidInput):  # a title, such as Kalman-UCB
            made = policies.make(given)
            given = policies.label_among(self.regret, made, any_parameters="(" not in given)
        return errors.closest(given, argument, self.regret)

    def summary(self) -> dict[str, dict[str, float]]:
        """Mean, standard error (of the systems' means if there are several), median and IQR.

        Returns:
            By policy, a dictionary with mean, standard_error, median and iqr of its regret.

        Example:
            >>> regret = {"idea": np.array([1.0, 2.0, 6.0])}
            >>> result = Result(regret, {}, np.array([9]), 9, 0, Timing(0, 0, 0, "cpu"))
            >>> result.summary()["idea"]["mean"], result.summary()["idea"]["iqr"]
            (3.0, 2.5)
        """
        found = {}
        for name, regret in self.regret.items():
            means = statistics.units(regret).mean(axis=1)
            several = means.size > 1
            error = float(means.std(ddof=1) / np.sqrt(means.size)) if several else float("nan")
            middle, spread = median_and_iqr(regret)
            found[name] = {"mean": float(regret.mean()), "standard_error": error}
            found[name] |= {"median": middle, "iqr": spread}
        return ByLabel(found)

    def to_dataframe(self) -> pd.DataFrame:
        """A pandas table with one row per system, run and policy.

        Example:
            >>> regret = {"idea": np.array([1.0, 2.0])}
            >>> result = Result(regret, {}, np.array([9]), 9, 0, Timing(0, 0, 0, "cpu"))
            >>> result.to_dataframe()
               system  run policy  regret
            0       0    0   idea     1.0
            1       0    1   idea     2.0
        """
        with errors.needing("to_dataframe"):
            import pandas as pd

        regret = np.stack([np.atleast_2d(r) for r in self.regret.values()], axis=-1)
        system, run, policy = (place.ravel() for place in np.indices(regret.shape))
        names = np.array(list(self.regret), dtype=object)[policy]
        columns = {"system": system, "run": run, "policy": names, "regret": regret.ravel()}
        return pd.DataFrame(columns)

    def plot(
        self,
        path: str | Path | None = None,
        *,
        kind: Literal["boxes", "curves", "differences"] = "boxes",
        baseline: str | Policy | None = None,
        policies: str | Policy | Iterable[str | Policy] | None = None,
    ) -> Figure:
        """Draw the regret, and save the figure if a path is given; needs matplotlib.

        A policy has the same color in all kinds.

        Args:
            path: a .png, .svg or .pdf file, or None.
            kind: "boxes", quartiles of each policy's regret over the runs, sorted by mean;
                "curves", cumulative regret round by round, median and quartiles; or "differences",
                what `compare` finds: median differences from ``baseline`` with their intervals.
                The last leaves out the Oracle, unless nothing else is left.
            baseline: of "differences", a simulated policy, written as for `simulate`.
            policies: which of the simulated ones to draw; None: all.

        Returns:
            The matplotlib figure, which notebooks show.

        Example:
            >>> regret = {"idea": np.array([1.0, 2.0]), "random": np.array([5.0, 7.0])}
            >>> result = Result(regret, {}, np.array([9]), 9, 0, Timing(0, 0, 0, "cpu"))
            >>> figure = result.plot("regret.svg")
            >>> Path("regret.svg").exists(), figure.axes[0].get_title()
            (True, 'Regret after 9 rounds: lower is better')
            >>> result.plot(kind="differences", baseline="IDEA").axes[0].get_title("left")
            '← less regret than IDEA'
        """
        errors.closest(kind, "kind", ("boxes", "curves", "differences"))
        if (kind == "differences") != (baseline is not None):
            problem = "is missing" if baseline is None else f'was given with kind="{kind}"'
            remedy = 'give kind="differences" and a policy to compare the others with'
            raise errors.InvalidInput("baseline", problem, remedy)
        labels = list(self.regret)
        if policies is not None:
            some = [policies] if isinstance(policies, str | Policy) else policies
            if not isinstance(some, Iterable):
                raise errors.InvalidInput("policies", f"is {some!r}", "give a list of names")
            labels = [self._label(one, "policies") for one in some]
        if not labels:
            raise errors.InvalidInput("policies", "are none", "name at least one")
        if baseline is not None:
            figure = self._differences(self._label(baseline, "baseline"), labels)
        else:
            figure = self._boxes(labels) if kind == "boxes" else self._cumulative(labels)
        if path is not None:
            figures.save(figure, path)
        return figure

    def _boxes(self, labels: list[str]) -> Figure:
        means = {label: float(self.regret[label].mean()) for label in labels}
        labels = sorted(means, key=lambda label: means[label])
        styles = policy_styles(self.regret)
        width = 6.4 + figures.beside(labels)
        figure, (axis,) = figures.grid(1, 1, width, 1.3 + 0.34 * len(labels))
        rows = [(*quartiles(self.regret[label]), means[label]) for label in labels]
        figures.boxes(axis, rows, [styles[label]["color"] for label in labels])
        figures.name_rows(axis, labels)
        axis.set_xlim(left=min(0.0, axis.get_xlim()[0]))
        runs = self.regret[labels[0]].size
        axis.set_xlabel(f"box: quartiles over {runs} runs; line: median; dot: mean")
        axis.set_title(f"Regret after {self.rounds} rounds: lower is better")
        return figure

    def _cumulative(self, labels: list[str]) -> Figure:
        if not self.curves:
            raise errors.InvalidInput("curves", "are none in this result", "give checkpoints > 0")
        ends = {label: float(self.curves[label][..., -1].mean()) for label in labels}
        order = sorted(ends, key=lambda label: -ends[label])  # as the lines end, top down
        lines = {label: self.curves[label].reshape(-1, len(self.checkpoints)) for label in order}
        figure, (axis,) = figures.grid(1, 1, 6.4 + figures.beside(order), 4.0)
        figures.curves(axis, self.checkpoints, lines, policy_styles(self.regret), dashed=(ORACLE,))
        runs = len(lines[order[0]])
        axis.set_xlabel(f"round (line: median, band: quartiles of {runs} runs)")
        axis.set_ylabel("cumulative regret")
        axis.legend(fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
        axis.set_title("Cumulative regret: lower is better")
        return figure

    def _differences(self, baseline: str, shown: list[str]) -> Figure:
        found = {label: one for label, one in self.compare(baseline).items() if label in shown}
        labels = sorted(found, key=lambda label: found[label].median_difference)
        labels = [label for label in labels if label != ORACLE] or labels
        if not labels:
            if len(self.regret) > 1:
                problem = "have only the baseline"
                raise errors.InvalidInput("policies", problem, "name one that it is compared with")
            problem = f"has nothing to compare with: {baseline} played alone"
            raise errors.InvalidInput("baseline", problem, "simulate others too")
        looks = policy_styles(self.regret)
        width = 6.4 + figures.beside(labels)
        figure, (axis,) = figures.grid(1, 1, width, 1.5 + 0.34 * len(labels))
        rows = [(found[x].low, found[x].median_difference, found[x].high) for x in labels]
        figures.interval_rows(axis, rows, [looks[label]["color"] for label in labels])
        figures.name_rows(axis, labels)
        axis.axvline(0, color="black", lw=1)
        axis.margins(x=0.08)
        axis.set_title(f"← less regret than {policies.title(baseline)}", loc="left", fontsize=10)
        axis.set_title("more →", loc="right", fontsize=10)
        unit = self._unit and f", in units of {self._unit}"
        one = found[labels[0]]
        systems = f" of {one.independent} systems" if one.independent < one.runs else ""
        axis.set_xlabel(
            f"difference in regret{unit}\n"
            f"median and {100 * one.confidence:g}% interval over {one.runs} paired runs{systems}"
        )
        return figure

    def save(self, path: str | Path) -> None:
        """Write all numbers to a file, whole or not at all; `load` reads them back exactly.

        Args:
            path: of the file, which is replaced if it exists.
        """
        header = {"rounds": self.rounds, "seed": self.seed, "timing": self.timing._asdict()}
        header |= {"regret": list(self.regret), "curves": list(self.curves)}
        arrays = {"checkpoints": self.checkpoints}
        for kind in ("regret", "curves"):
            each = getattr(self, kind).values()
            arrays |= {f"{kind}{place}": values for place, values in enumerate(each)}
        atomic.write_arrays(Path(path), "result", header, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Result:
        """The result that `save` wrote.

        Args:
            path: of the file; `InvalidInput` if `save` did not write it.
        """
        remedy = "give a file that Result.save wrote"
        header, arrays = atomic.read_arrays(Path(path), "result", remedy)
        regret, curves = (
            {name: arrays[f"{kind}{place}"] for place, name in enumerate(header[kind])}
            for kind in ("regret", "curves")
        )
        timing = Timing(**header["timing"])
        return cls(regret, curves, arrays["checkpoints"], header["rounds"], header["seed"], timing)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Result):
            return NotImplemented
        return (
            (self.rounds, self.seed) == (other.rounds, other.seed)
            and np.array_equal(self.checkpoints, other.checkpoints)
            and _same_numbers(self.regret, other.regret)
            and _same_numbers(self.curves, other.curves)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shape = np.atleast_2d(next(iter(self.regret.values()), np.zeros((0, 0)))).shape
        shown = ", ".join(itertools.islice(self.regret, 4)) + ", …" * (len(self.regret) > 4)
        many = "" if shape[0] == 1 else f"{shape[0]} systems × "
        return f"Result({many}{shape[1]} runs × {self.rounds} rounds: {shown})"

    def _repr_html_(self) -> str:
        """The table of `print`, for notebooks."""
        head = "".join(f"<th>{column}</th>" for column in COLUMNS)
        body = ""
        for name, row in self._by_mean():
            cells = "".join(f"<td>{value:.4g}</td>" for value in row.values())
            body += f"<tr><th>{html.escape(name)}</th>{cells}</tr>"
        caption = f"<caption>{html.escape(repr(self))}. Lower is better.</caption>"
        return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"

    def __str__(self) -> str:
        first = max([20, *map(len, self.regret)])
        rows = ["{:<{}} {:>12} {:>10} {:>12} {:>10}".format(COLUMNS[0], first, *COLUMNS[1:])]
        form = "{:<{}} {:>12.4g} {:>10.2g} {:>12.4g} {:>10.3g}"
        rows += [form.format(name, first, *row.values()) for name, row in self._by_mean()]
        return "\n".join(rows)

    def _by_mean(self) -> list[tuple[str, dict[str, float]]]:
        return sorted(self.summary().items(), key=lambda item: item[1]["mean"])


def _same_numbers(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> bool:
    return one.keys() == other.keys() and all(
        np.array_equal(one[name], other[name], equal_nan=True) for name in one
    )


def _ratio(excess: np.ndarray, base: np.ndarray) -> np.ndarray:
    """Excess / base; infinite if the base is zero, or zero if both are."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = excess / base
    return np.where((base == 0) & (excess == 0), 0.0, share)


def median_and_iqr(values: np.ndarray) -> tuple[float, float]:
    """Median and interquartile range; infinite values count, and may make them infinite or NaN."""
    low, middle, high = quartiles(values)
    with np.errstate(invalid="ignore"):
        return float(middle), float(np.subtract(high, low))


def quartiles(values: np.ndarray) -> tuple[float, float, float]:
    """The three quartiles; infinite values count."""
    method: Any = "linear" if np.isfinite(values).all() else "inverted_cdf"
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75], method=method).tolist()
    return low, middle, high


def policy_styles(labels: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Color and marker of each policy, all colors different; the Oracle is black.

    Registered policies look the same in every figure, others in every figure that has the same
    ones.
    """
    return figures.styles(sorted(labels), policies.available(), black=(ORACLE,))
