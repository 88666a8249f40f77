"""Any number of proxies at once, changed at any moment: over seeds, every event once and in its order."""

from __future__ import annotations

from itertools import chain
from random import Random

import pytest
from tests.conftest import SOAK
from tests.edge.coast import Coast

from linnet.core.reasons import Reason
from linnet.delivery.items import Missed
from linnet.edge.commands import Sleep, Wake
from linnet.edge.config import EdgeConfig, ProxyConfig
from linnet.event.event import Event
from linnet.peer.messages import CODEC
from linnet.trace.records import Kind

SEEDS = range(1000 if SOAK else 12)
AUTHORS = ("p0", "p1", "m0", "m1")
PROXIES = ("q0", "q1", "q2")


def weather(coast: Coast, luck: Random, down: dict[str, None], asleep: dict[str, None]) -> None:
    """Something happens to a proxy or to a mobile, or nothing. One proxy is always there."""
    what, proxy, mobile = luck.random(), luck.choice(PROXIES), luck.choice(("m0", "m1"))
    if what < 0.15 and proxy not in down and len(down) < len(PROXIES) - 1:
        coast.crash(proxy, silent=luck.random() < 0.5)
        down[proxy] = None
    elif what < 0.3 and down:
        back = luck.choice(list(down))
        del down[back]
        coast.restart(back)
    elif what < 0.35:
        coast.ask(mobile, Wake() if mobile in asleep else Sleep(), wait=0.0)
        asleep.pop(mobile, None) if mobile in asleep else asleep.update({mobile: None})


