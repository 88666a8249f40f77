"""Names in the configuration."""

from __future__ import annotations

import pytest

from linnet.core.errors import ConfigError
from linnet.core.ids import PeerId
from linnet.identity.text import Sort, to_text
from linnet.names.config import NamesConfig
from linnet.node.addresses import parse_contact
from linnet.node.config import NodeConfig
from linnet.node.config_problems import check
from linnet.node.names_section import NamesSection, names_config, names_problems
from linnet.node.peer_settings import peer_config

STORE = f"{to_text(Sort.DEVICE, b's' * 32)}@192.0.2.7:7700"


def test_what_is_configured_is_what_the_machine_is_told() -> None:
    assert names_config(NamesSection()) == NamesConfig()
    section = NamesSection(stores=(STORE,), serve=False, copies=3)
    told = NamesConfig(stores=(parse_contact(STORE),), serve=False, copies=3)
    assert names_config(section) == told
    config = NodeConfig(names=section)
    assert peer_config(config, PeerId(b"p" * 32), (), "test").names == told


def test_a_store_that_is_no_address_is_told() -> None:
    section = NamesSection(stores=(STORE, "nowhere"))
    [problem] = names_problems(section)
    assert problem.path == ("names", "stores", 1)
    with pytest.raises(ConfigError, match=r"names.stores\[1\]: 'nowhere' has no address"):
        check(NodeConfig(names=section))
