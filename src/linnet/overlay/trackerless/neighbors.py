"""Which members of a topic a node wants as neighbours, as its ring changes, and who keep the topic."""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId
from linnet.core.limits import STORAGE_NODES
from linnet.core.reasons import Reason
from linnet.overlay.notices import StorageKnown
from linnet.overlay.trackerless.beside import BesideUs
from linnet.overlay.trackerless.gossip import Gossip
from linnet.overlay.trackerless.joined_topic import JoinedTopic
from linnet.overlay.trackerless.ring import Ring
from linnet.trace.records import Kind, Record


class Neighbors:
    """Chooses the neighbours of all topics of a node."""

    def __init__(self, gossip: Gossip, beside: BesideUs) -> None:
        self._gossip = gossip
        self._beside = beside
        self.turn = 0
        """Which of those who were named as perhaps members is tried beside the members that are known."""

    def handle_change(self, joined: JoinedTopic, ring: Ring, now: float) -> None:
        """Others stand beside us: they are chosen in the next round, at once where there is nobody yet.

        Members become known one after the other, and most stand there for a moment only: a link to each,
        and a word about it, would be in vain.
        """
        if self._beside.neighbors(joined.keys.topic):
            self.tell_storage(joined, ring)
        else:
            self.mend(joined, ring, now)

    def mend(self, joined: JoinedTopic, ring: Ring, now: float) -> None:
        """Want those as neighbours who stand beside us now, and some further off."""
        topic, gossip = joined.keys.topic, self._gossip
        joined.wanted = ring.wanted
        held, before = self._beside.held(), self._beside.wanted(topic)
        wanted: dict[PeerId, tuple[str, ...]] = {}
        uncovered = 0
        for peer in ring.wanted:
            if peer not in held and len(held) >= gossip.config.most_links:
                uncovered += 1
                continue
            held[peer] = 1
            hints = before.get(peer)
            wanted[peer] = gossip.hints(peer) if hints is None else hints
        wanted |= joined.tried(dict.fromkeys(ring), len(ring) > 0, self.turn)
        if uncovered > joined.uncovered:
            gossip.out.record(
                Record(Kind.DROPPED, topic, reason=Reason.TOO_MANY_LINKS, note=f"{uncovered} uncovered")
            )
        joined.uncovered = uncovered
        self._beside.want(topic, wanted, gossip.own.epoch(now))
        self.tell_storage(joined, ring)

    def tell_storage(self, joined: JoinedTopic, ring: Ring) -> None:
        """Say who keeps the topic, if that has changed."""
        topic = joined.keys.topic
        keepers = tuple(dict.fromkeys((*self._beside.keepers(topic), *ring.keepers)))[:STORAGE_NODES]
        if keepers == joined.keepers or set(keepers) == set(joined.keepers):
            return
        joined.keepers = keepers
        nodes = tuple(Contact(peer, self._gossip.hints(peer)) for peer in keepers)
        self._gossip.out.notify(StorageKnown(topic, nodes))