@pytest.mark.parametrize("seed", SEEDS)
def test_every_event_comes_once_and_in_order_whatever_becomes_of_proxies(seed: int) -> None:
    luck = Random(seed)
    edge = EdgeConfig(at_once=1 + seed % 3, each=seed // 3 % 3)
    loss = luck.choice((0.0, 0.02, 0.05))
    coast = Coast("p0", "p1", *PROXIES, "m0", "m1", seed=seed, loss=loss, commit_delay=0.02, edge=edge)
    readers = {name: coast.subscribe(name, name="app", since=0.0, wait=3.0) for name in ("m0", "m1", "p1")}
    down: dict[str, None] = {}
    asleep: dict[str, None] = {}
    sent: dict[str, list[str]] = {author: [] for author in AUTHORS}
    for number in range(50):
        author = luck.choice(AUTHORS)
        sent[author].append(f"{author} {number}")
        coast.publish(author, sent[author][-1], wait=0.1 + luck.random() * 2.0)
        weather(coast, luck, down, asleep)
    coast.restart(*down)
    for name in asleep:
        coast.ask(name, Wake(), wait=0.0)
    coast.run(300.0)
    for name, number in readers.items():
        assert not [item for item in coast.items[name, number] if isinstance(item, Missed)]
        events = [item for item in coast.items[name, number] if isinstance(item, Event)]
        assert len({event.id for event in events}) == len(events)
        heard = [event.body.decode() for event in events]
        for author, bodies in sent.items():
            assert [body for body in heard if body.startswith(author)] == bodies, (name, author)


def test_two_at_once_each_serve_the_stream_and_the_application_sees_each_event_once() -> None:
    coast = Coast("p0", "q0", "q1", "m0", edge=EdgeConfig(at_once=2))
    mine = coast.subscribe("m0", name="app", since=0.0, wait=3.0)
    for number in range(10):
        coast.publish("p0", f"{number}", wait=0.2)
    coast.run(31.0)
    assert [proxy.served for proxy in coast.edge("m0").proxies] == [1, 1]
    said = [(origin, what) for origin, target, what, _ in coast.said(0.0, "q0", "q1", "m0") if target == "m0"]
    assert said.count(("q0", "Data")) == said.count(("q1", "Data")) == 10
    assert len(coast.records("m0", Kind.DUPLICATE)) == 10
    assert coast.bodies("m0", mine) == [f"{number}" for number in range(10)]
    # Each of them is told, in its own messages, how far its client is: what one was told the other was not.
    taken = [target for origin, target, what, _ in coast.said(0.0, "m0", "q0", "q1") if what == "Taken"]
    assert {"q0", "q1"} == set(taken)


def test_streams_are_shared_out_and_no_proxy_hears_of_those_of_another() -> None:
    streams = [f"stream{number:02}" for number in range(12)]
    coast = Coast("p0", *PROXIES, "m0", edge=EdgeConfig(at_once=3, each=1))
    mine = {name: coast.subscribe("m0", name, name="app", since=0.0) for name in streams}
    coast.run(5.0)
    share = {proxy: heard_of(coast, proxy, streams) for proxy in PROXIES}
    assert sorted(chain.from_iterable(share.values())) == streams
    assert [status.served for status in coast.edge("m0").proxies] == [len(each) for each in share.values()]
    assert min(map(len, share.values())) > 0
    for name in streams:
        coast.publish("p0", f"1 {name}", stream=name, wait=0.2)
        coast.publish("m0", f"2 {name}", stream=name, wait=0.2)
    assert {name: coast.bodies("m0", mine[name]) for name in streams} == {
        name: [f"1 {name}", f"2 {name}"] for name in streams
    }
    assert coast.records("m0", Kind.DUPLICATE) == []
    # A proxy that is gone is stood in for, in its own streams alone, until it is back.
    coast.crash("q1")
    coast.run(30.0)
    stood_in = {proxy: heard_of(coast, proxy, streams) for proxy in ("q0", "q2")}
    assert sorted(chain.from_iterable(stood_in.values())) == streams
    assert all(set(share[proxy]) <= set(names) for proxy, names in stood_in.items())
    for name in streams:
        coast.publish("p0", f"3 {name}", stream=name, wait=0.2)
    coast.restart("q1")
    coast.run(120.0)
    assert [status.served for status in coast.edge("m0").proxies] == [len(each) for each in share.values()]
    for name in streams:
        coast.publish("p0", f"4 {name}", stream=name, wait=0.2)
    assert {name: len(coast.bodies("m0", mine[name])) for name in streams} == dict.fromkeys(streams, 4)


def test_after_sleep_every_stream_is_asked_of_whom_it_was_asked_before() -> None:
    streams = [f"stream{number:02}" for number in range(6)]
    coast = Coast("p0", *PROXIES, "m0", edge=EdgeConfig(at_once=2, each=1))
    mine = {name: coast.subscribe("m0", name, name="app", since=0.0) for name in streams}
    coast.run(5.0)
    share = {proxy: heard_of(coast, proxy, streams) for proxy in PROXIES}
    assert share["q2"] == []
    coast.ask("m0", Sleep(), wait=600.0)
    for name in streams:
        coast.publish("p0", f"1 {name}", stream=name, wait=0.2)
    coast.ask("m0", Wake(), wait=60.0)
    assert {proxy: heard_of(coast, proxy, streams) for proxy in PROXIES} == share
    assert [coast.bodies("m0", mine[name]) for name in streams] == [[f"1 {name}"] for name in streams]


def heard_of(coast: Coast, proxy: str, streams: list[str]) -> list[str]:
    """The streams whose names the mobile ever said to a proxy."""
    said = b"".join(
        CODEC.encode(message) for _, origin, at, message, _ in coast.heard if (origin, at) == ("m0", proxy)
    )
    return [name for name in streams if name.encode() in said]


def test_what_a_proxy_over_its_quota_removed_is_had_from_the_other() -> None:
    coast = quota_world(EdgeConfig(at_once=2))
    mine = sleep_and_wake(coast)
    assert coast.bodies("m0", mine) == ROUND
    assert coast.missed("m0", mine) == []
    assert coast.records("q0", Kind.EVICTED)
    assert not coast.records("q1", Kind.EVICTED)


def test_what_the_only_proxy_removed_unread_is_told_to_the_application_as_a_range_with_a_reason() -> None:
    coast = quota_world(EdgeConfig())
    coast.crash("q1")
    mine = sleep_and_wake(coast)
    kept = coast.bodies("m0", mine)
    assert 5 <= len(kept) < 20
    assert kept == ROUND[-len(kept) :]
    [missed] = coast.missed("m0", mine)
    assert (missed.first, missed.last, missed.reason) == (0, 39 - len(kept), Reason.GAP_UNFILLED)
    [dropped] = [record for record in coast.records("m0", Kind.DROPPED) if record.note != "hearsay"]
    assert (dropped.seq, dropped.events, dropped.reason) == (0, 40 - len(kept), Reason.GAP_UNFILLED)
    assert {record.reason for record in coast.records("q0", Kind.EVICTED)} == {Reason.QUOTA}


ROUND = [f"{number} " + "x" * 500 for number in range(40)]


def quota_world(edge: EdgeConfig) -> Coast:
    """The first proxy keeps ten or so of forty events for a client, the second all."""
    coast = Coast(
        "p0", "q0", "q1", "m0", edge=edge, proxy=ProxyConfig(open=True, bytes=8_000, look_period=5.0)
    )
    coast.proxy_config = ProxyConfig(open=True)
    coast.crash("q1")
    coast.restart("q1")
    return coast


def sleep_and_wake(coast: Coast) -> int:
    """A mobile sleeps while events come, and their author is gone when it wakes."""
    mine = coast.subscribe("m0", name="app", since=0.0, wait=20.0)
    coast.ask("m0", Sleep())
    for body in ROUND:
        coast.publish("p0", body, wait=0.2)
    coast.run(30.0)
    coast.crash("p0")
    coast.ask("m0", Wake(), wait=900.0)
    return mine
