"""The signatures of requests to the HTTP interface of a relay, and their checks.

A request carries one header::

    Authorization: Linnet-Sig device="ld1…",card="<base64>",ts="<ms>",nonce="<base64>",sig="<base64>"

The signature covers method, target, time, nonce, the relay that is meant, the card and the body, so a
request can be neither changed, nor repeated to another relay, nor given another person's card.
docs/reference/relay-http.md has an example that a test computes again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from typing import NamedTuple

import msgspec
from msgspec import Struct

from linnet.core.errors import BadText, RemoteError
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, check_card, check_dates
from linnet.identity.keys import SIGNATURE_BYTES, SigningKey, verify
from linnet.identity.text import Sort, from_text, to_text
from linnet.wire.codec import Codec

SCHEME = "Linnet-Sig"
NONCE_BYTES = 16
"""Enough that two requests never draw the same nonce by chance."""
WINDOW_MS = 300_000
"""Milliseconds by which a request's time may differ from the relay's clock."""

_TAG = b"linnet/relay-request/1"
_CARD_BYTES = 1024
_HEADER_CHARS = 4096
_TS_DIGITS = 15
_FIELDS = ("device", "card", "ts", "nonce", "sig")
_FIELD = re.compile(r'([a-z]+)="([A-Za-z0-9+/=]+)"')
_CARDS: Codec[Card] = Codec(Card, _CARD_BYTES)
_encode = msgspec.msgpack.Encoder().encode


class Proof(Struct, frozen=True, gc=False):
    """The content of a request's header. Nothing in it may be trusted before `check_proof`."""

    card: Card
    card_bytes: bytes
    """The bytes as received, which the signature covers."""
    ts: int
    """The device's clock in milliseconds."""
    nonce: bytes
    sig: bytes

    @property
    def device(self) -> PeerId:
        """The device that claims to have signed."""
        return self.card.device_key

    @property
    def person(self) -> AuthorId:
        """The person to whom the device claims to belong."""
        return self.card.person


class SignedRequest(NamedTuple):
    """The parts of a request to a relay that its signature covers."""

    relay: PeerId
    method: str
    target: bytes
    """Path and query as they are sent."""
    body: bytes


def signed_bytes(request: SignedRequest, ts: int, nonce: bytes, card: bytes) -> bytes:
    """Return the signed bytes: a tag, and the msgpack array of all that identifies this request."""
    digests = hashlib.sha256(card).digest(), hashlib.sha256(request.body).digest()
    return _TAG + _encode((request.method, request.target, ts, nonce, request.relay, *digests))


def authorization(key: SigningKey, card: Card, request: SignedRequest, ts: int, nonce: bytes) -> str:
    """Return the header's value for one request of this device."""
    card_bytes = _encode(card)
    sig = key.sign(signed_bytes(request, ts, nonce, card_bytes))
    values = (to_text(Sort.DEVICE, key.public), _base64(card_bytes), str(ts), _base64(nonce), _base64(sig))
    return f"{SCHEME} " + ",".join(f'{name}="{value}"' for name, value in zip(_FIELDS, values, strict=True))


def read_proof(header: str | None) -> Proof:
    """Parse the header; raises `RemoteError` if it is malformed."""
    if not header:
        raise RemoteError(Reason.AUTH_FAILED, "the request is not signed")
    scheme, _, rest = header.partition(" ")
    if scheme.lower() != SCHEME.lower():
        raise RemoteError(Reason.AUTH_FAILED, f"the request is not signed by {SCHEME}")
    if len(header) > _HEADER_CHARS:
        raise RemoteError(Reason.MALFORMED, f"the authorization has more than {_HEADER_CHARS} characters")
    values = _fields(rest)
    ts = values["ts"]
    if not (ts.isascii() and ts.isdigit() and len(ts) <= _TS_DIGITS):
        raise RemoteError(Reason.MALFORMED, "ts is no number of milliseconds")
    nonce, sig = _bytes(values, "nonce"), _bytes(values, "sig")
    if len(nonce) != NONCE_BYTES or len(sig) != SIGNATURE_BYTES:
        raise RemoteError(
            Reason.MALFORMED, f"nonce has {NONCE_BYTES} bytes and sig {SIGNATURE_BYTES}, in base64"
        )
    card_bytes = _bytes(values, "card")
    card = _CARDS.decode(card_bytes)
    try:
        device = from_text(Sort.DEVICE, values["device"])
    except BadText as error:
        raise RemoteError(Reason.MALFORMED, str(error)) from error
    if card.device_key != device:
        raise RemoteError(Reason.WRONG_KEY, "the card is of another device")
    return Proof(card, card_bytes, int(ts), nonce, sig)


def check_fresh(proof: Proof, now: float, not_before_ms: int) -> None:
    """Raise `RemoteError` unless its time is near ours, and this relay remembers nonces since then."""
    now_ms = int(now * 1000)
    apart = f"the request is of {proof.ts}, this relay's clock is at {now_ms}"
    if proof.ts < now_ms - WINDOW_MS:
        raise RemoteError(Reason.STALE, apart)
    if proof.ts > now_ms + WINDOW_MS:
        raise RemoteError(Reason.FUTURE_TIME, apart)
    if proof.ts < not_before_ms:
        raise RemoteError(Reason.STALE, f"{apart}, and it has forgotten what came before {not_before_ms}")


def check_proof(proof: Proof, request: SignedRequest, now: float) -> None:
    """Raise `RemoteError` unless the device signed exactly this request, and its card is valid today."""
    message = signed_bytes(request, proof.ts, proof.nonce, proof.card_bytes)
    verify(proof.device, message, proof.sig)
    try:
        check_card(proof.card)
    except RemoteError as error:
        raise RemoteError(error.reason, f"the card: {error.detail}") from error
    check_dates(proof.card, now)


def _fields(text: str) -> dict[str, str]:
    values: dict[str, str] = {}
    for part in text.split(","):
        found = _FIELD.fullmatch(part.strip())
        if found is None or found[1] in values:
            raise RemoteError(Reason.MALFORMED, f"the authorization is not of the form {_form()}")
        values[found[1]] = found[2]
    if sorted(values) != sorted(_FIELDS):
        raise RemoteError(Reason.MALFORMED, f"the authorization is not of the form {_form()}")
    return values


def _form() -> str:
    return f"{SCHEME} " + ",".join(f'{name}="…"' for name in _FIELDS)


def _bytes(values: dict[str, str], name: str) -> bytes:
    try:
        return base64.b64decode(values[name], validate=True)
    except (binascii.Error, ValueError) as error:
        raise RemoteError(Reason.MALFORMED, f"{name} is no base64") from error


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()
