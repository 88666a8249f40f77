"""How a device signs its requests to the HTTP face of a relay, and how the relay checks that.

A request carries one header::

    Authorization: Linnet-Sig device="ld1…",card="<base64>",ts="<ms>",nonce="<base64>",sig="<base64>"

The signature covers method, target, time, nonce, the relay that is meant, the card and the body, so a
request can be neither changed, nor said again to another relay, nor given another person's card.
docs/reference/relay-http.md has an example that a test computes again.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re

import msgspec
from msgspec import Struct

from linnet.core.errors import BadText, RemoteError
from linnet.core.ids import AuthorId, PeerId
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, CardCheck, check_card, check_dates
from linnet.identity.keys import SIGNATURE_BYTES, SigningKey, verify
from linnet.identity.text import Sort, from_text, to_text
from linnet.wire.codec import Codec

SCHEME = "Linnet-Sig"
NONCE_BYTES = 16
"""Enough that two requests never draw the same by chance."""
WINDOW_MS = 300_000
"""Milliseconds that a request's time may differ from the relay's clock."""

_TAG = b"linnet/relay-request/1"
_CARD_BYTES = 1024
_HEADER_CHARS = 4096
_TS_DIGITS = 15
_FIELDS = ("device", "card", "ts", "nonce", "sig")
_FIELD = re.compile(r'([a-z]+)="([A-Za-z0-9+/=]+)"')
_CARDS: Codec[Card] = Codec(Card, _CARD_BYTES)
_encode = msgspec.msgpack.Encoder().encode


class Proof(Struct, frozen=True, gc=False):
    """What the header of a request says. Nothing of it may be believed before `check_proof`."""

    card: Card
    card_bytes: bytes
    """As they came: the signature covers these."""
    ts: int
    """The device's clock in milliseconds."""
    nonce: bytes
    sig: bytes

    @property
    def device(self) -> PeerId:
        """The device that claims to ask."""
        return self.card.device_key

    @property
    def person(self) -> AuthorId:
        """The person whose device it claims to be."""
        return self.card.person


def signed_bytes(
    method: str, target: bytes, ts: int, nonce: bytes, relay: PeerId, card: bytes, body: bytes
) -> bytes:
    """What is signed: a tag, and the msgpack array of what makes this request and no other."""
    digests = hashlib.sha256(card).digest(), hashlib.sha256(body).digest()
    return _TAG + _encode((method, target, ts, nonce, relay, *digests))


def authorization(
    key: SigningKey, card: Card, relay: PeerId, method: str, target: bytes, body: bytes, ts: int, nonce: bytes
) -> str:
    """The value of the header for one request of this device. `target` is path and query as they are sent."""
    card_bytes = _encode(card)
    sig = key.sign(signed_bytes(method, target, ts, nonce, relay, card_bytes, body))
    values = (to_text(Sort.DEVICE, key.public), _base64(card_bytes), str(ts), _base64(nonce), _base64(sig))
    return f"{SCHEME} " + ",".join(f'{name}="{value}"' for name, value in zip(_FIELDS, values, strict=True))


def read_proof(header: str | None) -> Proof:
    """The parts of the header; `RemoteError` says what is wrong with it."""
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


def check_proof(
    proof: Proof,
    relay: PeerId,
    method: str,
    target: bytes,
    body: bytes,
    now: float,
    card_check: CardCheck = check_card,
) -> None:
    """Raise `RemoteError` unless the device signed exactly this, and its card is good today."""
    message = signed_bytes(method, target, proof.ts, proof.nonce, relay, proof.card_bytes, body)
    verify(proof.device, message, proof.sig)
    try:
        card_check(proof.card)
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
