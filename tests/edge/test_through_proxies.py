"""Mobiles that take part through proxies, with real machines on a simulated network."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.edge.coast import Coast
from tests.streams.village import STREAM

from linnet.core.reasons import Reason
from linnet.delivery.commands import Unsubscribe
from linnet.edge.commands import Sleep, Wake
from linnet.edge.config import EdgeConfig, ProxyConfig
from linnet.machine.commands import Declined
from linnet.peer.interface import Connect
from linnet.streams.commands import Published, Subscribe
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind

SEEDS = range(200 if SOAK else 4)


def test_a_mobile_takes_part_over_one_link_to_its_proxy() -> None:
    coast = Coast("p0", "p1", "q0", "q1", "m0")
    mine = coast.subscribe("m0", name="app", since=0.0, wait=2.0)
    theirs = coast.subscribe("p1", wait=2.0)
    coast.publish("p0", "one", "two", wait=2.0)
    coast.publish("m0", "three", wait=2.0)
    assert coast.bodies("m0", mine) == ["one", "two", "three"]
    assert coast.bodies("p1", theirs) == ["one", "two", "three"]
    assert coast.met["m0"] == {"q0"}
    assert [peer.dialed for peer in coast.status("m0").peers] == [True]
    assert coast.status("m0").listens == ()


def test_a_mobile_whose_proxy_tells_it_in_vain_is_told_again() -> None:
    """A mobile hears from its proxy alone: if one message is lost, nobody else makes up for it."""
    coast = Coast("p0", "p1", "q0", "m0")
    coast.subscribe("p1", name="app", since=0.0)
    mine = coast.subscribe("m0", name="app", since=0.0, wait=20.0)
    coast.publish("p0", "one", wait=30.0)
    parts = [[coast.peer(name) for name in names] for names in (("t0", "p0", "p1"), ("q0", "m0"))]
    coast.network.partition(parts)
    coast.publish("p0", "two", wait=5.0)
    coast.crash("p0")
    coast.network.heal()
    while not any(head.last for head in coast.stores["q0"].log.heads(topic_of(STREAM))):
        coast.run(0.01)
    assert coast.bodies("m0", mine) == ["one"]
    # The proxy has it from p1, which had it live; it tells the mobile once, and that is lost.
    coast.network.lose(1.0)
    coast.run(6.0)
    coast.network.lose(0.0)
    coast.run(60.0)
    assert coast.bodies("m0", mine) == ["one", "two"]


def test_what_was_said_while_a_mobile_slept_is_there_when_it_wakes() -> None:
    coast = Coast("p0", "q0", "m0")
    mine = coast.subscribe("m0", wait=2.0)
    coast.ask("m0", Sleep())
    assert coast.edge("m0").asleep
    assert [peer.up for peer in coast.status("m0").peers] == [False]
    coast.publish("p0", *(f"{number}" for number in range(20)), wait=300.0)
    coast.publish("p0", "late", wait=1.0)
    coast.crash("p0")
    assert coast.bodies("m0", mine) == []
    coast.ask("m0", Wake(), wait=3.0)
    assert coast.bodies("m0", mine) == [*(f"{number}" for number in range(20)), "late"]
    assert coast.missed("m0", mine) == []


def test_waking_where_there_is_nothing_new_is_one_question_and_one_answer() -> None:
    coast = Coast("p0", "p1", "q0", "m0")
    streams = [f"stream {number}" for number in range(8)]
    for stream in streams:
        coast.subscribe("m0", stream, wait=0.5)
        coast.publish("p0", "a", stream=stream, wait=0.2)
        coast.publish("p1", "b", stream=stream, wait=0.2)
    coast.publish("m0", "mine", stream=streams[0], wait=5.0)
    coast.ask("m0", Sleep(), wait=60.0)
    begin = coast.network.now
    coast.ask("m0", Wake(), wait=0.05)  # two round trips of a link: it is opened, and used once
    coast.run(4.0)
    said = coast.said(begin, "m0", "q0")
    link = ("Ping", "Pong", "Needed")
    assert [(origin, what) for origin, _, what, _ in said if what not in link] == [
        ("m0", "Serve"),
        ("q0", "Served"),
    ]
    assert sum(size for *_, what, size in said if what not in link) < 400
    assert len(said) <= 7


def test_a_mobile_asleep_keeps_what_it_says_until_it_wakes() -> None:
    coast = Coast("p0", "q0", "m0")
    theirs = coast.subscribe("p0", wait=2.0)
    coast.ask("m0", Sleep())
    said = coast.publish("m0", "one")
    assert isinstance(said, Published)
    assert said.neighbors == 0
    coast.run(300.0)  # far longer than a node stays in a stream that it only published to
    assert coast.bodies("p0", theirs) == []
    coast.ask("m0", Wake(), wait=3.0)
    assert coast.bodies("p0", theirs) == ["one"]


def test_what_was_said_offline_goes_out_after_a_restart_too() -> None:
    coast = Coast("p0", "q0", "m0")
    theirs = coast.subscribe("p0", wait=2.0)
    coast.crash("q0")
    coast.publish("m0", "one", "two", wait=100.0)
    coast.crash("m0")
    coast.restart("m0", "q0")
    coast.run(15.0)
    assert coast.bodies("p0", theirs) == ["one", "two"]
    coast.run(200.0)
    assert not coast.status("m0").streams


@pytest.mark.parametrize("seed", SEEDS)
def test_a_proxy_that_dies_in_mid_stream_is_changed_for_another_without_loss(seed: int) -> None:
    coast = Coast("p0", "p1", "q0", "q1", "m0", seed=seed, loss=0.03, commit_delay=0.02)
    before = coast.identity["m0"]
    mine = coast.subscribe("m0", name="app", since=0.0, wait=3.0)
    theirs = coast.subscribe("p1", name="app", since=0.0, wait=3.0)
    sent = []
    for number in range(30):
        author = "m0" if number % 5 == 4 else "p0"
        sent.append(f"{author} {number}")
        coast.publish(author, sent[-1], wait=0.3)
        if number == 12:
            coast.crash("q0", silent=bool(seed % 2))
    coast.run(120.0)
    for name, subscription in (("m0", mine), ("p1", theirs)):
        heard = coast.bodies(name, subscription)
        assert sorted(heard) == sorted(sent)
        for author in ("m0", "p0"):
            assert [each for each in heard if each.startswith(author)] == [
                each for each in sent if each.startswith(author)
            ]
        assert coast.missed(name, subscription) == []
    assert coast.met["m0"] == {"q0", "q1"}
    assert coast.identity["m0"] == before
    assert [proxy.up for proxy in coast.edge("m0").proxies] == [False, True]


@pytest.mark.parametrize("seed", SEEDS)
def test_two_proxies_at_once_and_either_may_crash_and_return(seed: int) -> None:
    coast = Coast(
        "p0", "q0", "q1", "m0", "m1", seed=seed, loss=0.03, commit_delay=0.02, edge=EdgeConfig(at_once=2)
    )
    mine = coast.subscribe("m0", name="app", since=0.0, wait=3.0)
    others = coast.subscribe("m1", wait=3.0)
    sent = []
    for number in range(40):
        author = ("p0", "m0", "m1")[number % 3]
        sent.append(f"{author} {number}")
        coast.publish(author, sent[-1], wait=0.3)
        if number in (8, 24):
            coast.crash("q0" if number == 8 else "q1")
        if number in (16, 32):
            coast.restart("q0" if number == 16 else "q1")
    coast.run(120.0)
    assert sorted(coast.bodies("m0", mine)) == sorted(sent)
    assert sorted(coast.bodies("m1", others)) == sorted(sent)
    assert coast.missed("m0", mine) == coast.missed("m1", others) == []
    assert [proxy.served for proxy in coast.edge("m0").proxies] == [1, 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_a_mobile_that_crashes_sleeps_and_returns_loses_nothing(seed: int) -> None:
    coast = Coast("p0", "q0", "q1", "m0", seed=seed, loss=0.02, commit_delay=0.02)
    first = coast.subscribe("m0", name="app", since=0.0, wait=3.0)
    sent = [f"{number}" for number in range(40)]
    subscriptions = [first]
    for number, body in enumerate(sent):
        coast.publish("p0", body, wait=0.4)
        if number == 10:
            coast.ask("m0", Sleep(), wait=0.1)
        if number == 20:
            coast.ask("m0", Wake(), wait=0.1)
        if number == 25:
            coast.crash("m0")
        if number == 32:
            coast.crash("q0")
            coast.restart("m0")
            subscriptions.append(coast.subscribe("m0", name="app", since=0.0))
    coast.run(120.0)
    handed = [coast.bodies("m0", each) for each in subscriptions]
    # What was handed over and not confirmed as handled before the crash comes again; nothing else does.
    assert handed[0] + handed[1][len(set(handed[0]) & set(handed[1])) :] == sent
    assert all(coast.missed("m0", each) == [] for each in subscriptions)


def test_a_proxy_that_restarts_goes_on_serving_who_is_away() -> None:
    coast = Coast("p0", "q0", "m0")
    mine = coast.subscribe("m0", name="app", wait=2.0)
    coast.ask("m0", Sleep())
    coast.crash("q0")
    coast.restart("q0")
    coast.publish("p0", "one", "two", wait=5.0)
    coast.crash("p0")
    assert [client.streams for client in coast.edge("q0").clients] == [(STREAM,)]
    coast.ask("m0", Wake(), wait=3.0)
    assert coast.bodies("m0", mine) == ["one", "two"]


def test_clients_of_a_proxy_share_one_membership() -> None:
    coast = Coast("p0", "q0", "m0", "m1", "m2")
    numbers = {name: coast.subscribe(name, wait=1.0) for name in ("m0", "m1", "m2")}
    coast.publish("p0", "one", wait=2.0)
    assert {name: coast.bodies(name, number) for name, number in numbers.items()} == {
        "m0": ["one"],
        "m1": ["one"],
        "m2": ["one"],
    }
    graph = coast.status("t0").tracked[0]
    assert {coast.name(node) for node, _ in graph.edges} == {"p0", "q0"}


def test_a_proxy_serves_whom_it_lists_and_a_mobile_turns_to_the_next() -> None:
    coast = Coast("p0", "q0", "q1", "m0", proxy=ProxyConfig())
    coast.proxy_config = ProxyConfig(open=True)
    coast.crash("q1")
    coast.restart("q1")
    mine = coast.subscribe("m0", wait=10.0)
    coast.publish("p0", "one", wait=2.0)
    assert coast.bodies("m0", mine) == ["one"]
    first, second = coast.edge("m0").proxies
    assert first.refusals == ((STREAM, Reason.NOT_ALLOWED),)
    assert (second.served, second.refusals) == (1, ())
    assert Reason.NOT_ALLOWED in {record.reason for record in coast.records("q0", Kind.REJECTED)}


def test_a_mobile_has_links_to_nobody_else_whatever_is_asked() -> None:
    coast = Coast("p0", "q0", "m0")
    coast.run(1.0)
    answer = coast.ask("m0", Connect(coast.contact("p0")))
    assert isinstance(answer, Declined)
    assert answer.reason is Reason.NOT_ALLOWED
    coast.run(5.0)
    assert coast.met["m0"] == {"q0"}


def test_in_battery_mode_links_come_and_go_by_themselves() -> None:
    """Awake for fifteen seconds in fifteen minutes, it gets everything within one of its turns."""
    coast = Coast("p0", "q0", "m0", edge=EdgeConfig(battery=True, awake=15.0, asleep=885.0))
    mine = coast.subscribe("m0", wait=2.0)
    for hour in range(4):
        coast.run(3600.0)
        coast.publish("p0", f"{hour}")
    coast.run(900.0)
    assert coast.bodies("m0", mine) == ["0", "1", "2", "3"]
    ups = len(coast.records("m0", Kind.LINK_UP))
    assert 16 <= ups <= 19
    coast.run(30.0)
    while not coast.edge("m0").asleep:
        coast.run(1.0)
    coast.publish("m0", "urgent")
    coast.run(2.0)
    assert not coast.edge("m0").asleep
    theirs = coast.subscribe("p0", since=0.0, wait=2.0)
    assert "urgent" in coast.bodies("p0", theirs)


def test_a_stream_that_nobody_wants_any_more_is_left_when_its_time_is_over() -> None:
    coast = Coast("p0", "q0", "m0", proxy=ProxyConfig(open=True, days=1.0, look_period=600.0))
    mine = coast.subscribe("m0", wait=2.0)
    coast.publish("p0", "one", wait=2.0)
    coast.ask("m0", Unsubscribe(mine), wait=70.0)
    assert coast.edge("q0").clients == ()
    assert [stream.stores for stream in coast.status("q0").streams] == [True]
    coast.run(86_400.0 + 1_200.0)
    assert coast.status("q0").streams == ()
    assert coast.stores["q0"].log.kept(topic_of(STREAM)).units == 0


@pytest.mark.parametrize("away", [True, False])
@pytest.mark.parametrize("restarts", [True, False])
@pytest.mark.parametrize("name", ["mine", None])
def test_a_fresh_mobile_that_wants_what_is_said_from_now_on_gets_nothing_older(
    away: bool, restarts: bool, name: str | None
) -> None:
    coast = Coast("p0", "p1", "q0", "m0", "m1")
    first = coast.subscribe("m1", wait=2.0)
    coast.publish("p0", "old 0", "old 1", "old 2", wait=5.0)
    assert len(coast.bodies("m1", first)) == 3
    if away:
        coast.crash("q0")
    mine = coast.subscribe("m0", name=name, wait=0.0 if away else 0.02)
    coast.run(0.5)
    if restarts and name is not None:
        coast.crash("m0")
        coast.run(5.0)
        coast.restart("m0")
        coast.network.ask(coast.peer("m0"), Subscribe(mine, STREAM, None, name))
        coast.run(1.0)
    coast.publish("p0", "new 0", wait=2.0)
    if away:
        coast.restart("q0")
    coast.run(30.0)
    coast.publish("p0", "new 1", wait=5.0)
    assert coast.bodies("m0", mine) == ["new 0", "new 1"]
