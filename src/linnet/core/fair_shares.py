"""Fair shares: who holds how much of something limited, and who has to give some up when it is used up.

Keys are free, so a limit per key limits nobody. What costs something is an address. Peers are therefore
counted by network as well: by the prefix of the address that they proved when their link came up. When all
is taken, the network that holds most gives way to one that holds less, and within a network the key. So a
newcomer always finds room beside one flood, however large, and many honest peers behind one address lose
nothing as long as there is room.

Peers of exempt networks, and peers whose address says nothing, count one by one.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

from linnet.core.ids import PeerId

K = TypeVar("K")

REMEMBERED = 16_384
"""The most peers without a link whose network is remembered; those without one for longest are forgotten."""


class Origins:
    """The networks from which peers have opened their links, as the driver has seen them."""

    def __init__(self) -> None:
        self._linked: dict[PeerId, str] = {}
        self._gone: dict[PeerId, str] = {}
        """Peers without a link, the latest last: what they took may still count."""

    def note(self, peer: PeerId, network: str | None) -> None:
        """Note the network of a peer whose link is up; None: it counts for itself."""
        self._gone.pop(peer, None)
        if network is None:
            self._linked.pop(peer, None)
        else:
            self._linked[peer] = network

    def note_gone(self, peer: PeerId) -> None:
        """Note that a peer's link is down: its network is remembered for a while."""
        network = self._linked.pop(peer, None)
        if network is None:
            return
        self._gone[peer] = network
        if len(self._gone) > REMEMBERED:
            del self._gone[next(iter(self._gone))]

    def of(self, peer: PeerId) -> str | PeerId:
        """Return what a peer counts for: its network, or itself."""
        return self._linked.get(peer) or self._gone.get(peer) or peer


class Ranking(Generic[K]):
    """Counts, and which of them is the largest. Nothing is ordered until somebody asks for that."""

    def __init__(self) -> None:
        self.counts: dict[K, int] = {}
        self._heap: list[tuple[int, int, K]] | None = None
        """Counts, negative, with a serial number that decides between equal ones; some are outdated."""
        self._serial = 0

    def add(self, key: K, amount: int) -> None:
        """Add to a count; one that becomes 0 is forgotten."""
        count = self.counts.get(key, 0) + amount
        if count > 0:
            self.counts[key] = count
        else:
            self.counts.pop(key, None)
        if self._heap is not None:
            if len(self._heap) > 2 * len(self.counts) + 64:
                self._heap = None
            elif count > 0:
                self._push(self._heap, key, count)

    def find_largest(self) -> K | None:
        """Return the key with the largest count, of equal ones the one that came first; None without any."""
        if self._heap is None:
            self._heap = []
            for key, count in self.counts.items():
                self._serial += 1
                self._heap.append((-count, self._serial, key))
            heapify(self._heap)
        while self._heap:
            count, _, key = self._heap[0]
            if self.counts.get(key) == -count:
                return key
            heappop(self._heap)
        return None

    def _push(self, heap: list[tuple[int, int, K]], key: K, count: int) -> None:
        self._serial += 1
        heappush(heap, (-count, self._serial, key))


class FairShares:
    """The shares of peers in something of which there is `limit` in all."""

    def __init__(self, limit: int, origins: Origins) -> None:
        self.limit = limit
        self.used = 0
        self._origins = origins
        self._origin: dict[PeerId, str | PeerId] = {}
        """For each holder what it counts for: where it came from when it took its first."""
        self._groups: Ranking[str | PeerId] = Ranking()
        self._holders: dict[str | PeerId, Ranking[PeerId]] = {}

    def __len__(self) -> int:
        """Return how many peers hold something."""
        return len(self._origin)

    def share(self, peer: PeerId) -> int:
        """Return how much a peer holds."""
        origin = self._origin.get(peer)
        return 0 if origin is None else self._holders[origin].counts[peer]

    def add(self, peer: PeerId, amount: int = 1) -> None:
        """Count what a peer has taken."""
        origin = self._origin.setdefault(peer, self._origins.of(peer))
        self.used += amount
        self._groups.add(origin, amount)
        self._holders.setdefault(origin, Ranking()).add(peer, amount)

    def remove(self, peer: PeerId, amount: int = 1) -> None:
        """Count what a peer has given up; more than it holds is an error of ours."""
        held = self.share(peer)
        if amount > held:
            raise ValueError(f"a peer that holds {held} cannot give up {amount}")
        origin = self._origin[peer]
        self.used -= amount
        self._groups.add(origin, -amount)
        holders = self._holders[origin]
        holders.add(peer, -amount)
        if peer not in holders.counts:
            del self._origin[peer]
        if not holders.counts:
            del self._holders[origin]

    def is_full(self, amount: int = 1) -> bool:
        """Return whether so much more is too much."""
        return self.used + amount > self.limit

    def find_greedier(self, peer: PeerId, amount: int = 1) -> PeerId | None:
        """Return who has to give something up so that a peer can take so much; None: it is too greedy itself.

        Nobody gives way to who would then hold more.
        """
        origin = self._origin.get(peer) or self._origins.of(peer)
        greediest = self._groups.find_largest()
        if greediest is None:
            return None
        if greediest != origin:
            wanted = self._groups.counts.get(origin, 0) + amount
            is_greedier = self._groups.counts[greediest] > wanted
            return self._holders[greediest].find_largest() if is_greedier else None
        holders = self._holders[greediest]
        largest = holders.find_largest()
        if largest is None or largest == peer:
            return None
        return largest if holders.counts[largest] > holders.counts.get(peer, 0) + amount else None

    def is_fairer(self, giver: PeerId, taker: PeerId) -> bool:
        """Return whether shares are more even once a holder gave one to another peer.

        So gifts of this kind come to an end, whoever gives to whom.
        """
        origin, other = self._origin[giver], self._origin.get(taker) or self._origins.of(taker)
        if origin != other:
            return self._groups.counts[origin] > self._groups.counts.get(other, 0) + 1
        return self.share(giver) > self.share(taker) + 1
