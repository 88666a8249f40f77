"""The voice of a sealed place: its epochs, what it seals, and whom it tells the keys.

Everything is in cells before a fragment leaves, in the transaction that has the fragment. After a crash
the voice goes on in its epoch; the number of a fragment in its chain is never used again, and each has
its own key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec
from msgspec.structs import replace

from linnet.core.errors import Refused, RemoteError, StoreError
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.context import Context
from linnet.event.event import Tail
from linnet.groups.ids import Device
from linnet.groups.prekeys import decode_bundle
from linnet.groups.primitives import KEY_BYTES, Hidden, KeyPair, key_pair
from linnet.places.channel.fragment_store import Fragments
from linnet.places.multicast.fragmentation import Flag
from linnet.places.sealed.epoch_keys import EPOCH_BYTES, STEPS, EpochKey, Ring
from linnet.places.sealed.fragment_crypto import Spot, read_prefix, seal_piece
from linnet.places.sealed.key_boxes import LONGEST, Box, Readers, Spoken, encode_boxes, seal_box
from linnet.trace.records import Kind, Record

_PRESENT = "place sealing"
_LOOK = 64
"""Messages that are looked at to find the key of one."""
MOST_KEYS = 65_535
"""Keys for one device in one message: the newest."""
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
    """What this device needs to seal in one place, if it is its voice."""

    def __init__(self, place: TopicId, context: Context, fragments: Fragments, ring: Ring) -> None:
        self._place = place
        self._context = context
        self._fragments = fragments
        self._ring = ring
        self._me = Device(context.author, context.device)
        self._cells: Cells = context.store.cells
        self.readers = Readers(place, self._cells)
        kept = self._cells.get(_PRESENT, place)
        self._present = None if kept is None else _kept(kept)
        self.noted: list[Record] = []
        """What has to be written down; whoever speaks takes it."""

    def is_due(self, term: int, generation: int) -> bool:
        """Whether a new epoch has to begin before the next fragment: a removal, or another term."""
        present = self._present
        return present is None or (present.term, present.generation) != (term, generation)

    def begin(self, term: int, generation: int, message: int) -> None:
        """Begin an epoch that nobody has the key of; `message` is the first that may be in it."""
        entropy = self._context.entropy
        identity = key_pair(entropy) if self._present is None else self._present.identity
        key = EpochKey(entropy(EPOCH_BYTES), 0, message, entropy(KEY_BYTES))
        self._ring.add(key)
        self._keep(Present(identity, term, generation, key.epoch, 0))

    def step(self) -> None:
        """Somebody comes in: the key of what follows does not open what was before."""
        present = self._begun()
        if present.step + 1 >= STEPS:
            self.end_epoch()
            return
        self._keep(replace(present, step=present.step + 1))

    def end_epoch(self) -> None:
        """Before anything else is said an epoch is to begin, with a key for everyone."""
        if self._present is not None:
            self._keep(replace(self._present, term=0))

    def seal(self, tail: Tail, seq: int, prev: EventId | None) -> Tail:
        """The next event of our chain, its body encrypted."""
        spot = Spot(self._place, *self._me, seq, prev)
        return seal_piece(tail, spot, self._key(), self._context.entropy)

    # Keys for others.

    def learn(self, device: Device, prekeys: bytes) -> bool:
        """A device gave prekeys; whether they are news. Ones that cannot be used are written down."""
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
        """The message that tells the present key to all who may read; None if there is nobody.

        With prekeys of our `own` it also tells them to the others who may speak, so that they can seal to us
        what they say while we are away.
        """
        devices = [each for each in self.readers.all() if may(each.author) and each != self._me]
        return self._told(term, message, devices, (self._key(),), False, now, own)

    def for_one(self, term: int, message: int, device: Device, since: int, now: float) -> bytes | None:
        """The message that tells a device all keys from a message on; None if it gave no prekeys."""
        return self._told(term, message, (device,), self.keys_since(since), True, now)

    def keys_since(self, since: int) -> list[EpochKey]:
        """The keys that open what was said from a message on, and as little as can be of what was before."""
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
        spoken = Spoken(self._place, self._me, term, message)
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
        """The key that a message was sealed with: that of the first one from there on that is sealed."""
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
        self._cells.put(_PRESENT, self._place, _encode(present))

    def _note(self, reason: Reason, note: str) -> None:
        self.noted.append(Record(Kind.DROPPED, self._place, reason=reason, note=note[:200]))


def _kept(raw: bytes) -> Present:
    try:
        return _decode.decode(raw)
    except msgspec.DecodeError:
        # Without the message: what could not be read is a secret.
        raise StoreError("the keys of the voice of a sealed place cannot be read") from None
