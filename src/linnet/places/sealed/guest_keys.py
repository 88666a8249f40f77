"""The keys of a guest in a sealed place: its prekeys, the keys that it got, and messages that wait for one.

A fragment without its key stays in the store as it came. Its message is remembered as locked, across
restarts, and goes on when the key has come. Where nothing is missing before it, the voice has to be asked.
"""

from __future__ import annotations

import msgspec

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.event.event import Event
from linnet.groups.labels import Device
from linnet.groups.prekeys import DAY, Prekeys, due, encode_bundle, make_prekeys, prune, renew
from linnet.places.channel.fragment_store import Fragments, Row
from linnet.places.multicast.fragmentation import SEALED
from linnet.places.sealed.epoch_keys import Ring, open_piece, read_prefix, read_secret
from linnet.places.sealed.key_boxes import LONGEST, Box, Readers, Spoken, decode_boxes, find_box, open_box
from linnet.trace.records import Kind, Record

LIFE = 180 * DAY
"""Seconds for which keys can be sealed to a device that was not seen: guests may be away for long."""
MOST_LOCKED = 65_536
"""The most messages that are remembered to wait for a key; later ones can still be read as history."""
_PREKEYS = "place prekeys"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Prekeys)


class GuestKeys:
    """The keys with which this device reads one place."""

    def __init__(self, context: Context, fragments: Fragments, ring: Ring, readers: Readers) -> None:
        self._context = context
        self._fragments = fragments
        self._ring = ring
        self._readers = readers
        self._me = Device(context.author, context.device)
        self._space = f"place locked {fragments.place.hex()}"
        self._locked: dict[int, None] = {
            int.from_bytes(key, "big"): None for key, _ in self._context.store.cells.scan(self._space)
        }
        kept = self._context.store.cells.get(_PREKEYS, fragments.place)
        self._prekeys = None if kept is None else read_secret(_decode, kept, "the prekeys for a sealed place")
        self._told: dict[bytes, None] = {}
        """Epochs for which a record was made that their key is missing."""
        self.noted: list[Record] = []
        """Records to be written by `Ingest`, which empties the list."""

    @property
    def locked(self) -> tuple[int, ...]:
        """The messages that wait for a key."""
        return tuple(self._locked)

    def prekeys(self, now: float) -> bytes:
        """Return the prekeys to seal keys to this device: made at first need, renewed in time."""
        kept = self._prekeys
        if kept is None:
            kept = make_prekeys(self._context.entropy, now, 0, LIFE)
        elif due(kept, now):
            kept = prune(renew(kept, self._context.entropy, now, 0), now)
        if kept is not self._prekeys:
            self._prekeys = kept
            self._context.store.cells.put(_PREKEYS, self._fragments.place, _encode(kept))
        return encode_bundle(kept.bundle)

    def opened(self, event: Event, row: Row) -> bytes | None:
        """Return the plain bytes of a piece; None while its key is missing, which locks its message."""
        if not row.flags & SEALED:
            return event.body
        prefix = read_prefix(event.body)
        key = self._ring.find(prefix.epoch, prefix.step)
        if key is not None:
            return open_piece(event, prefix, key)
        if prefix.epoch not in self._told:
            self._told[prefix.epoch] = None
            note = f"message {row.message} waits for the key of its epoch"
            self.noted.append(
                Record(Kind.DROPPED, self._fragments.place, reason=Reason.KEY_MISSING, note=note)
            )
        self._lock(row.message)
        return None

    def is_locked(self, message: int) -> bool:
        """Return whether a message waits for a key."""
        return message in self._locked

    def has_key(self, message: int) -> bool:
        """Return whether a message is held here, and can be read."""
        row = self._fragments.get_at(message, 0)
        verified = None if row is None else self._fragments.verified(row)
        if row is None or verified is None or not row.flags & SEALED:
            return verified is not None
        prefix = read_prefix(verified.events[0].body)
        return self._ring.find(prefix.epoch, prefix.step) is not None

    def stored(self, row: Row, learns: bool, now: float) -> list[int]:
        """Take the keys of a stored message of keys; return the messages that may go on now.

        With `learns` the prekeys of others are kept, too: we may have to send them keys one day.
        """
        if not self._fragments.is_whole(row.message):
            return []
        body, voice = self._body(row.message)
        if voice is None:
            return []
        spoken = Spoken(self._fragments.place, voice, row.term, row.message)
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
            self.noted.append(Record(Kind.REJECTED, self._fragments.place, reason=error.reason, note=note))
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
                self.noted.append(
                    Record(Kind.REJECTED, self._fragments.place, reason=Reason.TOO_LARGE, note=note)
                )
                return b"", None
            voice = Device(verified.unit.author, verified.unit.device)
            parts.append(verified.events[0].body)
        return b"".join(parts), voice

    def _lock(self, message: int) -> None:
        if message in self._locked:
            return
        if len(self._locked) >= MOST_LOCKED:
            note = f"{MOST_LOCKED} messages wait for keys"
            self.noted.append(
                Record(Kind.DROPPED, self._fragments.place, reason=Reason.QUEUE_FULL, note=note)
            )
            return
        self._locked[message] = None
        self._context.store.cells.put(self._space, message.to_bytes(8, "big"), b"")

    def _unlock(self) -> list[int]:
        """Unlock all waiting messages and return them in order: those that cannot be read yet lock again."""
        waiting, self._locked = sorted(self._locked), {}
        for message in waiting:
            self._context.store.cells.delete(self._space, message.to_bytes(8, "big"))
        self._told.clear()
        return waiting
