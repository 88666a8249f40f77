"""The members of a topic, from whom a tracker draws samples that are spread over networks and ages.

Keys are free, and addresses are not. So a sample draws networks first, each as likely as any other, and then
a member of each: whoever runs a thousand nodes at one address is drawn no more often than one who runs a
single node elsewhere. Half of the draws prefer the older of two: who floods a topic comes late.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from linnet.core.fair_shares import Origins
from linnet.core.ids import PeerId
from linnet.overlay.regular_graph import Pool

_DRAWS = 4
"""Draws for each member of a sample: some draw a member again, or one that does not suit."""


class Crowd:
    """The members of one topic by network, as they came."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._network_of: dict[PeerId, str | PeerId] = {}
        """What each member counts for: its network when it came, or itself."""
        self._members: dict[str | PeerId, Pool[PeerId]] = {}
        self._networks: Pool[str | PeerId] = Pool()
        self._came: dict[PeerId, int] = {}
        self._serial = 0

    def add(self, peer: PeerId) -> None:
        """Add a member, if it is not there yet."""
        if peer in self._network_of:
            return
        network = self._network_of[peer] = self._origins.of(peer)
        self._members.setdefault(network, Pool()).add(peer)
        self._networks.add(network)
        self._serial += 1
        self._came[peer] = self._serial

    def discard(self, peer: PeerId) -> None:
        """Remove a member, if it is there."""
        network = self._network_of.pop(peer, None)
        if network is None:
            return
        del self._came[peer]
        members = self._members[network]
        members.discard(peer)
        if not len(members):
            del self._members[network]
            self._networks.discard(network)

    @property
    def is_crowded(self) -> bool:
        """Whether some members share a network."""
        return len(self._networks) < len(self._network_of)

    def network_of(self, peer: PeerId) -> str | PeerId:
        """Return what a member counts for; a node that is no member counts for itself."""
        return self._network_of.get(peer, peer)

    def draw_sample(self, most: int, rng: Random, suits: Callable[[PeerId], bool]) -> list[PeerId]:
        """Draw at most so many suitable members."""
        drawn: dict[PeerId, None] = {}
        for number in range(most * _DRAWS):
            if len(drawn) == most or not len(self._networks):
                break
            member = self._draw(rng)
            if number % 2:
                member = min(member, self._draw(rng), key=self._came.__getitem__)
            if suits(member):
                drawn[member] = None
        return list(drawn)

    def _draw(self, rng: Random) -> PeerId:
        return self._members[self._networks.draw(rng)].draw(rng)
