"""Neighbours are chosen as the ring says: at once where there is nobody, else with the next round."""

from __future__ import annotations

from tests.overlay.gossip.gossiping import AT, EPOCH, NOW, OTHERS, US, described, peer_gossip
from tests.overlay.harness import said

from linnet.core.effects import Hold
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Notice
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.messages import Beside, RingMember
from linnet.overlay.gossip.neighbors import JoinedTopic, NeighborAgreements, Neighbors
from linnet.overlay.gossip.ring import Ring
from linnet.overlay.gossip.topic_tags import hint, proof, topic_keys
from linnet.overlay.notices import Adjacency, StorageKnown
from linnet.trace.records import Record

KEYS = topic_keys(TopicId(bytes([1]) * 32))
OURS = PeerId(US.public)


class Place:
    """One topic of one node."""

    def __init__(self, config: TrackerlessConfig | None = None) -> None:
        config = config or TrackerlessConfig()
        self.links: dict[PeerId, None] = {}
        self.gossip = peer_gossip(config, links=self.links)
        self.out = self.gossip.out
        self.beside = NeighborAgreements(OURS, self.links, self.out, Adjacency(self.out))
        self.beside.open_topic(KEYS, False, EPOCH)
        self.joined = JoinedTopic(KEYS, False, {})
        self.ring = Ring(OURS, KEYS, config, EPOCH, lambda peer: peer[0])
        self.neighbors = Neighbors(self.gossip, self.beside)

    def change(self) -> list[Effect | Notice]:
        return said(self.out, self.neighbors.handle_change, self.joined, self.ring, NOW)

    def mend(self) -> list[Effect | Notice]:
        return said(self.out, self.neighbors.choose_neighbors, self.joined, self.ring, NOW)

    def learn(self, *keys: SigningKey, keeps: bool = False) -> None:
        for key in keys:
            node = described(key)
            self.gossip.known.learn_descriptor(node, NOW)
            peer = PeerId(key.public)
            self.ring.merge_members((RingMember(node, EPOCH, proof(KEYS, peer, EPOCH), keeps),), met=peer)

    def agreed(self, peer: PeerId) -> None:
        """A peer that is linked says that it counts us."""
        self.links[peer] = None
        self.beside.handle_link_up(peer, EPOCH)
        self.beside.handle_beside(
            peer, Beside(hint(KEYS, OURS, peer), EPOCH, proof(KEYS, peer, EPOCH), True), EPOCH
        )

    def held(self) -> set[PeerId]:
        return set(self.beside.count_held())


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


PEERS = [PeerId(bytes([number]) * 32) for number in range(10)]
HINTS = {peer: (f"tls://host{number}:1",) for number, peer in enumerate(PEERS)}


def joined(count: int) -> JoinedTopic:
    keys = topic_keys(TopicId(b"t" * 32), None)
    return JoinedTopic(keys, False, {peer: HINTS[peer] for peer in PEERS[:count]})


def test_several_are_tried_at_once_while_no_member_is_known() -> None:
    assert list(joined(10).first_contacts()) == PEERS[:8]
    assert joined(10).contacts_to_try((), False, 0) == {peer: HINTS[peer] for peer in PEERS[:8]}


def test_one_at_a_time_is_tried_in_turn_once_members_are_known() -> None:
    topic = joined(3)
    tried = [topic.contacts_to_try((PEERS[1], PEERS[9]), True, turn) for turn in range(3)]
    assert tried == [{PEERS[0]: HINTS[PEERS[0]]}, {PEERS[2]: HINTS[PEERS[2]]}, {PEERS[0]: HINTS[PEERS[0]]}]


def test_who_is_a_member_is_not_tried_any_more() -> None:
    assert joined(2).contacts_to_try(PEERS, True, 5) == {}
    assert joined(0).contacts_to_try((), False, 5) == {}


def test_neighbours_are_chosen_anew_in_turn_while_someone_waits_for_it() -> None:
    assert joined(1).is_unsettled
    topic = joined(0)
    assert not topic.is_unsettled
    topic.uncovered = 2
    assert topic.is_unsettled
