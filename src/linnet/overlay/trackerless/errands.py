"""Questions and messages to peers that there may be no link to yet: each ends well or fails, in time.

A question holds its peer until it is answered; whoever answers nothing is let go. There is one question
of a kind to one peer at a time. A message holds its peer until it is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from msgspec import Struct

from linnet.core.effects import CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.timers import Tick
from linnet.overlay.trackerless.messages import AskAlike, Intersect, Pull, RingAsk, Seek, Sought

OWNER = "trackerless"
_DIALING = 3.0
"""How many times longer a question may take whose link is yet to be opened."""

_TELLING = "telling"
_MESSAGES = 64
"""Messages that wait for the link to one peer, at most; more are not taken."""

Question: TypeAlias = Pull | AskAlike | Intersect | RingAsk
Telling: TypeAlias = Seek | Sought
ErrandEffect: TypeAlias = Send[Question | Telling] | Hold | Release | SetTimer[Tick] | CancelTimer[Tick]


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

    def __init__(self, timeout: float, links: Mapping[PeerId, None]) -> None:
        self._timeout = timeout
        self._links = links
        self._open: dict[PeerId, dict[str, Errand]] = {}
        self._waiting: dict[PeerId, list[Errand]] = {}

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._open

    def ask(self, peer: PeerId, hints: tuple[str, ...], message: Question) -> list[ErrandEffect]:
        """Ask a peer, over a link that is there or is opened for it. Nothing if it is asked already."""
        errand = Errand(peer, message)
        asked = self._open.setdefault(peer, {})
        if errand.kind in asked:
            return []
        asked[errand.kind] = errand
        effects: list[ErrandEffect] = [Hold(peer, hints, _purpose(errand.kind))]
        return effects + self._send(errand) if peer in self._links else effects + self._wait(errand)

    def tell(self, peer: PeerId, hints: tuple[str, ...], message: Telling) -> list[ErrandEffect] | None:
        """Send a message over a link that is there or is opened for it; None: too much waits there."""
        if peer in self._links:
            return [Send(peer, message)]
        waiting = self._waiting.setdefault(peer, [])
        if len(waiting) >= _MESSAGES:
            return None
        waiting.append(Errand(peer, message))
        if len(waiting) > 1:
            return []
        return [Hold(peer, hints, _TELLING), SetTimer(self._timeout * _DIALING, Tick(OWNER, _TELLING, peer))]

    def asked(self, peer: PeerId, kind: type[Question]) -> bool:
        """Whether a peer was asked this and has not answered."""
        return kind.__name__ in self._open.get(peer, {})

    def answered(self, peer: PeerId, kind: type[Question]) -> list[ErrandEffect]:
        """A peer has answered, and is let go."""
        asked = self._open.get(peer, {})
        errand = asked.pop(kind.__name__, None)
        if errand is None:
            return []
        if not asked:
            del self._open[peer]
        return [CancelTimer(_tick(errand)), Release(peer, _purpose(errand.kind))]

    def linked(self, peer: PeerId) -> list[ErrandEffect]:
        """A link is open: what waited for it is asked."""
        effects = [effect for errand in self._open.get(peer, {}).values() for effect in self._send(errand)]
        waiting = self._waiting.pop(peer, None)
        if waiting is not None:
            effects += [Send(peer, errand.message) for errand in waiting]
            effects += self._untold(peer)
        return effects

    def lost(self, peer: PeerId) -> tuple[list[Errand], list[ErrandEffect]]:
        """A link is gone or did not come up: what was asked there has failed."""
        failed = list(self._open.pop(peer, {}).values())
        effects: list[ErrandEffect] = []
        for errand in failed:
            effects += [CancelTimer(_tick(errand)), Release(peer, _purpose(errand.kind))]
        waiting = self._waiting.pop(peer, None)
        if waiting is not None:
            failed += waiting
            effects += self._untold(peer)
        return failed, effects

    def overdue(self, tick: Tick) -> tuple[list[Errand], list[ErrandEffect]]:
        """A question was not answered in time, or a link did not come."""
        peer, kind = PeerId(tick.key), tick.what
        if kind == _TELLING:
            return self._waiting.pop(peer, []), [Release(peer, _TELLING)]
        asked = self._open.get(peer, {})
        errand = asked.pop(kind, None)
        if errand is None:
            return [], []
        if not asked:
            del self._open[peer]
        return [errand], [Release(peer, _purpose(kind))]

    def _send(self, errand: Errand) -> list[ErrandEffect]:
        return [Send(errand.peer, errand.message), SetTimer(self._timeout, _tick(errand))]

    def _untold(self, peer: PeerId) -> list[ErrandEffect]:
        return [CancelTimer(Tick(OWNER, _TELLING, peer)), Release(peer, _TELLING)]

    def _wait(self, errand: Errand) -> list[ErrandEffect]:
        return [SetTimer(self._timeout * _DIALING, _tick(errand))]


def _purpose(kind: str) -> str:
    return f"gossip {kind}"


def _tick(errand: Errand) -> Tick:
    return Tick(OWNER, errand.kind, errand.peer)
