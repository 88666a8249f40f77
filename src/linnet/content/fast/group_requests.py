"""What peers are asked for, and over which links."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.content.fast.config import FastConfig
from linnet.content.fast.messages import Conveyed, FastMessage
from linnet.content.reach import Promise
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.machine.requests import Failed, Requests, Retry
from linnet.trace.records import Kind, Record

PURPOSE = "fast"
_UNNEEDED = (Reason.NOT_NEEDED, Reason.DUPLICATE_LINK)
"""Why links close without anything being wrong."""


class AnswerDue(Timer, frozen=True, gc=False):
    """A peer has not answered in time what it was asked."""

    number: int


class Advertising(Struct, frozen=True, gc=False):
    """A group of ours is put on the board of an attribute at a node."""

    group: TopicId
    attribute: str
    at: PeerId


class Browsing(Struct, frozen=True, gc=False):
    """A board is searched, for a search of ours."""

    search: int
    at: PeerId


class Entering(Struct, frozen=True, gc=False):
    """A group of another is joined, or the membership renewed."""

    group: TopicId


class Leaving(Struct, frozen=True, gc=False):
    """A group is left or closed, and the other side told."""

    group: TopicId
    peer: PeerId


class Entrusting(Struct, frozen=True, gc=False):
    """A member of a group of ours is asked to serve others."""

    group: TopicId
    deputy: PeerId


class Publishing(Struct, frozen=True, gc=False):
    """An event of ours is brought to a member."""

    event: EventId
    member: PeerId


class Forwarding(Struct, frozen=True, gc=False):
    """An event of another is brought to a member whom we serve."""

    event: EventId
    member: PeerId


Task: TypeAlias = Advertising | Browsing | Entering | Leaving | Entrusting | Publishing | Forwarding


class GroupRequests:
    """What groups ask of peers and answer them, over the links that there are."""

    def __init__(self, config: FastConfig, out: Outbox, promise: Promise) -> None:
        self._out = out
        self._promise = promise
        self._requests: Requests[Task] = Requests(PURPOSE, AnswerDue, out, keeps_links=True)
        self._patient = Retry(config.resend, config.tries, survives_link=True)
        self._hasty = Retry(config.resend, config.tries)
        self._up: dict[PeerId, None] = {}

    def __len__(self) -> int:
        return len(self._requests)

    def next_number(self) -> int:
        """Draw a number, which the message has to carry."""
        return self._requests.next_number()

    def ask(
        self, number: int, contact: Contact, message: FastMessage, task: Task, hasty: bool = False
    ) -> None:
        """Ask a peer; a hasty request ends as soon as its link is down, others when nothing helps."""
        retry = self._hasty if hasty else self._patient
        self._requests.ask(number, contact, message, task, retry, contact.peer in self._up)

    def hold(self, contact: Contact) -> None:
        """Keep a link to a peer that will be asked."""
        self._requests.hold(contact)

    def answer(self, peer: PeerId, message: FastMessage) -> None:
        """Answer a peer that has a link to us; if it is gone, it will ask again."""
        if peer not in self._up:
            note = type(message).__name__
            self._out.record(Record(Kind.DROPPED, peer=peer, reason=Reason.UNREACHABLE, note=note))
        elif isinstance(message, Conveyed):
            self._promise().send(peer, message)
        else:
            self._out.send(peer, message)

    def handle_answer(self, peer: PeerId, number: int) -> Task:
        """What a peer was asked for that answers now; `RemoteError` if it was not asked."""
        return _asked(self._requests.handle_answer(peer, number))

    def pending(self, peer: PeerId, number: int) -> Task:
        """What a peer was asked for, without ending the request; `RemoteError` if it was not asked."""
        return _asked(self._requests.context(peer, number))

    def extend(self, number: int, seconds: float) -> None:
        """Wait so long for an answer that is being made."""
        self._requests.extend(number, seconds)

    def withdraw(self, peer: PeerId, task: Task) -> None:
        """Forget a request whose answer nobody wants any more."""
        self._requests.withdraw(peer, lambda each: each == task)

    def is_silent(self, peer: PeerId, task: Task) -> bool:
        """Whether a peer that was asked for this says nothing: no link comes up, or nothing comes over it."""
        return task in self._requests.silent(peer)

    def handle_link_up(self, peer: PeerId) -> None:
        """Send over a link that is up all that was asked of its peer."""
        self._up[peer] = None
        self._requests.handle_link_closed(peer)
        self._requests.handle_link_up(peer)

    def handle_link_loss(self, peer: PeerId, reason: Reason) -> tuple[list[Failed[Task]], list[Task]]:
        """What failed with a link that is down or did not come up, and what waits for another one."""
        self._up.pop(peer, None)
        if reason in _UNNEEDED:
            self._requests.handle_link_closed(peer)
            return [], []
        failed = self._requests.handle_link_down(peer, reason)
        self._record(failed)
        return failed, self._requests.silent(peer)

    def handle_timeout(self, timer: AnswerDue) -> tuple[list[Failed[Task]], list[Task]]:
        """What failed since it was not answered in time, and what is sent again to one who says nothing."""
        failed = self._requests.handle_timeout(timer.number)
        if failed is not None:
            self._record([failed])
            return [failed], []
        silent = self._requests.silent_context(timer.number)
        return [], [] if silent is None else [silent]

    def release_idle(self, needed: dict[PeerId, None]) -> None:
        """Let all links go but these, and those over which something is asked."""
        self._requests.release_idle(needed)

    def _record(self, failed: list[Failed[Task]]) -> None:
        for each in failed:
            note = type(each.message).__name__
            self._out.record(Record(Kind.DROPPED, peer=each.peer, reason=each.reason, note=note))


def _asked(task: Task | None) -> Task:
    if task is None:
        raise RemoteError(Reason.STALE, "it was not asked")
    return task
