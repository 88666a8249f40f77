"""What a guest says to the host: in pieces, sealed to the device that speaks, signed for this place.

Those who pass a request on read who sends it, not what it says. It is sealed by HPKE (RFC 9180) to the X25519
form of the voice's Ed25519 device key, which every guest has from the voice's card: nothing has to be
published, renewed or asked for first. That one key may serve both uses is shown by Thormarker (*On using the
same key pair for Ed25519 and an X25519 based KEM*, 2021). There is no forward secrecy: whoever gets the
device's key later reads what was recorded.
"""

from __future__ import annotations

from msgspec import msgpack
from nacl.bindings import crypto_sign_ed25519_pk_to_curve25519, crypto_sign_ed25519_sk_to_curve25519
from nacl.exceptions import RuntimeError as SodiumError

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.groups.primitives import hpke_open, hpke_seal
from linnet.identity.cards import Card
from linnet.identity.keys import SigningKey, verify
from linnet.places.config import PlacesConfig
from linnet.places.messages import Heard, Talk

TALK_PIECE = 61_000
"""Bytes of a request in each piece but the last."""
WAITING = 64
"""Requests of ours that wait for a receipt."""

_TALK_TAG = b"linnet/place/talk/1"
_HEARD_TAG = b"linnet/place/heard/1"
_SEAL_TAG = b"linnet/place/sealed/1"
_encode = msgpack.Encoder().encode


def _bound(talk: tuple[TopicId, PeerId, PeerId, int, int, bool]) -> bytes:
    return _encode(talk)


def seal_piece(key: SigningKey, talk: Talk, data: bytes, entropy: Entropy) -> Talk:
    """A piece with its data sealed to `talk.to`, and signed."""
    try:
        public = crypto_sign_ed25519_pk_to_curve25519(talk.to)
    except (SodiumError, ValueError) as error:
        raise MalformedMessage("a device key that nothing can be sealed to") from error
    about = (talk.place, talk.card.device_key, talk.to, talk.request, talk.offset, talk.last)
    sealed = hpke_seal(public, _SEAL_TAG, data, entropy, _bound(about))
    fields = (talk.place, talk.card, talk.to, talk.request, talk.offset, talk.last, sealed)
    return Talk(*fields, key.sign(_TALK_TAG + _encode(fields)), talk.hops)


def check_piece(talk: Talk) -> None:
    """Raise `RemoteError` unless the card's device signed it. Says nothing of the card."""
    fields = (talk.place, talk.card, talk.to, talk.request, talk.offset, talk.last, talk.sealed)
    verify(talk.card.device_key, _TALK_TAG + _encode(fields), talk.sig)


def open_piece(key: SigningKey, talk: Talk) -> bytes:
    """What was sealed to this device; `RemoteError` with ``undecryptable`` if it does not open."""
    secret = crypto_sign_ed25519_sk_to_curve25519(key.seed + key.public)
    about = (talk.place, talk.card.device_key, talk.to, talk.request, talk.offset, talk.last)
    return hpke_open(secret, _SEAL_TAG, talk.sealed, _bound(about))


def sign_heard(key: SigningKey, place: TopicId, device: PeerId, request: int, reason: Reason | None) -> Heard:
    """A receipt of the voice's device."""
    fields = (place, device, request, reason)
    return Heard(*fields, key.sign(_HEARD_TAG + _encode(fields)))


def check_heard(heard: Heard, voice: PeerId) -> None:
    """Raise `RemoteError` unless this device signed the receipt."""
    fields = (heard.place, heard.device, heard.request, heard.reason)
    verify(voice, _HEARD_TAG + _encode(fields), heard.sig)


class Talking:
    """Requests of one device of ours, kept until the voice has them."""

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
        """To be kept over restarts: a number is used once."""
        self._waiting: dict[int, tuple[PeerId, bytes]] = {}
        self._bytes = 0

    @property
    def waiting(self) -> tuple[int, ...]:
        """Requests without a receipt, the oldest first."""
        return tuple(self._waiting)

    def say(self, voice: PeerId, body: bytes) -> tuple[int, list[Talk]]:
        """A new request: its number and its pieces; `Refused` if it is too long, or too much waits."""
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
        """The pieces once more: nobody answered, or another device is the voice now."""
        entry = self._waiting.get(request)
        if entry is None:
            raise Refused(Reason.UNKNOWN, f"request {request} does not wait")
        if voice is not None:
            self._waiting[request] = (voice, entry[1])
        return self._pieces(request)

    def heard(self, heard: Heard) -> None:
        """A receipt for us: the request waits no more. `RemoteError` if it is forged or not for us."""
        if heard.place != self._place or heard.device != self._card.device_key:
            raise RemoteError(Reason.SURPLUS, "a receipt for somebody else")
        entry = self._waiting.get(heard.request)
        if entry is None:
            raise RemoteError(Reason.SURPLUS, f"a receipt for request {heard.request}, which does not wait")
        check_heard(heard, entry[0])
        self.give_up(heard.request)

    def give_up(self, request: int) -> None:
        """Forget a request; whether it was heard stays unknown."""
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
