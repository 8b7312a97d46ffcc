"""What `simulate` checks before any work: systems, options, precision, device."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any

import jax
import numpy as np

from driftbandit import errors
from driftbandit.actions import FINITE, ActionSet, action_set
from driftbandit.model import LGDS, arm_stack, solve_together, start_moments
from driftbandit.policies.ucb import settled_moments
from driftbandit.simulation.features import ReadOuts, check_same_features, read_outs_of
from driftbandit.simulation.jobs import Pair
from driftbandit.system import System, check_alone

LARGEST = {"float64": errors.LARGEST, "float32": 1e30}
"""Largest variance in each precision: products of two must still be finite."""


@dataclasses.dataclass(frozen=True)
class Options:
    """What studies set beyond the everyday arguments of `simulate`.

    Args:
        regret: how per-round regret is defined. "mean": ⟨a* − a, z⟩, free of noise; "noisy": the
            difference of the same arms' rewards, equal in expectation; "hindsight": the highest
            reward drawn minus the one received, which no policy can bring to 0; not on the sphere.
        common_noise: one noise for all arms of a round, instead of one each.
        warmup: rounds that the state moves before play starts; matters only with an
            ``initial_cov`` or ``initial_mean``, since otherwise the state starts stationary.
        stream: a name; studies with the same seed and different streams draw different numbers.
        first_system: number of the first system, for a study that is played in pieces.
        checkpoints: about how many log-spaced rounds the curves keep; 1: the total only.
        workers: blocks played at once on a CPU; None: one per core.

    Example:
        Regret with its noise has the same mean and more spread than without.

        >>> from driftbandit import families, simulate
        >>> model, arms = families.sample("gaussian", n_states=2, n_arms=3)[0]
        >>> given = {"policies": ["kode", "random"], "rounds": 50, "runs": 4}
        >>> plain = simulate(model, arms, **given)
        >>> noisy = simulate(model, arms, **given, options=Options(regret="noisy", checkpoints=1))
        >>> bool((noisy.regret["kode"] == plain.regret["kode"]).any()), noisy.checkpoints.tolist()
        (False, [50])
    """

    regret: str = "mean"
    common_noise: bool = False
    warmup: int = 0
    stream: str = ""
    first_system: int = 0
    checkpoints: int = 40
    workers: int | None = None

    def __post_init__(self) -> None:
        errors.closest(self.regret, "regret", ("mean", "noisy", "hindsight"))
        errors.boolean(self.common_noise, "common_noise")
        if not isinstance(self.stream, str):
            raise errors.InvalidInput("stream", f"is {self.stream!r}", "give a text")
        errors.whole_number(self.warmup, "warmup", low=0)
        errors.whole_number(self.first_system, "first_system", low=0, high=2**31)
        errors.whole_number(self.checkpoints, "checkpoints", low=1)
        if self.workers is not None:
            errors.whole_number(self.workers, "workers", low=1)


def checked_options(options: Any) -> Options:
    """The options that were given, or the default ones."""
    if not isinstance(options, Options | None):
        raise _wrong_type(options, "options", "give simulation.Options(…)")
    return options or Options()


def _wrong_type(value: Any, argument: str, remedy: str) -> errors.InvalidInput:
    return errors.InvalidInput(argument, f"has type {type(value).__name__}", remedy)


def checked_systems(
    model: Any, arms: Any, warmup: int
) -> tuple[list[Pair], ActionSet, ReadOuts | None]:
    """The systems with their arms, all of one shape, after ``warmup`` rounds.

    Also their action set, and the B_j of their contexts.
    """
    systems, actions, read_outs = _checked_pairs(_pairs(model, arms), "model")
    return [(_warmed_up(lgds, warmup), rows) for lgds, rows in systems], actions, read_outs


def _is_pair(one: Any) -> bool:
    return isinstance(one, tuple | list) and len(one) == 2 and isinstance(one[0], LGDS)


def _checked_pairs(
    given: list[Any], argument: str
) -> tuple[list[Pair], ActionSet, ReadOuts | None]:
    systems: list[Pair] = []
    found: set[ActionSet] = set()
    actions: ActionSet = FINITE
    pairs = [(one.model, one.arms) if isinstance(one, System) else one for one in given]
    stack = arm_stack(pairs) if all(map(_is_pair, pairs)) else None
    if stack is not None:
        systems = [(lgds, rows) for (lgds, _), rows in zip(pairs, stack, strict=True)]
        solve_together([lgds for lgds, _ in systems])
        for lgds, _ in systems:
            lgds.start_cov()  # raises if there is none
        return systems, FINITE, read_outs_of(given, argument)
    for index, one in enumerate(pairs):
        if not _is_pair(one):
            remedy = "give Systems or pairs of (LGDS, arms)"
            raise _wrong_type(one, f"{argument}[{index}]", remedy)
        lgds, rows = one
        name = "arms" if len(pairs) == 1 else f"arms of system {index}"
        actions = action_set(rows, name)
        if not isinstance(given[index], System):  # whose arms may be zero beside contexts
            rows = actions.rows(rows, lgds, name)
        found.add(actions)
        if systems and rows.shape != systems[0][1].shape:
            problem = f"have shape {rows.shape}, those of system 0 {systems[0][1].shape}"
            remedy = "simulate systems of one shape together"
            raise errors.InvalidInput(f"arms of system {index}", problem, remedy)
        lgds.start_cov()  # raises if there is none
        systems.append((lgds, rows))
        if len(found) > 1:
            problem = "are a list in some systems and the sphere in others"
            raise errors.InvalidInput("arms", problem, "simulate the two apart")
    return systems, actions, read_outs_of(given, argument)


def _warmed_up(lgds: LGDS, warmup: int) -> LGDS:
    """The system whose z(0) has the distribution of the state after ``warmup`` rounds."""
    if not warmup or (lgds.initial_cov is None and lgds.initial_mean is None):
        return lgds
    mean = None if lgds.initial_mean is None else lgds.state_mean(warmup)
    moved = None if lgds.initial_cov is None else lgds.state_cov(warmup)
    sizes = [np.abs(part).max() for part in (mean, moved) if part is not None]
    if not max(sizes) < errors.LARGEST:
        problem = f"is {warmup}, by when the state exceeds what float64 can hold"
        raise errors.InvalidInput("warmup", problem, "give fewer rounds")
    return dataclasses.replace(lgds, initial_cov=moved, initial_mean=mean)


def _pairs(model: Any, arms: Any) -> list[Any]:
    if isinstance(model, System):
        check_alone(model, arms)
        return [model]
    if isinstance(model, LGDS):
        if arms is None:
            remedy = 'give a k × d array of arms, or "sphere"'
            raise errors.InvalidInput("arms", "is missing", remedy)
        return [(model, arms)]
    if arms is not None:
        problem = "was given together with a sequence of systems"
        raise errors.InvalidInput("arms", problem, "put arms into the pairs")
    if not isinstance(model, Iterable):
        remedy = "give a System, an LGDS with arms, or a sequence of (LGDS, arms)"
        raise _wrong_type(model, "model", remedy)
    pairs = list(model)
    if not pairs:
        raise errors.InvalidInput("model", "is an empty sequence", "give at least one system")
    return pairs


def checked_assumed(
    assumed: Any,
    systems: list[Pair],
    warmup: int,
    actions: ActionSet,
    read_outs: ReadOuts | None,
) -> tuple[list[Pair], ReadOuts | None]:
    """What the policies take each system to be: the truth, or a system of the same shape."""
    if assumed is None:
        return systems, read_outs
    try:
        learned, theirs = _assumed(assumed, systems, warmup, actions)
        check_same_features(read_outs, theirs)
        return learned, theirs
    except errors.InvalidInput as error:
        raise error.of("assumed") from None


def _assumed(
    assumed: Any, systems: list[Pair], warmup: int, actions: ActionSet
) -> tuple[list[Pair], ReadOuts | None]:
    if not isinstance(assumed, Iterable) or isinstance(assumed, str | dict):
        raise _wrong_type(assumed, "assumed", "give a sequence of (LGDS, arms)")
    pairs = list(assumed)
    if len(pairs) != len(systems):
        problem = f"has {len(pairs)} systems for {len(systems)}"
        raise errors.InvalidInput("assumed", problem, "give one for each")
    learned, theirs, read_outs = _checked_pairs(pairs, "assumed")
    if theirs != actions:
        problem = f"has {theirs.title} for arms, the systems {actions.title}"
        raise errors.InvalidInput("assumed", problem, f"assume {actions.title} too")
    if learned[0][1].shape != systems[0][1].shape:
        problem = f"has arms of shape {learned[0][1].shape}, the systems {systems[0][1].shape}"
        remedy = "assume the same numbers of states and arms"
        raise errors.InvalidInput("assumed", problem, remedy)
    return [(_warmed_up(lgds, warmup), rows) for lgds, rows in learned], read_outs


def checked_dtype(dtype: Any) -> np.dtype:
    """float64 or float32."""
    try:
        kind = np.dtype(dtype)
    except TypeError:
        kind = np.dtype(object)
    if kind.name not in LARGEST:
        raise errors.InvalidInput("dtype", f"is {dtype!r}", "give float64 or float32")
    return kind


def checked_device(name: str | None) -> Any:
    """The JAX device of that name, or the one JAX prefers."""
    if name is None:
        return jax.devices()[0]
    name = errors.closest(name, "device", ("cpu", "gpu"))
    try:
        return jax.devices(name)[0]
    except RuntimeError:
        remedy = "use cpu, or install driftbandit[gpu]"
        raise errors.InvalidInput("device", f"JAX finds no {name!r} here", remedy) from None


def _within(systems: list[Pair], rounds: int, limit: float) -> bool:
    """Whether all variances are below the limit, for all systems at once."""
    covs = settled_moments(systems, rounds)
    arms = np.stack([rows for _, rows in systems])
    arms = arms.reshape(len(arms), -1, arms.shape[-1])  # of all rounds, if contexts change them
    means, starts = start_moments([lgds for lgds, _ in systems])
    noise = np.array([lgds.reward_std for lgds, _ in systems])
    rewards = np.einsum("nkd,nde,nke->nk", arms, covs, arms)
    sizes = (np.abs(covs), np.abs(starts), means**2, rewards, noise**2)
    return all((size < limit).all() for size in sizes)  # False for NaN, too


def check_range(systems: list[Pair], rounds: int, dtype: np.dtype, argument: str = "model") -> None:
    """Refuse systems whose variances outgrow what the precision can hold within ``rounds``."""
    limit = LARGEST[dtype.name]
    if _within(systems, rounds, limit):
        return
    for index, (lgds, arms) in enumerate(systems):
        cov = lgds.settled_moment(rounds)
        if not lgds.is_stable and not np.abs(cov).max() < limit:
            state = f"system {index} (spectral radius {lgds.spectral_radius:g})"
            problem = (
                f"is {rounds}, by when the state of {state} exceeds what {dtype.name} can hold"
            )
            raise errors.InvalidInput("rounds", problem, "play fewer rounds")
        largest = max(
            np.abs(cov).max(),
            np.abs(lgds.start_cov()).max(),
            np.abs(lgds.start_mean()).max() ** 2,
            np.einsum("...d,de,...e->...", arms, cov, arms).max(),
            float(lgds.reward_std) ** 2,
        )
        if not largest < limit:
            which = argument if len(systems) == 1 else f"{argument}[{index}]"
            problem = f"has variances up to {largest:.3g}, more than {dtype.name} can work with"
            remedy = f"rescale states or arms to stay below {limit:g}"
            raise errors.InvalidInput(which, problem, remedy)
