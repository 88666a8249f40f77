"""Pieces of attachments at a member, which stores, serves and fetches them, and offers its own to relays.

A piece is named by its digest, so any source is as good as another and a wrong piece is noticed at once.
Fetched pieces are stored, so that an interrupted download resumes.

Pieces of our own are offered to relays until one has taken them. A piece that none has taken is offered to
the relay that is used next, also after a restart. A relay that refuses a piece is not offered it again while
this node runs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.want_list import WantConfig, WantList
from linnet.machine.commands import Declined, Done
from linnet.machine.outbox import Outbox
from linnet.rooms.attachments import check_piece
from linnet.rooms.chunk_store import ChunkStore
from linnet.rooms.commands import ChunkFetched, FetchChunk, KeepChunk
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import CHUNK_BYTES, ChunkIs, ChunkPut, ChunkTaken, ChunkWant, RoomTimer
from linnet.trace.records import Kind, Record

PARALLEL = 16
"""The most pieces of one room that are requested at the same time: two mebibytes in flight."""
REQUESTS = 1024
"""The most commands that wait for pieces of one room: enough for an application that reads ahead."""


class ChunkDue(RoomTimer, frozen=True, gc=False):
    """Timer: requested pieces may be overdue, to be asked of other sources."""


class FetchDue(RoomTimer, frozen=True, gc=False):
    """Timer: the patience of a command that waits for a piece has run out."""

    request: int


class Chunks:
    """The pieces of the attachments of one room."""

    def __init__(
        self,
        room: TopicId,
        cells: Cells,
        config: RoomsConfig,
        sources: Callable[[], Sequence[PeerId]],
        out: Outbox,
    ) -> None:
        """Fetch from these sources; each is asked once for a piece."""
        self._room = room
        self._sources = sources
        self._out = out
        self.store = ChunkStore(room, cells, config.chunk_bytes, out)
        self.offers = ChunkOffers(room, self.store, config.chunk_timeout, out)
        wants = WantConfig(config.chunk_timeout, tries=None, batch=1, in_flight=PARALLEL)
        self._wants: WantList[bytes] = WantList(wants, ChunkDue(room), out)
        self._fetches: dict[bytes, dict[int, None]] = {}
        """The commands that wait for each piece."""
        self._requests: dict[int, bytes] = {}
        self._givers: dict[PeerId, None] = {}
        """The sources that gave a piece before: they are asked first."""
        self._turn = 0

    # Keeping and serving.

    def keep_chunk(self, request: int, command: KeepChunk, now: float) -> None:
        """Store a piece of our own and offer it to the relays; reply once it is durable."""
        digest, data = command.digest, command.data
        if len(data) > CHUNK_BYTES:
            detail = f"a piece of {len(data)} bytes, at most {CHUNK_BYTES} are allowed"
            self._decline(request, Reason.TOO_LARGE, detail)
            return
        try:
            check_piece(digest, data)
        except RemoteError as error:
            self._decline(request, error.reason, error.detail)
            return
        if not self.store.keep(digest, data, own=True, now=now):
            detail = f"the attachments of this room fill the {self.store.most} bytes they may have"
            self._out.reply(request, Declined(Reason.QUOTA, detail))
            return
        self.offers.offer(digest, now)
        self._out.committed.reply(request, Done())

    def handle_want(self, peer: PeerId, want: ChunkWant, member: bool) -> None:
        """Send a member the pieces that it asks for; refuse any other peer."""
        if not member:
            reason = Reason.NOT_A_MEMBER
            self._out.record(
                Record(Kind.REJECTED, self._room, peer=peer, reason=reason, note="pieces asked for")
            )
            for digest in want.digests:
                self._out.send(peer, ChunkIs(self._room, digest, None, reason))
            return
        for digest in want.digests:
            data = self.store.get(digest)
            why = Reason.NOT_HELD if data is None else None
            self._out.send(peer, ChunkIs(self._room, digest, data, why))

    # Fetching.

    def fetch_chunk(self, request: int, command: FetchChunk, now: float) -> None:
        """Reply with a piece, from the store or from the sources, which are asked in turn."""
        digest = command.digest
        data = self.store.get(digest)
        if data is not None:
            self._out.reply(request, ChunkFetched(data))
            return
        if len(self._requests) >= REQUESTS:
            self._decline(request, Reason.TOO_MANY, f"{REQUESTS} pieces are waited for already")
            return
        self._requests[request] = digest
        self._out.set_timer(max(0.0, command.patience), FetchDue(self._room, request))
        requests = self._fetches.setdefault(digest, {})
        requests[request] = None
        if len(requests) == 1:
            self._turn += 1
            givers = tuple(self._givers)
            turn = self._turn % len(givers) if givers else 0
            for giver in (*givers[turn:], *givers[:turn]) or (None,):
                self._wants.want(digest, giver, now, wanted=True)
            self._ask(now)

    def handle_chunk(self, peer: PeerId, answer: ChunkIs, now: float) -> None:
        """Store a piece that a peer gives; if it refuses or the piece is wrong, ask another."""
        requests = self._fetches.get(answer.digest)
        if requests is None:
            size = len(answer.data or b"")
            self._out.record(Record(Kind.DUPLICATE, self._room, peer=peer, bytes=size, note="piece"))
            return
        if answer.data is None or not self._is_right(peer, answer.digest, answer.data):
            self._wants.handle_refusal(peer, (answer.digest,), now)
            self._ask(now)
            return
        self._givers[peer] = None
        self.store.keep(answer.digest, answer.data, own=False, now=now)
        self._end(answer.digest)
        for request in requests:
            self._out.committed.reply(request, ChunkFetched(answer.data))
        self._ask(now)

    def remove_source(self, peer: PeerId, now: float) -> None:
        """Forget a source whose link is gone, and ask others for the pieces requested from it."""
        self._givers.pop(peer, None)
        self._wants.handle_source_down(peer, now)
        self._ask(now)

    def handle_timer(self, now: float) -> None:
        """Ask others for pieces that sources have not given in time."""
        self._wants.handle_timer()
        self._ask(now)

    def end_request(self, request: int, now: float) -> None:
        """Decline a command that has waited for its piece long enough."""
        wanted = self._requests.pop(request, None)
        if wanted is None:
            return
        del self._fetches[wanted][request]
        self._decline(request, Reason.TIMEOUT, "nobody gave the piece in time")
        if not self._fetches[wanted]:
            self._end(wanted)
            self._ask(now)

    def stop(self) -> None:
        """Decline all waiting commands: the room is no longer followed."""
        self.offers.stop()
        for digest in list(self._fetches):
            for request in self._end(digest):
                self._decline(request, Reason.SHUTDOWN, "the room is no longer followed")
        self._wants.stop()

    def _ask(self, now: float) -> None:
        """Request the pieces that are due, and decline the commands for pieces that no source has."""
        given_up, batches = self._wants.take_due(now, self._sources())
        for each in given_up:
            for request in self._end(each.item):
                self._decline(request, each.reason, f"none of {each.asked} that were asked gave the piece")
        for batch in batches:
            self._out.send(batch.peer, ChunkWant(self._room, batch.items))
        self._wants.arm(now)

    def _is_right(self, peer: PeerId, digest: bytes, data: bytes) -> bool:
        """Return whether a piece has its digest; if not, blame the peer that sent it."""
        try:
            check_piece(digest, data)
        except RemoteError as error:
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=error.reason, note="piece"))
            self._out.blame(peer, error.reason)
            return False
        return True

    def _end(self, digest: bytes) -> dict[int, None]:
        """Stop fetching a piece; return the commands that wait for it."""
        self._wants.remove(digest)
        requests = self._fetches.pop(digest)
        for request in requests:
            del self._requests[request]
            self._out.cancel_timer(FetchDue(self._room, request))
        return requests

    def _decline(self, request: int, reason: Reason, detail: str) -> None:
        self._out.record(Record(Kind.DROPPED, self._room, reason=reason, note="piece"))
        self._out.reply(request, Declined(reason, detail))


WINDOW = 4
"""The most pieces in flight to one relay: half a mebibyte, so that events are not held up behind them."""
TRIES = 3
"""How often a piece is sent over one link to a relay that does not answer."""


class OfferDue(RoomTimer, frozen=True, gc=False):
    """Timer: a relay has not answered our offers for a while."""

    relay: PeerId


class _Offer(Struct):
    """The pieces that are offered to one relay over one link."""

    queue: dict[bytes, None]
    out: dict[bytes, float] = {}
    """The pieces that were sent and not answered, with the time of sending."""
    tries: dict[bytes, int] = {}
    armed: bool = False

    def forget(self, digest: bytes) -> None:
        """Stop offering a piece."""
        self.queue.pop(digest, None)
        self.out.pop(digest, None)
        self.tries.pop(digest, None)


class ChunkOffers:
    """Offers pieces to the relays of one room that are in use and linked now."""

    def __init__(self, room: TopicId, store: ChunkStore, timeout: float, out: Outbox) -> None:
        self._room = room
        self._out = out
        self._store = store
        self._timeout = timeout
        self._offers: dict[PeerId, _Offer] = {}
        self._refused: dict[bytes, dict[PeerId, None]] = {}

    def use_relays(self, relays: Sequence[PeerId], now: float) -> None:
        """Set the relays in use, all of which are linked, and offer everything to the new ones.

        Called at every change, so that a relay whose link was lost and restored counts as new.
        """
        for peer in list(self._offers):
            if peer not in relays:
                self._end(peer)
        for peer in relays:
            if peer not in self._offers:
                pieces = [each for each in self._store.offered if peer not in self._refused.get(each, ())]
                self._offers[peer] = _Offer(dict.fromkeys(pieces))
                self._send(peer, now)

    def offer(self, digest: bytes, now: float) -> None:
        """Offer a piece to all relays that are used."""
        for peer, offer in self._offers.items():
            if digest not in offer.out and peer not in self._refused.get(digest, ()):
                offer.queue[digest] = None
                self._send(peer, now)

    def handle_answer(self, peer: PeerId, answer: ChunkTaken, now: float) -> None:
        """Note that a relay has durably taken a piece, or why it refuses it."""
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
        """Send unanswered pieces to a relay again, at most `TRIES` times over one link."""
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
        """Stop all offers."""
        for peer in list(self._offers):
            self._end(peer)

    def _send(self, peer: PeerId, now: float) -> None:
        """Send pieces up to the number that may be in flight."""
        offer = self._offers[peer]
        while offer.queue and len(offer.out) < WINDOW:
            digest = next(iter(offer.queue))
            del offer.queue[digest]
            data = self._store.get(digest)
            if data is None:
                continue  # It was evicted meanwhile, which was recorded.
            offer.out[digest] = now
            offer.tries[digest] = offer.tries.get(digest, 0) + 1
            self._out.send(peer, ChunkPut(self._room, digest, data))
        if offer.out and not offer.armed:
            offer.armed = True
            self._out.set_timer(self._timeout, OfferDue(self._room, peer))

    def _end(self, peer: PeerId) -> None:
        if self._offers.pop(peer).armed:
            self._out.cancel_timer(OfferDue(self._room, peer))
