"""The kinds of components: each says its Γ, Q, start, read-out and parameters."""

from __future__ import annotations

import dataclasses
import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, get_args

import numpy as np

from driftbandit import errors
from driftbandit.model import LGDS
from driftbandit.structure.base import FREE, SIZE, Block, Component, Parameter, Scope, Start

MOST_HARMONICS = 6  # of a season by default, if its period is longer than 12
LARGEST_ORDER = 20  # of an autoregression
LARGEST_PERIOD = 1e6
MOST_FACTORS = 100
TINY = 1e-9  # least variance of a shock, as a share of its state's
Form = Literal["free", "diagonal", "scalar"]
FORMS: tuple[Form, ...] = get_args(Form)
FEATURE = re.compile(r"x_([^()\[\],=]*[^()\[\],=\s])?")  # names that a structure's text can hold

DRIFT = Parameter("drift", "size", 0.1, 1.5, drift=True)
MEMORY = Parameter("memory", "time", 30.0, 1.5, unit="rounds")
CHANGE = Parameter("change", "size", 0.01, 1.5)
SLOPE_DRIFT = Parameter("slope_drift", "size", 0.01, 1.5, drift=True, unit="reward per round^1.5")
DAMPING = Parameter("damping", "share", 0.9, 1.0, unit="per round")
TURN = Parameter("turn", "real", 1.8, 1.2, unit="")
"""Of a state that moves by itself: it keeps tanh(turn) of itself in a round."""
NOISE = Parameter("noise", "size", 0.7, 1.0, unit="reward")
"""σ, the noise of every reward, which belongs to no component."""


def _single(xp: Any, transition: Any, variance: Any, start: Any, label: str = "") -> Block:
    numbers = [xp.reshape(xp.asarray(value), (1, 1)) for value in (transition, variance, start)]
    return Block(numbers[0], numbers[1], numbers[2], (1.0,), (label,))


def _square(xp: Any, rows: list[list[Any]]) -> Any:
    return xp.stack([xp.stack([xp.asarray(one, dtype=float) for one in row]) for row in rows])


