"""Content in the configuration."""

from __future__ import annotations

from typing import Any

import pytest

from linnet.content.config import ContentConfig
from linnet.content.fast.config import FastConfig
from linnet.core.errors import ConfigError
from linnet.core.ids import PeerId
from linnet.identity.text import Sort, to_text
from linnet.node.config import EdgeSection, NodeConfig
from linnet.node.config_problems import check
from linnet.node.content_section import ContentSection, GroupsSection, content_config, groups_config
from linnet.node.kademlia_section import KademliaSection
from linnet.node.peer_settings import peer_config

PROXY = f"{to_text(Sort.DEVICE, b'f' * 32)}@192.0.2.7:7700"
TABLE = KademliaSection(enabled=True)


def another(default: float | str) -> Any:  # noqa: ANN401 (of the type of whatever field it is for)
    """Not the default."""
    if isinstance(default, bool):
        return not default
    return default + "x" if isinstance(default, str) else default + 1


def test_it_is_off_unless_it_is_on_and_every_parameter_reaches_the_machine() -> None:
    assert content_config(ContentSection(tries=2)) is None
    assert peer_config(NodeConfig(), PeerId(b"p" * 32), (), "test").content is None
    told = peer_config(
        NodeConfig(kademlia=TABLE, content=ContentSection(enabled=True, tries=2)), PeerId(b"p" * 32), (), ""
    )
    assert told.content == ContentConfig(tries=2)
    for name in ContentConfig.__struct_fields__:
        value = another(getattr(ContentConfig(), name))
        assert getattr(content_config(ContentSection(enabled=True, **{name: value})), name) == value, name
    for name in FastConfig.__struct_fields__:
        value = another(getattr(FastConfig(), name))
        assert getattr(groups_config(GroupsSection(**{name: value})), name) == value, name
    assert {*ContentConfig.__struct_fields__} == {*ContentSection.__struct_fields__} - {"enabled"}


def test_what_is_wrong_is_told() -> None:
    on = ContentSection(enabled=True)
    with pytest.raises(ConfigError, match=r"content.enabled: needs the hash table.* kademlia.enabled = true"):
        check(NodeConfig(content=on))
    edge = NodeConfig(content=on, edge=EdgeSection(proxies=(PROXY,)))
    with pytest.raises(ConfigError, match=r"content.enabled: has no meaning on the edge"):
        check(edge)
    check(NodeConfig(content=on, kademlia=TABLE))
