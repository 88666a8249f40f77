"""Who is in a group, as each member sees it, without any server or common order: strong remove.

Members are whoever a creation or an addition names, less whom a removal *covers*: its targets, and
whom these added, directly or through others, by additions that the remover had not seen. A removal
always counts, also that of a remover who is removed meanwhile; nobody comes back (a device that is added
again is another member). So the members follow from the set of operations and their causal order, in
whatever order they come (Weidner et al. 2021, section 6.2, leaves the rule open; this one is its authors').

A member has *seen* what it did or acknowledged, and its view counts just that. Who is covered is fixed as
operations come: what a remover had not seen comes either before the removal, and is then looked at
once, or after it, and then inherits from its author. So no operation needs to keep its own past.

Everything is in the order of ids, and sets of members are integers with a bit for each: equal
knowledge is an equal value, whatever the order in which it came.

The caller delivers what one member does in its order, and an acknowledgement after what it names.
Whatever an operation must be checked for here is checked in its author's view, so that all agree on
the answer; a fault is a `RemoteError` and the history stays as it was.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups.ids import Device, MemberId


class Member(Struct, frozen=True):
    """One stay of a device in a group."""

    id: MemberId
    device: Device
    identity: bytes
    """Its public identity key in this group (32 bytes)."""
    added_by: EventId
    """The creation or addition that names it."""


class Addition(Struct, frozen=True):
    """A creation or addition that not everybody has seen yet."""

    op: EventId
    sender: MemberId | None
    """Who added; None for a creation, and where that member is forgotten."""
    members: int
    seen: int


class Removal(Struct, frozen=True):
    """A removal that still matters."""

    op: EventId
    covered: int
    seen: int


class History(Struct, frozen=True, dict=True):
    """The operations on the members of one group, as far as they still matter."""

    members: tuple[Member, ...] = ()
    """Everybody who was ever added, less those whom `compact` forgot; by id."""
    additions: tuple[Addition, ...] = ()
    """By id. A member's addition that is not among them was seen by everybody."""
    removals: tuple[Removal, ...] = ()

    @property
    def everybody(self) -> int:
        """All members, as a set."""
        return (1 << len(self.members)) - 1

    @cached_property
    def views(self) -> dict[MemberId | None, tuple[MemberId, ...]]:
        """The views that were asked for already; no part of the value."""
        return {}


EMPTY = History()
_ID = attrgetter("id")
_OP = attrgetter("op")


def create(history: History, op: EventId, members: Sequence[Member]) -> History:
    """A group of these members, all of whom have seen that."""
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
    """A member added another, who begins with all that the first has seen."""
    adder = 1 << _place(history, sender)
    place = bisect_left(history.members, member.id, key=_ID)
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
    """A member removed others: those, and whom they added behind its back."""
    mine = 1 << _place(history, sender)
    named = _named(history, sender, targets)
    _check_new(history, op)
    unseen = [each for each in history.additions if not each.seen & mine and each.sender is not None]
    covered, before = named, 0
    while covered != before:
        before = covered
        for each in unseen:
            if each.sender is not None and covered & _bit(history, each.sender):
                covered |= each.members
    removals = (*history.removals, Removal(op, covered, mine))
    return replace(history, removals=tuple(sorted(removals, key=_OP)))


def ack(history: History, viewer: MemberId, op: EventId) -> History:
    """A member has seen an operation. One that is none of ours, or forgotten, changes nothing."""
    mine = 1 << _place(history, viewer)
    at = bisect_left(history.removals, op, key=_OP)
    if at < len(history.removals) and history.removals[at].op == op:
        removal = history.removals[at]
        if removal.covered & mine:
            raise RemoteError(Reason.NOT_ALLOWED, "nobody acknowledges its own removal")
        seen = replace(removal, seen=removal.seen | mine)
        return replace(history, removals=(*history.removals[:at], seen, *history.removals[at + 1 :]))
    at = bisect_left(history.additions, op, key=_OP)
    if at < len(history.additions) and history.additions[at].op == op:
        addition = history.additions[at]
        told = replace(addition, seen=addition.seen | mine)
        return replace(history, additions=(*history.additions[:at], told, *history.additions[at + 1 :]))
    return history


def view(history: History, viewer: MemberId | None) -> tuple[MemberId, ...]:
    """The members as one of them sees them, by id; with None by all that is known: our own view."""
    known = history.views.get(viewer)
    if known is None:
        known = history.views[viewer] = _ids(history, _view(history, viewer))
    return known


def sees(history: History, viewer: MemberId | None, mid: MemberId) -> bool:
    """Whether a member is in the view of another (None: in ours)."""
    return bool(_view(history, viewer) & _bit(history, mid))


def ever(history: History, mid: MemberId) -> Member | None:
    """A member that is or was, unless it is forgotten."""
    place = bisect_left(history.members, mid, key=_ID)
    found = place < len(history.members) and history.members[place].id == mid
    return history.members[place] if found else None


def is_membership_op(history: History, op: EventId) -> bool:
    """Whether an operation is one on the members that not everybody has done with."""
    return _find(history, op) is not None


