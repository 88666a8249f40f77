"""Devices that have proxies and share a local network: what they say there, and what reaches the core."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.edge.coast import Coast, Watched
from tests.streams.village import STREAM

from linnet.core.inputs import Received
from linnet.core.reasons import Reason
from linnet.edge.announcement import CORE
from linnet.edge.commands import AllowOnNetwork
from linnet.machine.commands import Declined, Done
from linnet.overlay.gossip.messages import IntersectEnd, Pull
from linnet.overlay.gossip.part import GossipOverlay
from linnet.peer.interface import Connect
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind, Record

TOPIC = topic_of(STREAM)
SEEDS = range(50 if SOAK else 2)


def at_home(coast: Coast, *names: str, allowed: tuple[str, ...] = ()) -> bytes:
    """Put devices on one local network, and let those speak of the stream there who may."""
    home = coast.network.lan("home", [coast.peer(name) for name in names])
    coast.run(0.1)
    for name in allowed:
        assert coast.ask(name, AllowOnNetwork(TOPIC, home, True), wait=0.1) == Done()
    return home


@pytest.mark.parametrize("seed", SEEDS)
def test_two_on_one_network_talk_directly_though_their_proxies_are_gone(seed: int) -> None:
    coast = Coast("q0", "m0", "m1", seed=seed, lan=True)
    at_home(coast, "m0", "m1", allowed=("m0", "m1"))
    mine = coast.subscribe("m0", name="app", since=0.0)
    theirs = coast.subscribe("m1", name="app", since=0.0, wait=30.0)
    assert coast.met["m0"] == {"q0", "m1"}
    coast.crash("q0")
    coast.publish("m0", "one", wait=0.05)
    assert coast.bodies("m1", theirs) == ["one"]
    coast.publish("m1", "two", wait=0.05)
    assert coast.bodies("m0", mine) == ["one", "two"]
    assert coast.missed("m0", mine) == coast.missed("m1", theirs) == []


@pytest.mark.parametrize("seed", SEEDS)
def test_what_the_local_network_said_reaches_the_core_through_whoever_has_a_proxy(seed: int) -> None:
    """The proxy of one of two is out of reach all the time; the other's comes back later."""
    coast = Coast("p0", "q0", "q1", "m0", "m1", seed=seed, lan=True, behind=("q0",))
    coast.crash("q1", "m1")
    coast.behind = ("q1",)
    coast.restart("m1")
    at_home(coast, "m0", "m1", allowed=("m0", "m1"))
    core = coast.subscribe("p0", name="app", since=0.0)
    mine = coast.subscribe("m0", name="app", since=0.0)
    theirs = coast.subscribe("m1", name="app", since=0.0, wait=30.0)
    coast.publish("m1", "through a friend", wait=2.0)
    assert coast.bodies("p0", core) == ["through a friend"]
    coast.crash("q0")
    coast.publish("m1", "while", "offline", wait=2.0)
    coast.publish("p0", "in the core", wait=2.0)
    assert coast.bodies("m0", mine) == ["through a friend", "while", "offline"]
    coast.restart("q0")
    coast.run(60.0)
    everything = ["in the core", "offline", "through a friend", "while"]
    for name, subscription in (("p0", core), ("m0", mine), ("m1", theirs)):
        assert sorted(coast.bodies(name, subscription)) == everything
        assert coast.missed(name, subscription) == []
    assert coast.met["m1"] == {"m0"}


def test_nothing_is_said_where_it_was_not_allowed() -> None:
    coast = Coast("q0", "m0", "m1", lan=True)
    at_home(coast, "m0", "m1", allowed=("m0",))
    coast.subscribe("m0", name="app")
    coast.subscribe("m1", name="app", wait=60.0)
    assert coast.met["m0"] == coast.met["m1"] == {"q0"}


def test_of_two_streams_the_one_that_is_allowed_is_shared_there_and_the_other_is_not() -> None:
    coast = Coast("q0", "m0", "m1", lan=True)
    at_home(coast, "m0", "m1", allowed=("m0", "m1"))
    for stream in (STREAM, "secret"):
        coast.subscribe("m0", stream, name="app")
        coast.subscribe("m1", stream, name="app", wait=30.0)
    coast.crash("q0")
    coast.publish("m0", "one", wait=0.1)
    coast.publish("m0", "two", stream="secret", wait=20.0)
    assert coast.bodies("m1", 2) == ["one"]
    assert coast.bodies("m1", 4) == []


