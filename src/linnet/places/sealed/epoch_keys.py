"""The keys of a sealed place: one for each epoch, and steps within it that lead forwards only.

An epoch begins with a key that nobody had before: behind every removal, and with every term. When
somebody comes in the key takes a step, which everyone who has it computes alone: whoever is told the
key of now cannot go back to what was said before (decision 0018). Keys are kept as long as the place
is, since its history is. Labels separate one use of a key or a hash from all others, of groups too.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final

import msgspec
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, RemoteError, StoreError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.groups.labels import fields
from linnet.groups.primitives import KEY_BYTES, Hidden, expand

_PREFIX = b"linnet/sealed-place/1/"

PIECE_LABEL = _PREFIX + b"piece"
"""Key and nonce of one fragment."""
STEP_LABEL = _PREFIX + b"step"
"""The key of the next step of an epoch."""
BOX_LABEL = _PREFIX + b"box"
"""Keys on their way from the voice to one device."""
PARTY_LABEL = _PREFIX + b"party"
"""The voice's device, where a guest's prekeys note who used them."""

LABELS = (PIECE_LABEL, STEP_LABEL, BOX_LABEL, PARTY_LABEL)
EPOCH_BYTES: Final = 8
STEPS: Final = 65_536
"""Steps of one epoch; then another one begins. It bounds the work that a fragment can ask for."""
TOLD: Final = struct.Struct(">8sIQ32s")
"""A key as it is told: epoch, step, first message, key."""

_encode = msgspec.msgpack.Encoder().encode


class EpochKey(Hidden, frozen=True):
    """The key of one step of one epoch."""

    epoch: bytes
    """Random, so that voices need not agree about numbers."""
    step: int
    message: int
    """The first one that it may have sealed, at any step."""
    key: bytes


_decode = msgspec.msgpack.Decoder(EpochKey)


def at_step(known: EpochKey, step: int) -> EpochKey | None:
    """The key of a later step; None if that is not ours to know, or no step."""
    if not known.step <= step < STEPS:
        return None
    key = known.key
    for _ in range(step - known.step):
        key = expand(key, fields(STEP_LABEL, known.epoch), KEY_BYTES)
    return replace(known, step=step, key=key)


def pack_key(key: EpochKey) -> bytes:
    """A key as it goes to a device, sealed."""
    return TOLD.pack(key.epoch, key.step, key.message, key.key)


def unpack_keys(payload: bytes) -> list[EpochKey]:
    """The keys that were told; `MalformedMessage` if that is not what it is."""
    if len(payload) % TOLD.size:
        raise MalformedMessage(f"keys of {len(payload)} bytes")
    found = [EpochKey(epoch, step, message, key) for epoch, step, message, key in TOLD.iter_unpack(payload)]
    if any(each.step >= STEPS for each in found):
        raise MalformedMessage("a key of a step that no epoch has")
    return found


class Ring:
    """The keys of one place that this device has: of each epoch the earliest step."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._cells = cells
        self._space = f"place epoch {place.hex()}"
        self._keys: dict[bytes, EpochKey] = {key: _kept(raw) for key, raw in cells.scan(self._space)}
        self._latest: dict[bytes, EpochKey] = {}
        """Of each epoch the step that was computed last: messages come more or less in order."""

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, told: EpochKey) -> bool:
        """Keep a key; whether it opens more than before. `RemoteError` if it contradicts what is known."""
        known = self._keys.get(told.epoch)
        if known is not None:
            first, later = (told, known) if told.step < known.step else (known, told)
            reached = at_step(first, later.step)
            if reached is None or not hmac.compare_digest(reached.key, later.key):
                raise RemoteError(Reason.EQUIVOCATION, "two keys of one step")
            if told.step >= known.step:
                return False
        self._keys[told.epoch] = told
        self._latest.pop(told.epoch, None)
        self._cells.put(self._space, told.epoch, _encode(told))
        return True

    def find(self, epoch: bytes, step: int) -> EpochKey | None:
        """The key of a step, if we can compute it."""
        known = self._latest.get(epoch)
        if known is None or known.step > step:
            known = self._keys.get(epoch)
        found = None if known is None else at_step(known, step)
        if found is not None:
            self._latest[epoch] = found
        return found

    def all(self) -> list[EpochKey]:
        """All of them, each at the earliest step, in the order in which they came into use."""
        return sorted(self._keys.values(), key=lambda each: (each.message, each.epoch))


def _kept(raw: bytes) -> EpochKey:
    try:
        return _decode.decode(raw)
    except msgspec.DecodeError:
        # Without the message: what could not be read is a secret.
        raise StoreError("a key of a sealed place cannot be read") from None
