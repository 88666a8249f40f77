"""What is remembered of the operations on a group's members: values, in the order of ids.

Sets of members are integers with a bit for each, at its place in that order. So equal knowledge is an
equal value, whatever the order in which it came. What the operations mean is said in `membership`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from functools import cached_property
from operator import attrgetter

from msgspec import Struct

from linnet.core.errors import RemoteError
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.groups.ids import Device, MemberId

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
    """A creation or addition that not everybody is known to have seen."""

    op: EventId
    sender: MemberId | None
    """Who added; None for a creation, and where that member is forgotten."""
    members: int
    seen: int


class Removal(Struct, frozen=True):
    """A removal that still matters: whom it takes out, and who has seen it."""

    op: EventId
    covered: int
    seen: int


class History(Struct, frozen=True, dict=True):
    """The operations on the members of one group, as far as they still matter."""

    members: tuple[Member, ...] = ()
    """Everybody who was ever added, less those who are forgotten."""
    additions: tuple[Addition, ...] = ()
    """Where the addition of a member is not among them, everybody has seen it."""
    removals: tuple[Removal, ...] = ()

    @property
    def everybody(self) -> int:
        """All members, as a set."""
        return (1 << len(self.members)) - 1

    @cached_property
    def _views(self) -> dict[MemberId | None, int]:
        """The views that were asked for already; no part of the value."""
        return {}

    @cached_property
    def _view_ids(self) -> dict[MemberId | None, tuple[MemberId, ...]]:
        """The same as ids."""
        return {}

    def member(self, mid: MemberId) -> Member | None:
        """The member of that id, if it is known."""
        place = bisect_left(self.members, mid, key=_ID)
        found = place < len(self.members) and self.members[place].id == mid
        return self.members[place] if found else None

    def gap(self, mid: MemberId) -> int:
        """The place where an id belongs."""
        return bisect_left(self.members, mid, key=_ID)

    def bit(self, mid: MemberId) -> int:
        """The set of one member; the empty set, if it is unknown."""
        place = bisect_left(self.members, mid, key=_ID)
        found = place < len(self.members) and self.members[place].id == mid
        return 1 << place if found else 0

    def known_bit(self, mid: MemberId) -> int:
        """The set of one member; `RemoteError`, if it is unknown."""
        bit = self.bit(mid)
        if not bit:
            raise RemoteError(Reason.UNKNOWN_MEMBER, "no member has that id")
        return bit

    def view(self, viewer: MemberId | None) -> int:
        """The members as one of them sees them; with None by all that is known."""
        known = self._views.get(viewer)
        if known is None:
            known = self._views[viewer] = self.everybody & ~self._outside(viewer)
        return known

    def view_ids(self, viewer: MemberId | None) -> tuple[MemberId, ...]:
        """The same as ids."""
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
        """The members of a set, by id."""
        return tuple(self.members[place].id for place in places(bits))

    def addition(self, op: EventId) -> Addition | None:
        """The creation or addition of that id, if it is known and pending."""
        at = bisect_left(self.additions, op, key=_OP)
        return self.additions[at] if at < len(self.additions) and self.additions[at].op == op else None

    def removal(self, op: EventId) -> Removal | None:
        """The removal of that id, if it is known and matters."""
        at = bisect_left(self.removals, op, key=_OP)
        return self.removals[at] if at < len(self.removals) and self.removals[at].op == op else None


EMPTY = History()


def places(bits: int) -> Iterator[int]:
    """Where the bits of a set are, from the lowest."""
    while bits:
        low = bits & -bits
        yield low.bit_length() - 1
        bits ^= low
