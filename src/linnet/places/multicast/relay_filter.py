"""Whom a fragment is passed on to: the membership test before every relay (Toth 2013, section 3.7).

As long as the generation stays the same nobody has left, so a member that was found to be one needs no
second look. The document keeps only the generation; a join shows in no generation, though, and a fragment
that comes late may be older than the join. So the message is kept, too: what is older is tested again.
For live fragments only; whoever answers a replay tests each time.
"""

from __future__ import annotations

from enum import Enum
from typing import Protocol

from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.places.multicast.fragmentation import Head
from linnet.trace.records import Kind, Record


class Said(Protocol):
    """A verdict of the membership test, by its name: ``YES``, ``NO`` or ``UNKNOWN``."""

    @property
    def name(self) -> str:
        """Which."""


class Verdict(Enum):
    """What a membership test says."""

    YES = 1
    NO = 0
    UNKNOWN = -1
    """A removal is not known here yet: so it counts as no."""


class MembershipTest(Protocol):
    """Whether somebody may see a message that was sent in a generation."""

    def test(self, nym: AuthorId, message: int, generation: int) -> Said:
        """Yes, no, or not known."""


class _Below:
    __slots__ = ("generation", "message", "nym", "told")

    def __init__(self, nym: AuthorId) -> None:
        self.nym = nym
        self.generation = -1
        """Of the last positive test; -1: none stands."""
        self.message = 0
        """The oldest message that was tested in it."""
        self.told: tuple[int, Reason] | None = None
        """The generation, and why, of the last record that it was withheld something."""


def is_farewell(head: Head, nym: AuthorId) -> bool:
    """Whether it is the notice that this one left: it alone may still be seen by whom it is about."""
    return head.change is not None and not head.change.joins and head.change.nym == nym


class RelayFilter:
    """The members that this node passes fragments on to."""

    def __init__(self, place: TopicId, membership: MembershipTest, out: Outbox) -> None:
        self._place = place
        self._out = out
        self._membership = membership
        self._below: dict[PeerId, _Below] = {}
        self._keepers: dict[PeerId, None] = {}
        """Relays that keep everything and are no guests: there is no test for them."""

    @property
    def keepers(self) -> tuple[PeerId, ...]:
        """Those who keep everything."""
        return tuple(self._keepers)

    @property
    def peers(self) -> tuple[PeerId, ...]:
        """All of them."""
        return tuple(self._below)

    def nym(self, peer: PeerId) -> AuthorId | None:
        """Who is there."""
        below = self._below.get(peer)
        return None if below is None else below.nym

    def join(self, peer: PeerId, nym: AuthorId) -> None:
        """Fragments go to this peer from now on, as far as that person may see them."""
        self._below[peer] = _Below(nym)

    def leave(self, peer: PeerId) -> None:
        """Nothing more goes to this peer."""
        self._below.pop(peer, None)

    def keep(self, peer: PeerId) -> None:
        """Every fragment goes to this peer from now on: the deed names it as a keeper."""
        self._keepers[peer] = None

    def keeps(self, peer: PeerId) -> bool:
        """Whether every fragment goes to this peer."""
        return peer in self._keepers

    def let_go(self, peer: PeerId) -> None:
        """It keeps no more, or is away."""
        self._keepers.pop(peer, None)

    def forget(self) -> None:
        """Test everybody again: the line of terms changed, and with it what membership rests on."""
        for below in self._below.values():
            below.generation = -1

    def find_targets(self, head: Head, source: PeerId | None) -> list[PeerId]:
        """Tell who gets this live fragment, which came from `source`; record who does not."""
        found: list[PeerId] = []
        for peer, below in self._below.items():
            if peer == source:
                continue
            reason = self._withheld(head, below)
            if reason is None:
                found.append(peer)
            elif below.told != (head.generation, reason):
                below.told = (head.generation, reason)
                self._record(head, peer, reason)
        found.extend(peer for peer in self._keepers if peer != source and peer not in self._below)
        return found

    def _withheld(self, head: Head, below: _Below) -> Reason | None:
        """Why this one does not get it; None if it does."""
        if head.generation == below.generation and head.message >= below.message:
            return None
        verdict = self._membership.test(below.nym, head.message, head.generation).name
        if verdict == Verdict.YES.name:
            if head.generation > below.generation:
                below.generation, below.message = head.generation, head.message
            elif head.generation == below.generation:
                below.message = head.message
            return None
        if is_farewell(head, below.nym):
            return None
        if head.generation > below.generation:
            below.generation = -1
        return Reason.NOT_A_MEMBER if verdict == Verdict.NO.name else Reason.MISSING_DEPENDENCY

    def _record(self, head: Head, peer: PeerId, reason: Reason) -> None:
        note = f"withheld from generation {head.generation} on, fragment {head.fragment}"
        self._out.committed.record(Record(Kind.DROPPED, self._place, peer=peer, reason=reason, note=note))
