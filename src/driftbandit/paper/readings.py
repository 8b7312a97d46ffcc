"""Readings: choices for what the paper leaves open about Table II (P20, P21), and cells with them.

The text says how Γ, Q and σ come from i.i.d. draws. It does not say where the arms come from or how
per-round regret is defined, and not everything it says fits its numbers. A `Reading` is one answer
to every such question; `PLAIN` takes the text literally.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from driftbandit import errors, families, studies
from driftbandit.model import LGDS, unit_rows
from driftbandit.paper import perturbation
from driftbandit.studies.specification import set_fields

CHOICES: Mapping[str, Mapping[str, str]] = {
    "interval": {
        "0..1": "Uniform on [0, 1]",
        "-1..1": "Uniform on [−1, 1]",
        "-0.5..0.5": "Uniform on [−½, ½]",
    },
    "arms": {
        "drawn": "arms drawn from the family's distribution",
        "unit": "drawn, then scaled to length one",
        "bounded": "drawn, then all scaled by one factor so that the longest has length one",
        "common": "one draw of arms for all systems of a family",
        "gaussian": "arms drawn from N(0, 1)",
        "identity": "one arm per state",
    },
    "transition": {
        "scaled": "Γ = 0.9 T/ρ(T)",
        "capped": "Γ = T, scaled only if ρ(T) > 0.9",
        "norm": "Γ = 0.9 T/‖T‖",
        "symmetric": "Γ = 0.9 S/ρ(S), S = T + Tᵀ",
    },
    "process": {
        "full": "Q = R Rᵀ",
        "mean": "Q = R Rᵀ/d",
        "diagonal": "Q = diag(R)²",
        "identity": "Q = I",
    },
    "noise": {
        "drawn": "σ = |r|",
        "squared": "σ = r²",
        "root": "σ = √|r|",
        "one": "σ = 1",
        "vector": "σ = ‖r‖, r a vector of d draws",
        "common": "σ = |r|, one noise for all arms of a round",
    },
    "regret": {
        "mean": "regret from expected rewards",
        "noisy": "regret from rewards with their noise",
        "hindsight": "regret relative to the highest reward drawn, noise included",
    },
    "belief": {
        "stationary": "the filter starts from the stationary covariance",
        "identity": "the filter starts from P = I",
        "process": "the filter starts from P = Q",
    },
    "start": {"stationary": "the state starts stationary", "zero": "the state starts at zero"},
    "medians": {
        "runs": "medians over all runs",
        "systems": "medians over systems of the mean over runs",
    },
}
"""By question, its answers and what they mean; the first answer is the text's."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """One answer to every question of `CHOICES`."""

    interval: str = "0..1"
    arms: str = "drawn"
    transition: str = "scaled"
    process: str = "full"
    noise: str = "drawn"
    regret: str = "mean"
    belief: str = "stationary"
    start: str = "stationary"
    medians: str = "runs"

    def __post_init__(self) -> None:
        for question, answers in CHOICES.items():
            errors.closest(getattr(self, question), f"reading.{question}", answers)

    def __str__(self) -> str:
        """The answers that differ from the text's: "arms=unit, noise=one", or "plain"."""
        changed = (f"{question}={answer}" for question, answer in self.changes().items())
        return ", ".join(changed) or "plain"

    def changes(self) -> dict[str, str]:
        """The answers that are not the text's."""
        fields = dataclasses.fields(self)
        return {f.name: value for f in fields if (value := getattr(self, f.name)) != f.default}


PLAIN = Reading()

NAMED: Mapping[str, Reading] = {
    "plain": PLAIN,
    "closest": Reading(interval="-0.5..0.5", noise="vector", regret="hindsight"),
    "unit": Reading(arms="unit"),
}
"""Readings with a name: the text's own, the one found closest to Table II, Assumption 1's arms."""


