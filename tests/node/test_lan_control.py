"""How local networks are told over the control API; by their commands they are asked in tests/cli/lan."""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.edge.commands import LanStatus, NetworkStatus
from linnet.identity.text import Sort, from_text
from linnet.node.lan_control import lan_view


def test_ids_are_told_as_text() -> None:
    contact = Contact(PeerId(b"p" * 32), ("lan://x@10.0.0.1:1",))
    status = NetworkStatus(b"n" * 32, "home", True, True, (TopicId(b"t" * 32),), 3, (contact,))
    view = lan_view(LanStatus((status,)))
    assert view.enabled
    [network] = view.networks
    assert (network.network, network.name, network.heard) == (b"n".hex() * 32, "home", 3)
    assert [from_text(Sort.TOPIC, topic) for topic in network.topics] == [b"t" * 32]
    [peer] = network.peers
    assert from_text(Sort.DEVICE, peer.device) == contact.peer
    assert peer.hints == contact.hints
