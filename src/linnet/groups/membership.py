"""The members of a group as each member sees them, without any server or common order: strong remove.

Members are those that a creation or an addition names, less those that a removal *covers*: its targets, and
the members that these added, directly or through others, by additions that the remover had not seen. A
removal always counts, also that of a remover who is removed meanwhile; nobody comes back (a device that is
added again is another member). So the members follow from the set of operations and their causal order, in
whatever order they come (Weidner et al. 2021 leave the rule open; their own implementation has this one).

A member has *seen* the operations that it made or acknowledged, and its view counts just these. The members
that a removal covers are fixed as operations come: an operation that the remover had not seen comes either
before the removal, and is then looked at once, or after it, and then inherits from its author. So no
operation needs to keep its own past.

The caller delivers a member's operations in their order, and an acknowledgement after the operation that it
names. All checks here are made in the author's view, so that all members agree on the result; a fault is a
`RemoteError` and the history stays as it was.

A history is a value in the order of ids. Sets of members are integers with a bit for each, at its place in
that order. So equal knowledge is an equal value, whatever the order in which it came. It grows with the
members of a group, not with its age: see `compact`. `encode` and `decode` give each value one form in bytes.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.groups.bodies import Reader, check_rising
from linnet.groups.labels import Device, MemberId

_ID, _OP = attrgetter("id"), attrgetter("op")


class Member(Struct, frozen=True):
    """One stay of a device in a group."""

    id: MemberId
    device: Device
    identity: bytes
    """Its public identity key in this group (32 bytes)."""
    added_by: EventId
    """The creation or addition that names it."""


class Addition(Struct, frozen=True):
    """A creation or addition that some member may not have seen."""

    op: EventId
    sender: MemberId | None
    """The member that added; None for a creation, or if that member is forgotten."""
    members: int
    seen: int


class Removal(Struct, frozen=True):
    """A removal that still matters, with the members that it covers and those that have seen it."""

    op: EventId
    covered: int
    seen: int


class History(Struct, frozen=True, dict=True):
    """The operations on the members of one group, as far as they still matter."""

    members: tuple[Member, ...] = ()
    """Everybody who was ever added, less the forgotten members."""
    additions: tuple[Addition, ...] = ()
    """The additions that some member may not have seen; all members have seen the others."""
    removals: tuple[Removal, ...] = ()

    @property
    def everybody(self) -> int:
        """All members, as a set."""
        return (1 << len(self.members)) - 1

    @cached_property
    def _views(self) -> dict[MemberId | None, int]:
        """A cache of the views computed so far; no part of the value."""
        return {}

    @cached_property
    def _view_ids(self) -> dict[MemberId | None, tuple[MemberId, ...]]:
        """The same views as ids."""
        return {}

    def member(self, mid: MemberId) -> Member | None:
        """Return the member of that id; None if it is unknown."""
        place = bisect_left(self.members, mid, key=_ID)
        found = place < len(self.members) and self.members[place].id == mid
        return self.members[place] if found else None

    def gap(self, mid: MemberId) -> int:
        """Return the place where an id belongs."""
        return bisect_left(self.members, mid, key=_ID)

    def bit(self, mid: MemberId) -> int:
        """Return the set of one member; the empty set if it is unknown."""
        place = bisect_left(self.members, mid, key=_ID)
        found = place < len(self.members) and self.members[place].id == mid
        return 1 << place if found else 0

    def known_bit(self, mid: MemberId) -> int:
        """Return the set of one member; `RemoteError` if it is unknown."""
        bit = self.bit(mid)
        if not bit:
            raise RemoteError(Reason.UNKNOWN_MEMBER, "no member has that id")
        return bit

    def view(self, viewer: MemberId | None) -> int:
        """Return the set of members as one of them sees it; for None, by all that is known."""
        known = self._views.get(viewer)
        if known is None:
            known = self._views[viewer] = self.everybody & ~self._outside(viewer)
        return known

    def view_ids(self, viewer: MemberId | None) -> tuple[MemberId, ...]:
        """Return the members as one of them sees them, by id; for None, by all that is known."""
        known = self._view_ids.get(viewer)
        if known is None:
            known = self._view_ids[viewer] = self.ids(self.view(viewer))
        return known

    def _outside(self, viewer: MemberId | None) -> int:
        outside = 0
        if viewer is None:
            for removal in self.removals:
                outside |= removal.covered
            return outside
        mine = self.known_bit(viewer)
        for addition in self.additions:
            if not addition.seen & mine:
                outside |= addition.members
        for removal in self.removals:
            if removal.seen & mine:
                outside |= removal.covered
        return outside

    def ids(self, bits: int) -> tuple[MemberId, ...]:
        """Return the members of a set, by id."""
        return tuple(self.members[place].id for place in places(bits))

    def addition(self, op: EventId) -> Addition | None:
        """Return the creation or addition of that id; None if it is unknown or all have seen it."""
        at = bisect_left(self.additions, op, key=_OP)
        return self.additions[at] if at < len(self.additions) and self.additions[at].op == op else None

    def removal(self, op: EventId) -> Removal | None:
        """Return the removal of that id; None if it is unknown or no longer matters."""
        at = bisect_left(self.removals, op, key=_OP)
        return self.removals[at] if at < len(self.removals) and self.removals[at].op == op else None


EMPTY = History()


def places(bits: int) -> Iterator[int]:
    """Return the places of the bits of a set, from the lowest."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def create(history: History, op: EventId, members: Sequence[Member]) -> History:
    """Return the history of a new group of these members, all of whom have seen its creation."""
    if history != EMPTY:
        raise RemoteError(Reason.DUPLICATE, "the group has members already")
    ordered = tuple(sorted(members, key=_ID))
    if not ordered or len({member.id for member in ordered}) < len(ordered):
        raise RemoteError(Reason.MALFORMED, "a group begins with members, each of them once")
    if any(member.added_by != op for member in ordered):
        raise RemoteError(Reason.MALFORMED, "a member belongs to another operation")
    everybody = (1 << len(ordered)) - 1
    return History(ordered, (Addition(op, None, everybody, everybody),))


