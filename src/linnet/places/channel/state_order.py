"""The order in which messages may change state: each behind the one that it names, none left out.

A state message says how many messages ago the state was changed last (Toth 2013, section 4.6.2). It is
applied when that one is; until then it waits, and what it waits for is asked for by name. Delta 0 begins
anew and waits for nothing. A hash covers the state behind its own message's modifiers; where it is right the
state is *signed* as of that message, and can be given to newcomers who check it by the same hash.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.places.channel.packet import Ignored, Modifier
from linnet.places.channel.state import Changes, State
from linnet.places.channel.state_log import Meta, StateLog, Step
from linnet.places.config import PlacesConfig

HELD_MESSAGES = 1024
"""State messages that wait for others at once. The last ones go first: they are needed last."""
LET_GO_MESSAGES = 4096
KEPT_MESSAGES = 4096
"""Applied messages that can still be undone or named to others; what is older is in the base only."""


class Applied(Struct, frozen=True):
    """The message's modifiers are in the state now."""

    message: int
    reset: bool
    changes: Changes
    ignored: tuple[Ignored, ...]


class Held(Struct, frozen=True):
    """The message waits for another."""

    message: int
    needs: int


class Past(Struct, frozen=True):
    """The state has gone past this message already: nothing changed."""

    message: int


class Forked(Struct, frozen=True):
    """The hash that a message carries is not that of our state. The signed state stays what it was.

    Either we, or the voice, reckoned wrongly: ask others for their state.
    """

    message: int
    expected: bytes
    found: bytes
    reason: Reason = Reason.STATE_MISMATCH


class NotTaken(Struct, frozen=True):
    """The message changed nothing, and why."""

    message: int
    reason: Reason
    detail: str


class Rebuilt(Struct, frozen=True):
    """The state is another one now, as of this message. `lost`: it has to be asked for, we cannot tell it."""

    message: int
    changes: Changes
    lost: bool = False


Outcome: TypeAlias = Applied | Held | Past | Forked | NotTaken | Rebuilt


