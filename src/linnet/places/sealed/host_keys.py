"""The keys of the voice in a sealed place: its epochs, the sealing, and the messages of keys to guests.

Everything is in cells before a fragment leaves, in the same transaction as the fragment. After a crash the
voice goes on in its epoch; the number of a fragment in its chain is never used again, and each has its own
key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError, StoreError
from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.context import Context
from linnet.event.event import Spot, Tail
from linnet.groups.labels import Device
from linnet.groups.prekeys import decode_bundle
from linnet.groups.primitives import KEY_BYTES, Hidden, KeyPair, key_pair
from linnet.places.channel.fragment_store import Fragments
from linnet.places.multicast.fragmentation import Flag
from linnet.places.sealed.epoch_keys import (
    EPOCH_BYTES,
    STEPS,
    EpochKey,
    Ring,
    read_prefix,
    read_secret,
    seal_piece,
)
from linnet.places.sealed.key_boxes import LONGEST, Box, Readers, Spoken, encode_boxes, seal_box
from linnet.trace.records import Kind, Record

_PRESENT = "place sealing"
_LOOK = 64
"""The messages that are looked at to find the key of one."""
MOST_KEYS = 65_535
"""The most keys for one device in one message: the newest."""
_encode = msgspec.msgpack.Encoder().encode


class Present(Hidden, frozen=True):
    """The voice's own keys, and the epoch in which it seals."""

    identity: KeyPair
    term: int
    generation: int
    epoch: bytes
    step: int


_decode = msgspec.msgpack.Decoder(Present)


class HostKeys:
    """The keys with which this device seals in one place, if it is its voice."""

    def __init__(self, context: Context, fragments: Fragments, ring: Ring) -> None:
        self._context = context
        self._fragments = fragments
        self._ring = ring
        self._me = Device(context.author, context.device)
        self._cells: Cells = context.store.cells
        self.readers = Readers(fragments.place, self._cells)
        kept = self._cells.get(_PRESENT, fragments.place)
        self._present = (
            None if kept is None else read_secret(_decode, kept, "the keys of the voice of a sealed place")
        )
        self.noted: list[Record] = []
        """Records to be written by `Host`, which empties the list."""

    def is_due(self, term: int, generation: int) -> bool:
        """Return whether an epoch has to begin before the next fragment: after a removal, in a new term."""
        present = self._present
        return present is None or (present.term, present.generation) != (term, generation)

    def begin(self, term: int, generation: int, message: int) -> None:
        """Begin an epoch whose key nobody has; `message` is the first that may be in it."""
        entropy = self._context.entropy
        identity = key_pair(entropy) if self._present is None else self._present.identity
        key = EpochKey(entropy(EPOCH_BYTES), 0, message, entropy(KEY_BYTES))
        self._ring.add(key)
        self._keep(Present(identity, term, generation, key.epoch, 0))

    def step(self) -> None:
        """Step the key for a newcomer: the key from now on does not open earlier messages."""
        present = self._begun()
        if present.step + 1 >= STEPS:
            self.end_epoch()
            return
        self._keep(replace(present, step=present.step + 1))

    def end_epoch(self) -> None:
        """End the epoch: before anything else is said, another begins with a key for everyone."""
        if self._present is not None:
            self._keep(replace(self._present, term=0))

    def seal(self, tail: Tail, seq: int, prev: EventId | None) -> Tail:
        """Return the next event of our chain, its body encrypted."""
        spot = Spot(self._fragments.place, *self._me, seq, prev)
        return seal_piece(tail, spot, self._key(), self._context.entropy)

    # Keys for others.

    def learn(self, device: Device, prekeys: bytes) -> bool:
        """Learn the prekeys of a device; return whether they are new. Unusable ones are recorded."""
        if device == self._me:
            return False
        try:
            return self.readers.learn(device, prekeys)
        except RemoteError as error:
            self._note(error.reason, f"prekeys: {error.detail}")
            return False

    def for_all(
        self, term: int, message: int, may: Callable[[AuthorId], bool], now: float, own: bytes = b""
    ) -> bytes | None:
        """Return the message that brings the present key to all who may read; None if there is nobody.

        With prekeys of our `own` it also brings them to the others who may speak, so that they can seal their
        messages' keys to us while we are away.
        """
        devices = [each for each in self.readers.all() if may(each.author) and each != self._me]
        return self._told(term, message, devices, (self._key(),), False, now, own)

    def for_one(self, term: int, message: int, device: Device, since: int, now: float) -> bytes | None:
        """Return the message that brings a device all keys from a message on; None if it gave no prekeys."""
        return self._told(term, message, (device,), self.keys_since(since), True, now)

    def keys_since(self, since: int) -> list[EpochKey]:
        """Return the keys that open messages from this one on, and as few earlier messages as possible."""
        keys = self._ring.all()
        if since <= 1:
            return keys[-MOST_KEYS:]
        first = self._key_of(since) or self._key()
        later = [each for each in keys if each.message > first.message and each.epoch != first.epoch]
        return [first, *later[-MOST_KEYS + 1 :]]

    # Inside.

    def _told(
        self,
        term: int,
        message: int,
        devices: Iterable[Device],
        keys: Iterable[EpochKey],
        introduces: bool,
        now: float,
        own: bytes = b"",
    ) -> bytes | None:
        identity, given = self._begun().identity, tuple(keys)
        spoken = Spoken(self._fragments.place, self._me, term, message)
        boxes: list[Box] = []
        for device in devices:
            try:
                bundle = self.readers.bundle(device)
                sealed = seal_box(spoken, device, bundle, given, identity, self._context.entropy, now)
            except (Refused, RemoteError) as error:
                self._note(error.reason, f"no key for device {device.device.hex()}: {error.detail}")
                continue
            prekeys = self.readers.prekeys(device) if introduces else b""
            boxes.append(Box(device, len(given), prekeys, sealed))
        if own:
            mine = decode_bundle(own)
            sealed = seal_box(spoken, self._me, mine, given, identity, self._context.entropy, now)
            boxes.append(Box(self._me, len(given), own, sealed))
        body = encode_boxes(identity.public, boxes)
        if len(body) > LONGEST:
            raise Refused(Reason.TOO_LARGE, f"keys for {len(boxes)} devices in one message")
        return body if boxes else None

    def _key_of(self, message: int) -> EpochKey | None:
        """Return the key of a message: that of the first sealed message from there on."""
        newest = min(self._fragments.standing.message, message + _LOOK)
        for number in range(message, newest + 1):
            row = self._fragments.get_at(number, 0)
            verified = None if row is None else self._fragments.verified(row)
            if row is None or verified is None or not row.flags & Flag.SEALED:
                continue
            prefix = read_prefix(verified.events[0].body)
            return self._ring.find(prefix.epoch, prefix.step)
        return None

    def _key(self) -> EpochKey:
        present = self._begun()
        key = self._ring.find(present.epoch, present.step)
        if key is None:
            raise StoreError("the key of the present epoch is not in the store")
        return key

    def _begun(self) -> Present:
        if self._present is None:
            raise Refused(Reason.KEY_MISSING, "no epoch has begun")
        return self._present

    def _keep(self, present: Present) -> None:
        self._present = present
        self._cells.put(_PRESENT, self._fragments.place, _encode(present))

    def _note(self, reason: Reason, note: str) -> None:
        self.noted.append(Record(Kind.DROPPED, self._fragments.place, reason=reason, note=note[:200]))
