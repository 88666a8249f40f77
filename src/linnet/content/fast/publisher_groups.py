"""A group at its publisher: its members, what they want, and who serves them.

After Agostinho 2021: past a number of members of a region that the publisher serves itself, it asks the
strongest of them for help and hands on the weakest, but keeps a pool of the strongest to ask next. Here the
one with most room takes the next, so that room which is freed is used again. A member is served by the
publisher until who is to serve it has said yes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linnet.content.fast.commands import GroupStatus
from linnet.content.fast.config import FastConfig
from linnet.content.fast.messages import BATCH, Enrolment
from linnet.content.fast.signed_records import is_receipt
from linnet.content.matching_index import Index
from linnet.content.predicate import Attributes, Predicate
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason


class _Member:
    """One who joined."""

    __slots__ = ("enrolment", "key", "predicates", "strikes", "told", "until")

    def __init__(
        self, enrolment: Enrolment, predicates: tuple[Predicate, ...], key: bytes, until: float
    ) -> None:
        self.enrolment = enrolment
        self.predicates = predicates
        self.key = key
        self.until = until
        self.told = enrolment.until
        """Until when it stays, as far as who serves it knows."""
        self.strikes = 0


class Group:
    """Members by their predicates and regions. Nothing is sent from here."""

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
        """One joins, stays for longer, or wants something else; `RemoteError` if there are too many."""
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
        self._members[peer] = _Member(enrolment, predicates, key, until)
        region = self._regions.setdefault(enrolment.region, Region(self._config.direct, self._config.pool))
        if known is not None and known.predicates != predicates:
            # Who serves it has to know what it wants now.
            region.take_back(peer)
        region.add(peer, enrolment.capacity, bool(enrolment.member.hints))
        if known is not None and enrolment.until - known.told >= self._config.refresh / 2:
            # Not each time: who asks again and again keeps nobody busy but this node.
            region.renewed(peer)
        else:
            self._members[peer].told = known.told if known is not None else enrolment.until
        region.arrange(self._distrusted)

    def remove(self, peer: PeerId) -> bool:
        """One leaves; whether it was a member."""
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
        """Members that did not renew in time."""
        self._distrusted = {peer: until for peer, until in self._distrusted.items() if until > now}
        return [peer for peer, member in self._members.items() if member.until <= now]

    # Who gets an event, and from whom.

    def matching(self, attributes: Attributes) -> dict[PeerId, PeerId | None]:
        """Members that want an event, each with the deputy that serves it; None: the publisher does."""
        found = dict.fromkeys(peer for peer, _ in self._index.matching(attributes))
        return {peer: self._region(peer).server(peer) for peer in found}

    def contact(self, peer: PeerId) -> Contact:
        """Where a member can be dialled."""
        return self._members[peer].enrolment.member

    def is_receipt(self, peer: PeerId, event: EventId, given: bytes | None) -> bool:
        """Whether a member gave this receipt."""
        member = self._members.get(peer)
        return member is not None and is_receipt(member.key, event, given)

    def answered(self, peer: PeerId) -> None:
        """A member is there."""
        if peer in self._members:
            self._members[peer].strikes = 0

    def missed(self, peer: PeerId) -> bool:
        """A member did not answer; whether that has been so too often."""
        if peer not in self._members:
            return False
        self._members[peer].strikes += 1
        return self._members[peer].strikes >= self._config.strikes

    def _region(self, peer: PeerId) -> Region:
        return self._regions[self._members[peer].enrolment.region]

    # Deputies.

    def errands(self) -> list[tuple[Errand, tuple[Enrolment, ...]]]:
        """What is to be told to deputies now."""
        found = [errand for region in self._regions.values() for errand in region.errands()]
        return [(errand, tuple(self._members[peer].enrolment for peer in errand.added)) for errand in found]

    def agreed(self, peer: PeerId) -> None:
        """A deputy has said yes to what it was asked last."""
        if peer in self._members and peer in self._region(peer).deputies:
            self._region(peer).agreed(peer)

    def relieve(self, peer: PeerId, until: float) -> list[PeerId]:
        """A deputy serves nobody any more, and is not asked again before a time; whom it served."""
        if peer not in self._members or peer not in self._region(peer).deputies:
            return []
        self._distrusted[peer] = until
        left = self._region(peer).relieve(peer)
        self._region(peer).arrange(self._distrusted)
        return left

    def doubt(self, peer: PeerId, member: PeerId) -> bool:
        """A member that a deputy should have served did not have the event; whether that is too much."""
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
        """Members to which the publisher keeps links: those whom it serves itself."""
        return {peer: None for peer in self._members if self._region(peer).server(peer) is None}

    def status(self, boards: int) -> GroupStatus:
        """How it stands."""
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
    """What a deputy has to be told: whom to serve, and whom no longer."""

    deputy: PeerId
    added: tuple[PeerId, ...]
    gone: tuple[PeerId, ...]


class Deputy:
    """A member that serves others for the publisher (a *helper* in the paper)."""

    __slots__ = ("adding", "again", "asked", "capacity", "failed", "leaving", "served", "telling")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.served: dict[PeerId, None] = {}
        self.adding: dict[PeerId, None] = {}
        """To be handed to it."""
        self.again: dict[PeerId, None] = {}
        """It serves these, and is to be told that they stay for longer."""
        self.asked: dict[PeerId, None] = {}
        """It was asked to take these, and has not answered."""
        self.leaving: dict[PeerId, None] = {}
        """To be taken from it."""
        self.telling: bool = False
        self.failed: dict[PeerId, None] = {}
        """Members that did not get an event from it though they were there."""

    @property
    def room(self) -> int:
        """How many more it could serve."""
        taken = {**self.served, **self.asked, **self.adding}
        return self.capacity - len(taken)

    def drop(self, peer: PeerId) -> None:
        """It need not serve this member any more."""
        self.again.pop(peer, None)
        if self.adding.pop(peer, True) is None:
            return
        if self.served.pop(peer, True) is None or peer in self.asked:
            self.leaving[peer] = None


class Region:
    """Who serves whom of the members of one region, in the order of their arrival."""

    def __init__(self, direct: int, pool: int) -> None:
        self._most = direct
        self._pool = pool
        self._members: dict[PeerId, tuple[int, bool]] = {}
        """Capacity, and whether it can be dialled, so that others can serve it."""
        self._homes: dict[PeerId, PeerId] = {}
        """Who serves a member, or will when it has said yes; none: the publisher."""
        self.deputies: dict[PeerId, Deputy] = {}
        self._dismissed: dict[PeerId, list[PeerId]] = {}
        """Whom those who were relieved have to be told not to serve any more."""

    def __len__(self) -> int:
        return len(self._members)

    def add(self, peer: PeerId, capacity: int, dialable: bool) -> None:
        """A member, or one that changes what it could do."""
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
        """A member is gone; whom it served is served by the publisher again."""
        self.relieve(peer)
        self.take_back(peer)
        self._members.pop(peer, None)
        self._dismissed.pop(peer, None)

    def renewed(self, peer: PeerId) -> None:
        """A member stays for longer: who serves it has to know."""
        home = self.server(peer)
        if home is not None:
            self.deputies[home].again[peer] = None

    def take_back(self, peer: PeerId) -> None:
        """The publisher serves a member itself."""
        home = self._homes.pop(peer, None)
        if home is not None:
            self.deputies[home].drop(peer)

    def relieve(self, peer: PeerId) -> list[PeerId]:
        """A deputy serves nobody any more; whom it served."""
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
        """The deputy that serves a member and has said so; None: the publisher has to."""
        home = self._homes.get(peer)
        return home if home is not None and peer in self.deputies[home].served else None

    def arrange(self, distrusted: dict[PeerId, float]) -> None:
        """Hand on whom others can serve, and ask for help if there are too many."""
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
        """Members that the publisher serves and others could, the strongest first."""
        free = [
            peer
            for peer, (_, dialable) in self._members.items()
            if dialable and peer not in self._homes and peer not in self.deputies
        ]
        return sorted(free, key=lambda peer: -self._members[peer][0])

    # What deputies are told, one thing at a time.

    def errands(self) -> Iterator[Errand]:
        """What is to be told to deputies that are not being told something already."""
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
        """A deputy has said yes to what it was asked last."""
        deputy = self.deputies[peer]
        for member in deputy.asked:
            if self._homes.get(member) == peer and member not in deputy.leaving:
                deputy.served[member] = None
        deputy.asked, deputy.telling = {}, False
