"""Offering pieces of our own attachments to relays, until one has taken them.

What no relay has taken is offered again to whichever is used next, also after a restart. A relay that says
no is not asked again for that piece while this node runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.rooms.chunk_store import ChunkStore
from linnet.rooms.messages import ChunkPut, ChunkTaken
from linnet.trace.records import Kind, Record

WINDOW = 4
"""Pieces that are on their way to one relay: half a mebibyte, so that events are not held up behind them."""
TRIES = 3
"""Times that a piece is sent over one link to a relay that does not answer."""


class OfferDue(Timer, frozen=True, gc=False):
    """A relay has not answered for a while what it was offered."""

    room: TopicId
    relay: PeerId


class _Offer:
    """What is offered to one relay over one link."""

    __slots__ = ("armed", "out", "queue", "tries")

    def __init__(self, pieces: Sequence[bytes]) -> None:
        self.queue: dict[bytes, None] = dict.fromkeys(pieces)
        self.out: dict[bytes, float] = {}
        """Pieces that were sent and not answered, with when."""
        self.tries: dict[bytes, int] = {}
        self.armed = False

    def forget(self, digest: bytes) -> None:
        """Offer a piece no more."""
        self.queue.pop(digest, None)
        self.out.pop(digest, None)
        self.tries.pop(digest, None)


class ChunkOffers:
    """What is offered to the relays of one room that are used and can be told something now."""

    def __init__(self, room: TopicId, store: ChunkStore, timeout: float, out: Outbox) -> None:
        self._room = room
        self._out = out
        self._store = store
        self._timeout = timeout
        self._offers: dict[PeerId, _Offer] = {}
        self._refused: dict[bytes, dict[PeerId, None]] = {}

    def use_relays(self, relays: Sequence[PeerId], now: float) -> None:
        """Offer everything to those of these relays that are new; the links to all of them are open."""
        for peer in list(self._offers):
            if peer not in relays:
                self._end(peer)
        for peer in relays:
            if peer not in self._offers:
                pieces = [each for each in self._store.offered if peer not in self._refused.get(each, ())]
                self._offers[peer] = _Offer(pieces)
                self._send(peer, now)

    def offer(self, digest: bytes, now: float) -> None:
        """Offer a piece to all relays that are used."""
        for peer, offer in self._offers.items():
            if digest not in offer.out and peer not in self._refused.get(digest, ()):
                offer.queue[digest] = None
                self._send(peer, now)

    def handle_answer(self, peer: PeerId, answer: ChunkTaken, now: float) -> None:
        """Note that a relay has taken a piece, durably, or why it does not."""
        offer = self._offers.get(peer)
        if offer is None or answer.digest not in self._store:
            reason = Reason.NOT_A_RELAY if offer is None else Reason.NOT_HELD
            note = "an answer to no offer"
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=reason, note=note))
            return
        if answer.reason is None:
            self._store.settle(answer.digest)
            self._refused.pop(answer.digest, None)
            for other in self._offers.values():
                other.forget(answer.digest)
        else:
            offer.forget(answer.digest)
            self._refused.setdefault(answer.digest, {})[peer] = None
            note = "a relay does not take a piece"
            self._out.record(Record(Kind.DROPPED, self._room, peer=peer, reason=answer.reason, note=note))
        self._send(peer, now)

    def handle_timeout(self, peer: PeerId, now: float) -> None:
        """Send again what a relay did not answer, but not for ever over one link."""
        offer = self._offers.get(peer)
        if offer is None:
            return
        offer.armed = False
        for digest, sent in list(offer.out.items()):
            if now - sent < self._timeout / 2:
                continue
            del offer.out[digest]
            if offer.tries[digest] < TRIES:
                offer.queue[digest] = None
                continue
            offer.forget(digest)
            note = "a piece waits for another link to a relay"
            self._out.record(Record(Kind.DROPPED, self._room, peer=peer, reason=Reason.TIMEOUT, note=note))
        self._send(peer, now)

    def stop(self) -> None:
        """Offer nothing to anybody any more."""
        for peer in list(self._offers):
            self._end(peer)

    def _send(self, peer: PeerId, now: float) -> None:
        """Send as many as may be on their way."""
        offer = self._offers[peer]
        while offer.queue and len(offer.out) < WINDOW:
            digest = next(iter(offer.queue))
            del offer.queue[digest]
            data = self._store.get(digest)
            if data is None:
                continue  # it gave way to others meanwhile, which was recorded
            offer.out[digest] = now
            offer.tries[digest] = offer.tries.get(digest, 0) + 1
            self._out.send(peer, ChunkPut(self._room, digest, data))
        if offer.out and not offer.armed:
            offer.armed = True
            self._out.set_timer(self._timeout, OfferDue(self._room, peer))

    def _end(self, peer: PeerId) -> None:
        if self._offers.pop(peer).armed:
            self._out.cancel_timer(OfferDue(self._room, peer))