def add(history: History, op: EventId, sender: MemberId, member: Member) -> History:
    """Add a member by another one; it begins with all that its adder has seen."""
    adder = history.known_bit(sender)
    place = history.gap(member.id)
    _check_new(history, op)
    if ever(history, member.id) is not None:
        raise RemoteError(Reason.DUPLICATE, "that member is known already")
    if member.added_by != op:
        raise RemoteError(Reason.MALFORMED, "a member belongs to another operation")

    def widen(bits: int) -> int:
        low = bits & ((1 << place) - 1)
        return low | (bits >> place << place + 1) | (bool(bits & adder) << place)

    mine = 1 << place
    additions = [
        Addition(each.op, each.sender, widen(each.members) & ~mine, widen(each.seen))
        for each in history.additions
    ]
    additions.append(Addition(op, sender, mine, widen(adder)))
    removals = tuple(Removal(each.op, widen(each.covered), widen(each.seen)) for each in history.removals)
    members = (*history.members[:place], member, *history.members[place:])
    return History(members, tuple(sorted(additions, key=_OP)), removals)


def remove(history: History, op: EventId, sender: MemberId, targets: Iterable[MemberId]) -> History:
    """Remove members, together with those that they added without the remover's knowledge."""
    mine = history.known_bit(sender)
    named = _named(history, sender, targets)
    _check_new(history, op)
    unseen = [
        (history.bit(each.sender), each.members)
        for each in history.additions
        if each.sender is not None and not each.seen & mine
    ]
    covered, before = named, 0
    while covered != before:
        before = covered
        for adder, added in unseen:
            if covered & adder:
                covered |= added
    removals = (*history.removals, Removal(op, covered, mine))
    return replace(history, removals=tuple(sorted(removals, key=_OP)))


def ack(history: History, viewer: MemberId, op: EventId) -> History:
    """Note that a member has seen an operation; nothing changes if that is forgotten, or not on members."""
    mine = history.known_bit(viewer)
    removal, addition = history.removal(op), history.addition(op)
    if removal is not None:
        if removal.covered & mine:
            raise RemoteError(Reason.NOT_ALLOWED, "nobody acknowledges its own removal")
        seen = Removal(op, removal.covered, removal.seen | mine)
        removals = (seen if each is removal else each for each in history.removals)
        return replace(history, removals=tuple(removals))
    if addition is not None:
        told = Addition(op, addition.sender, addition.members, addition.seen | mine)
        additions = (told if each is addition else each for each in history.additions)
        return replace(history, additions=tuple(additions))
    return history


