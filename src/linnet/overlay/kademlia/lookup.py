"""One iterative lookup: those nearest to a key are asked for nearer ones, a few at once, until none is.

It asks nobody itself: `due` says whom to ask next. It ends when the k nearest that are not known to be silent
have all answered; or, for records, when enough of them had some; or when it has asked as many as it may.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from enum import Enum

from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import NodeId, distance, node_id
from linnet.overlay.kademlia.records import Stored


class _State(Enum):
    NEW = 1
    ASKED = 2
    ANSWERED = 3
    SILENT = 4


class _Candidate:
    __slots__ = ("away", "contact", "depth", "state")

    def __init__(self, contact: Contact, away: int, depth: int) -> None:
        self.contact = contact
        self.away = away
        self.depth = depth
        """Through how many nodes we heard of it; 0: we knew it."""
        self.state = _State.NEW


class Lookup:
    """Who is nearest to a key; and what is kept under it, if records are wanted."""

    def __init__(
        self,
        target: NodeId,
        own: PeerId,
        seeds: Iterable[Contact],
        config: KademliaConfig,
        wants_records: bool = False,
    ) -> None:
        self.target = target
        self.wants_records = wants_records
        self.asked = 0
        self.answered = 0
        self.with_records = 0
        self.records: dict[Stored, None] = {}
        self._own = own
        self._config = config
        self._known: dict[PeerId, _Candidate] = {}
        self._near: list[_Candidate] = []
        """Those not known to be silent, the nearest first."""
        self._under_way = 0
        self._learn(seeds, 0)

    @property
    def is_over(self) -> bool:
        """Whether there is nobody left to ask or to wait for."""
        if self.wants_records and self.with_records >= self._config.enough:
            return True
        if self.asked >= self._config.asked:
            return self._under_way == 0
        nearest = self._near[: self._config.k]
        return all(each.state is _State.ANSWERED for each in nearest)

    @property
    def found(self) -> tuple[Contact, ...]:
        """The k nearest that answered, the nearest first."""
        return tuple(each.contact for each in self._near if each.state is _State.ANSWERED)[: self._config.k]

    @property
    def hops(self) -> int:
        """Through how many nodes the way to the nearest led that answered."""
        return next((each.depth + 1 for each in self._near if each.state is _State.ANSWERED), 0)

    def due(self) -> list[Contact]:
        """Whom to ask now; they count as asked."""
        due: list[Contact] = []
        if self.is_over:
            return due
        for each in self._near[: self._config.k]:
            if self._under_way >= self._config.alpha or self.asked >= self._config.asked:
                break
            if each.state is _State.NEW:
                each.state = _State.ASKED
                self.asked += 1
                self._under_way += 1
                due.append(each.contact)
        return due

    def heard(self, peer: PeerId, contacts: Iterable[Contact], records: Iterable[Stored] = ()) -> None:
        """A node that was asked answers."""
        candidate = self._known.get(peer)
        if candidate is None or candidate.state is not _State.ASKED:
            return
        candidate.state = _State.ANSWERED
        self._under_way -= 1
        self.answered += 1
        found = dict.fromkeys(records)
        self.records |= found
        self.with_records += bool(found)
        self._learn(contacts, candidate.depth + 1)

    def silent(self, peer: PeerId) -> None:
        """A node that was asked does not answer, or cannot be dialled."""
        candidate = self._known.get(peer)
        if candidate is None or candidate.state is not _State.ASKED:
            return
        candidate.state = _State.SILENT
        self._under_way -= 1
        self._near.remove(candidate)

    def _learn(self, contacts: Iterable[Contact], depth: int) -> None:
        for contact in contacts:
            if contact.peer == self._own or contact.peer in self._known or not contact.hints:
                continue
            candidate = _Candidate(contact, distance(self.target, node_id(contact.peer)), depth)
            self._known[contact.peer] = candidate
            insort(self._near, candidate, key=lambda each: each.away)
        self._forget_far()

    def _forget_far(self) -> None:
        """Of those never to be asked only so many are remembered: answers may name anybody."""
        most = 2 * self._config.asked
        while len(self._near) > most and self._near[-1].state is _State.NEW:
            del self._known[self._near.pop().contact.peer]
