"""Pieces of attachments at a member: kept, served to other members, fetched from whoever has them.

A piece is named by its digest, so any source is as good as another and a wrong one is noticed at once. What
was fetched is kept: whoever begins again goes on where they were.
"""

from __future__ import annotations

from collections.abc import Sequence

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Reply, Send, SetTimer
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.core.timers import Tick
from linnet.delivery.commands import Declined, Done
from linnet.rooms import chunk_offers
from linnet.rooms.attachments import check_piece
from linnet.rooms.chunk_offers import ChunkOffers
from linnet.rooms.chunk_store import ChunkStore
from linnet.rooms.commands import FetchChunk, KeepChunk
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import CHUNK_BYTES, ChunkIs, ChunkPut, ChunkTaken, ChunkWant
from linnet.rooms.results import ChunkFetched
from linnet.trace.records import Kind, Record

OWNER = "chunks"
OWNERS = (OWNER, chunk_offers.OWNER)
"""Owners of timers that come back here."""

PARALLEL = 16
"""Pieces of one room that are asked for at the same time: two mebibytes on their way."""
REQUESTS = 1024
"""Commands that may wait for pieces of one room: what an eager application asks for in advance."""

ChunkEffect = (
    Send[ChunkWant | ChunkIs | ChunkPut]
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Blame
    | Record
    | Reply[Declined | ChunkFetched]
    | AfterCommit[Reply[Done | ChunkFetched]]
)


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

    def __init__(self, room: TopicId, cells: Cells, config: RoomsConfig) -> None:
        self._room = room
        self._config = config
        self.store = ChunkStore(room, cells, config.chunk_bytes)
        self._offers = ChunkOffers(room, self.store, config.chunk_timeout)
        self._fetches: dict[bytes, _Fetch] = {}
        self._asking: dict[bytes, None] = {}
        """Those whose turn has come."""
        self._requests: dict[int, bytes] = {}
        self._givers: dict[PeerId, None] = {}
        """Who gave a piece before: they are asked first."""
        self._turn = 0

    # Keeping and serving.

    def keep(self, request: int, command: KeepChunk, now: float) -> list[ChunkEffect]:
        """Keep a piece of our own and offer it to the relays; answered once it is durable."""
        digest, data = command.digest, command.data
        if len(data) > CHUNK_BYTES:
            detail = f"a piece of {len(data)} bytes, at most {CHUNK_BYTES} are allowed"
            return self._decline(request, Reason.TOO_LARGE, detail)
        try:
            check_piece(digest, data)
        except RemoteError as error:
            return self._decline(request, error.reason, error.detail)
        kept, records = self.store.keep(digest, data, own=True, now=now)
        if not kept:
            detail = f"the attachments of this room fill the {self._config.chunk_bytes} bytes they may have"
            return [*records, Reply(request, Declined(Reason.QUOTA, detail))]
        return [*records, *self._offers.offer(digest, now), AfterCommit((Reply(request, Done()),))]

    def want(self, peer: PeerId, want: ChunkWant, member: bool) -> list[ChunkEffect]:
        """A peer asks for pieces; only members are given any."""
        if not member:
            reason = Reason.NOT_A_MEMBER
            record = Record(Kind.REJECTED, self._room, peer=peer, reason=reason, note="pieces asked for")
            return [record, *(Send(peer, ChunkIs(self._room, each, None, reason)) for each in want.digests)]
        answers: list[ChunkEffect] = []
        for digest in want.digests:
            data = self.store.get(digest)
            why = Reason.NOT_HELD if data is None else None
            answers.append(Send(peer, ChunkIs(self._room, digest, data, why)))
        return answers

    def relays(self, relays: Sequence[PeerId], now: float) -> list[ChunkEffect]:
        """These relays are used and a link to them is open: they are offered what no relay has taken.

        Called at every change, so that a link that is gone and back is one that begins anew.
        """
        return [*self._offers.relays(relays, now)]

    def taken(self, peer: PeerId, answer: ChunkTaken, now: float) -> list[ChunkEffect]:
        """A relay answers an offer."""
        return [*self._offers.taken(peer, answer, now)]

    # Fetching.

    def fetch(self, request: int, command: FetchChunk, sources: Sequence[PeerId]) -> list[ChunkEffect]:
        """Answer with a piece, from here or from one of these, which are asked in turn."""
        digest = command.digest
        data = self.store.get(digest)
        if data is not None:
            return [Reply(request, ChunkFetched(data))]
        if len(self._requests) >= REQUESTS:
            detail = f"{REQUESTS} pieces are waited for already"
            return self._decline(request, Reason.TOO_MANY, detail)
        fetch = self._fetches.get(digest)
        if fetch is None:
            fetch = self._fetches[digest] = _Fetch(self._in_turn(sources))
        fetch.requests[request] = None
        self._requests[request] = digest
        patience = SetTimer(max(0.0, command.patience), self._patience(request))
        return [patience, *self._begin_more()]

    def arrived(self, peer: PeerId, answer: ChunkIs, now: float) -> list[ChunkEffect]:
        """A peer gives a piece, or says why not."""
        fetch = self._fetches.get(answer.digest)
        if fetch is None:
            size = len(answer.data or b"")
            return [Record(Kind.DUPLICATE, self._room, peer=peer, bytes=size, note="piece")]
        if answer.data is None:
            return self._ask_another(answer.digest, fetch) if peer == fetch.asked else []
        try:
            check_piece(answer.digest, answer.data)
        except RemoteError as error:
            rejected = Record(Kind.REJECTED, self._room, peer=peer, reason=error.reason, note="piece")
            more = self._ask_another(answer.digest, fetch) if peer == fetch.asked else []
            return [rejected, Blame(peer, error.reason), *more]
        self._givers[peer] = None
        _, effects = self.store.keep(answer.digest, answer.data, own=False, now=now)
        fetched = ChunkFetched(answer.data)
        replies = tuple(Reply(request, fetched) for request in fetch.requests)
        ended = self._end(answer.digest, fetch)
        return [*effects, *ended, AfterCommit(replies), *self._begin_more()]

    def up(self, peer: PeerId) -> None:
        """A source has come, which may be asked for what is still waited for."""
        for fetch in self._fetches.values():
            if peer not in fetch.tried:
                fetch.untried[peer] = None

    def down(self, peer: PeerId) -> list[ChunkEffect]:
        """A source is gone: what it was asked for is asked of another."""
        self._givers.pop(peer, None)
        effects: list[ChunkEffect] = []
        for digest, fetch in list(self._fetches.items()):
            fetch.untried.pop(peer, None)
            if fetch.asked == peer:
                fetch.silent = True
                effects += self._ask_next(digest, fetch)
        return [*effects, *self._begin_more()]

    def fired(self, tick: Tick, now: float) -> list[ChunkEffect]:
        """A source or a relay has not answered in time, or a command has waited long enough."""
        if tick.owner == chunk_offers.OWNER:
            return [*self._offers.fired(tick, now)]
        if tick.what == "ask":
            digest = tick.key[32:]
            fetch = self._fetches.get(digest)
            if fetch is None:
                return []
            fetch.silent = True
            return self._ask_another(digest, fetch)
        request = int.from_bytes(tick.key[32:], "big")
        wanted = self._requests.pop(request, None)
        if wanted is None:
            return []
        fetch = self._fetches[wanted]
        del fetch.requests[request]
        effects = self._decline(request, Reason.TIMEOUT, "nobody gave the piece in time")
        if fetch.requests:
            return effects
        return [*effects, *self._end(wanted, fetch), *self._begin_more()]

    def stop(self) -> list[ChunkEffect]:
        """Nobody follows the room any more."""
        effects: list[ChunkEffect] = [*self._offers.stop()]
        for digest, fetch in list(self._fetches.items()):
            for request in fetch.requests:
                effects += self._decline(request, Reason.SHUTDOWN, "the room is no longer followed")
            effects += self._end(digest, fetch)
        return effects

    def _begin_more(self) -> list[ChunkEffect]:
        """Ask for as many as may be asked for at the same time."""
        effects: list[ChunkEffect] = []
        for digest, fetch in list(self._fetches.items()):
            if len(self._asking) >= PARALLEL:
                break
            if digest not in self._asking:
                self._asking[digest] = None
                effects += self._ask_next(digest, fetch)
        return effects

    def _ask_another(self, digest: bytes, fetch: _Fetch) -> list[ChunkEffect]:
        """Whoever was asked has not given the piece; if nobody is left, it is another's turn."""
        return [*self._ask_next(digest, fetch), *self._begin_more()]

    def _ask_next(self, digest: bytes, fetch: _Fetch) -> list[ChunkEffect]:
        """Ask the next source, or give up."""
        if fetch.untried:
            peer = next(iter(fetch.untried))
            del fetch.untried[peer]
            fetch.tried[peer] = None
            fetch.asked = peer
            timer = SetTimer(self._config.chunk_timeout, self._tick(digest))
            return [Send(peer, ChunkWant(self._room, (digest,))), timer]
        reason = Reason.TIMEOUT if fetch.silent else Reason.NOT_HELD
        detail = f"none of {len(fetch.tried)} that were asked gave the piece"
        effects = [effect for each in fetch.requests for effect in self._decline(each, reason, detail)]
        return [*effects, *self._end(digest, fetch)]

    def _end(self, digest: bytes, fetch: _Fetch) -> list[ChunkEffect]:
        """A piece is no longer fetched."""
        del self._fetches[digest]
        self._asking.pop(digest, None)
        for request in fetch.requests:
            self._requests.pop(request, None)
        timers = [self._patience(request) for request in fetch.requests]
        return [CancelTimer(tick) for tick in (*([self._tick(digest)] if fetch.asked else []), *timers)]

    def _in_turn(self, sources: Sequence[PeerId]) -> list[PeerId]:
        """Who gave pieces before comes first; each fetch begins with another of them."""
        self._turn += 1
        parts = ([each for each in sources if (each in self._givers) is gave] for gave in (True, False))
        return [part[(self._turn + index) % len(part)] for part in parts for index in range(len(part))]

    def _decline(self, request: int, reason: Reason, detail: str) -> list[ChunkEffect]:
        record = Record(Kind.DROPPED, self._room, reason=reason, note="piece")
        return [record, Reply(request, Declined(reason, detail))]

    def _tick(self, digest: bytes) -> Tick:
        return Tick(OWNER, "ask", self._room + digest)

    def _patience(self, request: int) -> Tick:
        return Tick(OWNER, "patience", self._room + request.to_bytes(8, "big"))
