"""The hash table over the network in the configuration."""

from __future__ import annotations

import pytest

from linnet.core.errors import ConfigError
from linnet.core.ids import PeerId
from linnet.identity.text import Sort, to_text
from linnet.node.addresses import parse_contact
from linnet.node.config import EdgeSection, NodeConfig
from linnet.node.config_problems import check
from linnet.node.kademlia_section import KademliaSection, kademlia_config
from linnet.node.peer_settings import peer_config
from linnet.overlay.kademlia.config import KademliaConfig

FIRST = f"{to_text(Sort.DEVICE, b'f' * 32)}@192.0.2.7:7700"


def test_it_is_off_unless_it_is_on() -> None:
    assert kademlia_config(KademliaSection(k=4)) is None
    assert peer_config(NodeConfig(), PeerId(b"p" * 32), (), "test").kademlia is None
    section = KademliaSection(enabled=True, bootstrap=(FIRST,), k=4)
    told = peer_config(NodeConfig(kademlia=section), PeerId(b"p" * 32), (), "test")
    assert (told.kademlia, told.kademlia_bootstrap) == (KademliaConfig(k=4), (parse_contact(FIRST),))


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(ConfigError, match=r"kademlia.bootstrap\[0\]: 'nowhere' has no address"):
        check(NodeConfig(kademlia=KademliaSection(bootstrap=("nowhere",))))
    edge = NodeConfig(kademlia=KademliaSection(enabled=True), edge=EdgeSection(proxies=(FIRST,)))
    with pytest.raises(ConfigError, match=r"kademlia.enabled: has no meaning on the edge"):
        check(edge)
