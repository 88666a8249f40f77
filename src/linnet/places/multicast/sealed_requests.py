"""Requests of a guest to the host: in pieces, sealed to the voice's device, signed for this place.

Relays can read who sends a request, not what it says. It is sealed by HPKE (RFC 9180) to the X25519 form of
the voice's Ed25519 device key, which every guest has from the voice's card: nothing has to be published,
renewed or asked for first. That one key may serve both uses is shown by Thormarker (*On using the same key
pair for Ed25519 and an X25519 based KEM*, 2021). There is no forward secrecy: an attacker who gets the
device's key later can read recorded requests.

The voice's device joins the pieces, handles each request once, and answers with a signed receipt. The answers
are stored for each device, so that a recorded and replayed request gets the same receipt and is not handled
twice, also after a restart.
"""

from __future__ import annotations

from msgspec import Struct, msgpack
from nacl.bindings import crypto_sign_ed25519_pk_to_curve25519, crypto_sign_ed25519_sk_to_curve25519
from nacl.exceptions import RuntimeError as SodiumError

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.groups.primitives import hpke_open, hpke_seal
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SigningKey, verify
from linnet.places.config import PlacesConfig
from linnet.places.messages import Heard, Talk
from linnet.trace.records import Kind, Record

TALK_PIECE = 61_000
"""The bytes of a request in each piece but the last."""
WAITING = 64
"""The most requests of ours that wait for a receipt."""

_TALK_TAG = b"linnet/place/talk/1"
_HEARD_TAG = b"linnet/place/heard/1"
_SEAL_TAG = b"linnet/place/sealed/1"
_encode = msgpack.Encoder().encode
SPACE = "place/heard"
OPEN_EACH = 4
"""The most incomplete requests of one guest's device."""
HEARD_EACH = 64
"""The receipts that are remembered for one device; a request older than all of them counts as stale."""
PATIENCE = 60.0
"""Seconds without a piece after which an incomplete request is given up."""


def _bound(talk: tuple[TopicId, PeerId, PeerId, int, int, bool]) -> bytes:
    return _encode(talk)


def seal_piece(key: SigningKey, talk: Talk, data: bytes, entropy: Entropy) -> Talk:
    """Return a piece with its data sealed to `talk.to`, and signed."""
    try:
        public = crypto_sign_ed25519_pk_to_curve25519(talk.to)
    except (SodiumError, ValueError) as error:
        raise MalformedMessage("a device key that nothing can be sealed to") from error
    about = (talk.place, talk.card.device_key, talk.to, talk.request, talk.offset, talk.last)
    sealed = hpke_seal(public, _SEAL_TAG, data, entropy, _bound(about))
    fields = (talk.place, talk.card, talk.to, talk.request, talk.offset, talk.last, sealed)
    return Talk(*fields, key.sign(_TALK_TAG + _encode(fields)), talk.hops)


def check_piece(talk: Talk) -> None:
    """Raise `RemoteError` unless the card's device signed the piece. Does not check the card."""
    fields = (talk.place, talk.card, talk.to, talk.request, talk.offset, talk.last, talk.sealed)
    verify(talk.card.device_key, _TALK_TAG + _encode(fields), talk.sig)


def open_piece(key: SigningKey, talk: Talk) -> bytes:
    """Return the data sealed to this device; `RemoteError` with ``undecryptable`` if it does not open."""
    secret = crypto_sign_ed25519_sk_to_curve25519(key.seed + key.public)
    about = (talk.place, talk.card.device_key, talk.to, talk.request, talk.offset, talk.last)
    return hpke_open(secret, _SEAL_TAG, talk.sealed, _bound(about))


def sign_heard(key: SigningKey, place: TopicId, device: PeerId, request: int, reason: Reason | None) -> Heard:
    """Return a receipt signed by the voice's device."""
    fields = (place, device, request, reason)
    return Heard(*fields, key.sign(_HEARD_TAG + _encode(fields)))


def check_heard(heard: Heard, voice: PeerId) -> None:
    """Raise `RemoteError` unless this device signed the receipt."""
    fields = (heard.place, heard.device, heard.request, heard.reason)
    verify(voice, _HEARD_TAG + _encode(fields), heard.sig)


