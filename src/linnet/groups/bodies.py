"""The bodies of group operations, which events of kind `group` carry, byte by byte.

Fixed order, fixed width, numbers big-endian; lists are sorted and without doubles. All begin with ::

    version u8 · type u8 · sender 16 · number u32 · messages u32

where `number` counts the sender's operations from 1 and `messages` is how many messages it has sent in
the epoch that this operation ends. The signer of the event is not repeated; nor is there an id: the event's
id is the operation's. Direct messages tell their own length.
Any fault in foreign bytes is the same error.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import Final, TypeAlias

from msgspec import Struct

from linnet.core.errors import MalformedMessage
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.limits import BODY_BYTES, KIB
from linnet.core.reasons import Reason
from linnet.groups.labels import Device, MemberId
from linnet.groups.prekeys import Bundle, decode_bundle, encode_bundle
from linnet.groups.primitives import check_public
from linnet.groups.two_party import direct_length

_U16, _U32 = struct.Struct(">H"), struct.Struct(">I")


class Reader:
    """Reads one field after the other; `MalformedMessage` where the bytes end early or go on."""

    __slots__ = ("_at", "_data")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def take(self, size: int) -> bytes:
        """Read the next `size` bytes."""
        end = self._at + size
        if end > len(self._data):
            raise MalformedMessage("a group operation ends early")
        part = self._data[self._at : end]
        self._at = end
        return part

    def u8(self) -> int:
        """Read one byte as a number."""
        return self.take(1)[0]

    def u16(self) -> int:
        """Read two bytes as a number."""
        return int(_U16.unpack(self.take(2))[0])

    def u32(self) -> int:
        """Read four bytes as a number."""
        return int(_U32.unpack(self.take(4))[0])

    def direct(self, payload: int = 32) -> bytes:
        """Read a direct message: its first byte tells its length."""
        return self.take(direct_length(self._data[self._at : self._at + 1], payload))

    def rest(self) -> bytes:
        """Read all that is left."""
        return self.take(len(self._data) - self._at)

    def end(self) -> None:
        """Raise `MalformedMessage` if anything is left."""
        if self._at != len(self._data):
            raise MalformedMessage("a group operation goes on after its end")


def check_rising(items: tuple[bytes, ...], what: str) -> None:
    """Raise `MalformedMessage` unless each item is larger than the one before: sorted, and none twice."""
    for first, second in pairwise(items):
        if first >= second:
            raise MalformedMessage(f"{what} are not in order")


VERSION: Final = 1
BLOB_BYTES: Final = 128 * KIB
"""Bytes of the blob of a welcome, at most: it describes a group of some 500 members."""
WELCOME_PAYLOAD: Final = 64
"""Bytes of the payload of a welcome: the adder's ratchet, and the key of the blob."""
MAX_MEMBERS: Final = 1024
"""Members in one operation, at most, whatever a group's own limit is."""
MAX_ITEMS: Final = 4096
NOBODY: Final = MemberId(bytes(16))

_CREATE, _UPDATE, _REMOVE, _ADD, _ACKS, _LEAVE, _KEYS = 1, 2, 3, 4, 5, 7, 8
_HEAD = struct.Struct(">BB16sII")
_ACK, _ADD_ACK = 1, 2
HEAD_BYTES: Final = _HEAD.size