@dataclasses.dataclass(frozen=True, kw_only=True)
class Constant(Component):
    """A mean that never moves, drawn from a normal distribution whose spread is size."""

    kind: ClassVar[str] = "constant"

    @property
    def holds_mean(self) -> bool:
        return True

    @property
    def persists(self) -> bool:
        return True

    @property
    def is_plain(self) -> bool:
        """Whether it is a mean for each arm, and nothing is known of it."""
        return self.scope == "arm" and not self.own and self.start is None and not self.fixed

    def all_parameters(self) -> tuple[Parameter, ...]:
        return self.size_parameter()

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        return [_single(xp, 1.0, 0.0, self.size_var(values))]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Level(Component):
    """z ← z + ξ or, with a memory m, z ← e^(−1/m) z + ξ; the standard deviation of ξ is drift."""

    memory: Literal["free"] | float | None = None
    kind: ClassVar[str] = "level"

    def __post_init__(self) -> None:
        if self.memory is not None and self.memory != FREE:
            self.check_value(MEMORY, self.memory)
        super().__post_init__()

    @property
    def holds_mean(self) -> bool:
        return self.memory is None

    def all_parameters(self) -> tuple[Parameter, ...]:
        return (DRIFT, MEMORY) if self.memory == FREE else (DRIFT,)

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        variance = xp.asarray(values["drift"]) ** 2
        if self.memory is None:
            return [_single(xp, 1.0, variance, self.start_var(start))]
        memory = values["memory"] if self.memory == FREE else self.memory
        rate = 1 / xp.asarray(memory, dtype=float)
        begin = variance / -xp.expm1(-2 * rate) if self.start is None else self.start**2
        return [_single(xp, xp.exp(-rate), variance, begin)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Trend(Component):
    """level ← level + slope + ξ, slope ← φ slope + ζ; standard deviations drift, slope_drift."""

    damping: Literal["free"] | float | None = None
    smooth: bool = False
    kind: ClassVar[str] = "trend"

    def __post_init__(self) -> None:
        if self.damping is not None and self.damping != FREE:
            self.check_value(DAMPING, self.damping)
        errors.boolean(self.smooth, "trend: smooth")
        super().__post_init__()

    @property
    def holds_mean(self) -> bool:
        return True

    def all_parameters(self) -> tuple[Parameter, ...]:
        level = () if self.smooth else (DRIFT,)
        return (*level, SLOPE_DRIFT, *((DAMPING,) if self.damping == FREE else ()))

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        damping = values["damping"] if self.damping == FREE else self.damping or 1.0
        level = 0.0 if self.smooth else xp.asarray(values["drift"]) ** 2
        slope = xp.asarray(values["slope_drift"]) ** 2
        transition = _square(xp, [[1.0, 1.0], [0.0, damping]])
        process = _square(xp, [[level, 0.0], [0.0, slope]])
        begin = _square(xp, [[self.start_var(start), 0.0], [0.0, start.slope**2]])
        return [Block(transition, process, begin, (1.0, 0.0), ("", "slope"))]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Season(Component):
    """Waves that may change slowly: a sum over j = 1 … harmonics of the first of two numbers.

    (c_j, s_j) ← rotation of (c_j, s_j) by 2πj/period + ξ; the standard deviation of ξ is change,
    that of the two numbers at the start is size.
    """

    scope: Scope = "shared"
    period: float
    harmonics: int | None = None
    unchanging: bool = False
    kind: ClassVar[str] = "season"
    first: ClassVar[str | None] = "period"

    def __post_init__(self) -> None:
        period = self.number("period", self.period)
        if not 1 < period <= LARGEST_PERIOD:
            remedy = "give the number of rounds after which it repeats, above 1"
            raise self.wrong("period", f"is {period:g}", remedy)
        if self.harmonics is not None:
            high = max(int(period / 2), 1)
            errors.whole_number(self.harmonics, "season: harmonics", low=1, high=high)
        errors.boolean(self.unchanging, "season: unchanging")
        super().__post_init__()

    @property
    def waves(self) -> int:
        """The number of harmonics."""
        if self.harmonics is not None:
            return self.harmonics
        most = max(int(self.period / 2), 1)
        return most if self.period <= 12 else min(most, MOST_HARMONICS)

    @property
    def persists(self) -> bool:
        return self.unchanging

    def all_parameters(self) -> tuple[Parameter, ...]:
        return (*self.size_parameter(), *(() if self.unchanging else (CHANGE,)))

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        variance = xp.asarray(0.0 if self.unchanging else values["change"]) ** 2
        size, same = self.size_var(values), xp.eye(2)
        found = []
        for j in range(1, self.waves + 1):
            if 2 * j == self.period:  # +1, −1, +1, …: this wave is one number
                found.append(_single(xp, -1.0, variance, size, f"wave {j}"))
                continue
            angle = 2 * math.pi * j / self.period
            c, s = math.cos(angle), math.sin(angle)
            rotation = _square(xp, [[c, s], [-s, c]])
            labels = (f"wave {j}", f"wave {j}, quarter ahead")
            found.append(Block(rotation, variance * same, size * same, (1.0, 0.0), labels))
        return found


@dataclasses.dataclass(frozen=True, kw_only=True)
class AR(Component):
    """z(t) = φ_1 z(t−1) + … + φ_p z(t−p) + ξ, stationary; the standard deviation of ξ is drift.

    The parameters are the partial autocorrelations, which determine φ (`ar_weights`).
    """

    order: int = 1
    kind: ClassVar[str] = "ar"
    first: ClassVar[str | None] = "order"

    def __post_init__(self) -> None:
        errors.whole_number(self.order, "ar: order", low=1, high=LARGEST_ORDER)
        super().__post_init__()

    def all_parameters(self) -> tuple[Parameter, ...]:
        lags = range(1, self.order + 1)
        partial = [Parameter(f"partial{j}", "correlation", 0.3 / j, 1.0, unit="") for j in lags]
        return (DRIFT, *partial)

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        p, variance = self.order, xp.asarray(values["drift"]) ** 2
        weights = ar_weights([values[f"partial{j}"] for j in range(1, p + 1)])
        shift = [[float(i == j + 1) for j in range(p)] for i in range(1, p)]
        transition = _square(xp, [weights, *shift])
        process = variance * _square(xp, [[float(i == j == 0) for j in range(p)] for i in range(p)])
        if self.start is None:
            square = xp.eye(p * p) - xp.kron(transition, transition)
            begin = xp.reshape(xp.linalg.solve(square, xp.reshape(process, (p * p,))), (p, p))
            begin = (begin + begin.T) / 2
        else:
            begin = self.start**2 * xp.eye(p)
        labels = ("", *(f"lag {j}" for j in range(1, p)))
        return [Block(transition, process, begin, (1.0,) + (0.0,) * (p - 1), labels)]


def ar_weights(partial: list[Any]) -> list[Any]:
    """φ_1 … φ_p of an autoregression from its partial autocorrelations (Durbin, Levinson).

    Example:
        >>> ar_weights([0.5, -0.2])
        [0.6, -0.2]
    """
    weights: list[Any] = []
    for last in partial:
        weights = [*(w - last * v for w, v in zip(weights, weights[::-1], strict=True)), last]
    return weights


@dataclasses.dataclass(frozen=True, kw_only=True)
class Regression(Component):
    """reward = Σ_j w_j x_j: weights of context features, constant or with a change per round.

    The standard deviation of the weights at the start is size.
    """

    scope: Scope = "shared"
    features: tuple[str, ...]
    drifting: bool = False
    kind: ClassVar[str] = "regression"

    def __post_init__(self) -> None:
        if not self.features:
            raise self.wrong("features", "are none", "name columns of the log, as x_price")
        for name in self.features:
            if not isinstance(name, str) or not name.startswith("x_"):
                raise self.wrong("features", f"hold {name!r}", "a feature's name begins with x_")
            if not FEATURE.fullmatch(name):
                remedy = "rename it: without ( ) [ ] , = and blanks at the end"
                raise self.wrong("features", f"hold {name!r}", remedy)
            if self.features.count(name) > 1:
                raise self.wrong("features", f"hold {name} twice", "name each once")
        errors.boolean(self.drifting, "regression: drifting")
        super().__post_init__()

    @property
    def persists(self) -> bool:
        return not self.drifting

    def all_parameters(self) -> tuple[Parameter, ...]:
        return (*self.size_parameter(), *((CHANGE,) if self.drifting else ()))

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        variance = xp.asarray(values["change"] if self.drifting else 0.0) ** 2
        size = self.size_var(values)
        single = [_single(xp, 1.0, variance, size, name) for name in self.features]
        return [one._replace(feature=one.labels[0]) for one in single]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Noise(Component):
    """A number drawn anew in every round: the same for all plays that read this copy."""

    kind: ClassVar[str] = "noise"

    def __post_init__(self) -> None:
        if self.start is not None:
            raise self.wrong("start", "was given, and a round is like any other", "give size")
        super().__post_init__()

    def all_parameters(self) -> tuple[Parameter, ...]:
        return (NOISE._replace(name="size"),)

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        variance = xp.asarray(values["size"]) ** 2
        return [_single(xp, 0.0, variance, variance)]


@dataclasses.dataclass(frozen=True, kw_only=True)
class Factors(Component):
    """d hidden states that drift together, z ← Γ z + ξ; each arm has a weight on each.

    Any stable Γ is a contraction in the coordinates w in which the stationary covariance is I:
    z = T w. All contractions are given by all matrices M,

        Γ_w = L⁻¹ M,   L Lᵀ = I + M Mᵀ,   Q_w = I − Γ_w Γ_wᵀ = L⁻¹ L⁻ᵀ,

    because L Lᵀ − M Mᵀ = I. M has the entries sinh(turn), so that a state by itself decays by
    tanh(turn) per round. Weights that are learned contain T but for its size; with known weights
    ``reads``, T is lower triangular.
    """

    scope: Scope = "shared"
    n_states: int
    form: Form = "free"  # of Γ: a diagonal one, or one number for all states
    reads: tuple[tuple[float, ...], ...] | None = None  # known weights, a row for each arm
    kind: ClassVar[str] = "factors"
    first: ClassVar[str | None] = "n_states"

    def __post_init__(self) -> None:
        errors.whole_number(self.n_states, "factors: n_states", low=1, high=MOST_FACTORS)
        if self.form not in FORMS:
            raise self.wrong("form", f"is {self.form!r}", f"give one of {', '.join(FORMS)}")
        for name in ("own", "loadings", "start"):
            if getattr(self, name) not in (None, False):
                raise self.wrong(name, "was given", "leave it out: weights are learned")
        if self.scope != "shared":
            raise self.wrong("scope", f"is {self.scope}", "leave it out: arms share the states")
        super().__post_init__()

    @property
    def loadings_per_arm(self) -> int:
        return self.n_states if self.reads is None else 0

    def turned(self, rng: Any) -> dict[str, float]:
        """States that turn by chance, and keep more or less of themselves."""
        d = self.n_states
        turn = np.linalg.qr(rng.standard_normal((d, d)))[0] if self.form == "free" else np.eye(d)
        M = np.arcsinh(rng.choice([1.0, 3.0, 8.0]) * (np.eye(d) + turn) / 2)
        return self._turns(M)

    def _turns(self, M: np.ndarray) -> dict[str, float]:
        """The parameters that stand for a matrix, whose diagonal counts unless Γ is free."""
        if self.form == "scalar":
            return {"turn": float(np.diag(M).mean())}
        found = {f"turn{i + 1}": float(M[i, i]) for i in range(len(M))}
        if self.form == "free":
            pairs = itertools.permutations(range(len(M)), 2)
            found |= {f"turn{i + 1}_{j + 1}": float(M[i, j]) for i, j in pairs}
        return found

    def values_of(self, model: LGDS) -> dict[str, float]:
        """The parameters of a stable model of the states that known weights read."""
        T = np.linalg.cholesky(model.stationary_cov())
        inverse = np.linalg.inv(T)
        transition = inverse @ model.transition @ T
        noise = inverse @ model.process_cov @ inverse.T + TINY * np.eye(len(T))
        M = np.linalg.solve(np.linalg.cholesky(noise), transition)
        sizes = np.diag(T)
        found = self._turns(np.arcsinh(M)) | {f"size{i + 1}": s for i, s in enumerate(sizes)}
        if self.form == "free":
            lower = itertools.combinations(range(len(T)), 2)
            found |= {f"tilt{i + 1}_{j + 1}": float(T[i, j] / sizes[i]) for j, i in lower}
        return found

    def all_parameters(self) -> tuple[Parameter, ...]:
        states = range(1, self.n_states + 1)
        turns = [TURN._replace(name=f"turn{i}") for i in states]
        if self.form == "scalar":
            turns = [TURN]
        elif self.form == "free":
            apart = TURN._replace(median=0.0, spread=1.5)
            pairs = [(i, j) for i in states for j in states if i != j]
            turns += [apart._replace(name=f"turn{i}_{j}") for i, j in pairs]
        if self.reads is None:
            return (SIZE._replace(median=1.0), *turns)
        weights = np.sqrt((np.array(self.reads) ** 2).mean(axis=0)) * math.sqrt(self.n_states)
        sizes = 0.7 / np.where(weights > 0, weights, weights.max() or 1.0)
        found = [SIZE._replace(name=f"size{i}", median=sizes[i - 1]) for i in states]
        if self.form == "free":
            lower = [(i, j) for i in states for j in range(1, i)]
            tilt = Parameter("", "real", 0.0, 0.7, unit="")
            turns += [tilt._replace(name=f"tilt{i}_{j}") for i, j in lower]
        return (*found, *turns)

    def blocks(self, values: Mapping[str, Any], start: Start, xp: Any) -> list[Block]:
        d = self.n_states
        identity = xp.eye(d)

        def matrix(name: str, diagonal: Sequence[Any]) -> Any:
            entry = "{}{}_{}".format
            rows = range(1, d + 1)
            return _square(
                xp,
                [
                    [
                        diagonal[i - 1] if i == j else values.get(entry(name, i, j), 0.0)
                        for j in rows
                    ]
                    for i in rows
                ],
            )

        turns = [values.get(f"turn{i}", values.get("turn")) for i in range(1, d + 1)]
        M = xp.sinh(matrix("turn", turns))
        inverse = xp.linalg.solve(xp.linalg.cholesky(identity + M @ M.T), identity)
        transition = inverse @ M
        if self.reads is None:
            T = values["size"] * identity
        else:
            sizes = xp.stack([xp.asarray(values[f"size{i}"]) for i in range(1, d + 1)])
            T = sizes[:, None] * matrix("tilt", [1.0] * d)
            transition = xp.linalg.solve(T.T, (T @ transition).T).T
        shocks = T @ inverse
        labels = tuple(f"state {i}" for i in range(1, d + 1))
        return [Block(transition, shocks @ shocks.T, T @ T.T, (1.0,) * d, labels)]


KINDS: dict[str, type[Component]] = {
    one.kind: one for one in (Constant, Level, Trend, Season, AR, Regression, Noise, Factors)
}
