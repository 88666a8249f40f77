"""The requests that groups send to peers, and the tasks that they are sent for."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from msgspec import Struct

from linnet.content.config import ContentConfig, FastConfig
from linnet.content.fast.messages import Browse, Convey, Conveyed, Enrol, Entrust, Post, Quit
from linnet.content.routes import Promise
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.context import Context
from linnet.machine.outbox import Outbox
from linnet.machine.requests import Failed, Requests, Retry
from linnet.trace.records import Kind, Record

PURPOSE = "fast"
_UNNEEDED = (Reason.NOT_NEEDED, Reason.DUPLICATE_LINK)
"""Reasons for closing a link that are no fault."""


class AnswerDue(Timer, frozen=True, gc=False):
    """A peer has not answered a request in time."""

    number: int


class Advertising(Struct, frozen=True, gc=False):
    """Put a group of ours on the board of an attribute at a node."""

    group: TopicId
    attribute: str
    at: PeerId


class Browsing(Struct, frozen=True, gc=False):
    """Search a board, for a search of ours."""

    search: int
    at: PeerId


class Entering(Struct, frozen=True, gc=False):
    """Join a group of another publisher, or renew the membership."""

    group: TopicId


class Leaving(Struct, frozen=True, gc=False):
    """Tell the other side that a group was left or closed."""

    group: TopicId
    peer: PeerId


class Entrusting(Struct, frozen=True, gc=False):
    """Ask a member of a group of ours to serve others."""

    group: TopicId
    deputy: PeerId


class Publishing(Struct, frozen=True, gc=False):
    """Bring an event of ours to a member."""

    event: EventId
    member: PeerId


class Forwarding(Struct, frozen=True, gc=False):
    """Bring another publisher's event to a member that we serve."""

    event: EventId
    member: PeerId


Task: TypeAlias = Advertising | Browsing | Entering | Leaving | Entrusting | Publishing | Forwarding
Question: TypeAlias = Post | Browse | Enrol | Quit | Entrust | Convey


class GroupRequests(Requests[Task]):
    """Sends the requests and answers of groups, over the links that there are."""

    def __init__(self, config: FastConfig, out: Outbox, promise: Promise) -> None:
        super().__init__(PURPOSE, AnswerDue, out, keeps_links=True)
        self._promise = promise
        self._patient = Retry(config.resend, config.tries, survives_link=True)
        self._hasty = Retry(config.resend, config.tries)
        self._up: dict[PeerId, None] = {}

    def ask_peer(self, contact: Contact, message: Question, task: Task, hasty: bool = False) -> None:
        """Ask a peer; a hasty request fails as soon as its link is down, others once all tries are spent."""
        retry = self._hasty if hasty else self._patient
        self.ask(message.number, contact, message, task, retry, contact.peer in self._up)

    def answer(self, peer: PeerId, message: Message) -> None:
        """Answer a peer that has a link to us; if it is gone, it will ask again."""
        if peer not in self._up:
            note = type(message).__name__
            self._out.record(Record(Kind.DROPPED, peer=peer, reason=Reason.UNREACHABLE, note=note))
        elif isinstance(message, Conveyed):
            self._promise().send(peer, message)
        else:
            self._out.send(peer, message)

    def take_task(self, peer: PeerId, number: int) -> Task:
        """Return the task of the request that a peer answers, and end it; `RemoteError` if there is none."""
        return _asked(self.handle_answer(peer, number))

    def find_task(self, peer: PeerId, number: int) -> Task:
        """Return the task of an open request to a peer; `RemoteError` if there is none."""
        return _asked(self.context(peer, number))

    def forget(self, peer: PeerId, task: Task) -> None:
        """Drop a request whose answer is no longer needed."""
        self.withdraw(peer, lambda each: each == task)

    def is_silent(self, peer: PeerId, task: Task) -> bool:
        """Return whether a peer is silent on a task: no link comes up, or nothing comes over it."""
        return task in self.silent(peer)

    def handle_link_up(self, peer: PeerId) -> None:
        """Send all open requests to a peer whose link is up."""
        self._up[peer] = None
        self.handle_link_closed(peer)
        super().handle_link_up(peer)

    def handle_link_loss(self, peer: PeerId, reason: Reason) -> tuple[list[Failed[Task]], list[Task]]:
        """Return the requests that fail with a link, and the tasks that wait for another link."""
        self._up.pop(peer, None)
        if reason in _UNNEEDED:
            self.handle_link_closed(peer)
            return [], []
        failed = self.handle_link_down(peer, reason)
        self._record(failed)
        return failed, self.silent(peer)

    def handle_answer_due(self, timer: AnswerDue) -> tuple[list[Failed[Task]], list[Task]]:
        """Repeat or fail an unanswered request; return it if it failed, or its task if its peer is silent."""
        failed = self.handle_timeout(timer.number)
        if failed is not None:
            self._record([failed])
            return [failed], []
        silent = self.silent_context(timer.number)
        return [], [] if silent is None else [silent]

    def _record(self, failed: list[Failed[Task]]) -> None:
        for each in failed:
            note = type(each.message).__name__
            self._out.record(Record(Kind.DROPPED, peer=each.peer, reason=each.reason, note=note))


def _asked(task: Task | None) -> Task:
    if task is None:
        raise RemoteError(Reason.STALE, "it was not asked")
    return task


class FastStation(NamedTuple):
    """The state that all parts of FastDelivery at one node share."""

    context: Context
    config: FastConfig
    content: ContentConfig
    requests: GroupRequests
    listens: tuple[str, ...]
    out: Outbox
