"""Neighbours are chosen as the ring says: at once where there is nobody, else with the next round."""

from __future__ import annotations

from random import Random

from tests.overlay.harness import said

from linnet.core.effects import Hold
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.notices import StorageKnown
from linnet.overlay.trackerless.beside import BesideUs
from linnet.overlay.trackerless.config import DAY, TrackerlessConfig
from linnet.overlay.trackerless.descriptor import check_descriptor, sign_descriptor
from linnet.overlay.trackerless.gossip import Gossip
from linnet.overlay.trackerless.joined_topic import JoinedTopic
from linnet.overlay.trackerless.messages import Beside, RingMember
from linnet.overlay.trackerless.neighbors import Neighbors
from linnet.overlay.trackerless.ring import Ring
from linnet.overlay.trackerless.tags import epoch_of, hint, proof, topic_keys
from linnet.sim.luck import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.trace.records import Record

NOW = 1_800_000_000.0
EPOCH = epoch_of(NOW)
KEYS = topic_keys(TopicId(bytes([1]) * 32))
US, *OTHERS = (SigningKey(bytes([number]) * 32) for number in range(1, 12))
OURS = PeerId(US.public)
AT = ("tls://h:1",)


class Place:
    """One topic of one node."""

    def __init__(self, config: TrackerlessConfig | None = None) -> None:
        config = config or TrackerlessConfig()
        self.links: dict[PeerId, None] = {}
        cells, entropy = MemoryStore().cells, SeededEntropy(1, "us")
        self.out = out = Outbox()
        self.gossip = Gossip(US, config, cells, Random(1), entropy, AT, self.links, check_descriptor, out)
        self.beside = BesideUs(OURS, self.links, out, Adjacency(out))
        self.beside.open(KEYS, False, EPOCH)
        self.joined = JoinedTopic(KEYS, False, {})
        self.ring = Ring(OURS, KEYS, config, EPOCH, lambda peer: peer[0])
        self.neighbors = Neighbors(self.gossip, self.beside)

    def change(self) -> list[Effect | Notice]:
        return said(self.out, self.neighbors.handle_change, self.joined, self.ring, NOW)

    def mend(self) -> list[Effect | Notice]:
        return said(self.out, self.neighbors.mend, self.joined, self.ring, NOW)

    def learn(self, *keys: SigningKey, keeps: bool = False) -> None:
        for key in keys:
            node = sign_descriptor(key, int(NOW * 1000), EPOCH, b"", 3000, 1, AT, int(NOW + DAY))
            self.gossip.acquaintances.learn(node, NOW)
            peer = PeerId(key.public)
            self.ring.merge((RingMember(node, EPOCH, proof(KEYS, peer, EPOCH), keeps),), met=peer)

    def agreed(self, peer: PeerId) -> None:
        """A peer that is linked says that it counts us."""
        self.links[peer] = None
        self.beside.handle_link_up(peer, EPOCH)
        self.beside.hear(peer, Beside(hint(KEYS, OURS, peer), EPOCH, proof(KEYS, peer, EPOCH), True), EPOCH)

    def held(self) -> set[PeerId]:
        return set(self.beside.held())


def test_the_first_who_is_found_is_chosen_at_once_and_others_with_the_next_round() -> None:
    place = Place()
    place.learn(OTHERS[0])
    first = PeerId(OTHERS[0].public)
    held = place.change()
    assert [effect.peer for effect in held if isinstance(effect, Hold)] == [first]
    place.agreed(first)
    place.learn(*OTHERS[1:4])
    assert place.change() == []
    assert place.held() == {first}
    place.mend()
    assert place.held() == {PeerId(key.public) for key in OTHERS[:4]}
    assert place.joined.wanted == place.ring.wanted


def test_who_keeps_the_topic_is_told_though_neighbours_are_chosen_later_and_once() -> None:
    place = Place()
    place.learn(OTHERS[0])
    place.change()
    place.agreed(PeerId(OTHERS[0].public))
    place.learn(OTHERS[1], keeps=True)
    keeper = Contact(PeerId(OTHERS[1].public), AT)
    assert place.change() == [StorageKnown(KEYS.topic, (keeper,))]
    assert said(place.out, place.neighbors.tell_storage, place.joined, place.ring) == []


def test_members_beyond_the_links_that_there_may_be_are_left_out_and_named_once() -> None:
    place = Place(TrackerlessConfig(most_links=2))
    place.learn(*OTHERS)
    told = [each for each in place.mend() if isinstance(each, Record)]
    assert [each.reason for each in told] == [Reason.TOO_MANY_LINKS]
    assert place.joined.uncovered == len(place.ring.wanted) - 2
    again = place.mend()
    assert [each for each in again if isinstance(each, Record)] == []