def view(history: History, viewer: MemberId | None) -> tuple[MemberId, ...]:
    """Return the members as one of them sees them, by id; for None our own view, by all that is known."""
    return history.view_ids(viewer)


def sees(history: History, viewer: MemberId | None, mid: MemberId) -> bool:
    """Return whether a member is in the view of another (None: in ours)."""
    return bool(history.view(viewer) & history.bit(mid))


def ever(history: History, mid: MemberId) -> Member | None:
    """Return a present or past member; None if it is unknown or forgotten."""
    return history.member(mid)


def is_membership_op(history: History, op: EventId) -> bool:
    """Return whether an operation is one on the members that still matters."""
    return history.addition(op) is not None or history.removal(op) is not None


def added_in(history: History, op: EventId) -> tuple[MemberId, ...]:
    """Return the members that a creation or addition named, less forgotten ones; empty for other ids."""
    return tuple(member.id for member in history.members if member.added_by == op)


def seen_by(history: History, op: EventId) -> tuple[MemberId, ...]:
    """Return the members that have seen an operation that still matters, by id; empty for any other."""
    found = history.addition(op) or history.removal(op)
    return () if found is None else history.ids(found.seen)


def covers(history: History, op: EventId, mid: MemberId) -> bool:
    """Return whether a removal that still matters takes a member out."""
    found = history.removal(op)
    return found is not None and bool(found.covered & history.bit(mid))


def removes(history: History) -> frozenset[EventId]:
    """Return the removals that are known and not forgotten."""
    return frozenset(each.op for each in history.removals)


def removes_seen_by(history: History, viewer: MemberId) -> frozenset[EventId]:
    """Return the removals that are not forgotten and that a member has seen."""
    mine = history.known_bit(viewer)
    return frozenset(each.op for each in history.removals if each.seen & mine)


def _named(history: History, sender: MemberId, targets: Iterable[MemberId]) -> int:
    named = 0
    for target in targets:
        bit = history.bit(target)
        if not bit or not bit & history.view(sender):
            raise RemoteError(Reason.UNKNOWN_MEMBER, "the remover does not know whom it removes")
        if named & bit or target == sender:
            raise RemoteError(Reason.MALFORMED, "a target twice, or the remover itself")
        named |= bit
    if not named:
        raise RemoteError(Reason.MALFORMED, "nobody to remove")
    return named


def _check_new(history: History, op: EventId) -> None:
    if is_membership_op(history, op):
        raise RemoteError(Reason.DUPLICATE, "that operation is known already")


def closed(history: History) -> tuple[MemberId, ...]:
    """Return the removed members whose removal all others have seen, by id."""
    return history.ids(_closed(history, None))


def is_closed(history: History, mid: MemberId) -> bool:
    """Return whether a member is closed; an unknown one is not."""
    return bool(_closed(history, None) & history.bit(mid))


def compact(history: History, gone: Container[MemberId] | None = None) -> History:
    """Return the history without anything that cannot matter any more: no view of a remaining member differs.

    Removed members are *closed* when all others have seen a removal of each of them; as many as possible,
    together. All others means not only the present members: a member that is removed itself, and has not seen
    it, still acts as if they were there. Nobody addresses anything to a closed member any more, so its keys
    may go at once. What it did itself before it learned of its removal may still be under way, though, and
    counts when it comes. How long to wait for that is the caller's decision.

    Closed members go, unless `gone` is given and lacks them; and operations that all remaining members have
    seen (a removal is never seen by the members that it covers). A group without members has ended, and is
    left as it is. Where there is a cover use `removal_cover.compact`, which forgets the same there.
    """
    if not history.view(None):
        return history
    forgotten = _closed(history, gone)
    kept = history.everybody & ~forgotten
    additions = tuple(each for each in history.additions if each.members & kept and kept & ~each.seen)
    removals = tuple(each for each in history.removals if kept & ~each.seen)
    if forgotten:
        return _narrowed(history, kept, additions, removals)
    same = len(additions) == len(history.additions) and len(removals) == len(history.removals)
    return history if same else History(history.members, additions, removals)


