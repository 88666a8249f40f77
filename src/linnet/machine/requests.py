"""Numbered requests to peers: each ends once, with an answer or a failure.

A request goes over a link that is held, and dialled if need be. It is sent again if its retry says so, and
fails when the last try is not answered or its link goes down. At its end the caller gets back its context,
which says what the request is for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct

from linnet.core.ids import Contact, PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox

X = TypeVar("X")
_UNHEARD = 2
"""Unanswered tries after which a linked peer counts as silent."""


class Retry(Struct, frozen=True, gc=False):
    """How long to wait for an answer, and how often to send a request."""

    timeout: float
    """Seconds to wait for the first try, including a dial."""
    tries: int = 1
    """The number of tries; each waits twice as long as the one before."""
    survives_link: bool = False
    """Whether it waits for another link when its own goes down, and is sent again over that."""


class Failed(Struct, Generic[X], frozen=True, gc=False):
    """A request that got no answer."""

    peer: PeerId
    context: X
    reason: Reason
    message: Message


class _Request(Struct, Generic[X], eq=False):
    """An open request."""

    peer: PeerId
    message: Message
    context: X
    retry: Retry
    tries: int = 0
    """Tries that were not answered in time."""
    is_sent: bool = False
    """Whether it was sent over the present link."""
    is_broken: bool = False
    """Whether its link went down, or none came up, since it was made."""

    @property
    def is_silent(self) -> bool:
        return self.tries >= _UNHEARD if self.is_sent else self.is_broken or self.tries > 0


class Requests(Generic[X]):
    """The open requests of one part, each with a context that is never None. The part limits how many."""

    def __init__(
        self, purpose: str, timer: Callable[[int], Timer], out: Outbox, keeps_links: bool = False
    ) -> None:
        """Hold links for a purpose, until all requests end, or with `keeps_links` until `release_idle`."""
        self._purpose = purpose
        self._timer = timer
        self._out = out
        self._keeps_links = keeps_links
        self._number = 0
        self._open: dict[int, _Request[X]] = {}
        self._by_peer: dict[PeerId, dict[int, None]] = {}
        self._held: dict[PeerId, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def next_number(self) -> int:
        """Return the next number, which the message must carry."""
        self._number += 1
        return self._number

    def ask(
        self, number: int, contact: Contact, message: Message, context: X, retry: Retry, is_linked: bool
    ) -> None:
        """Send a request over the open link, or over one that is dialled for it."""
        peer = contact.peer
        request = self._open[number] = _Request(peer, message, context, retry)
        self._by_peer.setdefault(peer, {})[number] = None
        self.hold(contact)
        if is_linked:
            self._send(request)
        self._out.set_timer(retry.timeout, self._timer(number))

    def hold(self, contact: Contact) -> None:
        """Hold a link to a peer that is asked, or with `keeps_links` to one that may be."""
        if contact.peer not in self._held:
            self._held[contact.peer] = None
            self._out.hold(contact.peer, contact.hints, self._purpose)

    def context(self, peer: PeerId, number: int) -> X | None:
        """Return the context of a request without ending it; None if this peer was not asked."""
        request = self._open.get(number)
        return request.context if request is not None and request.peer == peer and request.is_sent else None

    def handle_answer(self, peer: PeerId, number: int) -> X | None:
        """End the request that a peer answers; None if this peer was not asked."""
        context = self.context(peer, number)
        if context is not None:
            self._cancel(number)
        return context

    def handle_link_up(self, peer: PeerId) -> None:
        """Send the requests that wait for a link to this peer."""
        for number in self._by_peer.get(peer, ()):
            request = self._open[number]
            if not request.is_sent:
                self._send(request)

    def handle_link_down(self, peer: PeerId, reason: Reason) -> list[Failed[X]]:
        """Fail the requests to a peer whose link is gone or never came, except those that survive it."""
        failed: list[Failed[X]] = []
        for number in list(self._by_peer.get(peer, ())):
            request = self._open[number]
            if request.retry.survives_link:
                request.is_sent, request.is_broken = False, True
            else:
                self._cancel(number)
                failed.append(Failed(peer, request.context, reason, request.message))
        return failed

    def handle_link_closed(self, peer: PeerId) -> None:
        """Let the requests to a peer wait for another link: this one was not needed and was closed."""
        for number in self._by_peer.get(peer, ()):
            self._open[number].is_sent = False

    def handle_timeout(self, number: int) -> Failed[X] | None:
        """Send a request again that was not answered in time, or fail it after the last try."""
        request = self._open.get(number)
        if request is None:
            return None
        request.tries += 1
        if request.tries < request.retry.tries:
            if request.is_sent:
                self._send(request)
            self._out.set_timer(request.retry.timeout * 2**request.tries, self._timer(number))
            return None
        self._close(number)
        reason = Reason.TIMEOUT if request.is_sent else Reason.UNREACHABLE
        return Failed(request.peer, request.context, reason, request.message)

    def silent(self, peer: PeerId) -> list[X]:
        """Return the contexts of the requests to which a peer is silent: no link comes up, or no answer."""
        requests = (self._open[number] for number in self._by_peer.get(peer, ()))
        return [request.context for request in requests if request.is_silent]

    def silent_context(self, number: int) -> X | None:
        """Return the context of a request if its peer is silent so far; else None."""
        request = self._open.get(number)
        return request.context if request is not None and request.is_silent else None

    def extend(self, number: int, seconds: float) -> None:
        """Wait this many seconds for an answer that is being made; after that, all tries are left again."""
        self._open[number].tries = 0
        self._out.set_timer(seconds, self._timer(number))

    def withdraw(self, peer: PeerId, is_unwanted: Callable[[X], bool]) -> None:
        """Drop the requests to a peer whose answers are no longer wanted."""
        for number in list(self._by_peer.get(peer, ())):
            if is_unwanted(self._open[number].context):
                self._cancel(number)

    def release_idle(self, needed: dict[PeerId, None]) -> None:
        """Release all links except these and those with open requests."""
        for peer in [peer for peer in self._held if peer not in needed and peer not in self._by_peer]:
            self._release(peer)

    def _send(self, request: _Request[X]) -> None:
        request.is_sent = True
        self._out.send(request.peer, request.message)

    def _cancel(self, number: int) -> None:
        self._out.cancel_timer(self._timer(number))
        self._close(number)

    def _close(self, number: int) -> None:
        peer = self._open.pop(number).peer
        theirs = self._by_peer[peer]
        del theirs[number]
        if not theirs:
            del self._by_peer[peer]
            if not self._keeps_links:
                self._release(peer)

    def _release(self, peer: PeerId) -> None:
        del self._held[peer]
        self._out.release(peer, self._purpose)
