from __future__ import annotations

from typing import Any

import pytest

from linnet.content.config import ContentConfig, FastConfig
from linnet.core.errors import ConfigError
from linnet.core.ids import AuthorId, Contact, PeerId
from linnet.edge.config import EdgeConfig, ProxyConfig
from linnet.identity.text import Sort, to_text
from linnet.names.config import NamesConfig
from linnet.node.config import (
    ContentSection,
    EdgeSection,
    GroupsSection,
    KademliaSection,
    NamesSection,
    NodeConfig,
    NodeSection,
    ProxySection,
    RelaySection,
    StorageSection,
    StreamSection,
    peer_config,
)
from linnet.node.config import TrackerSection as Tracker
from linnet.node.config_problems import Path, check, check_start, path_text, problems_of
from linnet.overlay.config import MemberConfig
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.peer.config import PeerConfig
from linnet.rooms.config import RelayConfig, RelayPolicy, RoomsConfig
from linnet.streams.config import StorageRule, StreamOptions

PEER = PeerId(bytes(32))
OWN = PeerId(b"o" * 32)
PERSON = to_text(Sort.PERSON, bytes(32))
CONTACT = to_text(Sort.DEVICE, PEER) + "@h:1"
TABLE = KademliaSection(enabled=True)


def told(config: NodeConfig) -> PeerConfig:
    return peer_config(config, OWN, (), "a")


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


def test_a_relay_is_told_whom_to_serve() -> None:
    config = NodeConfig(
        relay=RelaySection(enabled=True, allow=(PERSON,), max_rooms=7), rooms=RoomsConfig(mesh=9)
    )
    check(config)
    made = told(config)
    assert made.relay == RelayConfig(allow=(AuthorId(bytes(32)),), stamp_bits=21, max_rooms=7)
    assert made.rooms == RoomsConfig(mesh=9)
    assert told(NodeConfig()).relay is None


def test_whom_a_relay_serves_is_checked() -> None:
    wrong = NodeConfig(relay=RelaySection(allow=("lp1abc",), policy=RelayPolicy.OPEN, stamp_bits=0))
    with pytest.raises(ConfigError) as caught:
        check(wrong)
    first, second = str(caught.value).splitlines()
    assert first.startswith("relay.allow[0]: this person id has 3 letters")
    assert second.startswith('relay.allow: has no meaning where relay.policy is "open"')
    # Where strangers make a stamp, those who are named need none.
    person = to_text(Sort.PERSON, bytes(32))
    named = NodeConfig(relay=RelaySection(enabled=True, allow=(person,), policy=RelayPolicy.OPEN))
    check(named)
    relay = told(named).relay
    assert relay is not None
    assert (relay.allow, relay.stamp_bits) == ((AuthorId(bytes(32)),), 21)


@pytest.mark.parametrize(
    ("relay", "wide", "problem"),
    [
        (RelaySection(enabled=True, http="127.0.0.1:8470"), False, None),
        (RelaySection(enabled=True, http="https://127.0.0.1:0"), False, None),
        (RelaySection(enabled=True, http="https://192.0.2.1:1"), True, None),
        (RelaySection(enabled=True, http="https://192.0.2.1:1"), False, "set node.listen_wide = true"),
        (RelaySection(enabled=True, http="192.0.2.1:1"), True, "write https://192.0.2.1:1"),
        (RelaySection(enabled=True, http="127.0.0.1"), False, "has no port"),
    ],
)
def test_where_a_relay_answers_over_http(relay: RelaySection, wide: bool, problem: str | None) -> None:
    config = NodeConfig(node=NodeSection(listen_wide=wide), relay=relay)
    if problem is None:
        check(config)
        assert told(config).relay == RelayConfig(stamp_bits=21)
        return
    with pytest.raises(ConfigError, match=problem) as caught:
        check(config)
    assert str(caught.value).startswith("relay.http: ")


def test_the_edge_reaches_the_machine_and_listens_nowhere() -> None:
    config = NodeConfig(edge=EdgeSection(proxies=(CONTACT,), at_once=2))
    check(config)
    assert config.listens == ()
    made = told(config)
    assert made.edge == EdgeConfig(at_once=2, proxies=(Contact(PEER, ("tls://h:1",)),))
    assert made.proxy is None
    assert told(NodeConfig()).edge == EdgeConfig()


def test_a_proxy_serves_whom_it_lists() -> None:
    device = to_text(Sort.DEVICE, PEER)
    config = NodeConfig(proxy=ProxySection(enabled=True, allow=(device,), bytes=5, days=2.0))
    check(config)
    assert told(config).proxy == ProxyConfig(bytes=5, days=2.0, allow=(PEER,))
    with pytest.raises(ConfigError, match=r"proxy\.allow\[0\]: .*\nproxy.allow: has no meaning"):
        check(NodeConfig(proxy=ProxySection(open=True, allow=("nobody",))))


