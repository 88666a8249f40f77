"""Questions to peers: asked again until they are answered, over links that are held for as long as need be.

Each has a number and a *task*, what it is for; the task comes back with the answer, or in `failed` with the
reason why there is none. So nothing that was asked ends without a word.
"""

from __future__ import annotations

from linnet.content.fast.config import FastConfig
from linnet.content.fast.effects import OWNER, PURPOSE, FastEffect
from linnet.content.fast.messages import FastMessage
from linnet.content.fast.tasks import Task
from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.trace.records import Kind, Record

CALL = "call"
_UNHEARD = 2
"""Sendings without a word after which somebody with a link counts as silent."""
_UNNEEDED = (Reason.NOT_NEEDED, Reason.DUPLICATE_LINK)
"""Why links close without anything being wrong."""


class _Call:
    """A question that is open."""

    __slots__ = ("failed", "hasty", "message", "peer", "task", "tries")

    def __init__(self, peer: PeerId, message: FastMessage, task: Task, hasty: bool) -> None:
        self.peer = peer
        self.message = message
        self.task = task
        self.hasty = hasty
        self.tries = 0
        self.failed = False
        """Whether its link broke, or none came up, since it was asked."""


class Calls:
    """Which links are up, which are held, and what was asked over them."""

    def __init__(self, config: FastConfig) -> None:
        self._config = config
        self._up: dict[PeerId, tuple[str, ...]] = {}
        self._held: dict[PeerId, None] = {}
        self._calls: dict[int, _Call] = {}
        self._to: dict[PeerId, dict[int, None]] = {}
        self._number = 0
        self.failed: list[tuple[Task, Reason]] = []
        """What was asked in vain, until somebody takes it from here."""
        self.silenced: list[Task] = []
        """What was asked of those who say nothing so far, until somebody takes it from here."""

    def __len__(self) -> int:
        return len(self._calls)

    def next_number(self) -> int:
        """A number for a question."""
        self._number += 1
        return self._number

    def ask(
        self, number: int, contact: Contact, message: FastMessage, task: Task, hasty: bool = False
    ) -> list[FastEffect]:
        """Ask a peer; a hasty question ends as soon as a link is down, others when nothing helps."""
        self._calls[number] = _Call(contact.peer, message, task, hasty)
        self._to.setdefault(contact.peer, {})[number] = None
        effects = self.hold(contact)
        if contact.peer in self._up:
            effects.append(Send(contact.peer, message))
        return [*effects, SetTimer(self._config.resend, _tick(number))]

    def answer(self, peer: PeerId, message: FastMessage) -> list[FastEffect]:
        """Answer a peer that has a link to us; if it is gone, it will ask again."""
        if peer in self._up:
            return [Send(peer, message)]
        return [Record(Kind.DROPPED, peer=peer, reason=Reason.UNREACHABLE, note=type(message).__name__)]

    def answered(self, peer: PeerId, number: int) -> tuple[Task, FastEffect]:
        """A peer answers: what it was asked for. `RemoteError` if it was asked nothing of this number."""
        call = self._calls.get(number)
        if call is None or call.peer != peer:
            raise RemoteError(Reason.STALE, "it was not asked")
        self._drop(number)
        return call.task, CancelTimer(_tick(number))

    def pending(self, peer: PeerId, number: int) -> Task:
        """What a peer was asked for, without an end to it. `RemoteError` if it was asked nothing so."""
        call = self._calls.get(number)
        if call is None or call.peer != peer:
            raise RemoteError(Reason.STALE, "it was not asked")
        return call.task

    def extend(self, number: int, seconds: float) -> list[FastEffect]:
        """The peer is at it: its answer may take so long."""
        self._calls[number].tries = 0
        return [SetTimer(seconds, _tick(number))]

    def withdraw(self, peer: PeerId, tasks: dict[Task, None]) -> list[FastEffect]:
        """Nobody wants the answers to these any more."""
        numbers = [number for number in self._to.get(peer, ()) if self._calls[number].task in tasks]
        for number in numbers:
            self._drop(number)
        return [CancelTimer(_tick(number)) for number in numbers]

    def is_silent(self, peer: PeerId, task: Task) -> bool:
        """Whether a peer that was asked for this says nothing: no link comes up, or nothing comes over it."""
        numbers = self._to.get(peer, {})
        return any(
            self._calls[each].task == task and self._says_nothing(self._calls[each]) for each in numbers
        )

    def _says_nothing(self, call: _Call) -> bool:
        return call.tries >= _UNHEARD if call.peer in self._up else call.failed or call.tries > 0

    def _drop(self, number: int) -> None:
        call = self._calls.pop(number)
        numbers = self._to[call.peer]
        del numbers[number]
        if not numbers:
            del self._to[call.peer]

    # Links.

    def hold(self, contact: Contact) -> list[FastEffect]:
        """Keep a link to a peer."""
        if contact.peer in self._held:
            return []
        self._held[contact.peer] = None
        return [Hold(contact.peer, contact.hints, PURPOSE)]

    def is_up(self, peer: PeerId) -> bool:
        """Whether there is a link."""
        return peer in self._up

    def hints(self, peer: PeerId) -> tuple[str, ...]:
        """Where a peer with a link says that it can be dialled."""
        return self._up.get(peer, ())

    def link_up(self, peer: PeerId, hints: tuple[str, ...]) -> list[FastEffect]:
        """A link is up: what was asked goes over it."""
        self._up[peer] = hints
        return [Send(peer, self._calls[number].message) for number in self._to.get(peer, ())]

    def gone(self, peer: PeerId, reason: Reason) -> list[FastEffect]:
        """A link is down, or none came up: what is hasty ends; the rest waits for another link."""
        self._up.pop(peer, None)
        effects: list[FastEffect] = []
        if reason in _UNNEEDED:
            return effects
        for number in list(self._to.get(peer, ())):
            if self._calls[number].hasty:
                effects += [CancelTimer(_tick(number)), *self._fail(number, reason)]
            else:
                self._calls[number].failed = True
                self.silenced.append(self._calls[number].task)
        return effects

    def release_idle(self, needed: dict[PeerId, None]) -> list[FastEffect]:
        """Let all links go but these, and those over which something was asked."""
        idle = [peer for peer in self._held if peer not in needed and peer not in self._to]
        for peer in idle:
            del self._held[peer]
        return [Release(peer, PURPOSE) for peer in idle]

    def fired(self, tick: Tick) -> list[FastEffect]:
        """No answer in time: once more, and in the end no more."""
        number = int.from_bytes(tick.key)
        call = self._calls.get(number)
        if call is None:
            return []
        call.tries += 1
        if call.tries >= self._config.tries:
            return self._fail(number, Reason.TIMEOUT if call.peer in self._up else Reason.UNREACHABLE)
        if self._says_nothing(call):
            self.silenced.append(call.task)
        effects: list[FastEffect] = [Send(call.peer, call.message)] if call.peer in self._up else []
        return [*effects, SetTimer(self._config.resend * 2**call.tries, _tick(number))]

    def _fail(self, number: int, reason: Reason) -> list[FastEffect]:
        call = self._calls[number]
        self._drop(number)
        self.failed.append((call.task, reason))
        return [Record(Kind.DROPPED, peer=call.peer, reason=reason, note=type(call.message).__name__)]


def _tick(number: int) -> Tick:
    return Tick(OWNER, CALL, number.to_bytes(8))
