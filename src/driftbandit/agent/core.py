"""The inside of an `Agent`: its ledger, its log and its time, and how they change."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from driftbandit import errors
from driftbandit.actions import SPHERE, ActionSet
from driftbandit.agent import history, learning, unit_vectors
from driftbandit.agent.arm_names import ArmNames
from driftbandit.agent.choosing import Choice, Chosen, choose, new_arms, screen_of
from driftbandit.agent.decision import Decision
from driftbandit.agent.ledger import Entry, Ledger
from driftbandit.agent.screening import Screen
from driftbandit.kalman import Belief
from driftbandit.model import LGDS
from driftbandit.policies import Policy, Problem
from driftbandit.system import Name, System, checked_names

if TYPE_CHECKING:
    from driftbandit.agent.refitting import Refit

__all__ = ["LAST_ROUND", "Core", "check_model", "unpacked"]

Answer = TypeVar("Answer")

LAST_ROUND = 2**53
"""Rounds beyond it are no longer told apart."""


class _Backup(NamedTuple):
    """All that changes, as it was."""

    fields: dict[str, Any]
    ledger: Ledger
    log: list[Entry]
    settled: tuple[list[Entry], int]
    """What a refit under way was given since it began."""


def unpacked(model: Any, arms: Any, names: Any) -> tuple[LGDS | None, Any, Any]:
    """The model, arms and names that an agent is given, of which a System is all three."""
    if isinstance(model, System):
        if arms is not None or names is not None:
            which = "names" if arms is None else "arms"
            problem = "were given together with a System, which has its own"
            raise errors.InvalidInput(which, problem, "write Agent(system, policy=…)")
        return model.model, model.arms, model.names
    if model is not None:
        check_model(model)
    if arms is None:
        raise errors.InvalidInput("arms", "is missing", "give a k × d array, or a System")
    return model, arms, names


def check_model(model: Any) -> None:
    """Refuse what is no model, such as the fit that found one."""
    if not isinstance(model, LGDS | System):
        problem = f"has type {type(model).__name__}"
        raise errors.InvalidInput("model", problem, "give an LGDS, or a System, such as fit.system")


def _whole_round(round: Any) -> int:
    whole = isinstance(round, int | np.integer) and not isinstance(round, bool)
    try:
        return errors.whole_number(round, "round", low=-LAST_ROUND, high=LAST_ROUND)
    except errors.InvalidInput as error:
        remedy = "give one from -2**53 to 2**53" if whole else "give a whole number"
        raise errors.InvalidInput("round", error.problem, remedy) from None


class Core:
    """The state of an agent. Callers of its methods hold the lock."""

    policy: Policy
    _names: ArmNames
    _removed: tuple[Name, ...]
    rounds: int
    seed: int
    window: int
    memory: int
    actions: ActionSet
    screen: bool
    refit_options: Refit | None

    def _start(self, model: LGDS, arms: np.ndarray, knows: bool) -> None:
        self._lock = threading.RLock()
        self._saving = threading.Lock()  # so that files are replaced in the order of their states
        self._screen: Screen | None = None
        self._removed = ()  # names of arms that a new model may have, and that are not to be played
        self.features = arms
        """The arms as they were given; a model learned with offsets reads more of them."""
        constants, state = self.policy.prepare(model, arms, self.rounds)
        self.problem = Problem(model, arms, constants)
        self.round = 0
        """The round that the next `ask` is for."""
        self.refit_failure: str | None = None
        """Why the last refit on schedule failed and left the model as it was; None: it did not."""
        self._learned = knows  # whether there is a model to begin the next refit from
        self._decided = 0
        self._now = 0  # no round before it can be asked for any more
        self._base = 0  # the round of the prior
        self._ledger = Ledger(self.policy, self.problem, state, round=0)
        refit = self.refit_options
        self._log: deque[Entry] = deque(maxlen=refit.memory if refit else self.memory)
        self._complete = True  # whether all that was settled is in the log
        self._until_refit = refit.after if refit else 0
        self._learning: learning.RefitTask | None = None
        self._unstable = not model.is_stable

    # Time.

    def _checked_round(self, round: Any) -> int:
        now = _whole_round(round)
        if now < self._now:
            problem = f"is {now}, and time has come to round {self._now}"
            raise errors.InvalidInput("round", problem, "give this round or a later one")
        return now

    def _check_reach(self, round: int, state: Any = None) -> None:
        """Refuse a round by which a state without bound is no number any more."""
        if not self._unstable or round < self._now:
            return
        state = self._ledger.at(round) if state is None else state
        if isinstance(state, Belief) and not (
            np.abs(state.cov).max() <= errors.LARGEST and np.abs(state.mean).max() <= errors.LARGEST
        ):
            problem = f"is {round}, by when the state has outgrown the largest number"
            raise errors.InvalidInput("round", problem, "give an earlier one, or another model")

    def _untouched(self) -> bool:
        """Whether nothing was ever decided or told, and no time has passed."""
        return not (
            self._decided or len(self._ledger) or self._log or self.round or self._ledger.round
        )

    def _first_round(self) -> int:
        """Where the log begins: the prior's round, while nothing was let go."""
        return self._base if self._complete or not self._log else self._log[0].round

    # Asking.

    def _asked(
        self, arms: Any, round: int | None, chosen: Callable[[Choice, Any], Answer]
    ) -> tuple[int, Choice, Any, Answer]:
        """The round, the arms on offer, the state and what is chosen; an error changes nothing."""
        now = self.round if round is None else round
        if round is not None or now > LAST_ROUND:
            now = self._checked_round(now)
        offer = self._offer(arms)
        begins = not self._decided and self._untouched()
        state = self._ledger.state if begins else self._ledger.at(now)
        if self._unstable:
            self._check_reach(now, state)
        options, kept = self.refit_options, None
        if options and not options.background and self._until_refit <= len(self._ledger):
            kept = self._backup()  # a refit may come before this decision
            if self._settle(now):
                offer = self._offer(arms)  # a new model may read its arms otherwise
                state = self._ledger.at(now)
        try:
            found = chosen(offer, state)
        except BaseException:
            if kept is not None:
                self._restore(kept)
            raise
        if begins:
            self._base = self._ledger.round = now  # where time begins
        if kept is None:
            self._settle(now)
        return now, offer, state, found

    def _choose(self, offer: Choice, state: Any) -> Any:
        """One arm; on the sphere a vector and its figures."""
        noise = self._noise(len(offer.arms))
        if not self.actions.listed:
            return unit_vectors.choose(self.policy, self.problem, state, noise)
        return choose(self.policy, self.problem, state, offer, noise, self._screen_of(offer))

    def _offer(self, arms: Any) -> Choice:
        if arms is None:
            return Choice(self.problem.arms)
        shown = f"is {errors.printable(repr(arms)[:60])}"
        self.actions.check_listed("arms", shown, "ask without arms")
        return Choice.of(arms, self._names, self.policy, self.problem, self._fixed)

    @property
    def _fixed(self) -> bool:
        """Whether no other arms can be played: what they pay beside features is not known."""
        return self.refit_options is not None and self.refit_options.offsets

    def _screen_of(self, offer: Choice) -> Screen | None:
        """The screen of all arms, made when first needed and whenever a new model reads others."""
        arms = self.problem.arms
        if not self.screen or offer.arms is not arms:
            return None
        if self._screen is None or self._screen.arms is not arms:
            self._screen = screen_of(self.policy, arms)
        return self._screen

    def _called(self, offer: Choice, chosen: Chosen) -> tuple[Name, np.ndarray | None]:
        """What the user calls the chosen arm, and its features if it is none of the agent's."""
        if not offer.new:
            return self._names[chosen.arm], None
        name = chosen.place if offer.labels is None else offer.labels[chosen.place]
        return name, offer.arms[chosen.place]

    def _decide(
        self, now: int, state: Any, arm: int, name: Any, row: np.ndarray | None, figures: Any
    ) -> Decision:
        """Note a decision."""
        new = row is not None and self.actions.listed
        self._ledger.add(Entry(self._decided, now, name if new else arm, row), state)
        self._decided += 1
        self._now, self.round = now, now + 1
        return Decision(self._decided - 1, name, now, *figures)

    def _noise(self, n_arms: int, number: int | None = None) -> Any:
        """The random numbers of a decision: they do not depend on what was drawn before it."""
        number = self._decided if number is None else number
        noise = self.actions.noise(self.policy)
        if noise is None:
            return None
        rng = np.random.Generator(np.random.Philox(key=self.seed, counter=[0, 0, 0, number]))
        shape = noise.shape(self.problem.model.n_states, n_arms)
        return np.asarray(
            rng.random(shape) if noise.law == "uniform" else rng.standard_normal(shape)
        )

    # Telling.

    def _entry(self, decision: Decision | int) -> Entry | None:
        """The open decision; None where it is settled."""
        remedy = "tell what ask returned, or its id"
        id_: Any = decision.id if isinstance(decision, Decision) else decision
        if isinstance(id_, np.integer):
            id_ = int(id_)
        if type(id_) is not int:
            raise errors.InvalidInput("decision", f"is {decision!r}", remedy)
        if not 0 <= id_ < self._decided:
            problem = f"{id_} was never made: there are {self._decided}"
            raise errors.InvalidInput("decision", problem, remedy)
        entry = self._ledger.find(id_)
        if (
            entry is not None
            and isinstance(decision, Decision)
            and not (decision.round == entry.round and self._is_arm(decision.arm, entry))
        ):
            name = entry.arm if entry.row is not None else self._names[entry.arm]
            problem = f"{id_} is arm {name} in round {entry.round}, not {decision!r}"
            if not self.actions.listed:
                shown = " ".join(repr(decision).split())
                problem = f"{id_} is another vector or round than {shown}"
            raise errors.InvalidInput("decision", problem, remedy)
        return entry

    def _is_arm(self, arm: Any, entry: Entry) -> bool:
        if not self.actions.listed:
            return np.array_equal(arm, entry.row)  # type: ignore[arg-type]
        return bool(arm == (self._names[entry.arm] if entry.row is None else entry.arm))

    def _play(
        self, round: Any, arm: Any, reward: Any, features: Any = None, *, by_text: bool = False
    ) -> Entry:
        """A play that somebody else chose, checked."""
        round = _whole_round(round)
        row = None
        if features is not None:
            self.actions.check_listed("features", "were given", "give the vector as arm")
        if not self.actions.listed:
            row, arm = SPHERE.checked_vector(arm, self.problem.model.n_states), 0
        elif features is not None:
            (arm,) = checked_names([arm], 1, "arm")
            row = errors.matrix(features, "features", shape=(self.problem.model.n_states,))
            row = new_arms([row], self.policy, self.problem, self._fixed, "features")[0]
        elif by_text and self._names.find(arm) is None:
            arm = self._names.by_text(arm)
        else:
            arm = self._names.row(arm)
        reward = history.reward_of(reward)
        if reward is not None:
            reward = self._checked_reward(reward)
        return Entry(None, round, arm, row, reward)

    def _checked_reward(self, reward: Any) -> Any:
        if self.policy.full_information:
            return errors.matrix(reward, "reward", shape=(len(self.problem.arms),))
        if isinstance(reward, bool | np.bool):  # a click
            return float(reward)
        return errors.number(reward, "reward")

    def _settle(self, now: int) -> bool:
        """Let go of what is too old, and learn from it if it is time to; whether it was."""
        settled = self._ledger.settle(now - self.window)
        if settled:
            self._keep(settled)
        due = self.refit_options is not None and self._until_refit <= 0
        if not due or self._learning is not None or len(self._log) < 2:
            return False
        return learning.run_scheduled(self)

    def _keep(self, settled: list[Entry]) -> None:
        """Put what was settled into the log."""
        told = [entry for entry in settled if entry.reward is not None]
        self._remember(told)
        if self.refit_options is not None:
            self._until_refit -= len(told)
        if self._learning is not None:
            self._learning.settled(told)

    def _remember(self, told: Sequence[Entry]) -> None:
        assert self._log.maxlen is not None
        if len(self._log) + len(told) > self._log.maxlen:
            self._complete = False
        self._log.extend(told)

    def _change(self, problem: Problem, state: Any, round: int) -> None:
        """Go on with another model or other arms, from a settled state in a round."""
        self.problem, self._learned, self.refit_failure = problem, True, None
        self._unstable = not problem.model.is_stable
        self._ledger.restart(problem, state, round)

    def _prior(self) -> Any:
        """What was known before the first round."""
        return self.policy.prepare(self.problem.model, self.problem.arms, self.rounds)[1]

    # Going back.

    def _backup(self) -> _Backup:
        fields = {name: getattr(self, name) for name in _CHANGING}
        task = self._learning
        settled = ([], 0) if task is None else (list(task.later), task.counted)
        return _Backup(fields, self._ledger.copy(), list(self._log), settled)

    def _restore(self, backup: _Backup) -> None:
        for name, value in backup.fields.items():
            setattr(self, name, value)
        if self._learning is not None:
            self._learning.later, self._learning.counted = backup.settled
        self._ledger = backup.ledger
        self._log.clear()
        self._log.extend(backup.log)


_CHANGING = (
    "_names",
    "_removed",
    "features",
    "problem",
    "round",
    "refit_failure",
    "_learned",
    "_now",
    "_base",
    "_complete",
    "_until_refit",
    "_learning",
    "_unstable",
)
