"""``linnet edge`` and ``linnet lan``: words, and two nodes with the loopback as their local network."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.cli.shell import Linnet

from linnet.api.errors import ControlError
from linnet.cli.edge import allow_topic, deny_topic, edge_lines, network_lines, show_networks
from linnet.cli.running_node import Session
from linnet.core.errors import BadText, ConfigError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.edge.commands import ClientStatus, EdgeStatus, MetPeer, NetworkStatus, ProxyStatus, Refusal
from linnet.identity.text import Sort, device_text, to_text, topic_text
from linnet.net.interfaces import LOOPBACK, interfaces
from linnet.node.config import NodeConfig
from linnet.node.start_options import Role, StartOptions

DEVICE = to_text(Sort.DEVICE, bytes(32))


A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


PERSON = to_text(Sort.PERSON, bytes(32))


def test_proxies_and_what_they_see_are_told() -> None:
    up = ProxyStatus(A, (), True, True, 2, (Refusal("tea", Reason.NOT_ALLOWED),), 10, 2048, None)
    spare = ProxyStatus(B, (), False, False, 0, (), 0, 0, Reason.UNREACHABLE)
    told = edge_lines(EdgeStatus(True, False, True, (up, spare), ()))
    assert told == [
        "on the edge, asleep",
        f"  {device_text(A)}  up",
        "    serves 2 streams, keeps 10 bytes of 2.0 kB",
        "    does not serve tea: not_allowed",
        f"  {device_text(B)}  spare: unreachable",
        "proxies see its address, when it is there, and which streams it wants; nobody else does",
    ]


def test_clients_are_told() -> None:
    client = ClientStatus(A, True, ("tea",), 10, 2048, 0.0)
    assert edge_lines(EdgeStatus(False, True, False, (), (client,))) == [
        "a proxy of 1 client",
        f"  {device_text(A)}  here",
        "    1 stream, 10 bytes of 2.0 kB kept",
    ]


def test_a_node_that_is_neither_is_told_how_to_become_it() -> None:
    assert "--role proxy" in edge_lines(EdgeStatus(False, False, False, (), ()))[0]


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


ID = bytes.fromhex("3fa0c2d1" + "0" * 56)


X, Y = TopicId(b"x" * 32), PeerId(b"y" * 32)


@pytest.mark.parametrize(
    ("network", "lines"),
    [
        (
            NetworkStatus(ID, "eth0 10.0.0.0/8", True, False, (), 0, ()),
            [
                "3fa0c2d1  eth0 10.0.0.0/8: here, and silent",
                "  nothing is allowed here, so this device does not show itself: linnet lan allow TOPIC",
            ],
        ),
        (
            NetworkStatus(ID, "home", True, True, (X,), 2, (MetPeer(Y, ()),)),
            [
                "3fa0c2d1  home: here, and seen",
                f"  allowed: {topic_text(X)}",
                "  1 device met, 2 heard",
                f"  {device_text(Y)}",
            ],
        ),
        (
            NetworkStatus(ID, "", False, False, (X,), 0, ()),
            ["3fa0c2d1  a network not seen lately: elsewhere", f"  allowed: {topic_text(X)}"],
        ),
    ],
    ids=["silent", "seen", "elsewhere"],
)
def test_what_is_told(network: NetworkStatus, lines: list[str]) -> None:
    assert list(network_lines(network)) == lines


LIMIT = 30.0


NAME = next(each.name for each in interfaces() if each.flags & LOOPBACK)


@contextmanager
def up(home: Path, lan: bool = True) -> Iterator[str]:
    """A running node that watches the loopback; gives its device key."""
    shell = Linnet(home)
    device = shell.json("init")["device"]
    file = home / "linnet.toml"
    if lan:
        file.write_text(f'{file.read_text()}\n[lan]\nenabled = true\ninterfaces = ["{NAME}"]\n')
    with shell.up():
        yield str(device)


class Typed:
    """Commands that are typed, and what they print."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def status(self, home: Path) -> Any:  # noqa: ANN401 - JSON is
        self._capsys.readouterr()
        show_networks(Session(home, as_json=True))
        return json.loads(self._capsys.readouterr().out)

    def text(self, home: Path) -> str:
        self._capsys.readouterr()
        show_networks(Session(home))
        return self._capsys.readouterr().out


def test_topics_are_allowed_and_denied_and_devices_find_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = Typed(capsys)
    one, two = tmp_path / "one", tmp_path / "two"
    with up(one) as _, up(two) as device:
        assert "nothing is allowed here" in typed.text(one)
        [network] = typed.status(one)["networks"]
        assert (network["here"], network["announced"], network["topics"]) == (True, False, [])
        for home in (one, two):
            allow_topic("weather", session=Session(home))
        end = time.monotonic() + LIMIT
        while device not in typed.text(one):
            assert time.monotonic() < end, typed.status(one)
        [network] = typed.status(one)["networks"]
        assert network["announced"]
        assert [peer["device"] for peer in network["peers"]] == [device]
        assert "1 device met" in typed.text(one)
        deny_topic("weather", network["network"][:6], session=Session(one))
        [network] = typed.status(one)["networks"]
        assert (network["announced"], network["peers"], network["topics"]) == (False, [], [])
        with pytest.raises(BadText, match="no network that is known here"):
            allow_topic("weather", "zz", session=Session(one))
        capsys.readouterr()
        allow_topic(network_topic(typed, two), session=Session(one, as_json=True))
        assert json.loads(capsys.readouterr().out)["topics"] == [network_topic(typed, two)]


def network_topic(typed: Typed, home: Path) -> str:
    """The id of the one topic that is allowed at a node."""
    [network] = typed.status(home)["networks"]
    [topic] = network["topics"]
    return str(topic)


def test_a_node_that_leaves_local_networks_alone_says_how_to_change_that(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    typed = Typed(capsys)
    with up(tmp_path / "one", lan=False):
        assert "set enabled = true under [lan]" in typed.text(tmp_path / "one")
        assert typed.status(tmp_path / "one") == {"enabled": False, "networks": []}
        with pytest.raises(ControlError, match="enabled = false"):
            allow_topic("weather", session=Session(tmp_path / "one"))
