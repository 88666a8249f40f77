"""Numbered requests to peers: one question, and one end, which is an answer or a failure.

Each goes over a link that is dialled and held for it. It is sent again if its retry says so, and fails when
the last try is not answered, or when its link goes. With its end comes back what it is for, its context.
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
"""Sendings without a word after which a peer with a link counts as silent."""


class Retry(Struct, frozen=True, gc=False):
    """How long an answer is waited for, and how often a request is sent."""

    timeout: float
    """Seconds that the first try waits, a dial included."""
    tries: int = 1
    """Each waits twice as long as the one before."""
    survives_link: bool = False
    """Whether it waits for another link when its own goes, and is sent again over that."""


class Failed(Struct, Generic[X], frozen=True, gc=False):
    """A request that has no answer."""

    peer: PeerId
    context: X
    reason: Reason
    message: Message


class _Request(Generic[X]):
    """A request that is open."""

    __slots__ = ("context", "is_broken", "is_sent", "message", "peer", "retry", "tries")

    def __init__(self, peer: PeerId, message: Message, context: X, retry: Retry) -> None:
        self.peer = peer
        self.message = message
        self.context = context
        self.retry = retry
        self.tries = 0
        """Tries that were not answered in time."""
        self.is_sent = False
        """Whether it went over the link that there is now."""
        self.is_broken = False
        """Whether its link broke, or none came up, since it was asked."""

    @property
    def is_silent(self) -> bool:
        return self.tries >= _UNHEARD if self.is_sent else self.is_broken or self.tries > 0


class Requests(Generic[X]):
    """Open requests of one part, each for an X, which is never None. The part bounds how many there are."""

    def __init__(
        self, purpose: str, timer: Callable[[int], Timer], out: Outbox, keeps_links: bool = False
    ) -> None:
        """Hold links for a purpose: until all is answered, or with `keeps_links` until `release_idle`."""
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
        """Draw a number, which the message has to carry."""
        self._number += 1
        return self._number

    def ask(
        self, number: int, contact: Contact, message: Message, context: X, retry: Retry, is_linked: bool
    ) -> None:
        """Send a request over the link that there is, or over one that is dialled for it."""
        peer = contact.peer
        request = self._open[number] = _Request(peer, message, context, retry)
        self._by_peer.setdefault(peer, {})[number] = None
        self.hold(contact)
        if is_linked:
            self._send(request)
        self._out.set_timer(retry.timeout, self._timer(number))

    def hold(self, contact: Contact) -> None:
        """Keep a link to a peer that is asked, or with `keeps_links` to one that may be."""
        if contact.peer not in self._held:
            self._held[contact.peer] = None
            self._out.hold(contact.peer, contact.hints, self._purpose)

    def context(self, peer: PeerId, number: int) -> X | None:
        """What a peer was asked for, without ending the request; None if it was not asked."""
        request = self._open.get(number)
        return request.context if request is not None and request.peer == peer and request.is_sent else None

    def handle_answer(self, peer: PeerId, number: int) -> X | None:
        """End the request that a peer answers; None if it was not asked."""
        context = self.context(peer, number)
        if context is not None:
            self._cancel(number)
        return context

    def handle_link_up(self, peer: PeerId) -> None:
        """Send what waits for a link to this peer."""
        for number in self._by_peer.get(peer, ()):
            request = self._open[number]
            if not request.is_sent:
                self._send(request)

    def handle_link_down(self, peer: PeerId, reason: Reason) -> list[Failed[X]]:
        """Fail the requests to a peer whose link is gone or never came, but for those that survive it."""
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
        """Have the requests to a peer wait for another link: nothing is wrong, this one was not needed."""
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
        """What a peer was asked for and says nothing of: no link comes up, or nothing comes over it."""
        requests = (self._open[number] for number in self._by_peer.get(peer, ()))
        return [request.context for request in requests if request.is_silent]

    def silent_context(self, number: int) -> X | None:
        """What a request is for whose peer says nothing so far; None if it does, or is not asked any more."""
        request = self._open.get(number)
        return request.context if request is not None and request.is_silent else None

    def extend(self, number: int, seconds: float) -> None:
        """Wait so long for an answer that is being made; all tries are left again then."""
        self._open[number].tries = 0
        self._out.set_timer(seconds, self._timer(number))

    def withdraw(self, peer: PeerId, is_unwanted: Callable[[X], bool]) -> None:
        """Forget the requests to a peer whose answers nobody wants any more."""
        for number in list(self._by_peer.get(peer, ())):
            if is_unwanted(self._open[number].context):
                self._cancel(number)

    def release_idle(self, needed: dict[PeerId, None]) -> None:
        """Let all links go but these, and those over which something is asked."""
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
