"""Where boards are."""

from __future__ import annotations

from linnet.content.attribute_keys import Located, attribute_key, distance
from linnet.content.fast.advertisements import closest, is_near
from linnet.core.ids import Contact, PeerId
from linnet.overlay.kademlia.ids import NodeId

KEY = attribute_key("stock")
PEERS = sorted(
    (PeerId(bytes([number]) * 32) for number in range(1, 12)), key=lambda peer: distance(peer, KEY)
)


class Known:
    """A directory of some."""

    def __init__(self, peers: list[PeerId]) -> None:
        self._peers = peers

    def closest(self, key: NodeId, count: int) -> list[Contact]:
        return [Contact(peer) for peer in sorted(self._peers, key=lambda peer: distance(peer, key))[:count]]


def test_this_node_is_among_the_closest_where_it_belongs() -> None:
    found = Located(KEY, tuple(Contact(peer) for peer in (PEERS[2], PEERS[0])))
    assert [each.peer for each in closest(PEERS[1], found)] == PEERS[:3]
    assert [each.peer for each in closest(PEERS[1], Located(KEY, ()))] == [PEERS[1]]


def test_a_node_is_near_if_it_knows_of_few_that_are_closer() -> None:
    assert is_near(PEERS[7], "stock", Known(PEERS[:7]))
    assert not is_near(PEERS[8], "stock", Known(PEERS[:8]))
    assert is_near(PEERS[0], "stock", Known(PEERS[1:]))
