"""Requests of guests at the voice's device: put together, heard once, and answered by a signed receipt.

What was heard is written down for each device, so that a request which somebody recorded and plays again
gets the same receipt and is not heard twice, also after a restart.
"""

from __future__ import annotations

from msgspec import Struct, msgpack

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.identity.cards import CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey
from linnet.places.config import PlacesConfig
from linnet.places.messages import Heard, Talk
from linnet.places.multicast.talking import TALK_PIECE, check_piece, open_piece, sign_heard
from linnet.trace.records import Kind, Record

SPACE = "place/heard"
OPEN_EACH = 4
"""Requests of one guest's device that may be incomplete at once."""
HEARD_EACH = 64
"""Receipts that are remembered for one device; what is older than all of them counts as stale."""
PATIENCE = 60.0
"""Seconds without a piece after which an incomplete request is given up."""


class Request(Struct, frozen=True, gc=False):
    """All that a guest said."""

    nym: AuthorId
    device: PeerId
    request: int
    body: bytes


class _Memory(Struct, array_like=True):
    """Of one device: everything below `floor` is stale; above, what each request was answered."""

    floor: int = 0
    heard: dict[int, Reason | None] = {}


class _Partial:
    __slots__ = ("at", "end", "pieces", "size")

    def __init__(self, now: float) -> None:
        self.at = now
        self.pieces: dict[int, bytes] = {}
        self.size = 0
        self.end: int | None = None


class Hearing:
    """The requests to one device that is, or was, the voice of a place."""

    def __init__(
        self,
        place: TopicId,
        key: SigningKey,
        cells: Cells,
        config: PlacesConfig,
        check: CardCheck = check_card,
    ) -> None:
        self._place = place
        self._key = key
        self._cells = cells
        self._config = config
        self._check = check
        self._open: dict[tuple[PeerId, int], _Partial] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._open)

    @property
    def held(self) -> int:
        """Bytes of incomplete requests."""
        return self._bytes

    def take(self, talk: Talk, now: float) -> Request | Heard | None:
        """A piece. Returns the whole request, which is to be written down and `answer`ed in the same step;
        the receipt of one that was heard before; None while pieces are missing.

        `RemoteError` with the reason for all that is wrong.
        """
        if talk.place != self._place or talk.to != self._key.public:
            raise RemoteError(Reason.NOT_RESPONSIBLE, "a request to another place or device")
        check_dates(talk.card, now)
        self._check(talk.card)
        check_piece(talk)
        device = talk.card.device_key
        memory = self._memory(device)
        if talk.request in memory.heard:
            return self._receipt(device, talk.request, memory.heard[talk.request])
        if talk.request < memory.floor:
            return self._receipt(device, talk.request, Reason.STALE)
        data = open_piece(self._key, talk)
        partial = self._partial(talk, now)
        try:
            self._add(partial, talk, data)
        except RemoteError:
            self._forget((device, talk.request))
            raise
        partial.at = now
        if partial.end is None or partial.size < partial.end:
            return None
        body = b"".join(partial.pieces[offset] for offset in sorted(partial.pieces))
        self._forget((device, talk.request))
        return Request(talk.card.person, device, talk.request, body)

    def answer(self, request: Request, reason: Reason | None = None) -> Heard:
        """The receipt of a request that was written down, or why it was not taken. It is remembered."""
        memory = self._memory(request.device)
        memory.heard[request.request] = reason
        while len(memory.heard) > HEARD_EACH:
            oldest = min(memory.heard)
            del memory.heard[oldest]
            memory.floor = max(memory.floor, oldest + 1)
        self._cells.put(SPACE, self._place + request.device, msgpack.encode(memory))
        return self._receipt(request.device, request.request, reason)

    def expire(self, now: float) -> list[Record]:
        """Give up requests of which no piece came for long."""
        late = [key for key, each in self._open.items() if each.at + PATIENCE <= now]
        records = []
        for key in late:
            note = f"request {key[1]}, {self._open[key].size} bytes of it"
            records.append(Record(Kind.DROPPED, self._place, peer=key[0], reason=Reason.TIMEOUT, note=note))
            self._forget(key)
        return records

    def _receipt(self, device: PeerId, request: int, reason: Reason | None) -> Heard:
        return sign_heard(self._key, self._place, device, request, reason)

    def _memory(self, device: PeerId) -> _Memory:
        raw = self._cells.get(SPACE, self._place + device)
        return _Memory() if raw is None else msgpack.decode(raw, type=_Memory)

    def _partial(self, talk: Talk, now: float) -> _Partial:
        key = (talk.card.device_key, talk.request)
        partial = self._open.get(key)
        if partial is None:
            mine = sum(1 for device, _ in self._open if device == talk.card.device_key)
            if mine >= OPEN_EACH or len(self._open) >= self._config.talks_open:
                raise RemoteError(Reason.TOO_MANY, f"{len(self._open)} requests are incomplete, {mine} of it")
            partial = self._open[key] = _Partial(now)
        return partial

    def _add(self, partial: _Partial, talk: Talk, data: bytes) -> None:
        end = talk.offset + len(data)
        if talk.offset % TALK_PIECE or len(data) > TALK_PIECE or (not talk.last and len(data) != TALK_PIECE):
            raise RemoteError(Reason.MALFORMED, f"a piece of {len(data)} bytes at {talk.offset}")
        if end > self._config.talk_bytes:
            raise RemoteError(
                Reason.TOO_LARGE, f"a request of {end} bytes, {self._config.talk_bytes} at most"
            )
        known = partial.pieces.get(talk.offset)
        if known is not None:
            if known != data or (talk.last and partial.end != end):
                raise RemoteError(Reason.EQUIVOCATION, f"two pieces at {talk.offset}")
            return
        if partial.end is not None and (talk.last or end > partial.end):
            raise RemoteError(Reason.MALFORMED, "a piece behind the last")
        if talk.last and any(offset > talk.offset for offset in partial.pieces):
            raise RemoteError(Reason.MALFORMED, "the last piece before others")
        if self._bytes + len(data) > 4 * self._config.talk_bytes:
            raise RemoteError(Reason.QUOTA, f"{self._bytes} bytes of incomplete requests are held")
        partial.pieces[talk.offset] = data
        partial.size += len(data)
        self._bytes += len(data)
        if talk.last:
            partial.end = end

    def _forget(self, key: tuple[PeerId, int]) -> None:
        partial = self._open.pop(key, None)
        if partial is not None:
            self._bytes -= partial.size
