"""The keys of a sealed stream's epochs, the rules for deleting them, and the labels of their uses.

The key of the present epoch is kept. The key of an ended epoch is kept for late events and for those that a
subscription still reads, but only for a limited time and number: a deleted key cannot be stolen.

Each label separates one use of a key or a hash from all others, including those of groups.
"""

from __future__ import annotations

from msgspec.structs import replace

from linnet.core.ids import DeviceId
from linnet.groups.primitives import Hidden

_PREFIX = b"linnet/sealed-stream/1/"

MESSAGE_LABEL = _PREFIX + b"message"
"""Key and nonce of one message."""
EPOCH_KEY_LABEL = _PREFIX + b"epoch-key"
"""An epoch's key on its way from the owner to one reader."""
PARTY_LABEL = _PREFIX + b"party"
"""The owner's device, where a reader notes which party used its prekeys."""
REQUEST_LABEL = _PREFIX + b"request"
"""What a device signs when it asks to read."""
LABELS = (MESSAGE_LABEL, EPOCH_KEY_LABEL, PARTY_LABEL, REQUEST_LABEL)

CATCH_UP = 3_600.0
"""Seconds that every key is kept after it came: a reader that was away gets many at once, and reads then."""
MOST = 1_024
"""The most keys that are kept."""


class EpochKey(Hidden, frozen=True):
    """The key of one epoch of one device's chain."""

    device: DeviceId
    epoch: int
    key: bytes
    came: float
    ended: float | None = None
    """When the key of a later epoch came; None: it is the present one."""


Epochs = tuple[EpochKey, ...]
"""Epoch keys, oldest first."""


def find(epochs: Epochs, device: DeviceId, epoch: int) -> EpochKey | None:
    """Return the key of an epoch, if it is here."""
    for known in reversed(epochs):
        if known.epoch == epoch and known.device == device:
            return known
    return None


def begin(epochs: Epochs, device: DeviceId, epoch: int, key: bytes, now: float) -> Epochs:
    """Add the key of an epoch that begins, and end the others. A key that is here already stays."""
    if find(epochs, device, epoch) is not None:
        return epochs
    ended = (known if known.ended is not None else replace(known, ended=now) for known in epochs)
    return (*ended, EpochKey(device, epoch, key, now))


def prune(epochs: Epochs, count: int, seconds: float, now: float) -> Epochs:
    """Drop the keys of epochs that ended long ago or many epochs ago; return `epochs` itself if none goes."""
    over = [known for known in epochs if known.ended is not None]
    old = over[: len(over) - count] if count < len(over) else []
    gone = {
        id(known)
        for number, known in enumerate(over)
        if len(epochs) - number > MOST
        or (now - known.came >= CATCH_UP and (number < len(old) or now - (known.ended or now) >= seconds))
    }
    return tuple(known for known in epochs if id(known) not in gone) if gone else epochs
