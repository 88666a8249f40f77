"""A group at its publisher: its members, their predicates, and the deputies that serve them.

After Agostinho 2021: once a region has more members than the publisher serves itself, it asks the strongest
of them to be deputies and hands on the weakest, but keeps a pool of the strongest to ask next. Here the
deputy with most room takes the next member, so that freed room is used again. The publisher serves a member
until the deputy that is to serve it has agreed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from msgspec import Struct

from linnet.content.config import FastConfig
from linnet.content.fast.commands import GroupStatus
from linnet.content.fast.messages import BATCH, Enrolment
from linnet.content.fast.signed_records import is_receipt
from linnet.content.matching_index import Index
from linnet.content.predicate import Attributes, Predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason


class _Member(Struct, eq=False):
    """A member of the group."""

    enrolment: Enrolment
    predicates: tuple[Predicate, ...]
    key: bytes
    until: float
    told: int
    """Its end of membership, in Unix seconds, as its deputy knows it."""
    strikes: int = 0


class Group:
    """The members of a group, by their predicates and regions. Sends nothing itself."""

    def __init__(self, group: TopicId, predicate: Predicate, listed: bool, config: FastConfig) -> None:
        self.id = group
        self.predicate = predicate
        self.listed = listed
        self._config = config
        self._members: dict[PeerId, _Member] = {}
        self._index: Index[tuple[PeerId, int]] = Index()
        self._regions: dict[str, Region] = {}
        self._distrusted: dict[PeerId, float] = {}

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, peer: PeerId) -> bool:
        return peer in self._members

    @property
    def members(self) -> list[PeerId]:
        """All members, in the order in which they came."""
        return list(self._members)

    def enrol(self, enrolment: Enrolment, predicates: tuple[Predicate, ...], key: bytes, now: float) -> None:
        """Add a member, renew it or change its predicates; `RemoteError` if there are too many members."""
        peer = enrolment.member.peer
        known = self._members.get(peer)
        if known is None and len(self._members) >= self._config.members:
            raise RemoteError(Reason.TOO_MANY, f"more than {self._config.members} members")
        until = min(float(enrolment.until), now + 3 * self._config.refresh)
        if known is not None and known.enrolment.region != enrolment.region:
            self._leave_region(peer)
        if known is None or known.predicates != predicates:
            self._unindex(peer)
            for number, predicate in enumerate(predicates):
                self._index.add((peer, number), predicate)
        self._members[peer] = _Member(enrolment, predicates, key, until, enrolment.until)
        region = self._regions.setdefault(enrolment.region, Region(self._config.direct, self._config.pool))
        if known is not None and known.predicates != predicates:
            # Its deputy has to know the new predicates.
            region.take_back(peer)
        region.add(peer, enrolment.capacity, bool(enrolment.member.hints))
        if known is not None and enrolment.until - known.told >= self._config.refresh / 2:
            # Not each time: a member that enrols again and again keeps only this node busy.
            region.renewed(peer)
        else:
            self._members[peer].told = known.told if known is not None else enrolment.until
        region.arrange(self._distrusted)

    def remove(self, peer: PeerId) -> bool:
        """Remove a member; return whether it was one."""
        if peer not in self._members:
            return False
        self._unindex(peer)
        self._leave_region(peer)
        del self._members[peer]
        return True

    def _unindex(self, peer: PeerId) -> None:
        known = self._members.get(peer)
        for number in range(0 if known is None else len(known.predicates)):
            self._index.remove((peer, number))

    def _leave_region(self, peer: PeerId) -> None:
        name = self._members[peer].enrolment.region
        region = self._regions[name]
        region.remove(peer)
        if len(region):
            region.arrange(self._distrusted)
        else:
            del self._regions[name]

    def expired(self, now: float) -> list[PeerId]:
        """Return the members that did not renew in time."""
        self._distrusted = {peer: until for peer, until in self._distrusted.items() if until > now}
        return [peer for peer, member in self._members.items() if member.until <= now]

    # Recipients of an event, and their deputies.

    def matching(self, attributes: Attributes) -> dict[PeerId, PeerId | None]:
        """Return the members that want an event, each with its deputy; None: the publisher serves it."""
        found = dict.fromkeys(peer for peer, _ in self._index.matching(attributes))
        return {peer: self._region(peer).server(peer) for peer in found}

    def contact(self, peer: PeerId) -> Contact:
        """Return where a member can be dialled."""
        return self._members[peer].enrolment.member

    def is_receipt(self, peer: PeerId, event: EventId, given: bytes | None) -> bool:
        """Return whether a member gave this receipt."""
        member = self._members.get(peer)
        return member is not None and is_receipt(member.key, event, given)

    def answered(self, peer: PeerId) -> None:
        """Note that a member answers: its strikes are forgiven."""
        if peer in self._members:
            self._members[peer].strikes = 0

    def missed(self, peer: PeerId) -> bool:
        """Note that a member did not answer; return whether that has happened too often in a row."""
        if peer not in self._members:
            return False
        self._members[peer].strikes += 1
        return self._members[peer].strikes >= self._config.strikes

    def _region(self, peer: PeerId) -> Region:
        return self._regions[self._members[peer].enrolment.region]

    # Deputies.

    def errands(self) -> list[tuple[Errand, tuple[Enrolment, ...]]]:
        """Return what deputies are to be told now."""
        found = [errand for region in self._regions.values() for errand in region.errands()]
        return [(errand, tuple(self._members[peer].enrolment for peer in errand.added)) for errand in found]

    def agreed(self, peer: PeerId) -> None:
        """Note that a deputy has agreed to its last errand."""
        if peer in self._members and peer in self._region(peer).deputies:
            self._region(peer).agreed(peer)

    def relieve(self, peer: PeerId, until: float) -> list[PeerId]:
        """Let a deputy serve nobody, and do not ask it again before a time; return the members it served."""
        if peer not in self._members or peer not in self._region(peer).deputies:
            return []
        self._distrusted[peer] = until
        left = self._region(peer).relieve(peer)
        self._region(peer).arrange(self._distrusted)
        return left

    def doubt(self, peer: PeerId, member: PeerId) -> bool:
        """Note that a deputy failed a member that it should have served; return whether that is too much."""
        if peer not in self._members or member not in self._members:
            return False
        region = self._region(peer)
        deputy = region.deputies.get(peer)
        if deputy is None:
            return False
        deputy.failed[member] = None
        region.take_back(member)
        return len(deputy.failed) >= self._config.doubts

    @property
    def linked(self) -> dict[PeerId, None]:
        """Members that the publisher keeps links to: those that it serves itself."""
        return {peer: None for peer in self._members if self._region(peer).server(peer) is None}

    def status(self, boards: int) -> GroupStatus:
        """Return the status of the group."""
        deputies = [
            (peer, len(deputy.served), deputy.room)
            for region in self._regions.values()
            for peer, deputy in region.deputies.items()
        ]
        direct = len(self.linked)
        return GroupStatus(
            self.id, self.predicate.text, self.listed, boards, len(self), direct, tuple(deputies)
        )


class Errand(NamedTuple):
    """News for a deputy: members to serve, and members to serve no longer."""

    deputy: PeerId
    added: tuple[PeerId, ...]
    gone: tuple[PeerId, ...]


class Deputy(Struct, eq=False):
    """A member that serves others for the publisher (a *helper* in the paper)."""

    capacity: int
    served: dict[PeerId, None] = {}
    adding: dict[PeerId, None] = {}
    """Members that are to be handed to it."""
    again: dict[PeerId, None] = {}
    """Members that it serves, and whose longer membership it is to be told."""
    asked: dict[PeerId, None] = {}
    """Members that its last errand names, and that it has not accepted yet."""
    leaving: dict[PeerId, None] = {}
    """Members that are to be taken from it."""
    telling: bool = False
    failed: dict[PeerId, None] = {}
    """Members that did not get an event from it though they were reachable."""

    @property
    def room(self) -> int:
        """The number of members that it could serve in addition."""
        taken = {**self.served, **self.asked, **self.adding}
        return self.capacity - len(taken)

    def drop(self, peer: PeerId) -> None:
        """Note that it need not serve this member any more."""
        self.again.pop(peer, None)
        if self.adding.pop(peer, True) is None:
            return
        if self.served.pop(peer, True) is None or peer in self.asked:
            self.leaving[peer] = None


class Region:
    """Assigns the members of one region to deputies. Members are kept in the order of their arrival."""

    def __init__(self, direct: int, pool: int) -> None:
        self._most = direct
        self._pool = pool
        self._members: dict[PeerId, tuple[int, bool]] = {}
        """Each member's capacity, and whether it can be dialled, so that deputies can serve it."""
        self._homes: dict[PeerId, PeerId] = {}
        """The deputy that serves a member, or will once it agrees; absent: the publisher serves it."""
        self.deputies: dict[PeerId, Deputy] = {}
        self._dismissed: dict[PeerId, list[PeerId]] = {}
        """Former deputies, and the members that each has to be told to serve no longer."""

    def __len__(self) -> int:
        return len(self._members)

    def add(self, peer: PeerId, capacity: int, dialable: bool) -> None:
        """Add a member, or change its capacity."""
        known = self._members.get(peer)
        self._members[peer] = (capacity, dialable)
        if known is not None and known[1] and not dialable:
            self.take_back(peer)
        deputy = self.deputies.get(peer)
        if deputy is not None:
            deputy.capacity = capacity
            for member in [*deputy.served, *deputy.asked, *deputy.adding][capacity:]:
                self.take_back(member)

    def remove(self, peer: PeerId) -> None:
        """Remove a member; the publisher serves again the members that it served."""
        self.relieve(peer)
        self.take_back(peer)
        self._members.pop(peer, None)
        self._dismissed.pop(peer, None)

    def renewed(self, peer: PeerId) -> None:
        """Note that a member stays for longer, so that its deputy is told."""
        home = self.server(peer)
        if home is not None:
            self.deputies[home].again[peer] = None

    def take_back(self, peer: PeerId) -> None:
        """Have the publisher serve a member itself."""
        home = self._homes.pop(peer, None)
        if home is not None:
            self.deputies[home].drop(peer)

    def relieve(self, peer: PeerId) -> list[PeerId]:
        """Let a deputy serve nobody any more; return the members it served."""
        deputy = self.deputies.pop(peer, None)
        if deputy is None:
            return []
        left = [member for member, home in self._homes.items() if home == peer]
        for member in left:
            del self._homes[member]
        told = [*deputy.served, *deputy.asked, *deputy.leaving]
        if told and peer in self._members:
            self._dismissed[peer] = [*self._dismissed.get(peer, ()), *told]
        return left

    def server(self, peer: PeerId) -> PeerId | None:
        """Return the deputy that serves a member and has agreed to; None: the publisher serves it."""
        home = self._homes.get(peer)
        return home if home is not None and peer in self.deputies[home].served else None

    def arrange(self, distrusted: dict[PeerId, float]) -> None:
        """Hand members on to deputies, and make the strongest a deputy if too many are left."""
        waiting = self._waiting()
        while True:
            ready = [(deputy.room, peer) for peer, deputy in self.deputies.items() if deputy.room > 0]
            if ready and len(waiting) > self._pool:
                home = max(ready, key=lambda each: each[0])[1]
                weakest = waiting.pop()
                self._homes[weakest] = home
                self.deputies[home].adding[weakest] = None
                continue
            if len(waiting) <= self._most:
                return
            strongest = next((peer for peer in waiting if peer not in distrusted), None)
            if strongest is None or not self._members[strongest][0]:
                return
            waiting.remove(strongest)
            self.deputies[strongest] = Deputy(self._members[strongest][0])

    def _waiting(self) -> list[PeerId]:
        """Return the members that the publisher serves and deputies could, the strongest first."""
        free = [
            peer
            for peer, (_, dialable) in self._members.items()
            if dialable and peer not in self._homes and peer not in self.deputies
        ]
        return sorted(free, key=lambda peer: -self._members[peer][0])

    # Errands for deputies, one at a time.

    def errands(self) -> Iterator[Errand]:
        """Yield the news for deputies that are not being told something already."""
        for peer, left in self._dismissed.items():
            for start in range(0, len(left), BATCH):
                yield Errand(peer, (), tuple(left[start : start + BATCH]))
        self._dismissed = {}
        for peer, deputy in self.deputies.items():
            if deputy.telling or not (deputy.adding or deputy.leaving or deputy.again):
                continue
            gone = tuple(deputy.leaving)[:BATCH]
            ready = [each for each in deputy.adding if each not in deputy.leaving or each in gone]
            added = (*ready, *deputy.again)[:BATCH]
            for each in added:
                deputy.adding.pop(each, None)
                deputy.again.pop(each, None)
            for each in gone:
                del deputy.leaving[each]
            deputy.asked, deputy.telling = dict.fromkeys(added), True
            yield Errand(peer, added, gone)

    def agreed(self, peer: PeerId) -> None:
        """Note that a deputy has agreed to its last errand."""
        deputy = self.deputies[peer]
        for member in deputy.asked:
            if self._homes.get(member) == peer and member not in deputy.leaving:
                deputy.served[member] = None
        deputy.asked, deputy.telling = {}, False