def test_when_it_is_allowed_no_longer_the_stream_goes_through_proxies_alone() -> None:
    coast = Coast("q0", "m0", "m1", lan=True)
    home = at_home(coast, "m0", "m1", allowed=("m0", "m1"))
    coast.subscribe("m0", name="app")
    theirs = coast.subscribe("m1", name="app", wait=30.0)
    coast.ask("m0", AllowOnNetwork(TOPIC, home, False), wait=0.2)
    begin = coast.network.now
    coast.run(60.0)
    coast.publish("m0", "one", wait=2.0)
    assert coast.bodies("m1", theirs) == ["one"]
    said = {what for origin, _, what, _ in coast.said(begin, "m0", "m1") if origin == "m0"}
    assert said <= {"Ping", "Pong", "Needed"}, "the other still allows it, and holds the link"


def test_a_stream_that_is_kept_from_the_internet_is_asked_of_no_proxy() -> None:
    coast = Coast("p0", "q0", "m0", "m1", lan=True)
    for name in ("m0", "m1"):
        assert coast.ask(name, AllowOnNetwork(TOPIC, CORE, False)) == Done()
    coast.crash("m0")
    coast.restart("m0")  # the switch is kept
    at_home(coast, "m0", "m1", allowed=("m0", "m1"))
    core = coast.subscribe("p0", name="app", since=0.0)
    mine = coast.subscribe("m0", name="app")
    theirs = coast.subscribe("m1", name="app", wait=30.0)
    coast.publish("m0", "at home", wait=30.0)
    assert coast.bodies("m1", theirs) == ["at home"] == coast.bodies("m0", mine)
    assert coast.bodies("p0", core) == []
    assert "Serve" not in {what for *_, what, _ in coast.said(0.0, "m0", "m1", "q0")}
    coast.ask("m0", AllowOnNetwork(TOPIC, CORE, True), wait=30.0)
    assert coast.bodies("p0", core) == ["at home"]


def test_beside_proxies_none_but_those_on_the_network_are_dialled_and_only_there() -> None:
    """A laptop on the network has an address in the internet, which a mobile leaves alone, also later."""
    coast = Coast("p0", "q0", "m0", "m1", lan=True)
    at_home(coast, "m0", "m1", allowed=("m0", "m1"))
    coast.subscribe("m0", name="app")
    coast.subscribe("m1", name="app", wait=30.0)
    answer = coast.ask("m0", Connect(coast.contact("p0")))
    assert isinstance(answer, Declined)
    assert coast.ask("m0", Connect(coast.contact("m1"))) == Done()
    coast.network.lan("home", [coast.peer("m0")])
    coast.run(120.0)
    assert coast.network.linked(coast.peer("m0")) == [coast.peer("q0")]
    assert coast.met["m0"] == {"q0", "m1"}


def test_a_proxy_is_told_nothing_by_gossip() -> None:
    coast = Coast("q0", "m0", lan=True)
    at_home(coast, "m0", allowed=("m0",))
    coast.subscribe("m0", wait=5.0)
    mobile = coast.network.machine(coast.peer("m0"))
    assert isinstance(mobile, Watched)
    without = mobile.machine._parts.overlays.trackerless
    assert isinstance(without, GossipOverlay)
    pull = Pull(1, without.peers.own_profile(coast.network.now).plain)
    proxy = coast.peer("q0")
    effects = mobile.handle(Received(proxy, pull), coast.network.now)
    note = "Pull: nothing but streams is spoken of with a proxy"
    assert effects == [Record(Kind.REJECTED, peer=proxy, reason=Reason.NOT_ALLOWED, note=note)]


def test_nor_by_a_device_that_is_in_no_overlay_at_all() -> None:
    coast = Coast("q0", "m0")
    coast.subscribe("m0", wait=5.0)
    mobile = coast.network.machine(coast.peer("m0"))
    assert isinstance(mobile, Watched)
    assert mobile.machine._parts.trackerless is None
    proxy, now = coast.peer("q0"), coast.network.now
    (record,) = mobile.handle(Received(proxy, IntersectEnd(bytes(16), ())), now)
    assert isinstance(record, Record)
    assert (record.peer, record.reason) == (proxy, Reason.NOT_ALLOWED)
    assert mobile.handle(Received(coast.peer("m0"), IntersectEnd(bytes(16), ())), now) == []
