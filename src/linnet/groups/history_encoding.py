"""A history as bytes, for welcomes and for the own state: one form for each value, and each bounded.

::

    ver u8=1 · members u16 · additions u16 · removals u16
    each member     id 16 · author 32 · device 8 · identity 32 · its addition u16
    each addition   op 32 · sender u16 · seen
    each removal    op 32 · covered · seen

Members are named by their places, sets of them have a bit for each (as one number, big-endian, in whole
bytes). The sender of a creation is `NOBODY`; an addition that everybody has seen is `SETTLED` and has
no `seen`. With 128 members who all came one by one that is some 16 kB.
"""

from __future__ import annotations

import struct

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.groups.history import Addition, History, Member, Removal
from linnet.groups.ids import Device, MemberId
from linnet.groups.reading import Reader, rising

VERSION = 1
NOBODY, SETTLED = 0xFFFF, 0xFFFE
MAX_COUNT = 0xFFF0
"""Members or operations of one history."""

_HEAD = struct.Struct(">BHHH")
_U16 = struct.Struct(">H")


def encode(history: History) -> bytes:
    """The bytes of a history."""
    settled = {member.added_by for member in history.members} - {each.op for each in history.additions}
    pending = {each.op: each for each in history.additions}
    additions = sorted(settled | pending.keys())
    if max(len(history.members), len(additions), len(history.removals)) > MAX_COUNT:
        raise Refused(Reason.GROUP_FULL, "more members or operations than a history can tell of")
    width = (len(history.members) + 7) // 8
    number = {op: at for at, op in enumerate(additions)}
    parts = [_HEAD.pack(VERSION, len(history.members), len(additions), len(history.removals))]
    for member in history.members:
        parts += (member.id, member.device.author, member.device.device, member.identity)
        parts.append(_U16.pack(number[member.added_by]))
    for op in additions:
        each = pending.get(op)
        if each is None:
            parts += (op, _U16.pack(SETTLED))
            continue
        sender = NOBODY if each.sender is None else history.gap(each.sender)
        parts += (op, _U16.pack(sender), each.seen.to_bytes(width, "big"))
    for removal in history.removals:
        parts += (removal.op, removal.covered.to_bytes(width, "big"), removal.seen.to_bytes(width, "big"))
    return b"".join(parts)


def decode(data: bytes) -> History:
    """The history of these bytes; `MalformedMessage` unless they are the one form of a possible one."""
    reader = Reader(data)
    history = read(reader)
    reader.end()
    return history


def read(reader: Reader) -> History:
    """The history that comes next; `MalformedMessage` as with `decode`."""
    if reader.u8() != VERSION:
        raise MalformedMessage("a history of another version")
    counts = reader.u16(), reader.u16(), reader.u16()
    if max(counts) > MAX_COUNT:
        raise MalformedMessage("a history beyond its bounds")
    rows = [_read_member(reader) for _ in range(counts[0])]
    ids = tuple(row[0] for row in rows)
    rising(ids, "members")
    heads = [_read_addition(reader, ids) for _ in range(counts[1])]
    ops = tuple(head[0] for head in heads)
    rising(ops, "additions")
    removals = tuple(
        Removal(EventId(reader.take(32)), _read_set(reader, len(ids)), _read_set(reader, len(ids)))
        for _ in range(counts[2])
    )
    rising(tuple(each.op for each in removals), "removals")
    named = [0] * len(ops)
    for place, row in enumerate(rows):
        if row[3] >= len(ops):
            raise MalformedMessage("a member of no addition")
        named[row[3]] |= 1 << place
    additions = tuple(
        Addition(op, sender, bits, seen)
        for (op, sender, seen), bits in zip(heads, named, strict=True)
        if seen is not None
    )
    members = tuple(Member(id, device, identity, ops[at]) for id, device, identity, at in rows)
    history = History(members, additions, removals)
    if not all(named) or not set(ops).isdisjoint(each.op for each in removals):
        raise MalformedMessage("an operation that is two, or names nobody")
    _check(history)
    return history


def _check(history: History) -> None:
    """Whatever operations and acknowledgements there were, each member is in its own view."""
    for each in history.additions:
        if each.members & ~each.seen:
            raise MalformedMessage("a member that did not see its own addition")
        if each.sender is not None:
            sender = history.bit(each.sender)
            if each.members & sender or not each.seen & sender or each.members.bit_count() > 1:
                raise MalformedMessage("an addition that nobody can make")
    for removal in history.removals:
        if removal.covered & removal.seen:
            raise MalformedMessage("a member that saw its own removal")


def _read_member(reader: Reader) -> tuple[MemberId, Device, bytes, int]:
    id = MemberId(reader.take(16))
    device = Device(AuthorId(reader.take(32)), DeviceId(reader.take(8)))
    return id, device, reader.take(32), reader.u16()


def _read_addition(reader: Reader, ids: tuple[MemberId, ...]) -> tuple[EventId, MemberId | None, int | None]:
    op, sender = EventId(reader.take(32)), reader.u16()
    if sender == SETTLED:
        return op, None, None
    if sender != NOBODY and sender >= len(ids):
        raise MalformedMessage("an addition by nobody who is known")
    return op, None if sender == NOBODY else ids[sender], _read_set(reader, len(ids))


def _read_set(reader: Reader, count: int) -> int:
    bits = int.from_bytes(reader.take((count + 7) // 8), "big")
    if bits >> count:
        raise MalformedMessage("a set of more members than there are")
    return bits
