"""Questions and messages to peers that there may be no link to yet: each ends well or fails, in time.

A question holds its peer until it is answered; whoever answers nothing is let go. There is one question
of a kind to one peer at a time. A message holds its peer until it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.overlay.trackerless.messages import AskAlike, Intersect, Pull, RingAsk, Seek, Sought

_DIALING = 3.0
"""How many times longer a question may take whose link is yet to be opened."""

_TELLING = "telling"
_MESSAGES = 64
"""Messages that wait for the link to one peer, at most; more are not taken."""

Question: TypeAlias = Pull | AskAlike | Intersect | RingAsk
Telling: TypeAlias = Seek | Sought


class QuestionDue(Timer, frozen=True):
    """A peer has had its time to answer a question."""

    peer: PeerId
    kind: str
    """What it was asked, by the name of the message."""


class TellingDue(Timer, frozen=True):
    """The link for messages to a peer has had its time to come."""

    peer: PeerId


class Errand(Struct, frozen=True, gc=False):
    """A question that is not answered yet, or a message that is not sent."""

    peer: PeerId
    message: Question | Telling

    @property
    def kind(self) -> str:
        """What is asked or told."""
        return type(self.message).__name__


class Errands:
    """All questions of a node that are not answered yet."""

    def __init__(self, timeout: float, links: Mapping[PeerId, None], out: Outbox) -> None:
        self._timeout = timeout
        self._links = links
        self._out = out
        self._open: dict[PeerId, dict[str, Errand]] = {}
        self._waiting: dict[PeerId, list[Errand]] = {}

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._open

    def ask(self, peer: PeerId, hints: tuple[str, ...], message: Question) -> None:
        """Ask a peer, over a link that is there or is opened for it. Nothing if it is asked already."""
        errand = Errand(peer, message)
        asked = self._open.setdefault(peer, {})
        if errand.kind in asked:
            return
        asked[errand.kind] = errand
        self._out.hold(peer, hints, _purpose(errand.kind))
        if peer in self._links:
            self._send(errand)
        else:
            self._out.set_timer(self._timeout * _DIALING, QuestionDue(peer, errand.kind))

    def tell(self, peer: PeerId, hints: tuple[str, ...], message: Telling) -> bool:
        """Send a message over a link that is there or is opened for it; False: too much waits there."""
        if peer in self._links:
            self._out.send(peer, message)
            return True
        waiting = self._waiting.setdefault(peer, [])
        if len(waiting) >= _MESSAGES:
            return False
        waiting.append(Errand(peer, message))
        if len(waiting) == 1:
            self._out.hold(peer, hints, _TELLING)
            self._out.set_timer(self._timeout * _DIALING, TellingDue(peer))
        return True

    def is_asked(self, peer: PeerId, kind: type[Question]) -> bool:
        """Whether a peer was asked this and has not answered."""
        return kind.__name__ in self._open.get(peer, {})

    def handle_answer(self, peer: PeerId, kind: type[Question]) -> None:
        """A peer has answered, and is let go."""
        errand = self._pop(peer, kind.__name__)
        if errand is not None:
            self._cancel(errand)

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open: what waited for it is asked."""
        for errand in self._open.get(peer, {}).values():
            self._send(errand)
        waiting = self._waiting.pop(peer, None)
        if waiting is not None:
            for errand in waiting:
                self._out.send(peer, errand.message)
            self._end_telling(peer)

    def handle_link_down(self, peer: PeerId) -> list[Errand]:
        """A link is gone or did not come up: what was asked there has failed, and is returned."""
        failed = list(self._open.pop(peer, {}).values())
        for errand in failed:
            self._cancel(errand)
        waiting = self._waiting.pop(peer, None)
        if waiting is not None:
            failed += waiting
            self._end_telling(peer)
        return failed

    def end_question(self, peer: PeerId, kind: str) -> list[Errand]:
        """A question was not answered in time: it has failed, and is returned."""
        errand = self._pop(peer, kind)
        if errand is None:
            return []
        self._out.release(peer, _purpose(kind))
        return [errand]

    def end_telling(self, peer: PeerId) -> list[Errand]:
        """A link did not come in time: what waited for it has failed, and is returned."""
        self._out.release(peer, _TELLING)
        return self._waiting.pop(peer, [])

    def _pop(self, peer: PeerId, kind: str) -> Errand | None:
        asked = self._open.get(peer, {})
        errand = asked.pop(kind, None)
        if errand is not None and not asked:
            del self._open[peer]
        return errand

    def _send(self, errand: Errand) -> None:
        self._out.send(errand.peer, errand.message)
        self._out.set_timer(self._timeout, QuestionDue(errand.peer, errand.kind))

    def _cancel(self, errand: Errand) -> None:
        self._out.cancel_timer(QuestionDue(errand.peer, errand.kind))
        self._out.release(errand.peer, _purpose(errand.kind))

    def _end_telling(self, peer: PeerId) -> None:
        self._out.cancel_timer(TellingDue(peer))
        self._out.release(peer, _TELLING)


def _purpose(kind: str) -> str:
    return f"gossip {kind}"
