"""What ``linnet edge`` says."""

from __future__ import annotations

import pytest

from linnet.cli.edge import lines
from linnet.core.errors import ConfigError
from linnet.identity.text import Sort, to_text
from linnet.node.config import NodeConfig
from linnet.node.edge_types import EdgeClientView, EdgeProxyView, EdgeReply, RefusalView
from linnet.node.start_options import Role, StartOptions

DEVICE = to_text(Sort.DEVICE, bytes(32))
PERSON = to_text(Sort.PERSON, bytes(32))


def test_proxies_and_what_they_see_are_told() -> None:
    up = EdgeProxyView("ld1a", (), True, True, 2, (RefusalView("tea", "not_allowed"),), 10, 2048, None)
    spare = EdgeProxyView("ld1b", (), False, False, 0, (), 0, 0, "unreachable")
    told = lines(EdgeReply(True, False, True, (up, spare), ()))
    assert told == [
        "on the edge, asleep",
        "  ld1a  up",
        "    serves 2 streams, keeps 10 bytes of 2.0 kB",
        "    does not serve tea: not_allowed",
        "  ld1b  spare: unreachable",
        "proxies see its address, when it is there, and which streams it wants; nobody else does",
    ]


def test_clients_are_told() -> None:
    client = EdgeClientView("ld1c", True, ("tea",), 10, 2048, 0.0)
    assert lines(EdgeReply(False, True, False, (), (client,))) == [
        "a proxy of 1 client",
        "  ld1c  here",
        "    1 stream, 10 bytes of 2.0 kB kept",
    ]


def test_a_node_that_is_neither_is_told_how_to_become_it() -> None:
    assert "--role proxy" in lines(EdgeReply(False, False, False, (), ()))[0]


def test_the_command_line_makes_a_proxy_and_says_for_whom() -> None:
    made = StartOptions(role=(Role.PROXY,), allow=(DEVICE,)).add_to(NodeConfig())
    assert (made.proxy.enabled, made.proxy.open, made.proxy.allow) == (True, False, (DEVICE,))
    assert not made.relay.enabled
    made = StartOptions(role=(Role.PROXY,), allow=("anyone",)).add_to(NodeConfig())
    assert (made.proxy.open, made.relay) == (True, NodeConfig().relay)
    made = StartOptions(role=(Role.PROXY, Role.RELAY), allow=(DEVICE, PERSON)).add_to(NodeConfig())
    assert (made.proxy.allow, made.relay.allow) == ((DEVICE,), (PERSON,))


def test_the_command_line_names_proxies_before_those_configured() -> None:
    one, two = f"{DEVICE}@h:1", f"{DEVICE}@h:2"
    made = StartOptions(proxy=(two, one)).add_to(StartOptions(proxy=(one,)).add_to(NodeConfig()))
    assert made.edge.proxies == (two, one)
    assert made.listens == ()
    with pytest.raises(ConfigError):
        StartOptions(role=(Role.PROXY,), allow=("anyone",), proxy=(one,)).add_to(NodeConfig())