class StateOrder:
    """The state of one place, and the line of messages that made it."""

    def __init__(
        self,
        place: TopicId,
        cells: Cells,
        limits: PlacesConfig | None = None,
        held: int = HELD_MESSAGES,
        kept: int = KEPT_MESSAGES,
    ) -> None:
        self._limits = limits or PlacesConfig()
        self._held, self._kept = held, kept
        self._steps = StateLog(place, cells, self._limits)
        self._verified: dict[int, None] = {}
        self._forked = 0
        self._state = State(self._limits)
        self._rebuild()

    # Reading

    @property
    def state(self) -> State:
        """The current values. Not to be changed by anybody else."""
        return self._state

    @property
    def applied(self) -> int:
        """The last message that is in the state; 0: none."""
        return self._steps.last

    @property
    def base(self) -> int:
        """Nothing before this message is known any more."""
        return self._steps.meta.base

    @property
    def is_lost(self) -> bool:
        """Whether the state is not known here: what is built on it would take away what others have.

        Behind a message that begins anew it does not matter what was before.
        """
        return self._steps.meta.lost and not self._steps.applied

    @property
    def signed(self) -> int:
        """The last message whose hash was found right; 0: none that could be told others."""
        meta = self._steps.meta
        return next(reversed(self._verified), meta.base if meta.base_signed else 0)

    @property
    def forked(self) -> int:
        """The message whose hash was found wrong, unless a later one was right; 0: none."""
        return self._forked

    @property
    def steps(self) -> tuple[Step, ...]:
        """The line since the base."""
        return tuple(self._steps.applied.values())

    @property
    def missing(self) -> tuple[int, ...]:
        """Messages that others wait for, the most urgent first: ask for them before anything else."""
        steps, applied = self._steps, self.applied
        if not steps.held and not steps.let_go:
            return ()
        wanted = [step.before for step in steps.held.values()] + list(steps.let_go)
        stopped = steps.meta.stopped
        return tuple(sorted({n for n in wanted if n > applied and n not in steps.held and n != stopped}))

    def is_applied(self, message: int) -> bool:
        """Whether this state message is in the state, or behind a base that counts for all before it."""
        return 0 < message <= self.base or message in self._steps.applied

    def hash_of(self, message: int) -> bytes | None:
        """The hash that a message of the line carries, if we have it: what a full state is checked by."""
        step = self._steps.applied.get(message) or self._steps.held.get(message)
        return None if step is None else step.hash

    def signed_state(self) -> State | None:
        """The values as of `signed`; later changes do not touch them."""
        signed = self.signed
        if not signed:
            return None
        state = self._steps.base.copy()
        for step in self._steps.applied.values():
            if step.message <= signed:
                state.apply(step.modifiers, reset=step.delta == 0)
        return state

    # For the voice, which numbers and hashes before it speaks

    def delta_for(self, message: int, reset: bool = False) -> int:
        """The delta of the next state message: 0 if it is the first, or begins anew."""
        return 0 if reset or not self.applied else message - self.applied

    def digest_with(self, modifiers: Iterable[Modifier], reset: bool = False) -> bytes:
        """The hash of the state behind these; `Refused` if the state would become too large."""
        state = self._state.copy()
        try:
            state.apply(modifiers, reset or not self.applied)
        except RemoteError as error:
            raise Refused(error.reason, error.detail) from error
        return state.digest()

    # Changing

    def offered(
        self, message: int, delta: int, modifiers: Iterable[Modifier], hash: bytes | None = None
    ) -> list[Outcome]:
        """A state message came, from whomever and whenever: what this and those that waited for it did."""
        step = Step(message, delta, tuple(item for item in modifiers if item.is_persistent), hash)
        fault = self._fault(step)
        if fault is not None:
            return [fault]
        self._steps.forget(message)
        if message <= self.applied:
            return [Past(message)]
        if message in self._steps.held:
            return [Held(message, step.before)]
        if not self._is_next(step):
            return self._hold(step)
        return [*self._apply(step), *self._drain()]

    def full(self, message: int, data: bytes, expected: bytes) -> list[Outcome]:
        """A whole state as of a message that carries its hash, from anybody; `expected` is that hash."""
        if hashlib.sha256(data).digest() != expected:
            return [NotTaken(message, Reason.STATE_MISMATCH, "a state with another hash")]
        if message < self.base or (message <= self.applied and not self._forked and not self.is_lost):
            return [Past(message)]
        try:
            state = State.decode(data, self._limits)
        except RemoteError as error:
            return [NotTaken(message, error.reason, error.detail)]
        before = self._state
        self._steps.change_base(_difference(self._steps.base, state))
        self._drop(lambda number: number <= message)
        self._steps.set_meta(Meta(message, True, 0))
        self._rebuild()
        return [Rebuilt(message, _difference(before, self._state)), *self._drain()]

    def rollback(self, message: int) -> list[Outcome]:
        """What was said after this message does not count: its term was cut. Undo it."""
        before, steps = self._state, self._steps
        self._drop(lambda number: number > message)
        lost = message < steps.meta.base
        if lost:
            steps.change_base(dict.fromkeys(steps.base.variables))
            for number in list(steps.applied):
                steps.take_back(number)
            steps.set_meta(Meta(lost=True))
        elif steps.meta.stopped > message:
            steps.set_meta(replace(steps.meta, stopped=0))
        self._rebuild()
        return [Rebuilt(self.applied, _difference(before, self._state), lost)]

    # How

    def _fault(self, step: Step) -> NotTaken | None:
        message = step.message
        if message < 1 or not 0 <= step.delta < message:
            return NotTaken(message, Reason.MALFORMED, f"a delta of {step.delta}")
        known = self._steps.applied.get(message) or self._steps.held.get(message)
        if known is not None and known != step:
            return NotTaken(message, Reason.EQUIVOCATION, "another change of state under the same number")
        if message > self.applied and step.delta and self.base < self.applied > step.before:
            return NotTaken(
                message, Reason.EQUIVOCATION, f"rests on {step.before} and leaves out {self.applied}"
            )
        return None

    def _is_next(self, step: Step) -> bool:
        """Before a base that we were given everything counts as applied."""
        return step.delta == 0 or step.before == self.applied or step.before < self.base == self.applied

    def _apply(self, step: Step) -> list[Outcome]:
        reset = step.delta == 0
        try:
            effect = self._state.apply(step.modifiers, reset)
        except RemoteError as error:
            self._steps.set_meta(replace(self._steps.meta, stopped=step.message))
            return [NotTaken(step.message, error.reason, error.detail)]
        self._steps.apply(step)
        self._steps.set_meta(replace(self._steps.meta, stopped=0))
        outcomes: list[Outcome] = [Applied(step.message, reset, effect.changes, effect.ignored)]
        if not self._verify(step) and step.hash is not None:
            outcomes.append(Forked(step.message, step.hash, self._state.digest()))
        self._fold()
        return outcomes

    def _verify(self, step: Step) -> bool:
        """Whether the step carries the hash of the current state."""
        if step.hash is None:
            return False
        is_right = self._state.digest() == step.hash
        self._forked = 0 if is_right else step.message
        if is_right:
            self._verified[step.message] = None
        return is_right

    def _hold(self, step: Step) -> list[Outcome]:
        steps = self._steps
        steps.hold(step)
        outcomes: list[Outcome] = [Held(step.message, step.before)]
        while len(steps.held) > self._held or steps.held_cost > self._limits.state_bytes:
            last = max(steps.held)
            steps.release(last)
            steps.remember(last)
            if len(steps.let_go) > LET_GO_MESSAGES:
                steps.forget(max(steps.let_go))
            full = NotTaken(last, Reason.QUEUE_FULL, "too many state messages wait for others")
            if last == step.message:
                return [full]
            outcomes.append(full)
        return outcomes

    def _drain(self) -> list[Outcome]:
        """Apply what waited, as far as it goes."""
        outcomes: list[Outcome] = []
        steps = self._steps
        while steps.held:
            step = steps.held[min(steps.held)]
            fault = self._fault(step)
            if step.message > self.applied and fault is None and not self._is_next(step):
                break
            steps.release(step.message)
            if step.message <= self.applied:
                outcomes.append(Past(step.message))
            elif fault is not None:
                outcomes.append(fault)
            else:
                outcomes.extend(self._apply(step))
        for number in [number for number in steps.let_go if number <= self.applied]:
            steps.forget(number)
        return outcomes

    def _fold(self) -> None:
        """Let the oldest steps become part of the base: they cannot be undone any more."""
        steps = self._steps
        while len(steps.applied) > self._kept or steps.applied_cost > 2 * self._limits.state_bytes:
            step = steps.take_back(next(iter(steps.applied)))
            steps.change_base(steps.base.effect(step.modifiers, step.delta == 0).changes)
            is_signed = step.message in self._verified
            self._verified.pop(step.message, None)
            steps.set_meta(replace(steps.meta, base=step.message, base_signed=is_signed, lost=False))

    def _drop(self, which: Callable[[int], bool]) -> None:
        steps = self._steps
        for number in [number for number in steps.applied if which(number)]:
            steps.take_back(number)
        for number in [number for number in steps.held if which(number)]:
            steps.release(number)
        for number in [number for number in steps.let_go if which(number)]:
            steps.forget(number)

    def _rebuild(self) -> None:
        """The current state from the base and the steps: as if they came only now."""
        self._state = self._steps.base.copy()
        self._verified = {}
        self._forked = 0
        for step in list(self._steps.applied.values()):
            try:
                self._state.apply(step.modifiers, reset=step.delta == 0)
            except RemoteError:  # on another base than before it is too much: as if it came only now
                for number in [number for number in self._steps.applied if number >= step.message]:
                    self._steps.take_back(number)
                self._steps.set_meta(replace(self._steps.meta, stopped=step.message))
                return
            self._verify(step)


def _difference(before: State, after: State) -> Changes:
    """What makes the one into the other."""
    old, new = before.variables, after.variables
    changes: Changes = {name: None for name in old if name not in new}
    changes.update((name, value) for name, value in new.items() if old.get(name) != value)
    return changes
