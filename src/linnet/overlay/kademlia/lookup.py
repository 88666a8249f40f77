"""One iterative lookup: asks the nodes nearest to a key for nearer ones, a few at once, until there are none.

It sends nothing itself: `take_due` returns the nodes to ask next. It ends when the k nearest that are not
known to be silent have all answered; or, for records, when enough of them had some; or when it has asked as
many as it may.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable
from enum import Enum

from msgspec import Struct

from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.routing_table import NodeId, distance, node_id
from linnet.overlay.kademlia.value_records import Stored


class _State(Enum):
    NEW = 1
    ASKED = 2
    ANSWERED = 3
    SILENT = 4


class _Candidate(Struct, eq=False):
    contact: Contact
    away: int
    depth: int
    """The number of nodes through which we heard of it; 0: we knew it."""
    state: _State = _State.NEW


class Lookup:
    """Finds the nodes nearest to a key, and the records under it if these are wanted."""

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
        """Nodes not known to be silent, the nearest first."""
        self._learn(seeds, 0)

    @property
    def is_over(self) -> bool:
        """Whether no node is left to ask or to wait for."""
        if self.wants_records and self.with_records >= self._config.enough:
            return True
        if self.asked >= self._config.asked:
            return self._under_way == 0
        nearest = self._near[: self._config.k]
        return all(each.state is _State.ANSWERED for each in nearest)

    @property
    def nearest(self) -> tuple[Contact, ...]:
        """The k nearest nodes that answered, the nearest first."""
        return tuple(each.contact for each in self._near if each.state is _State.ANSWERED)[: self._config.k]

    @property
    def hops(self) -> int:
        """The number of nodes on the way to the nearest one that answered."""
        return next((each.depth + 1 for each in self._near if each.state is _State.ANSWERED), 0)

    @property
    def _under_way(self) -> int:
        """How many were asked and have not answered yet."""
        return sum(each.state is _State.ASKED for each in self._near)

    def take_due(self) -> list[Contact]:
        """Return the nodes to ask now; they count as asked."""
        if self.is_over:
            return []
        room = min(self._config.alpha - self._under_way, self._config.asked - self.asked)
        unasked = [each for each in self._near[: self._config.k] if each.state is _State.NEW]
        due = unasked[: max(0, room)]
        for each in due:
            each.state = _State.ASKED
        self.asked += len(due)
        return [each.contact for each in due]

    def handle_answer(
        self, peer: PeerId, contacts: Iterable[Contact], records: Iterable[Stored] = ()
    ) -> None:
        """Learn the contacts and records of a node that was asked."""
        candidate = self._known.get(peer)
        if candidate is None or candidate.state is not _State.ASKED:
            return
        candidate.state = _State.ANSWERED
        self.answered += 1
        found = dict.fromkeys(records)
        self.records |= found
        self.with_records += bool(found)
        self._learn(contacts, candidate.depth + 1)

    def handle_timeout(self, peer: PeerId) -> None:
        """Drop a node that was asked and does not answer, or cannot be dialled."""
        candidate = self._known.get(peer)
        if candidate is None or candidate.state is not _State.ASKED:
            return
        candidate.state = _State.SILENT
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
        """Drop the farthest nodes that were not asked: answers may name anybody."""
        most = 2 * self._config.asked
        while len(self._near) > most and self._near[-1].state is _State.NEW:
            del self._known[self._near.pop().contact.peer]
