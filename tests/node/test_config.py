from __future__ import annotations

import pytest

from linnet.core.errors import ConfigError
from linnet.core.ids import Contact, PeerId
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig, NodeSection, StorageSection, StreamSection, check, peer_config
from linnet.node.config import TrackerSection as Tracker
from linnet.overlay.config import MemberConfig
from linnet.peer.config import PeerConfig
from linnet.streams.options import StorageRule, StreamOptions

PEER = PeerId(bytes(32))
OWN = PeerId(b"o" * 32)
CONTACT = to_text(Sort.DEVICE, PEER) + "@h:1"


def test_a_configuration_made_in_code_is_checked_alike() -> None:
    config = NodeConfig(node=NodeSection(listen=("0.0.0.0:1",), trackers=("nonsense",)))
    with pytest.raises(ConfigError) as caught:
        check(config)
    first, second = str(caught.value).splitlines()
    assert first.startswith("node.listen[0]: '0.0.0.0:1' can be reached from other machines")
    assert second.startswith("node.trackers[0]: 'nonsense' has no address")


def test_every_part_reaches_the_machine() -> None:
    config = NodeConfig(
        node=NodeSection(trackers=(CONTACT,)),
        tracker=Tracker(enabled=True, grace=1.0),
        storage=(StorageSection("s", 5.0, 6),),
        streams={"s": StreamSection(8, True, (CONTACT,))},
        overlay=MemberConfig(retry_period=3.0),
    )
    contact = Contact(PEER, ("tls://h:1",))
    made = peer_config(config, OWN, ("tls://127.0.0.1:9",), "linnet test")
    assert made == PeerConfig(
        listens=("tls://127.0.0.1:9",),
        trackers=(contact, Contact(OWN, ("tls://127.0.0.1:9",))),
        is_tracker=True,
        storage=(StorageRule("s", 5.0, 6),),
        streams={"s": StreamOptions(8, True, (contact,))},
        agent="linnet test",
        member=MemberConfig(retry_period=3.0),
        tracker=config.tracker,
    )
    assert made.tracker.grace == 1.0


def test_advertised_addresses_stand_instead_of_bound_ones() -> None:
    config = NodeConfig(node=NodeSection(advertise=("wss://a:1",)))
    assert peer_config(config, OWN, ("tls://127.0.0.1:9",), "").listens == ("wss://a:1",)
