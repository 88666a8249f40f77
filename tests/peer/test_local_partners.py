"""With whom a node without trackers goes on gossiping after it met them on a local network."""

from __future__ import annotations

from random import Random

from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import Asked, LocalNetwork, Met, NetworkIs
from linnet.edge.announcement import network_id
from linnet.edge.commands import AllowOnNetwork
from linnet.edge.config import PresenceConfig
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.peer_gossip import PeerGossip
from linnet.peer.config import PeerConfig
from linnet.peer.interface import Input, Start
from linnet.peer.peer import Peer
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

NOW = 1_700_000_000.0
TOPIC, OTHER = TopicId(b"t" * 32), TopicId(b"o" * 32)
HOME, CAFE = network_id([b"home"]), network_id([b"cafe"])
AT_HOME, IN_CAFE = LocalNetwork(HOME, 7, 4711, "home"), LocalNetwork(CAFE, 7, 4712, "cafe")
ANN, BEA = PeerId(b"a" * 32), PeerId(b"b" * 32)


class Node:
    """A node in the overlay without trackers that looks at local networks."""

    def __init__(self) -> None:
        config = PeerConfig(trackerless=TrackerlessConfig(), lan=PresenceConfig())
        self.peer = Peer(config, known_identity("us"), MemoryStore(), Random(1))
        self.hears(Asked(0, Start()))

    def hears(self, event: Input) -> None:
        self.peer.handle(event, NOW)

    def switch(self, topic: TopicId, network: bytes, is_allowed: bool) -> None:
        self.hears(Asked(1, AllowOnNetwork(topic, network, is_allowed)))

    def is_apart(self, peer: PeerId) -> bool:
        without = self.peer._parts.trackerless
        assert without is not None
        assert isinstance(without.peers, PeerGossip)
        return without.peers.is_apart(peer)


def test_it_parts_from_devices_once_the_last_topic_is_denied_there_also_if_they_left_before() -> None:
    node = Node()
    for topic in (TOPIC, OTHER):
        node.switch(topic, HOME, True)
    node.hears(NetworkIs((AT_HOME,)))
    node.hears(Met(HOME, b"1" * 32, ANN))
    node.hears(NetworkIs(()))
    node.hears(NetworkIs((AT_HOME,)))
    node.hears(Met(HOME, b"2" * 32, BEA))
    node.switch(TOPIC, HOME, False)
    assert not node.is_apart(ANN), "one topic is left"
    assert not node.is_apart(BEA)
    node.switch(OTHER, HOME, False)
    assert node.is_apart(ANN)
    assert node.is_apart(BEA)
    node.switch(TOPIC, HOME, True)
    node.hears(Met(HOME, b"2" * 32, BEA))
    assert not node.is_apart(BEA), "it is met again"
    assert node.is_apart(ANN)


def test_who_was_met_on_another_network_too_stays_while_something_is_allowed_there() -> None:
    node = Node()
    for network in (HOME, CAFE):
        node.switch(TOPIC, network, True)
    node.hears(NetworkIs((AT_HOME, IN_CAFE)))
    for network in (HOME, CAFE):
        node.hears(Met(network, b"1" * 32, ANN))
    node.hears(Met(HOME, b"2" * 32, BEA))
    node.switch(TOPIC, HOME, False)
    assert node.is_apart(BEA)
    assert not node.is_apart(ANN)
    node.hears(NetworkIs(()))
    assert not node.is_apart(ANN), "nothing was denied where it was met"
    node.switch(TOPIC, CAFE, False)
    assert node.is_apart(ANN)
