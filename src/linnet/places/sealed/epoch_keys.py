"""The keys of a sealed place, one for each epoch with steps that lead forwards only, and what they seal.

An epoch begins with a key that nobody had before: behind every removal, and with every term. When
a guest comes in the key takes a step, which everyone who has it computes alone: a guest with the
present key cannot read what was said before (decision 0018). Keys are kept as long as the place is, since
its history is. Labels separate one use of a key or a hash from all others, of groups too.

Each fragment is encrypted under a key of its own, made from that of the epoch's step. The body of a fragment
with the flag ``SEALED``::

    epoch 8 · step u32 · guard 8 · ciphertext, with its tag of 16

Bound are all other fields of the event, the head among them: place, author, device, number in the chain,
term, fragment, message, offset, generation, flags. Lengths are not hidden: offsets count them.
"""

from __future__ import annotations

import hmac
import struct
from typing import Final, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, RemoteError, StoreError
from linnet.core.ids import TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.event.event import Event, Spot, Tail
from linnet.groups.labels import fields
from linnet.groups.message_keys import MessageKey, derive_key
from linnet.groups.primitives import KEY_BYTES, Hidden, expand
from linnet.places.multicast.fragmentation import SEALED_BYTES

_PREFIX = b"linnet/sealed-place/1/"

PIECE_LABEL = _PREFIX + b"piece"
"""The label to derive the key and nonce of one fragment."""
STEP_LABEL = _PREFIX + b"step"
"""The label to derive the key of the next step of an epoch."""
BOX_LABEL = _PREFIX + b"box"
"""The label of keys on their way from the voice to one device."""
PARTY_LABEL = _PREFIX + b"party"
"""The label of the voice's device, as the party that used a guest's prekeys."""

LABELS = (PIECE_LABEL, STEP_LABEL, BOX_LABEL, PARTY_LABEL)
EPOCH_BYTES: Final = 8
STEPS: Final = 65_536
"""The most steps of one epoch; then another begins. It bounds the work that a fragment can ask for."""
TOLD: Final = struct.Struct(">8sIQ32s")
"""The wire form of a key: epoch, step, first message, key."""

T = TypeVar("T")
_encode = msgspec.msgpack.Encoder().encode


class EpochKey(Hidden, frozen=True):
    """The key of one step of one epoch."""

    epoch: bytes
    """The id of the epoch, random, so that voices need not agree about numbers."""
    step: int
    message: int
    """The first message that the key may have sealed, at any step."""
    key: bytes


_decode = msgspec.msgpack.Decoder(EpochKey)


def read_secret(decoder: msgspec.msgpack.Decoder[T], raw: bytes, what: str) -> T:
    """Return a secret of our own store; `StoreError` if it cannot be read."""
    try:
        return decoder.decode(raw)
    except msgspec.DecodeError:
        # Without the message: the unreadable data are a secret.
        raise StoreError(f"{what} cannot be read") from None


def at_step(known: EpochKey, step: int) -> EpochKey | None:
    """Return the key of a later step; None if we cannot know it, or there is no such step."""
    if not known.step <= step < STEPS:
        return None
    key = known.key
    for _ in range(step - known.step):
        key = expand(key, fields(STEP_LABEL, known.epoch), KEY_BYTES)
    return replace(known, step=step, key=key)


def pack_key(key: EpochKey) -> bytes:
    """Return a key in its wire form, to be sealed to a device."""
    return TOLD.pack(key.epoch, key.step, key.message, key.key)


def unpack_keys(payload: bytes) -> list[EpochKey]:
    """Return the keys from their wire form; `MalformedMessage` if the payload is not of that form."""
    if len(payload) % TOLD.size:
        raise MalformedMessage(f"keys of {len(payload)} bytes")
    found = [EpochKey(epoch, step, message, key) for epoch, step, message, key in TOLD.iter_unpack(payload)]
    if any(each.step >= STEPS for each in found):
        raise MalformedMessage("a key of a step that no epoch has")
    return found


class Ring:
    """The keys of one place that this device has: the earliest known step of each epoch."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._cells = cells
        self._space = f"place epoch {place.hex()}"
        self._keys: dict[bytes, EpochKey] = {
            key: read_secret(_decode, raw, "a key of a sealed place") for key, raw in cells.scan(self._space)
        }
        self._latest: dict[bytes, EpochKey] = {}
        """The last computed step of each epoch: messages come more or less in order."""

    def __len__(self) -> int:
        return len(self._keys)

    def add(self, told: EpochKey) -> bool:
        """Keep a key; return whether it opens more than before. `RemoteError` if it contradicts another."""
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
        """Return the key of a step, if we can compute it."""
        known = self._latest.get(epoch)
        if known is None or known.step > step:
            known = self._keys.get(epoch)
        found = None if known is None else at_step(known, step)
        if found is not None:
            self._latest[epoch] = found
        return found

    def all(self) -> list[EpochKey]:
        """Return all keys, each at the earliest step, in the order in which they came into use."""
        return sorted(self._keys.values(), key=lambda each: (each.message, each.epoch))


_SEALED = struct.Struct(">8sI8s")
_GUARD_BYTES = 8
_NUMBERS = struct.Struct(">IQ")


class Prefix(Struct, frozen=True):
    """The fields before the ciphertext."""

    epoch: bytes
    step: int
    guard: bytes


def read_prefix(body: bytes) -> Prefix:
    """Return the prefix that names a piece's key; `MalformedMessage` if the piece is too short."""
    if len(body) < SEALED_BYTES:
        raise MalformedMessage(f"a sealed piece of {len(body)} bytes")
    return Prefix(*_SEALED.unpack_from(body))


def seal_piece(tail: Tail, spot: Spot, key: EpochKey, entropy: Entropy) -> Tail:
    """Return the next event of our chain with its body encrypted."""
    guard = entropy(_GUARD_BYTES)
    sealed = _derive(key, spot, guard).seal(tail.body, spot, tail)
    return replace(tail, body=_SEALED.pack(key.epoch, key.step, guard) + sealed)


def open_piece(event: Event, prefix: Prefix, key: EpochKey) -> bytes:
    """Return the plain bytes of a piece; `RemoteError` with ``undecryptable`` if it does not open."""
    opens = _derive(key, event, prefix.guard)
    return opens.open(event.body[_SEALED.size :], event)


def _derive(key: EpochKey, spot: Spot | Event, guard: bytes) -> MessageKey:
    number = _NUMBERS.pack(key.step, spot.seq or 0)
    return derive_key(key.key, PIECE_LABEL, spot.topic, spot.author, spot.device, key.epoch, number, guard)