class RequestSender:
    """The requests of this device, kept until the voice has them."""

    def __init__(
        self,
        place: TopicId,
        key: SigningKey,
        card: Card,
        config: PlacesConfig,
        entropy: Entropy,
        next_request: int = 1,
    ) -> None:
        self._place = place
        self._key = key
        self._card = card
        self._config = config
        self._entropy = entropy
        self.next_request = next_request
        """The number of the next request, to be kept over restarts: a number is used once."""
        self._waiting: dict[int, tuple[PeerId, bytes]] = {}
        self._bytes = 0

    @property
    def waiting(self) -> tuple[int, ...]:
        """The requests without a receipt, the oldest first."""
        return tuple(self._waiting)

    def say(self, voice: PeerId, body: bytes) -> tuple[int, list[Talk]]:
        """Begin a request; return its number and pieces. `Refused` if it is too long, or too many wait."""
        if len(body) > self._config.talk_bytes:
            raise Refused(Reason.TOO_LARGE, f"{len(body)} bytes, {self._config.talk_bytes} at most")
        if len(self._waiting) >= WAITING or self._bytes + len(body) > 4 * self._config.talk_bytes:
            raise Refused(Reason.QUEUE_FULL, f"{len(self._waiting)} requests wait for the host")
        request = self.next_request
        self.next_request += 1
        self._waiting[request] = (voice, body)
        self._bytes += len(body)
        return request, self._pieces(request)

    def again(self, request: int, voice: PeerId | None = None) -> list[Talk]:
        """Return the pieces once more, after a timeout or for another device that is the voice now."""
        entry = self._waiting.get(request)
        if entry is None:
            raise Refused(Reason.UNKNOWN, f"request {request} does not wait")
        if voice is not None:
            self._waiting[request] = (voice, entry[1])
        return self._pieces(request)

    def heard(self, heard: Heard) -> None:
        """Take a receipt, so that its request waits no more. `RemoteError` if it is forged or not for us."""
        if heard.place != self._place or heard.device != self._card.device_key:
            raise RemoteError(Reason.SURPLUS, "a receipt for somebody else")
        entry = self._waiting.get(heard.request)
        if entry is None:
            raise RemoteError(Reason.SURPLUS, f"a receipt for request {heard.request}, which does not wait")
        check_heard(heard, entry[0])
        self.give_up(heard.request)

    def give_up(self, request: int) -> None:
        """Forget a request; whether the host got it stays unknown."""
        entry = self._waiting.pop(request, None)
        if entry is not None:
            self._bytes -= len(entry[1])

    def _pieces(self, request: int) -> list[Talk]:
        voice, body = self._waiting[request]
        pieces = []
        for offset in range(0, max(1, len(body)), TALK_PIECE):
            last = offset + TALK_PIECE >= len(body)
            blank = Talk(self._place, self._card, voice, request, offset, last, b"", bytes(64), 0)
            data = body[offset : offset + TALK_PIECE]
            pieces.append(seal_piece(self._key, blank, data, self._entropy))
        return pieces


class Request(Struct, frozen=True, gc=False):
    """A complete request of a guest."""

    nym: AuthorId
    device: PeerId
    request: int
    body: bytes


class _Memory(Struct, array_like=True):
    """The requests of one device: those below `floor` are stale, those above have their answers."""

    floor: int = 0
    heard: dict[int, Reason | None] = {}


class _Partial:
    __slots__ = ("at", "end", "pieces", "size")

    def __init__(self, now: float) -> None:
        self.at = now
        self.pieces: dict[int, bytes] = {}
        self.size = 0
        self.end: int | None = None


class RequestReceiver:
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
        """The bytes of incomplete requests."""
        return self._bytes

    def take(self, talk: Talk, now: float) -> Request | Heard | None:
        """Take a piece of a request; `RemoteError` with the reason for all that is wrong.

        Returns the complete request, which the caller has to store and `answer` in the same step; the receipt
        of one that was answered before; None while pieces are missing.
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
        """Return a receipt that a request was stored, or why it was not taken, and remember the answer."""
        memory = self._memory(request.device)
        memory.heard[request.request] = reason
        while len(memory.heard) > HEARD_EACH:
            oldest = min(memory.heard)
            del memory.heard[oldest]
            memory.floor = max(memory.floor, oldest + 1)
        self._cells.put(SPACE, self._place + request.device, msgpack.encode(memory))
        return self._receipt(request.device, request.request, reason)

    def expire(self, now: float) -> list[Record]:
        """Give up incomplete requests without a piece for long; return records of them."""
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