def test_a_node_on_the_edge_has_no_other_role() -> None:
    config = NodeConfig(
        node=NodeSection(trackers=(CONTACT,), listen=("tls://127.0.0.1:7",)),
        edge=EdgeSection(proxies=(CONTACT,)),
        proxy=ProxySection(enabled=True),
        storage=(StorageSection("s"),),
    )
    with pytest.raises(ConfigError) as caught:
        check(config)
    assert [line.partition(":")[0] for line in str(caught.value).splitlines()] == [
        "node.listen",
        "node.trackers",
        "proxy.enabled",
        "storage",
    ]


def test_a_relay_over_http_that_no_role_turns_on_is_told_when_the_node_starts() -> None:
    config = NodeConfig(relay=RelaySection(http="127.0.0.1:8470"))
    check(config)
    with pytest.raises(ConfigError, match="linnet up --role relay"):
        check_start(config)
    check_start(NodeConfig(relay=RelaySection(enabled=True, http="127.0.0.1:8470")))


def another(default: float | str) -> Any:  # noqa: ANN401 (of the type of whatever field it is for)
    """Not the default."""
    if isinstance(default, bool):
        return not default
    return default + "x" if isinstance(default, str) else default + 1


def test_content_is_off_unless_it_is_on_and_every_parameter_reaches_the_machine() -> None:
    assert told(NodeConfig(content=ContentSection(tries=2))).content is None
    for name in ContentConfig.__struct_fields__:
        value = another(getattr(ContentConfig(), name))
        section = ContentSection(enabled=True, **{name: value})
        assert getattr(told(NodeConfig(kademlia=TABLE, content=section)).content, name) == value, name
    for name in FastConfig.__struct_fields__:
        value = another(getattr(FastConfig(), name))
        config = NodeConfig(content_groups=GroupsSection(**{name: value}))
        assert getattr(told(config).fast, name) == value, name
    assert {*ContentConfig.__struct_fields__} == {*ContentSection.__struct_fields__} - {"enabled"}


def test_the_hash_table_is_off_unless_it_is_on() -> None:
    assert told(NodeConfig(kademlia=KademliaSection(k=4))).kademlia is None
    made = told(NodeConfig(kademlia=KademliaSection(enabled=True, bootstrap=(CONTACT,), k=4)))
    assert (made.kademlia, made.kademlia_bootstrap) == (KademliaConfig(k=4), (Contact(PEER, ("tls://h:1",)),))


def test_the_stores_of_names_reach_the_machine() -> None:
    assert told(NodeConfig()).names == NamesConfig()
    made = told(NodeConfig(names=NamesSection(stores=(CONTACT,), serve=False, copies=3)))
    assert made.names == NamesConfig(stores=(Contact(PEER, ("tls://h:1",)),), serve=False, copies=3)


ON_EDGE = EdgeSection(proxies=(CONTACT,))


@pytest.mark.parametrize(
    ("config", "problem"),
    [
        (NodeConfig(content=ContentSection(enabled=True)), "content.enabled: needs the hash table, "),
        (
            NodeConfig(content=ContentSection(enabled=True), edge=ON_EDGE),
            "content.enabled: has no meaning on",
        ),
        (NodeConfig(kademlia=TABLE, edge=ON_EDGE), "kademlia.enabled: has no meaning on the edge"),
        (
            NodeConfig(kademlia=KademliaSection(bootstrap=("nowhere",))),
            "kademlia.bootstrap[0]: 'nowhere' has no address",
        ),
        (
            NodeConfig(names=NamesSection(stores=(CONTACT, "nowhere"))),
            "names.stores[1]: 'nowhere' has no address",
        ),
        (NodeConfig(content=ContentSection(enabled=True), kademlia=TABLE), None),
    ],
)
def test_what_is_wrong_with_a_section_is_told(config: NodeConfig, problem: str | None) -> None:
    if problem is None:
        check(config)
        return
    with pytest.raises(ConfigError) as caught:
        check(config)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (("node", "listen", 0), "node.listen[0]"),
        (("streams", "a b", "degree"), 'streams."a b".degree'),
        (("storage", 2, "quota"), "storage[2].quota"),
    ],
)
def test_a_path_is_written_as_in_the_file(path: Path, text: str) -> None:
    assert path_text(path) == text


def test_all_that_is_wrong_is_told_at_once() -> None:
    twice = (StorageSection("weather"), StorageSection("weather"))
    found = problems_of(NodeConfig(node=NodeSection(bootstrap=("nobody",)), storage=twice))
    assert [path_text(problem.path) for problem in found] == ["node.bootstrap[0]", "storage[1].stream"]
