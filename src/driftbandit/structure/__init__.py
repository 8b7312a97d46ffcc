"""Models from components: levels, trends, seasons, shared factors, context features.

    from driftbandit.structure import level, season

    structure = level("arm") + season(7) + level("shared")
    found = db.fit("log.csv", structure=structure)

`parse` reads the same as text; `layout` makes a linear Gaussian system of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from driftbandit import errors
from driftbandit.structure.base import Component, Scope, Structure
from driftbandit.structure.kinds import KINDS, Form
from driftbandit.structure.layout import Layout
from driftbandit.structure.text import made, parse

__all__ = ["Component", "Layout", "Structure", "ar", "constant", "factors", "level", "noise"]
__all__ += ["parse", "regression", "season", "trend"]


def constant(scope: Scope = "arm", **options: Any) -> Component:
    """A mean that never moves.

    Args:
        scope: who has one: "arm", "group" or "shared".
        options: of every component: ``own``, ``loadings``, ``start`` (see `Component`).

    Example:
        >>> print(constant() + level("shared", memory="free"))
        constant(arm) + level(shared, memory=free)
        >>> model = Layout(constant("arm", start=2.0), ["left", "right"]).system(mean=3.0).model
        >>> model.initial_mean.tolist(), model.initial_cov.tolist(), model.process_cov.max().item()
        ([3.0, 3.0], [[4.0, 0.0], [0.0, 4.0]], 0.0)
    """
    return made(KINDS["constant"], {"scope": scope, **options})


def level(scope: Scope = "arm", memory: Any = None, **options: Any) -> Component:
    """A level that wanders; its standard deviation per round is the parameter ``drift``.

    Args:
        scope: who has one: "arm", "group" or "shared".
        memory: None: a random walk; "free": it returns to zero with a memory that is learned; or
            the memory in rounds. Add a `constant` for the mean.
        options: of every component; ``drift`` if it is known.

    Example:
        >>> print(level("arm") + level("shared", memory=20, drift=0.1))
        level(arm) + level(shared, memory=20, drift=0.1)
        >>> layout = Layout(level("shared", memory=20), ["left", "right"])
        >>> model = layout.system({"level(shared, memory=20).drift": 0.1}).model
        >>> model.transition.round(4).tolist(), model.process_cov.round(4).tolist()  # e^(−1/20)
        ([[0.9512]], [[0.01]])
    """
    return made(KINDS["level"], {"scope": scope, "memory": memory, **options})


def trend(
    scope: Scope = "arm", damping: Any = None, smooth: bool = False, **options: Any
) -> Component:
    """A level with a slope, level ← level + slope + ξ, slope ← φ slope + ζ.

    Args:
        scope: who has one: "arm", "group" or "shared".
        damping: φ; None: 1; "free": learned; or a number below 1, so that slopes fade.
        smooth: whether only the slope is moved by chance.
        options: of every component; ``drift`` or ``slope_drift`` if they are known.

    Example:
        >>> print(trend("shared", damping="free", smooth=True) + constant("arm"))
        trend(shared, damping=free, smooth) + constant(arm)
        >>> layout = Layout(trend("shared", damping=0.9), ["left", "right"])
        >>> layout.system().model.transition.tolist()
        [[1.0, 1.0], [0.0, 0.9]]
    """
    given = {"scope": scope, "damping": damping, "smooth": smooth}
    return made(KINDS["trend"], {**given, **options})


def season(
    period: float,
    harmonics: int | None = None,
    scope: Scope = "shared",
    unchanging: bool = False,
    **options: Any,
) -> Component:
    """A pattern that repeats every ``period`` rounds, as a sum of waves.

    Args:
        period: in rounds, above 1; it need not be whole.
        harmonics: how many waves; None: as many as an exact pattern needs, at most 6 if the period
            is longer than 12.
        scope: who has one: "arm", "group" or "shared".
        unchanging: whether the pattern stays as it is. Otherwise each wave moves, with a standard
            deviation ``change`` per round.
        options: of every component; ``change`` if it is known.

    Example:
        >>> print(season(7) + season(168, harmonics=3, scope="arm"))
        season(7) + season(168, arm, harmonics=3)
        >>> layout = Layout(season(4), ["left", "right"])
        >>> layout.states
        ('season(4) wave 1', 'season(4) wave 1, quarter ahead', 'season(4) wave 2')
        >>> turn = layout.system().model.transition
        >>> (turn @ turn @ turn @ turn).round(9).diagonal().tolist()  # a whole period
        [1.0, 1.0, 1.0]
    """
    given = {"period": period, "harmonics": harmonics, "scope": scope, "unchanging": unchanging}
    return made(KINDS["season"], {**given, **options})


def ar(order: int = 1, scope: Scope = "arm", **options: Any) -> Component:
    """A stationary autoregression around zero, z(t) = φ_1 z(t−1) + … + φ_p z(t−p) + ξ.

    Args:
        order: p.
        scope: who has one: "arm", "group" or "shared".
        options: of every component; ``drift``, the standard deviation of ξ, and ``partial1`` …,
            the partial autocorrelations, if they are known.

    Example:
        >>> print(constant() + ar(2, "shared"))
        constant(arm) + ar(2, shared)
        >>> known = ar(2, "shared", partial1=0.5, partial2=-0.2)  # φ_1 = 0.5 + 0.5 · 0.2
        >>> Layout(known, ["left", "right"]).system().model.transition.round(9).tolist()
        [[0.6, -0.2], [1.0, 0.0]]
    """
    return made(KINDS["ar"], {"order": order, "scope": scope, **options})


def regression(
    features: Any, scope: Scope = "shared", drifting: bool = False, **options: Any
) -> Component:
    """Weights of context features that are given in every round, reward = Σ_j w_j x_j.

    Args:
        features: their names, as in the log's columns: "x_price", or several.
        scope: who has weights: "arm", "group" or "shared".
        drifting: whether the weights move, each with a standard deviation ``change`` per round.
        options: of every component; ``change`` if it is known.

    Example:
        >>> print(level() + regression("x_price", "arm", drifting=True))
        level(arm) + regression(x_price, arm, drifting)
        >>> system = Layout(level() + regression("x_price"), ["left", "right"]).system()
        >>> system.arms_in({"x_price": {"left": 3.0, "right": 5.0}}).tolist()
        [[1.0, 0.0, 3.0], [0.0, 1.0, 5.0]]
    """
    several = isinstance(features, Iterable) and not isinstance(features, str)
    names = tuple(features) if several else (features,)
    given = {"features": names, "scope": scope, "drifting": drifting}
    return made(KINDS["regression"], {**given, **options})


def noise(scope: Scope = "arm", **options: Any) -> Component:
    """Noise of a round, in addition to that of every reward.

    ``noise("shared")`` is a shock that hits all arms of a round; ``noise("arm", own=True)`` lets
    arms differ in how noisy they are.

    Args:
        scope: for whom a number is drawn: "arm", "group" or "shared".
        options: of every component; ``size``, its standard deviation, if it is known.

    Example:
        >>> print(level() + noise("arm", own=True))
        level(arm) + noise(arm, own)
        >>> model = Layout(noise("shared", size=0.5), ["left", "right"]).system().model
        >>> model.transition.tolist(), model.process_cov.tolist()
        ([[0.0]], [[0.25]])
    """
    return made(KINDS["noise"], {"scope": scope, **options})


def factors(n_states: int, form: Form = "free", reads: Any = None, **options: Any) -> Component:
    """Hidden states that drift together, z ← Γ z + ξ, and each arm's weight on each of them.

    Args:
        n_states: d.
        form: of Γ: "free"; "diagonal", if states do not affect each other; "scalar", if all decay
            at the same rate.
        reads: the weights, k × d, if they are known features of the arms. None: learned.
        options: ``size`` and ``turn…``, if they are known.

    Example:
        >>> print(constant() + factors(2) + factors(3, "diagonal"))
        constant(arm) + factors(2) + factors(3, form=diagonal)
        >>> layout = Layout(factors(2, "scalar", [[1.0, 0.0], [0.5, 0.5]]), ["left", "right"])
        >>> system = layout.system({"factors(2, form=scalar).turn": 0.5})  # Γ = tanh(0.5) I
        >>> system.model.transition.round(3).tolist(), system.arms.tolist()
        ([[0.462, 0.0], [0.0, 0.462]], [[1.0, 0.0], [0.5, 0.5]])
    """
    rows = None
    if reads is not None:
        matrix = errors.matrix(reads, "factors: reads", shape=(None, n_states))
        rows = tuple(map(tuple, matrix.tolist()))
    return made(KINDS["factors"], {"n_states": n_states, "form": form, "reads": rows, **options})