def _narrowed(
    history: History, kept: int, additions: tuple[Addition, ...], removals: tuple[Removal, ...]
) -> History:
    stay = list(places(kept))

    def narrow(bits: int) -> int:
        return sum((bits >> place & 1) << at for at, place in enumerate(stay))

    # All who stay have seen the removal of a forgotten adder, and so every addition that outlived it:
    # no removal will ask for the sender of an addition whose sender is forgotten.
    def sender(each: Addition) -> MemberId | None:
        return each.sender if each.sender is not None and history.bit(each.sender) & kept else None

    return History(
        tuple(history.members[place] for place in stay),
        tuple(Addition(each.op, sender(each), narrow(each.members), narrow(each.seen)) for each in additions),
        tuple(Removal(each.op, narrow(each.covered), narrow(each.seen)) for each in removals),
    )


def _closed(history: History, among: Container[MemberId] | None) -> int:
    removed = history.everybody & ~history.view(None)
    told = dict.fromkeys(places(removed), 0)
    for removal in history.removals:
        for place in places(removal.covered):
            told[place] |= removal.seen
    left = {place for place in told if among is None or history.members[place].id in among}
    while True:
        others = history.everybody & ~sum(1 << place for place in left)
        untold = {place for place in left if others & ~told[place]}
        if not untold:
            return history.everybody & ~others
        left -= untold


_ENCODING_VERSION = 1
NOBODY, SETTLED = 0xFFFF, 0xFFFE
MAX_COUNT = 0xFFF0
"""Members or operations of one history, at most."""

_HEAD = struct.Struct(">BHHH")
_U16 = struct.Struct(">H")


def encode(history: History) -> bytes:
    """Encode a history, for welcomes and for our own state: one form for each value, each of bounded size.

    ::

        ver u8=1 · members u16 · additions u16 · removals u16
        each member     id 16 · author 32 · device 8 · identity 32 · its addition u16
        each addition   op 32 · sender u16 · seen
        each removal    op 32 · covered · seen

    Members are named by their places, sets of them have a bit for each (as one number, big-endian, in whole
    bytes). The sender of a creation is `NOBODY`; an addition that everybody has seen is `SETTLED` and has
    no `seen`. With 128 members who all came one by one that is some 16 kB.
    """
    settled = {member.added_by for member in history.members} - {each.op for each in history.additions}
    pending = {each.op: each for each in history.additions}
    additions = sorted(settled | pending.keys())
    if max(len(history.members), len(additions), len(history.removals)) > MAX_COUNT:
        raise Refused(Reason.GROUP_FULL, "more members or operations than a history can tell of")
    width = (len(history.members) + 7) // 8
    number = {op: at for at, op in enumerate(additions)}
    parts = [_HEAD.pack(_ENCODING_VERSION, len(history.members), len(additions), len(history.removals))]
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
    """Return the history of these bytes; `MalformedMessage` unless they are the one form of a valid one."""
    reader = Reader(data)
    history = read(reader)
    reader.end()
    return history


def read(reader: Reader) -> History:
    """Read the history that comes next; `MalformedMessage` as with `decode`."""
    if reader.u8() != _ENCODING_VERSION:
        raise MalformedMessage("a history of another version")
    counts = reader.u16(), reader.u16(), reader.u16()
    if max(counts) > MAX_COUNT:
        raise MalformedMessage("a history beyond its bounds")
    rows = [_read_member(reader) for _ in range(counts[0])]
    ids = tuple(row[0] for row in rows)
    check_rising(ids, "members")
    heads = [_read_addition(reader, ids) for _ in range(counts[1])]
    ops = tuple(head[0] for head in heads)
    check_rising(ops, "additions")
    removals = tuple(
        Removal(EventId(reader.take(32)), _read_set(reader, len(ids)), _read_set(reader, len(ids)))
        for _ in range(counts[2])
    )
    check_rising(tuple(each.op for each in removals), "removals")
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
    """Check that each member is in its own view, which holds after any operations and acknowledgements."""
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