def named(text: str) -> Reading:
    """A reading from its name, or from its changes as in "arms=unit, noise=one".

    Example:
        >>> named("arms=unit").arms, named("plain") == PLAIN
        ('unit', True)
    """
    if not isinstance(text, str):
        raise errors.InvalidInput("reading", f"is {text!r}", f"valid: {', '.join(NAMED)}")
    if "=" not in text:
        return NAMED[errors.closest(text.strip(), "reading", NAMED)]
    answers = {}
    for part in text.split(","):
        question, _, answer = (word.strip() for word in part.partition("="))
        question = errors.closest(question, "reading", CHOICES)
        if question in answers:
            raise errors.InvalidInput("reading", f"answers {question} twice", "answer it once")
        answers[question] = errors.closest(answer, f"reading.{question}", CHOICES[question])
    return Reading(**answers)


def sample(
    reading: Reading,
    family: str,
    systems: int,
    *,
    n_states: int,
    n_arms: int,
    seed: int,
    first: int = 0,
) -> families.Systems:
    """Random systems of a family in this reading; `PLAIN` gives those of `families.sample`."""
    entries = families.FAMILIES[errors.closest(family, "family", families.FAMILIES)]
    if family == "uniform" and reading.interval != "0..1":
        low, high = (float(end) for end in reading.interval.split(".."))

        def entries(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
            return low + (high - low) * rng.random(shape)

    # Common arms are those of a system number that no study reaches.
    rng = families.generator(family, seed, 2**32)
    common, _ = families.draw_arms(entries, [rng], n_states, n_arms)
    rngs = [families.generator(family, seed, number) for number in range(first, first + systems)]
    raw = families.draw(entries, rngs, n_states, n_arms)
    # Drawn last, so that the text's own draws are the same in every reading.
    more = np.array([entries(rng, (n_states,)) for rng in rngs])
    normal = np.array([rng.standard_normal((n_arms, n_states)) for rng in rngs])
    models = LGDS.many(
        _transition(reading, raw),
        _process_cov(reading, raw.process_root),
        _reward_std(reading, raw, more),
    )
    if reading.start == "zero":
        known = np.zeros((n_states, n_states))
        models = [dataclasses.replace(model, initial_cov=known) for model in models]
    arms = _arms(reading, raw.arms, common, normal)
    return families.Systems(family, zip(models, arms, strict=True), raw.redraws)


# All systems at once, along a leading axis.


def _transition(reading: Reading, raw: families.Draw) -> np.ndarray:
    T, size, radius = raw.transition, raw.radius, families.SPECTRAL_RADIUS
    if reading.transition == "norm":
        size = np.linalg.norm(T, 2, axis=(1, 2))
    elif reading.transition == "symmetric":
        T = T + T.mT
        size = np.abs(np.linalg.eigvalsh(T)).max(axis=1)
    elif reading.transition == "capped":
        size = np.maximum(size, radius)
    return (radius / size)[:, None, None] * T


def _process_cov(reading: Reading, root: np.ndarray) -> np.ndarray:
    d = root.shape[1]
    if reading.process == "diagonal":
        return np.eye(d) * np.diagonal(root, axis1=1, axis2=2)[:, None] ** 2
    if reading.process == "identity":
        return np.broadcast_to(np.eye(d), root.shape)
    return root @ root.mT / (d if reading.process == "mean" else 1)


def _reward_std(reading: Reading, raw: families.Draw, more: np.ndarray) -> np.ndarray:
    root = raw.reward_root
    if reading.noise == "vector":
        return np.sqrt(np.vecdot(more, more))
    others = {"squared": root**2, "root": np.abs(root) ** 0.5, "one": np.ones_like(root)}
    return others.get(reading.noise, np.abs(root))


def _arms(
    reading: Reading, drawn: np.ndarray, common: np.ndarray, normal: np.ndarray
) -> np.ndarray:
    if reading.arms == "unit":
        return unit_rows(drawn)
    if reading.arms == "bounded":
        return drawn / np.linalg.norm(drawn, axis=2).max(axis=1)[:, None, None]
    others = {"common": common, "gaussian": normal, "identity": np.eye(*drawn.shape[1:])}
    return np.broadcast_to(others.get(reading.arms, drawn), drawn.shape)


def assumed(reading: Reading, systems: Sequence[Any]) -> list[Any] | None:
    """What the learners assume if their filter does not start as the state does; else None."""
    if reading.belief == reading.start == "stationary":
        return None
    learned = []
    for model, arms in systems:
        start = {"stationary": None, "identity": np.eye(model.n_states)}
        cov = start.get(reading.belief, model.process_cov)
        learned.append((dataclasses.replace(model, initial_cov=cov), arms))
    return learned


@dataclasses.dataclass(frozen=True)
class Cell(studies.Cell):
    """One kind of the paper's random systems, and what the learners assume about them."""

    reading: Reading = PLAIN
    perturbed: str = ""  # what learners have wrong (P24): one of `perturbation.TARGETS`, or nothing
    strength: float = 0.0  # ν of the perturbation

    SOURCES = ("paper/perturbation.py", "paper/readings.py")

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.perturbed:
            errors.closest(self.perturbed, "perturbed", perturbation.TARGETS)
        checked: dict[str, Any] = {"strength": errors.number(self.strength, "strength")}
        if isinstance(self.reading, Mapping):  # from a stored specification
            checked["reading"] = Reading(**self.reading)
        set_fields(self, checked)

    @property
    def label(self) -> str:
        """A short name, also used in file names: "gaussian.arms-10"."""
        return super().label + (f".{self.perturbed}-{self.strength:g}" if self.perturbed else "")

    def check_shape(self, n_states: int, n_arms: int) -> None:
        """Refuse perturbed arms that are not as many as the states."""
        if self.perturbed == "arms" and n_arms != n_states:
            problem = f"is {n_arms} with {n_states} states, but T⁻¹CT needs as many arms as states"
            remedy = "make the two equal, or perturb something else"
            raise errors.InvalidInput("n_arms", problem, remedy)

    def systems(
        self, numbers: range, n_states: int, n_arms: int, seed: int
    ) -> tuple[Sequence[Any], list[Any] | None]:
        """The true systems with these numbers, and what learners assume (None: the truth)."""
        shape: dict[str, Any] = {"n_states": n_states, "n_arms": n_arms, "seed": seed}
        systems = sample(self.reading, self.family, len(numbers), first=numbers.start, **shape)
        learned = assumed(self.reading, systems)
        if self.perturbed:
            similarities = [
                perturbation.similarity(self.family, seed, number, n_states, self.strength)
                for number in numbers
            ]
            learned = perturbation.perturb(learned or systems, self.perturbed, similarities)
        return systems, learned

    def simulation_options(self) -> dict[str, Any]:
        """How `simulate` defines regret, and whether all arms share one noise."""
        return {"regret": self.reading.regret, "common_noise": self.reading.noise == "common"}


@dataclasses.dataclass(frozen=True)
class Options(studies.Options):
    """What the paper's targets (P20–P24) are computed for.

    Args:
        size, seed, families, dtype, platform, memories, policies: as in `studies.Options`.
        reading: how the text is read where it leaves a choice.
        congruent: Figure 3: T⁻¹QT⁻ᵀ instead of the projected T⁻¹QT.

    Example:
        >>> size = studies.Size(systems=100, runs=4, rounds=1000)
        >>> options = Options(size, families=("gaussian",), reading=named("arms=unit"))
        >>> options.described()
        {'families': ('gaussian',), 'reading': 'arms=unit'}
        >>> ((model, arms),), _ = options.cell("gaussian").systems(range(1), 10, 10, options.seed)
        >>> np.linalg.norm(arms, axis=1).round(6).tolist() == [1.0] * 10
        True
        >>> options.specification(("idea", "random")).systems
        100
    """

    reading: Reading = PLAIN
    congruent: bool = False  # Figure 3: T⁻¹QT⁻ᵀ instead of the projected T⁻¹QT

    def cell(self, family: str, **changes: Any) -> Cell:
        """A cell with this reading."""
        return Cell(family, reading=self.reading, **changes)

    def described(self) -> dict[str, Any]:
        """Families and reading."""
        return super().described() | {"reading": str(self.reading)}
