"""What a newcomer is told of a group: a blob, sealed under a key that only its welcome has.

::

    healthy u8 · history u32 length
    each of its members: operations u32 · operation of its in-band prekey u32 · that prekey 32
    leaving, closed: a bit for each member
    operations u16, each: id 32 · sender u16 · number u32 · act u8 · newcomer u16 · awaiting: a bit for each

Members are named by their place in the history. It holds no secret: keys of messages come only by what
members tell the newcomer themselves. The operations are those that somebody has still to acknowledge.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.errors import MalformedMessage, Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups import healing, membership
from linnet.groups.bodies import BLOB_BYTES, NOBODY
from linnet.groups.history import History, places
from linnet.groups.ids import MemberId
from linnet.groups.labels import WELCOME, fields, u32
from linnet.groups.prekeys import MAX_GENERATION
from linnet.groups.primitives import NONCE_BYTES, TAG_BYTES, check_public, open_sealed, seal
from linnet.groups.reading import Reader
from linnet.groups.state import Act, Op
from linnet.groups.working import Work

_NOBODY = 0xFFFF
_NONCE = bytes(NONCE_BYTES)
"""The key is for the one blob."""


def seal_blob(work: Work, key: bytes, newcomer: MemberId) -> bytes:
    """All that a newcomer must know of the group, as it is before the newcomer is in it."""
    history, ids = work.history, [member.id for member in work.history.members]
    recorded = membership.encode(history)
    healthy = not healing.needs_heal(work.cover, history)
    parts = [bytes((healthy,)), u32(len(recorded)), recorded]
    for member in ids:
        cseq, prekey = work.peer_inband.get(member, (0, bytes(32)))
        parts += (u32(work.clock.get(member, 0)), u32(cseq), prekey)
    width = (len(ids) + 7) // 8
    parts.append(_bits(history, work.leaving).to_bytes(width, "big"))
    parts.append(_bits(history, work.closed).to_bytes(width, "big"))
    parts.append(_u16(len(work.ops)))
    for op in sorted(work.ops):
        known = work.ops[op]
        new = _NOBODY if known.newcomer is None else _place(history, known.newcomer)
        parts += (op, _u16(_place(history, known.sender)), u32(known.cseq), bytes((known.act,)), _u16(new))
        parts.append(_bits(history, (*known.awaiting, *known.late)).to_bytes(width, "big"))
    blob = b"".join(parts)
    if len(blob) + TAG_BYTES > BLOB_BYTES or len(work.ops) > 0xFFFF:
        raise Refused(Reason.TOO_LARGE, "too much is pending to tell a newcomer: remove who does not answer")
    return seal(key, _NONCE, blob, _bound(work.group, work.self, newcomer, work.cseq))


def open_blob(work: Work, key: bytes, adder: MemberId, cseq: int, blob: bytes, now: float) -> None:
    """Take in what our adder told us of the group; `RemoteError` if it makes no sense."""
    reader = Reader(open_sealed(key, _NONCE, blob, _bound(work.group, adder, work.self, cseq)))
    healthy = reader.u8()
    if healthy > 1:
        raise MalformedMessage("a welcome that is neither healthy nor not")
    history = work.history = membership.decode(reader.take(reader.u32()))
    work.cover = healing.welcomed(history, bool(healthy))
    for member in history.members:
        check_public(member.identity)
        work.clock[member.id] = reader.u32()
        number, prekey = reader.u32(), reader.take(32)
        if number > work.clock[member.id] or number > MAX_GENERATION:
            raise MalformedMessage("a welcome with a prekey of an operation that was not")
        if number:
            work.peer_inband[member.id] = (number, check_public(prekey))
    work.leaving = _members(history, reader)
    work.closed = dict.fromkeys(_members(history, reader), now)
    for _ in range(reader.u16()):
        op = EventId(reader.take(32))
        work.count += 1
        if op in work.ops:
            raise MalformedMessage("a welcome tells of an operation twice")
        work.ops[op] = _read_op(work, reader, now)
    reader.end()
    if not work.hardening.inband_prekeys:
        work.peer_inband = {}


def _read_op(work: Work, reader: Reader, now: float) -> Op:
    history = work.history
    sender, cseq, act, new = reader.u16(), reader.u32(), reader.u8(), reader.u16()
    if act not in (Act.SEED, Act.ADD) or (act == Act.SEED and new != _NOBODY):
        raise MalformedMessage("a welcome with an operation of no known kind")
    newcomer = _at(history, new) if act == Act.ADD else None
    named = _members(history, reader)
    awaiting: dict[MemberId, bytes | None] = {each: None for each in named if each not in work.closed}
    late = tuple(each for each in named if each in work.closed)
    return Op(_at(history, sender), cseq, Act(act), work.count, now, newcomer, awaiting, late, not awaiting)


def _bound(group: bytes, adder: MemberId, newcomer: MemberId, cseq: int) -> bytes:
    return fields(WELCOME, group, adder, newcomer, u32(cseq))


def _place(history: History, member: MemberId) -> int:
    return history.gap(member) if history.member(member) is not None else _NOBODY


def _at(history: History, place: int) -> MemberId:
    if place == _NOBODY:
        return NOBODY  # Somebody who is forgotten.
    if place >= len(history.members):
        raise MalformedMessage("a welcome that tells of more members than there are")
    return history.members[place].id


def _bits(history: History, members: Iterable[MemberId]) -> int:
    bits = 0
    for member in members:
        bits |= history.bit(member)
    return bits


def _members(history: History, reader: Reader) -> tuple[MemberId, ...]:
    count = len(history.members)
    bits = int.from_bytes(reader.take((count + 7) // 8), "big")
    if bits >> count:
        raise MalformedMessage("a set of more members than there are")
    return tuple(history.members[place].id for place in places(bits))


def _u16(number: int) -> bytes:
    return number.to_bytes(2, "big")
