"""Messages of keys: a box for each device, which that device alone can open.

The body of a message with the flag ``KEYS``, over as many fragments as it takes::

    version u8 · identity 32 · boxes u32
    for each box: person 32 · device 8 · keys u16 · prekeys u16 · the device's prekeys · direct message

`identity` is the voice's key for direct messages, which the event's signature makes the voice's. A direct
message is always the first of a two-party channel (`linnet.groups.two_party`), made with the prekeys that the
device gave: terms may be cut and voices change, so there is no order that a channel could rest on. The
prekeys stand here when they are new, so that co-hosts have them when they begin an epoch of their own.
Of the prekeys of a device the newest count.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Sequence

from msgspec import Struct

from linnet.core.errors import MalformedMessage, RemoteError
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.luck import Entropy
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.groups.bodies import Reader
from linnet.groups.labels import Device, MemberId, fields
from linnet.groups.prekeys import Bundle, Prekeys, check_bundle, decode_bundle
from linnet.groups.primitives import KeyPair
from linnet.groups.two_party import EMPTY, Incoming, PeerKeys, direct_length, reach_by, receive, send
from linnet.places.sealed.epoch_keys import BOX_LABEL, PARTY_LABEL, TOLD, EpochKey, pack_key, unpack_keys

DEVICES_EACH = 16
"""The most devices of one person that get keys; the one that gave its prekeys first has to ask again."""
_PERSON_BYTES = 32
MOST_BOXES = 65_536
LONGEST = 16 * 1024 * 1024
"""The most bytes of one such message."""
_VERSION = 1
_HEAD = struct.Struct(">B32sI")
_BOX = struct.Struct(">32s8sHH")
_NUMBERS = struct.Struct(">QQ")
_EVEN = _BOX.size + direct_length(bytes(1), TOLD.size)
"""The bytes of a box with one key and no prekeys."""


class Readers:
    """The prekeys of guests' devices in one place."""

    def __init__(self, place: TopicId, cells: Cells) -> None:
        self._cells = cells
        self._space = f"place reader {place.hex()}"
        self._known: dict[AuthorId, dict[DeviceId, bytes]] = {}
        for key, raw in cells.scan(self._space):
            person, device = AuthorId(key[:_PERSON_BYTES]), DeviceId(key[_PERSON_BYTES:])
            self._known.setdefault(person, {})[device] = raw

    def learn(self, device: Device, prekeys: bytes) -> bool:
        """Learn the prekeys of a device; return whether they are new. `RemoteError` if they are malformed.

        Prekeys older than the known ones are not new: an old message is being replayed.
        """
        bundle = decode_bundle(prekeys)
        mine = self._known.setdefault(device.author, {})
        known = mine.get(device.device)
        if known is not None:
            before = decode_bundle(known)
            # Of one identity they are numbered; their dates may go back after a clock was ahead.
            is_older = (
                before.gen >= bundle.gen
                if before.identity == bundle.identity
                else before.not_before > bundle.not_before
            )
            if is_older:
                return False
        mine.pop(device.device, None)
        mine[device.device] = prekeys
        self._cells.put(self._space, device.author + device.device, prekeys)
        for surplus in list(mine)[:-DEVICES_EACH]:
            self._forget(Device(device.author, surplus))
        return True

    def forget(self, person: AuthorId) -> None:
        """Forget the prekeys of a person who is no longer a guest."""
        for device in list(self._known.get(person, {})):
            self._forget(Device(person, device))

    def bundle(self, device: Device) -> Bundle:
        """Return the newest prekeys of a device; `RemoteError` if it gave none."""
        raw = self._known.get(device.author, {}).get(device.device)
        if raw is None:
            raise RemoteError(Reason.MISSING_PREKEYS, "a device that gave no prekeys")
        return decode_bundle(raw)

    def prekeys(self, device: Device) -> bytes:
        """Return the newest prekeys as the device sent them; empty if there are none."""
        return self._known.get(device.author, {}).get(device.device, b"")

    def of(self, person: AuthorId) -> list[Device]:
        """Return the devices of one person."""
        return [Device(person, device) for device in self._known.get(person, {})]

    def all(self) -> list[Device]:
        """Return all devices, in the order of their names."""
        return sorted(Device(person, device) for person, mine in self._known.items() for device in mine)

    def _forget(self, device: Device) -> None:
        mine = self._known.get(device.author, {})
        mine.pop(device.device, None)
        if not mine:
            self._known.pop(device.author, None)
        self._cells.delete(self._space, device.author + device.device)