class Head(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The sender of an operation, the operation's number, and the message count of the epoch that it ends."""

    sender: MemberId
    cseq: int
    app_count: int


class Create(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The first operation: all first members with their identity keys, and a seed to each but its sender."""

    head: Head
    spk: bytes
    nonce: bytes
    members: tuple[tuple[Device, bytes], ...]
    directs: tuple[bytes, ...]


class Update(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A new seed, in a direct message to every member that the sender knows, in the order of their ids."""

    head: Head
    spk: bytes
    directs: tuple[bytes, ...]


class Remove(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The removal of these members, with a new seed to all others."""

    head: Head
    spk: bytes
    targets: tuple[MemberId, ...]
    directs: tuple[bytes, ...]


class Add(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The addition of a device: the blob describes the group to it, and its welcome holds the blob's key."""

    head: Head
    by: bytes
    """The adder's own identity key, which the newcomer needs before it can read the blob."""
    device: Device
    identity: bytes
    nonce: bytes
    keys: EventId
    welcome: bytes
    blob: bytes


class Item(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One acknowledgement, of an addition or of another operation, with direct messages to single members."""

    is_add: bool
    op: EventId
    directs: tuple[tuple[MemberId, bytes], ...]


class Acks(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Acknowledgements, in the order in which their sender's ratchet took them."""

    head: Head
    items: tuple[Item, ...]


class Leave(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The sender asks to be removed: a member that leaves must not choose the seed that comes after it."""

    head: Head


class Keys(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """The prekeys of a device, be it a member or not."""

    bundle: Bundle


Body: TypeAlias = Create | Update | Remove | Add | Acks | Leave | Keys


def encode_body(body: Body) -> bytes:
    """Return the bytes of an operation."""
    match body:
        case Create(head, spk, nonce, members, directs):
            named = (each.author + each.device + identity for each, identity in members)
            return b"".join((_head(_CREATE, head), spk, nonce, _u16(len(members)), *named, *directs))
        case Update(head, spk, directs):
            return b"".join((_head(_UPDATE, head), spk, _u16(len(directs)), *directs))
        case Remove(head, spk, targets, directs):
            counted = (_u16(len(targets)), *targets, _u16(len(directs)), *directs)
            return b"".join((_head(_REMOVE, head), spk, *counted))
        case Add(head, by, device, identity, nonce, keys, welcome, blob):
            size = len(blob).to_bytes(4, "big")
            return b"".join((_head(_ADD, head), by, *device, identity, nonce, keys, welcome, size, blob))
        case Acks(head, items):
            return _head(_ACKS, head) + _u16(len(items)) + b"".join(map(encode_item, items))
        case Leave(head):
            return _head(_LEAVE, head)
        case Keys(bundle):
            return _head(_KEYS, Head(NOBODY, 0, 0)) + encode_bundle(bundle)


def encode_item(item: Item) -> bytes:
    """Return the bytes of one acknowledgement within its operation."""
    head = bytes((_ADD_ACK if item.is_add else _ACK,)) + item.op + _u16(len(item.directs))
    return head + b"".join(member + direct for member, direct in item.directs)


def decode_body(data: bytes) -> Body:
    """Return the operation of these bytes; `MalformedMessage`, and no other error, if they are none."""
    if len(data) > BODY_BYTES:
        raise MalformedMessage(f"{len(data)} bytes, at most {BODY_BYTES} are read", Reason.TOO_LARGE)
    reader = Reader(data)
    version, kind, sender, cseq, app_count = _HEAD.unpack(reader.take(_HEAD.size))
    if version != VERSION:
        raise MalformedMessage(f"a group operation of version {version}", Reason.UNSUPPORTED)
    head = Head(MemberId(sender), cseq, app_count)
    if kind == _KEYS:
        if head != Head(NOBODY, 0, 0):
            raise MalformedMessage("prekeys with a sender or a number")
        return Keys(decode_bundle(reader.rest()))
    if cseq == 0 or sender == NOBODY:
        raise MalformedMessage("a group operation without sender or number")
    decode = _DECODERS.get(kind)
    if decode is None:
        raise MalformedMessage(f"no group operation has the type {kind}", Reason.UNSUPPORTED)
    body = decode(head, reader)
    reader.end()
    return body


def _create(head: Head, reader: Reader) -> Body:
    spk, nonce, count = check_public(reader.take(32)), reader.take(16), _members(reader.u16())
    if count == 0:
        raise MalformedMessage("a group of nobody")
    members = tuple((_device(reader), check_public(reader.take(32))) for _ in range(count))
    check_rising(tuple(each.author + each.device for each, _ in members), "members")
    return Create(head, spk, nonce, members, _directs(reader, count - 1))


def _update(head: Head, reader: Reader) -> Body:
    return Update(head, check_public(reader.take(32)), _directs(reader, reader.u16()))


def _remove(head: Head, reader: Reader) -> Body:
    spk, count = check_public(reader.take(32)), _members(reader.u16())
    if count == 0:
        raise MalformedMessage("a removal of nobody")
    targets = tuple(MemberId(reader.take(16)) for _ in range(count))
    check_rising(targets, "targets")
    return Remove(head, spk, targets, _directs(reader, reader.u16()))


def _add(head: Head, reader: Reader) -> Body:
    by, device = check_public(reader.take(32)), _device(reader)
    identity, nonce = check_public(reader.take(32)), reader.take(16)
    keys, welcome, size = EventId(reader.take(32)), reader.direct(WELCOME_PAYLOAD), reader.u32()
    if size > BLOB_BYTES:
        raise MalformedMessage(f"a welcome of {size} bytes, at most {BLOB_BYTES} are read", Reason.TOO_LARGE)
    return Add(head, by, device, identity, nonce, keys, welcome, reader.take(size))


def _acks(head: Head, reader: Reader) -> Body:
    count = reader.u16()
    if not 0 < count <= MAX_ITEMS:
        raise MalformedMessage(f"{count} acknowledgements in one, 1 to {MAX_ITEMS} are read")
    items = tuple(_item(reader) for _ in range(count))
    if len({item.op for item in items}) != count:
        raise MalformedMessage("an operation is acknowledged twice")
    return Acks(head, items)


def _item(reader: Reader) -> Item:
    kind, op, count = reader.u8(), EventId(reader.take(32)), _members(reader.u16())
    if kind not in (_ACK, _ADD_ACK) or (kind == _ADD_ACK and count > 1):
        raise MalformedMessage("an acknowledgement of no known kind")
    directs = tuple((MemberId(reader.take(16)), reader.direct()) for _ in range(count))
    check_rising(tuple(member for member, _ in directs), "recipients")
    return Item(kind == _ADD_ACK, op, directs)


def _leave(head: Head, _: Reader) -> Body:
    return Leave(head)


_DECODERS: Final = {
    _CREATE: _create,
    _UPDATE: _update,
    _REMOVE: _remove,
    _ADD: _add,
    _ACKS: _acks,
    _LEAVE: _leave,
}


def _head(kind: int, head: Head) -> bytes:
    return _HEAD.pack(VERSION, kind, head.sender, head.cseq, head.app_count)


def _u16(number: int) -> bytes:
    return number.to_bytes(2, "big")


def _device(reader: Reader) -> Device:
    return Device(AuthorId(reader.take(32)), DeviceId(reader.take(8)))


def _directs(reader: Reader, count: int) -> tuple[bytes, ...]:
    return tuple(reader.direct() for _ in range(_members(count)))


def _members(count: int) -> int:
    if count > MAX_MEMBERS:
        raise MalformedMessage(f"{count} members in one operation, at most {MAX_MEMBERS} are read")
    return count
