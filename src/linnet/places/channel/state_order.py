"""The order of state messages: each is applied after the one that it names, and none is left out.

A state message names the last change of state by its distance in messages (Toth 2013, section 4.6.2). It is
applied after that one; until then it waits, and the message that it waits for is asked for. Delta 0 begins
anew and waits for nothing. A hash covers the state after its own message's modifiers; where it is right the
state is *signed* as of that message, and can be given to newcomers who check it by the same hash.

A base is kept, with the messages applied since and those that wait for others: all of it in cells, so that a
restart goes on exactly here. The cost of writing a message depends on what it changes, not on the size of the
state.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.places.channel.packet import Ignored, Modifier
from linnet.places.channel.state import Changes, State
from linnet.places.config import PlacesConfig

MESSAGE_BYTES = 200
"""About how many bytes a message costs beside its modifiers when it is replayed: event, head, signature."""

_META = b"m"
_VARIABLE = b"v"
_STEP = b"s"
_HELD = b"h"
_LET_GO = b"g"


class Step(Struct, frozen=True, array_like=True):
    """A message that changes state."""

    message: int
    delta: int
    """0: the state begins anew here."""
    modifiers: tuple[Modifier, ...]
    hash: bytes | None

    @property
    def before(self) -> int:
        """The state message before this one."""
        return self.message - self.delta

    @property
    def cost(self) -> int:
        """About how many bytes it takes to replay the message."""
        return MESSAGE_BYTES + sum(len(item.name) + len(item.value) + 4 for item in self.modifiers)


class Meta(Struct, frozen=True, array_like=True):
    """What is stored about the line beside its messages."""

    base: int = 0
    """The message that the base is the state as of; 0: before all messages."""
    base_signed: bool = False
    """Whether the hash of that message was found right."""
    stopped: int = 0
    """A message that cannot be applied; 0: none."""
    lost: bool = False
    """Whether the values of the base are unknown: it is not an empty state, and has to be learned."""


_encode = msgspec.msgpack.Encoder().encode
_decode_step = msgspec.msgpack.Decoder(Step).decode
_decode_meta = msgspec.msgpack.Decoder(Meta).decode


class StateLog:
    """The stored messages and base of a place's state: read once at the beginning, then only written."""

    def __init__(self, place: TopicId, cells: Cells, limits: PlacesConfig) -> None:
        self._cells = cells
        self._space = f"place state {place.hex()}"
        self.meta = Meta()
        self.applied: dict[int, Step] = {}
        """The messages applied since the base, in their order."""
        self.held: dict[int, Step] = {}
        self.let_go: dict[int, None] = {}
        variables: dict[str, bytes] = {}
        for key, value in cells.scan(self._space):
            kind, rest = key[:1], key[1:]
            if kind == _META:
                self.meta = _decode_meta(value)
            elif kind == _VARIABLE:
                variables[rest.decode()] = value
            elif kind == _LET_GO:
                self.let_go[int.from_bytes(rest, "big")] = None
            else:
                (self.applied if kind == _STEP else self.held)[int.from_bytes(rest, "big")] = _decode_step(
                    value
                )
        self.base = State(limits, variables)
        self.applied_cost = sum(step.cost for step in self.applied.values())
        self.held_cost = sum(step.cost for step in self.held.values())

    @property
    def last(self) -> int:
        """The last message that was applied; 0: none."""
        return next(reversed(self.applied), self.meta.base)

    def set_meta(self, meta: Meta) -> None:
        """Store the meta data, if they have changed."""
        if meta != self.meta:
            self.meta = meta
            self._cells.put(self._space, _META, _encode(meta))

    def change_base(self, changes: Changes) -> None:
        """Set and remove variables of the base."""
        self.base.change(changes)
        for name, value in changes.items():
            key = _VARIABLE + name.encode()
            if value is None:
                self._cells.delete(self._space, key)
            else:
                self._cells.put(self._space, key, value)

    def apply(self, step: Step) -> None:
        """Add a message to the applied ones."""
        self.applied[step.message] = step
        self.applied_cost += step.cost
        self._cells.put(self._space, _STEP + _number(step.message), _encode(step))

    def take_back(self, message: int) -> Step:
        """Remove a message from the applied ones and return it: it was undone, or is in the base."""
        step = self.applied.pop(message)
        self.applied_cost -= step.cost
        self._cells.delete(self._space, _STEP + _number(message))
        return step

    def hold(self, step: Step) -> None:
        """Add a message to the waiting ones."""
        self.held[step.message] = step
        self.held_cost += step.cost
        self._cells.put(self._space, _HELD + _number(step.message), _encode(step))

    def release(self, message: int) -> Step:
        """Remove a message from the waiting ones and return it."""
        step = self.held.pop(message)
        self.held_cost -= step.cost
        self._cells.delete(self._space, _HELD + _number(message))
        return step

    def remember(self, message: int) -> None:
        """Remember to ask again for a message that there was no room for."""
        self.let_go[message] = None
        self._cells.put(self._space, _LET_GO + _number(message), b"")

    def forget(self, message: int) -> None:
        """Forget to ask again for a message."""
        if message in self.let_go:
            del self.let_go[message]
            self._cells.delete(self._space, _LET_GO + _number(message))


