"""Pieces of attachments at a member: kept, served to other members, fetched from whoever has them.

A piece is named by its digest, so any source is as good as another and a wrong one is noticed at once. What
was fetched is kept: whoever begins again goes on where they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Timer
from linnet.delivery.commands import Declined, Done
from linnet.machine.outbox import Outbox
from linnet.rooms.attachments import check_piece
from linnet.rooms.chunk_offers import ChunkOffers
from linnet.rooms.chunk_store import ChunkStore
from linnet.rooms.commands import FetchChunk, KeepChunk
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import CHUNK_BYTES, ChunkIs, ChunkTaken, ChunkWant
from linnet.rooms.results import ChunkFetched
from linnet.trace.records import Kind, Record

PARALLEL = 16
"""Pieces of one room that are asked for at the same time: two mebibytes on their way."""
REQUESTS = 1024
"""Commands that may wait for pieces of one room: what an eager application asks for in advance."""


class ChunkDue(Timer, frozen=True, gc=False):
    """A source has not given for a while the piece that it was asked for."""

    room: TopicId
    digest: bytes


class FetchDue(Timer, frozen=True, gc=False):
    """A command has waited for a piece as long as it would."""

    room: TopicId
    request: int


class _Fetch:
    """A piece that is being fetched, for one command or more."""

    __slots__ = ("asked", "requests", "silent", "tried", "untried")

    def __init__(self, sources: Sequence[PeerId]) -> None:
        self.requests: dict[int, None] = {}
        self.untried: dict[PeerId, None] = dict.fromkeys(sources)
        self.tried: dict[PeerId, None] = {}
        self.asked: PeerId | None = None
        """Who is to answer now; None: its turn has not come."""
        self.silent = False
        """Whether somebody did not answer."""


class Chunks:
    """The pieces of the attachments of one room."""

    def __init__(self, room: TopicId, cells: Cells, config: RoomsConfig, out: Outbox) -> None:
        self._room = room
        self._config = config
        self._out = out
        self.store = ChunkStore(room, cells, config.chunk_bytes, out)
        self.offers = ChunkOffers(room, self.store, config.chunk_timeout, out)
        self._fetches: dict[bytes, _Fetch] = {}
        self._asking: dict[bytes, None] = {}
        """Those whose turn has come."""
        self._requests: dict[int, bytes] = {}
        self._givers: dict[PeerId, None] = {}
        """Who gave a piece before: they are asked first."""
        self._turn = 0

    # Keeping and serving.

    def keep_chunk(self, request: int, command: KeepChunk, now: float) -> None:
        """Keep a piece of our own and offer it to the relays; answered once it is durable."""
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
            detail = f"the attachments of this room fill the {self._config.chunk_bytes} bytes they may have"
            self._out.reply(request, Declined(Reason.QUOTA, detail))
            return
        self.offers.offer(digest, now)
        self._out.committed.reply(request, Done())

    def handle_want(self, peer: PeerId, want: ChunkWant, member: bool) -> None:
        """Give a peer the pieces that it asks for; only members are given any."""
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

    def use_relays(self, relays: Sequence[PeerId], now: float) -> None:
        """Offer relays that are used and have a link what no relay has taken.

        Called at every change, so that a link that is gone and back is one that begins anew.
        """
        self.offers.use_relays(relays, now)

    def handle_taken(self, peer: PeerId, answer: ChunkTaken, now: float) -> None:
        """Take a relay's answer to an offer."""
        self.offers.handle_answer(peer, answer, now)

    # Fetching.

    def fetch_chunk(self, request: int, command: FetchChunk, sources: Sequence[PeerId]) -> None:
        """Answer with a piece, from here or from one of these, which are asked in turn."""
        digest = command.digest
        data = self.store.get(digest)
        if data is not None:
            self._out.reply(request, ChunkFetched(data))
            return
        if len(self._requests) >= REQUESTS:
            detail = f"{REQUESTS} pieces are waited for already"
            self._decline(request, Reason.TOO_MANY, detail)
            return
        fetch = self._fetches.get(digest)
        if fetch is None:
            fetch = self._fetches[digest] = _Fetch(self._in_turn(sources))
        fetch.requests[request] = None
        self._requests[request] = digest
        self._out.set_timer(max(0.0, command.patience), FetchDue(self._room, request))
        self._begin_more()

    def handle_chunk(self, peer: PeerId, answer: ChunkIs, now: float) -> None:
        """Keep a piece that a peer gives, or ask another if it says why not."""
        fetch = self._fetches.get(answer.digest)
        if fetch is None:
            size = len(answer.data or b"")
            self._out.record(Record(Kind.DUPLICATE, self._room, peer=peer, bytes=size, note="piece"))
            return
        if answer.data is None:
            if peer == fetch.asked:
                self._ask_another(answer.digest, fetch)
            return
        try:
            check_piece(answer.digest, answer.data)
        except RemoteError as error:
            self._out.record(Record(Kind.REJECTED, self._room, peer=peer, reason=error.reason, note="piece"))
            self._out.blame(peer, error.reason)
            if peer == fetch.asked:
                self._ask_another(answer.digest, fetch)
            return
        self._givers[peer] = None
        self.store.keep(answer.digest, answer.data, own=False, now=now)
        fetched = ChunkFetched(answer.data)
        self._end(answer.digest, fetch)
        for request in fetch.requests:
            self._out.committed.reply(request, fetched)
        self._begin_more()

    def add_source(self, peer: PeerId) -> None:
        """Ask a source that has come as well for what is still waited for."""
        for fetch in self._fetches.values():
            if peer not in fetch.tried:
                fetch.untried[peer] = None

    def remove_source(self, peer: PeerId) -> None:
        """Ask another for what a source was asked for that is gone."""
        self._givers.pop(peer, None)
        for digest, fetch in list(self._fetches.items()):
            fetch.untried.pop(peer, None)
            if fetch.asked == peer:
                fetch.silent = True
                self._ask_next(digest, fetch)
        self._begin_more()

    def handle_silence(self, digest: bytes) -> None:
        """Ask another for a piece that a source has not given in time."""
        fetch = self._fetches.get(digest)
        if fetch is not None:
            fetch.silent = True
            self._ask_another(digest, fetch)

    def end_request(self, request: int) -> None:
        """Decline a command that has waited for its piece long enough."""
        wanted = self._requests.pop(request, None)
        if wanted is None:
            return
        fetch = self._fetches[wanted]
        del fetch.requests[request]
        self._decline(request, Reason.TIMEOUT, "nobody gave the piece in time")
        if not fetch.requests:
            self._end(wanted, fetch)
            self._begin_more()

    def stop(self) -> None:
        """Decline all commands that wait: the room is no longer followed."""
        self.offers.stop()
        for digest, fetch in list(self._fetches.items()):
            for request in fetch.requests:
                self._decline(request, Reason.SHUTDOWN, "the room is no longer followed")
            self._end(digest, fetch)

    def _begin_more(self) -> None:
        """Ask for as many as may be asked for at the same time."""
        for digest, fetch in list(self._fetches.items()):
            if len(self._asking) >= PARALLEL:
                break
            if digest not in self._asking:
                self._asking[digest] = None
                self._ask_next(digest, fetch)

    def _ask_another(self, digest: bytes, fetch: _Fetch) -> None:
        """Ask the next source for a piece; if nobody is left, it is another piece's turn."""
        self._ask_next(digest, fetch)
        self._begin_more()

    def _ask_next(self, digest: bytes, fetch: _Fetch) -> None:
        """Ask the next source, or give up."""
        if fetch.untried:
            peer = next(iter(fetch.untried))
            del fetch.untried[peer]
            fetch.tried[peer] = None
            fetch.asked = peer
            self._out.send(peer, ChunkWant(self._room, (digest,)))
            self._out.set_timer(self._config.chunk_timeout, ChunkDue(self._room, digest))
            return
        reason = Reason.TIMEOUT if fetch.silent else Reason.NOT_HELD
        detail = f"none of {len(fetch.tried)} that were asked gave the piece"
        for request in fetch.requests:
            self._decline(request, reason, detail)
        self._end(digest, fetch)

    def _end(self, digest: bytes, fetch: _Fetch) -> None:
        """Fetch a piece no longer."""
        del self._fetches[digest]
        self._asking.pop(digest, None)
        for request in fetch.requests:
            self._requests.pop(request, None)
        if fetch.asked:
            self._out.cancel_timer(ChunkDue(self._room, digest))
        for request in fetch.requests:
            self._out.cancel_timer(FetchDue(self._room, request))

    def _in_turn(self, sources: Sequence[PeerId]) -> list[PeerId]:
        """Who gave pieces before comes first; each fetch begins with another of them."""
        self._turn += 1
        parts = ([each for each in sources if (each in self._givers) is gave] for gave in (True, False))
        return [part[(self._turn + index) % len(part)] for part in parts for index in range(len(part))]

    def _decline(self, request: int, reason: Reason, detail: str) -> None:
        self._out.record(Record(Kind.DROPPED, self._room, reason=reason, note="piece"))
        self._out.reply(request, Declined(reason, detail))
