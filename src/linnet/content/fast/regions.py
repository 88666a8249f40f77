"""Who serves whom in one region of a group: the publisher itself, or members who said that they could.

After Agostinho 2021: past a number of members that the publisher serves itself, it asks the strongest of
them for help and hands on the weakest, but keeps a pool of the strongest to ask next. Here the one with most
room takes the next, so that room which is freed is used again. A member is served by the publisher until who
is to serve it has said yes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from linnet.content.fast.messages import BATCH
from linnet.core.ids import PeerId


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
    """The members of one region, in the order of their arrival."""

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