def _number(message: int) -> bytes:
    return message.to_bytes(8, "big")


HELD_MESSAGES = 1024
"""The most state messages that wait for others. The last ones are dropped first: they are needed last."""
LET_GO_MESSAGES = 4096
KEPT_MESSAGES = 4096
"""The most applied messages that can still be undone or named to peers; older ones are in the base only."""


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

    Either we or the voice computed it wrongly: ask other peers for their state.
    """

    message: int
    expected: bytes
    found: bytes
    reason: Reason = Reason.STATE_MISMATCH


class NotTaken(Struct, frozen=True):
    """The message changed nothing, for the given reason."""

    message: int
    reason: Reason
    detail: str


class Rebuilt(Struct, frozen=True):
    """The state is another one now, as of this message. `lost`: it is unknown here, to be asked for."""

    message: int
    changes: Changes
    lost: bool = False


Outcome: TypeAlias = Applied | Held | Past | Forked | NotTaken | Rebuilt


class StateOrder:
    """The state of one place, and the messages that made it."""

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
        """The current values. Only this class may change them."""
        return self._state

    @property
    def applied(self) -> int:
        """The last message that is in the state; 0: none."""
        return self._steps.last

    @property
    def base(self) -> int:
        """The message before which nothing is known any more."""
        return self._steps.meta.base

    @property
    def is_lost(self) -> bool:
        """Whether the state is not known here: a change built on it would take away values that others have.

        After a message that begins anew the state before it does not matter.
        """
        return self._steps.meta.lost and not self._steps.applied

    @property
    def signed(self) -> int:
        """The last message whose hash was found right; 0: there is none to give to others."""
        meta = self._steps.meta
        return next(reversed(self._verified), meta.base if meta.base_signed else 0)

    @property
    def forked(self) -> int:
        """The message whose hash was found wrong, unless a later one was right; 0: none."""
        return self._forked

    @property
    def steps(self) -> tuple[Step, ...]:
        """The messages since the base."""
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

    def hash_of(self, message: int) -> bytes | None:
        """Return the hash that a message carries, to check a whole state by; None if we do not hold it."""
        step = self._steps.applied.get(message) or self._steps.held.get(message)
        return None if step is None else step.hash

    def signed_state(self) -> State | None:
        """Return a copy of the state as of `signed`; None if there is none."""
        signed = self.signed
        if not signed:
            return None
        state = self._steps.base.copy()
        for step in self._steps.applied.values():
            if step.message <= signed:
                state.apply(step.modifiers, reset=step.delta == 0)
        return state

    # For the voice, which hashes before it speaks.

    def check(self, modifiers: Iterable[Modifier], reset: bool = False) -> None:
        """Raise `Refused` if an operation would change nothing, or the state would become too large."""
        try:
            ignored = self._state.effect(modifiers, reset or not self.applied).ignored
        except RemoteError as error:
            raise Refused(error.reason, error.detail) from error
        for operation in ignored:
            modifier = operation.modifier
            raise Refused(operation.reason, f"{modifier.operator}{modifier.name}: {operation.detail}")

    def digest_with(self, modifiers: Iterable[Modifier], reset: bool = False) -> bytes:
        """Return the hash of the state after these modifiers; `Refused` if that state would be too large."""
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
        """Take a state message, from any peer, in any order; return all outcomes, also for waiting ones."""
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
        """Take a whole state as of a message with the hash `expected`, from any peer; return the outcomes."""
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
        """Undo what was said after this message, since its term was cut; return the outcomes."""
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

    # Inside.

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
        """Return whether a step comes next. All before a base that we were given counts as applied."""
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
        """Return whether the step carries the hash of the current state."""
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
        """Apply waiting messages as far as possible."""
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
        """Fold the oldest steps into the base: they cannot be undone any more."""
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
        """Compute the current state from the base and the steps, as if these came only now."""
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
    """Return the changes that turn one state into the other."""
    old, new = before.variables, after.variables
    changes: Changes = {name: None for name in old if name not in new}
    changes.update((name, value) for name, value in new.items() if old.get(name) != value)
    return changes
