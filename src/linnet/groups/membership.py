"""Who is in a group, as each member sees it, without any server or common order: strong remove.

Members are whoever a creation or an addition names, less whom a removal *covers*: its targets, and
whom these added, directly or through others, by additions that the remover had not seen. A removal
always counts, also that of a remover who is removed meanwhile; nobody comes back (a device that is added
again is another member). So the members follow from the set of operations and their causal order, in
whatever order they come (Weidner et al. 2021 leave the rule open; their own implementation has this one).

A member has *seen* what it did or acknowledged, and its view counts just that. Who is covered is fixed as
operations come: what a remover had not seen comes either before the removal, and is then looked at
once, or after it, and then inherits from its author. So no operation needs to keep its own past.

The caller delivers what one member does in its order, and an acknowledgement after what it names.
Whatever an operation must be checked for here is checked in its author's view, so that all agree on
the answer; a fault is a `RemoteError` and the history stays as it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import attrgetter

from msgspec.structs import replace

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups.closure import closed, compact, is_closed
from linnet.groups.history import EMPTY, Addition, History, Member, Removal
from linnet.groups.history_encoding import decode, encode
from linnet.groups.ids import MemberId

_ID, _OP = attrgetter("id"), attrgetter("op")

__all__ = [
    "EMPTY",
    "Addition",
    "History",
    "Member",
    "Removal",
    "ack",
    "add",
    "added_in",
    "closed",
    "compact",
    "covers",
    "create",
    "decode",
    "encode",
    "ever",
    "is_closed",
    "is_membership_op",
    "remove",
    "removes",
    "removes_seen_by",
    "seen_by",
    "sees",
    "view",
]


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
    """A member removed others: those, and whom they added behind its back."""
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
    """A member has seen an operation. One that is none of ours, or forgotten, changes nothing."""
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
    """The members as one of them sees them, by id; with None by all that is known: our own view."""
    return history.view_ids(viewer)


def sees(history: History, viewer: MemberId | None, mid: MemberId) -> bool:
    """Whether a member is in the view of another (None: in ours)."""
    return bool(history.view(viewer) & history.bit(mid))


def ever(history: History, mid: MemberId) -> Member | None:
    """A member that is or was, unless it is forgotten."""
    return history.member(mid)


def is_membership_op(history: History, op: EventId) -> bool:
    """Whether an operation is one on the members that still matters."""
    return history.addition(op) is not None or history.removal(op) is not None


def added_in(history: History, op: EventId) -> tuple[MemberId, ...]:
    """Whom a creation or addition named, less those who are forgotten; nobody, if it is none."""
    return tuple(member.id for member in history.members if member.added_by == op)


def seen_by(history: History, op: EventId) -> tuple[MemberId, ...]:
    """Who has seen an operation that still matters, by id; nobody, if it is none."""
    found = history.addition(op) or history.removal(op)
    return () if found is None else history.ids(found.seen)


def covers(history: History, op: EventId, mid: MemberId) -> bool:
    """Whether a removal that still matters takes a member out."""
    found = history.removal(op)
    return found is not None and bool(found.covered & history.bit(mid))


def removes(history: History) -> frozenset[EventId]:
    """The removals that are known and not forgotten."""
    return frozenset(each.op for each in history.removals)


def removes_seen_by(history: History, viewer: MemberId) -> frozenset[EventId]:
    """Those of them that a member has seen."""
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
