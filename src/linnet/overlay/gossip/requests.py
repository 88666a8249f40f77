"""Questions and messages to peers whose link may not be open yet: each succeeds, or fails in time.

A question holds its peer until it is answered or times out. There is one question of a kind to one peer at a
time. A message holds its peer until it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.overlay.gossip.messages import AskAlike, Intersect, Pull, RingAsk, Seek, Sought

_DIALING = 3.0
"""The factor by which a question may take longer if its link must be opened first."""

_TELLING = "telling"
_MESSAGES = 64
"""The most messages that wait for the link to one peer; further ones are refused."""

Question: TypeAlias = Pull | AskAlike | Intersect | RingAsk
Telling: TypeAlias = Seek | Sought


class QuestionDue(Timer, frozen=True):
    """Fires when a peer has had its time to answer a question."""

    peer: PeerId
    kind: str
    """The kind of question: the name of the message."""


class TellingDue(Timer, frozen=True):
    """Fires when the link for messages to a peer has had its time to open."""

    peer: PeerId


class Request(Struct, frozen=True, gc=False):
    """A question that is not answered yet, or a message that is not sent."""

    peer: PeerId
    message: Question | Telling

    @property
    def kind(self) -> str:
        """The name of the message."""
        return type(self.message).__name__


class GossipRequests:
    """All open questions and unsent messages of a node."""

    def __init__(self, timeout: float, links: Mapping[PeerId, None], out: Outbox) -> None:
        self._timeout = timeout
        self._links = links
        self._out = out
        self._open: dict[PeerId, dict[str, Request]] = {}
        self._waiting: dict[PeerId, list[Request]] = {}

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._open

    def ask_peer(self, peer: PeerId, hints: tuple[str, ...], message: Question) -> None:
        """Ask a peer, over its link or one that is opened for it. Does nothing if it was asked already."""
        errand = Request(peer, message)
        asked = self._open.setdefault(peer, {})
        if errand.kind in asked:
            return
        asked[errand.kind] = errand
        self._out.hold(peer, hints, _purpose(errand.kind))
        if peer in self._links:
            self._send(errand)
        else:
            self._out.set_timer(self._timeout * _DIALING, QuestionDue(peer, errand.kind))

    def tell_peer(self, peer: PeerId, hints: tuple[str, ...], message: Telling) -> bool:
        """Send a message over a link that is open or is opened for it; False: too many wait there."""
        if peer in self._links:
            self._out.send(peer, message)
            return True
        waiting = self._waiting.setdefault(peer, [])
        if len(waiting) >= _MESSAGES:
            return False
        waiting.append(Request(peer, message))
        if len(waiting) == 1:
            self._out.hold(peer, hints, _TELLING)
            self._out.set_timer(self._timeout * _DIALING, TellingDue(peer))
        return True

    def is_asked(self, peer: PeerId, kind: type[Question]) -> bool:
        """Return whether a peer was asked a question of this kind and has not answered."""
        return kind.__name__ in self._open.get(peer, {})

    def handle_answer(self, peer: PeerId, kind: type[Question]) -> None:
        """End a question that a peer has answered, and release the peer."""
        errand = self._pop(peer, kind.__name__)
        if errand is not None:
            self._cancel(errand)

    def handle_link_up(self, peer: PeerId) -> None:
        """Send the questions and messages that waited for this link."""
        for errand in self._open.get(peer, {}).values():
            self._send(errand)
        waiting = self._waiting.pop(peer, None)
        if waiting is not None:
            for errand in waiting:
                self._out.send(peer, errand.message)
            self._end_telling(peer)

    def handle_link_down(self, peer: PeerId) -> list[Request]:
        """Fail the questions and messages to a peer whose link closed or did not open, and return them."""
        failed = list(self._open.pop(peer, {}).values())
        for errand in failed:
            self._cancel(errand)
        waiting = self._waiting.pop(peer, None)
        if waiting is not None:
            failed += waiting
            self._end_telling(peer)
        return failed

    def end_question(self, peer: PeerId, kind: str) -> list[Request]:
        """Fail a question that was not answered in time, and return it."""
        errand = self._pop(peer, kind)
        if errand is None:
            return []
        self._out.release(peer, _purpose(kind))
        return [errand]

    def end_telling(self, peer: PeerId) -> list[Request]:
        """Fail the messages whose link did not open in time, and return them."""
        self._out.release(peer, _TELLING)
        return self._waiting.pop(peer, [])

    def _pop(self, peer: PeerId, kind: str) -> Request | None:
        asked = self._open.get(peer, {})
        errand = asked.pop(kind, None)
        if errand is not None and not asked:
            del self._open[peer]
        return errand

    def _send(self, errand: Request) -> None:
        self._out.send(errand.peer, errand.message)
        self._out.set_timer(self._timeout, QuestionDue(errand.peer, errand.kind))

    def _cancel(self, errand: Request) -> None:
        self._out.cancel_timer(QuestionDue(errand.peer, errand.kind))
        self._out.release(errand.peer, _purpose(errand.kind))

    def _end_telling(self, peer: PeerId) -> None:
        self._out.cancel_timer(TellingDue(peer))
        self._out.release(peer, _TELLING)


def _purpose(kind: str) -> str:
    return f"gossip {kind}"