def seen_by(history: History, op: EventId) -> tuple[MemberId, ...]:
    """Who has seen an operation, by id; nobody, if it is none of ours or forgotten."""
    found = _find(history, op)
    return () if found is None else _ids(history, found.seen)


def covers(history: History, op: EventId, mid: MemberId) -> bool:
    """Whether a removal that still matters takes a member out."""
    found = _find(history, op)
    return isinstance(found, Removal) and bool(found.covered & _bit(history, mid))


def removes(history: History) -> frozenset[EventId]:
    """The removals that are known and not forgotten."""
    return frozenset(each.op for each in history.removals)


def removes_seen_by(history: History, viewer: MemberId) -> frozenset[EventId]:
    """Those of them that a member has seen."""
    mine = 1 << _place(history, viewer)
    return frozenset(each.op for each in history.removals if each.seen & mine)


def closed(history: History) -> tuple[MemberId, ...]:
    """The removed members of whom nothing more can come that counts, by id; they may be forgotten.

    These are as many as possible such that all others have seen a removal of each of them: not only
    all present members, since one that is removed itself may have passed something on before.

    That holds where each member takes no further operation of a sender that its own view lacks, until a
    member in its view acknowledges it. Whoever is first to acknowledge then did so before it
    acknowledged the removal, and that has come.
    """
    return _ids(history, _closed(history))


def is_closed(history: History, mid: MemberId) -> bool:
    """Whether nothing more can come of a removed member that counts. Of an unknown one nobody knows."""
    return bool(_closed(history) & _bit(history, mid))


def compact(history: History) -> History:
    """The same without what cannot matter any more: no view of anybody who stays differs, now or later.

    Closed members go, additions that all who stay have seen, and removals that besides cover nobody
    who stays. A group without members is left as it is: it has ended. Use `healing.compact` where
    there is a cover, which must forget the same removals.
    """
    if not _view(history, None):
        return history
    gone = _closed(history)
    kept = history.everybody & ~gone
    places = list(_places(kept))

    def narrow(bits: int) -> int:
        return sum((bits >> place & 1) << at for at, place in enumerate(places)) if gone else bits

    members = tuple(history.members[place] for place in places)
    additions = tuple(
        Addition(
            each.op,
            None if each.sender is None or _bit(history, each.sender) & gone else each.sender,
            narrow(each.members),
            narrow(each.seen),
        )
        for each in history.additions
        if each.members & kept and kept & ~each.seen
    )
    removals = tuple(
        Removal(each.op, narrow(each.covered), narrow(each.seen))
        for each in history.removals
        if each.covered & kept or kept & ~each.seen
    )
    return History(members, additions, removals)


def _view(history: History, viewer: MemberId | None) -> int:
    outside = 0
    mine = None if viewer is None else 1 << _place(history, viewer)
    if mine is not None:
        for addition in history.additions:
            if not addition.seen & mine:
                outside |= addition.members
    for removal in history.removals:
        if mine is None or removal.seen & mine:
            outside |= removal.covered
    return history.everybody & ~outside


def _closed(history: History) -> int:
    gone = history.everybody & ~_view(history, None)
    told = dict.fromkeys(_places(gone), 0)
    for removal in history.removals:
        for place in _places(removal.covered):
            told[place] |= removal.seen
    before = -1
    while gone != before:
        before = gone
        others = history.everybody & ~gone
        gone = sum(1 << place for place in _places(gone) if not others & ~told[place])
    return gone


def _named(history: History, sender: MemberId, targets: Iterable[MemberId]) -> int:
    named = 0
    for target in targets:
        bit = _bit(history, target)
        if not bit or not bit & _view(history, sender):
            raise RemoteError(Reason.UNKNOWN_MEMBER, "the remover does not know whom it removes")
        if named & bit or target == sender:
            raise RemoteError(Reason.MALFORMED, "a target twice, or the remover itself")
        named |= bit
    if not named:
        raise RemoteError(Reason.MALFORMED, "nobody to remove")
    return named


def _check_new(history: History, op: EventId) -> None:
    if _find(history, op) is not None:
        raise RemoteError(Reason.DUPLICATE, "that operation is known already")


def _find(history: History, op: EventId) -> Addition | Removal | None:
    for ops in (history.additions, history.removals):
        at = bisect_left(ops, op, key=_OP)
        if at < len(ops) and ops[at].op == op:
            return ops[at]
    return None


def _place(history: History, mid: MemberId) -> int:
    place = bisect_left(history.members, mid, key=_ID)
    if place == len(history.members) or history.members[place].id != mid:
        raise RemoteError(Reason.UNKNOWN_MEMBER, "nobody here has that id")
    return place


def _bit(history: History, mid: MemberId) -> int:
    place = bisect_left(history.members, mid, key=_ID)
    found = place < len(history.members) and history.members[place].id == mid
    return 1 << place if found else 0


def _places(bits: int) -> Iterator[int]:
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low


def _ids(history: History, bits: int) -> tuple[MemberId, ...]:
    return tuple(history.members[place].id for place in _places(bits))
