"""A group at its publisher: its members, what they want, and who serves them."""

from __future__ import annotations

from linnet.content.fast.commands import GroupStatus
from linnet.content.fast.config import FastConfig
from linnet.content.fast.messages import Enrolment
from linnet.content.fast.receipts import is_receipt
from linnet.content.fast.regions import Errand, Region
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
