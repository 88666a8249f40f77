"""A guest of a sealed place: its prekeys, the keys that it was told, and what waits for one.

A fragment whose key is not here stays in the store as it came. Its message is remembered as locked, across
restarts, and goes on when the key has come. Where nothing is missing before it, the voice has to be asked.
"""

from __future__ import annotations

import msgspec

from linnet.core.errors import RemoteError, StoreError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.groups.ids import Device
from linnet.groups.prekeys import DAY, Prekeys, due, encode_bundle, make_prekeys, prune, renew
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.multicast.fragmentation import SEALED
from linnet.places.sealed.epoch_keys import Ring
from linnet.places.sealed.fragment_crypto import open_piece, read_prefix
from linnet.places.sealed.key_boxes import LONGEST, Box, Readers, Spoken, decode_boxes, find_box, open_box
from linnet.trace.records import Kind, Record

LIFE = 180 * DAY
"""How long a device can be told keys without having been seen: guests may be away for long."""
MOST_LOCKED = 65_536
"""Messages that are remembered to wait for a key; later ones are still read as history."""
_PREKEYS = "place prekeys"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Prekeys)


class GuestKeys:
    """What this device can read of one place."""

    def __init__(
        self, place: TopicId, context: Context, fragments: Fragments, ring: Ring, readers: Readers
    ) -> None:
        self._place = place
        self._context = context
        self._cells = context.store.cells
        self._fragments = fragments
        self._ring = ring
        self._readers = readers
        self._me = Device(context.author, context.device)
        self._space = f"place locked {place.hex()}"
        self._locked: dict[int, None] = {
            int.from_bytes(key, "big"): None for key, _ in self._cells.scan(self._space)
        }
        kept = self._cells.get(_PREKEYS, place)
        self._prekeys = None if kept is None else _kept(kept)
        self._told: dict[bytes, None] = {}
        """Epochs of which it was written down that their key is missing."""
        self.noted: list[Record] = []
        """What has to be written down; whoever takes fragments in takes it."""

    @property
    def locked(self) -> tuple[int, ...]:
        """Messages that wait for a key."""
        return tuple(self._locked)

    def prekeys(self, now: float) -> bytes:
        """With which keys can be sealed to this device: made at first need, renewed in time."""
        kept = self._prekeys
        if kept is None:
            kept = make_prekeys(self._context.entropy, now, 0, LIFE)
        elif due(kept, now):
            kept = prune(renew(kept, self._context.entropy, now, 0), now)
        if kept is not self._prekeys:
            self._prekeys = kept
            self._cells.put(_PREKEYS, self._place, _encode(kept))
        return encode_bundle(kept.bundle)

    def opened(self, event: Event, row: Row) -> bytes | None:
        """What a piece says; None while its key is missing: its message is locked then."""
        if not row.flags & SEALED:
            return event.body
        prefix = read_prefix(event.body)
        key = self._ring.find(prefix.epoch, prefix.step)
        if key is not None:
            return open_piece(event, prefix, key)
        if prefix.epoch not in self._told:
            self._told[prefix.epoch] = None
            note = f"message {row.message} waits for the key of its epoch"
            self.noted.append(Record(Kind.DROPPED, self._place, reason=Reason.KEY_MISSING, note=note))
        self._lock(row.message)
        return None

    def is_locked(self, message: int) -> bool:
        """Whether a message waits for a key."""
        return message in self._locked

    def has_key(self, message: int) -> bool:
        """Whether a message is held here, and can be read."""
        row = self._fragments.get_at(message, 0)
        verified = None if row is None else self._fragments.verified(row)
        if row is None or verified is None or not row.flags & SEALED:
            return verified is not None
        prefix = read_prefix(verified.events[0].body)
        return self._ring.find(prefix.epoch, prefix.step) is not None

    def stored(self, row: Row, learns: bool, now: float) -> list[int]:
        """A fragment that tells keys is in the store: the messages that may go on now.

        With `learns` the prekeys of others are kept, too: we may have to tell them keys one day.
        """
        if not self._fragments.is_whole(row.message):
            return []
        body, voice = self._body(row.message)
        if voice is None:
            return []
        spoken = Spoken(self._place, voice, row.term, row.message)
        try:
            if learns:
                self._learn(decode_boxes(body)[1])
            found = find_box(body, self._me)
            if found is None or self._prekeys is None:
                return []
            identity, box = found
            keys = open_box(spoken, box, identity, self._prekeys, now)
            news = [self._ring.add(key) for key in keys]
        except RemoteError as error:
            note = f"keys of message {row.message}: {error.detail}"[:200]
            self.noted.append(Record(Kind.REJECTED, self._place, reason=error.reason, note=note))
            return []
        return self._unlock() if any(news) else []

    def _learn(self, boxes: list[Box]) -> None:
        for box in boxes:
            if box.prekeys and box.device != self._me:
                self._readers.learn(box.device, box.prekeys)

    def _body(self, message: int) -> tuple[bytes, Device | None]:
        parts: list[bytes] = []
        voice: Device | None = None
        for row in self._fragments.message(message):
            verified = self._fragments.verified(row)
            if verified is None or row.end > LONGEST:
                note = f"message {message} of keys is not held, or longer than {LONGEST}"
                self.noted.append(Record(Kind.REJECTED, self._place, reason=Reason.TOO_LARGE, note=note))
                return b"", None
            voice = Device(verified.unit.author, verified.unit.device)
            parts.append(verified.events[0].body)
        return b"".join(parts), voice

    def _lock(self, message: int) -> None:
        if message in self._locked:
            return
        if len(self._locked) >= MOST_LOCKED:
            note = f"{MOST_LOCKED} messages wait for keys"
            self.noted.append(Record(Kind.DROPPED, self._place, reason=Reason.QUEUE_FULL, note=note))
            return
        self._locked[message] = None
        self._cells.put(self._space, message.to_bytes(8, "big"), b"")

    def _unlock(self) -> list[int]:
        """All that waited, in order: what cannot be read yet locks itself again."""
        waiting, self._locked = sorted(self._locked), {}
        for message in waiting:
            self._cells.delete(self._space, message.to_bytes(8, "big"))
        self._told.clear()
        return waiting


def _kept(raw: bytes) -> Prekeys:
    try:
        return _decode.decode(raw)
    except msgspec.DecodeError:
        # Without the message: what could not be read is a secret.
        raise StoreError("the prekeys for a sealed place cannot be read") from None