class Spoken(Struct, frozen=True, gc=False):
    """The message that carries boxes: each box is bound to it."""

    place: TopicId
    voice: Device
    term: int
    message: int


class Box(Struct, frozen=True):
    """Keys for one device."""

    device: Device
    keys: int
    prekeys: bytes
    """The device's prekeys, as it gave them; empty: unchanged."""
    sealed: bytes


def seal_box(
    spoken: Spoken,
    to: Device,
    bundle: Bundle,
    keys: Sequence[EpochKey],
    identity: KeyPair,
    entropy: Entropy,
    now: float,
) -> bytes:
    """Return keys as a direct message. `Refused` with ``prekey_expired`` if the prekeys have ended."""
    check_bundle(bundle, now)
    reach = reach_by(EMPTY, PeerKeys(bundle.identity, bundle), _party(spoken), now)
    payload = b"".join(map(pack_key, keys))
    return send(EMPTY, reach, identity.secret, _context(spoken, to), payload, entropy)[1]


def open_box(spoken: Spoken, box: Box, identity: bytes, prekeys: Prekeys, now: float) -> list[EpochKey]:
    """Return the keys in a box for us; `RemoteError` if it does not open."""
    party, context = _party(spoken), _context(spoken, box.device)
    payload = receive(EMPTY, prekeys, {}, Incoming(party, identity, context, box.sealed), now)[2]
    return unpack_keys(payload)


def encode_boxes(identity: bytes, boxes: Sequence[Box]) -> bytes:
    """Return the body of a message of keys."""
    told = (_BOX.pack(*box.device, box.keys, len(box.prekeys)) + box.prekeys + box.sealed for box in boxes)
    return _HEAD.pack(_VERSION, identity, len(boxes)) + b"".join(told)


def decode_boxes(body: bytes) -> tuple[bytes, list[Box]]:
    """Return the voice's identity key and all boxes; `MalformedMessage` if it is no such message."""
    reader, identity, count = _begun(body)
    boxes = [_box(reader) for _ in range(count)]
    reader.end()
    return identity, boxes


def find_box(body: bytes, device: Device) -> tuple[bytes, Box] | None:
    """Return the identity key and a device's box, without a look at the others: there may be thousands.

    The boxes of a new epoch are all of one length. Where they are not, there are prekeys between them, and a
    person may have chosen theirs to look like another device's name: then each box is read.
    """
    _, identity, count = _begun(body)
    name = device.author + device.device
    at = body.find(name, _HEAD.size)
    if at < 0:
        return None
    if len(body) != _HEAD.size + count * _EVEN:
        return next(((identity, box) for box in decode_boxes(body)[1] if box.device == device), None)
    while at >= 0 and (at - _HEAD.size) % _EVEN:
        at = body.find(name, at + 1)
    return None if at < 0 else (identity, _box(Reader(body[at : at + _EVEN])))


def _begun(body: bytes) -> tuple[Reader, bytes, int]:
    reader = Reader(body)
    version, identity, count = _HEAD.unpack(reader.take(_HEAD.size))
    if version != _VERSION:
        raise MalformedMessage(f"keys of version {version}", Reason.UNSUPPORTED)
    if count > MOST_BOXES:
        raise MalformedMessage(f"{count} boxes in one message", Reason.TOO_MANY)
    return reader, identity, count


def _box(reader: Reader) -> Box:
    author, device, keys, length = _BOX.unpack(reader.take(_BOX.size))
    prekeys = reader.take(length)
    return Box(Device(AuthorId(author), DeviceId(device)), keys, prekeys, reader.direct(keys * TOLD.size))


def _context(spoken: Spoken, to: Device) -> bytes:
    numbers = _NUMBERS.pack(spoken.term, spoken.message)
    return fields(BOX_LABEL, spoken.place, *spoken.voice, *to, numbers)


def _party(spoken: Spoken) -> MemberId:
    return MemberId(hashlib.sha256(fields(PARTY_LABEL, spoken.place, *spoken.voice)).digest()[:16])
