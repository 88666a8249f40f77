"""What a node says of itself: signed by it, good for a day at most, passed on by anyone."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import msgpack

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SIGNATURE_BYTES, SigningKey, verify
from linnet.overlay.trackerless.config import DAY
from linnet.overlay.trackerless.messages import FILTER_BYTES, Descriptor

SignatureCheck = Callable[[Descriptor], None]
"""`check_signature`, or in a simulation the same with its results remembered."""

DescriptorCheck = Callable[[Descriptor, float], None]
"""Raises `RemoteError` unless a descriptor is good at this time: `check_descriptor`, or more than it."""

LEEWAY = 300.0
"""Seconds by which the clocks of two nodes may differ."""

PEER_BYTES = 32
HINTS = 8

_TAG = b"linnet/overlay/descriptor/1"
_encoder = msgpack.Encoder()


def sign_descriptor(
    key: SigningKey,
    version: int,
    epoch: int,
    filter: bytes,
    epsilon_milli: int,
    hashes: int,
    hints: tuple[str, ...],
    expires: int,
) -> Descriptor:
    """What the holder of this key says of itself."""
    fields = (key.public, version, epoch, filter, epsilon_milli, hashes, hints, expires)
    sig = key.sign(_TAG + _encoder.encode(fields))
    peer = PeerId(key.public)
    return Descriptor(peer, version, epoch, filter, epsilon_milli, hashes, hints, expires, sig)


def check_signature(descriptor: Descriptor) -> None:
    """Raise `RemoteError` unless the node that it speaks of signed it."""
    fields = (
        descriptor.peer,
        descriptor.version,
        descriptor.epoch,
        descriptor.filter,
        descriptor.epsilon_milli,
        descriptor.hashes,
        descriptor.hints,
        descriptor.expires,
    )
    verify(descriptor.peer, _TAG + _encoder.encode(fields), descriptor.sig)


def check_descriptor(
    descriptor: Descriptor, now: float, verify: SignatureCheck = check_signature, life: float = DAY
) -> None:
    """Raise `RemoteError` unless it is signed, not past, and ends within the time that is allowed.

    An end far off is refused because nothing else would ever end the spreading of a node that is gone.
    """
    if (
        len(descriptor.peer) != PEER_BYTES
        or len(descriptor.sig) != SIGNATURE_BYTES
        or len(descriptor.filter) > FILTER_BYTES
        or len(descriptor.hints) > HINTS
    ):
        raise RemoteError(Reason.MALFORMED, "a part of the descriptor has a wrong length")
    if descriptor.expires < now:
        raise RemoteError(Reason.STALE, f"the descriptor ended at {descriptor.expires}")
    if descriptor.expires > now + life + LEEWAY:
        raise RemoteError(Reason.FUTURE_TIME, f"the descriptor ends only at {descriptor.expires}")
    verify(descriptor)
