"""Content in the configuration."""

from __future__ import annotations

import pytest

from linnet.content.config import ContentConfig
from linnet.core.errors import ConfigError
from linnet.core.ids import PeerId
from linnet.identity.text import Sort, to_text
from linnet.node.config import EdgeSection, NodeConfig
from linnet.node.config_problems import check
from linnet.node.content_section import ContentSection, content_config
from linnet.node.kademlia_section import KademliaSection
from linnet.node.peer_settings import peer_config

PROXY = f"{to_text(Sort.DEVICE, b'f' * 32)}@192.0.2.7:7700"
TABLE = KademliaSection(enabled=True)


def test_it_is_off_unless_it_is_on_and_every_parameter_reaches_the_machine() -> None:
    assert content_config(ContentSection(tries=2)) is None
    assert peer_config(NodeConfig(), PeerId(b"p" * 32), (), "test").content is None
    told = peer_config(
        NodeConfig(kademlia=TABLE, content=ContentSection(enabled=True, tries=2)), PeerId(b"p" * 32), (), ""
    )
    assert told.content == ContentConfig(tries=2)
    assert {*ContentConfig.__struct_fields__} == {*ContentSection.__struct_fields__} - {"enabled"}


def test_what_is_wrong_is_told() -> None:
    on = ContentSection(enabled=True)
    with pytest.raises(ConfigError, match=r"content.enabled: needs the hash table.* kademlia.enabled = true"):
        check(NodeConfig(content=on))
    edge = NodeConfig(content=on, edge=EdgeSection(proxies=(PROXY,)))
    with pytest.raises(ConfigError, match=r"content.enabled: has no meaning on the edge"):
        check(edge)
    check(NodeConfig(content=on, kademlia=TABLE))
