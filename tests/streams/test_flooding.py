"""Flooding over whole networks: how often a unit is sent, hops and ages, suppression, congestion."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.streams.village import STREAM, Village

from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.messages import Data
from linnet.event.event import Event
from linnet.machine.commands import Declined
from linnet.peer.interface import Stop
from linnet.sim.links import LinkModel, constant_latency
from linnet.streams.commands import Publish, Published
from linnet.streams.config import StreamOptions
from linnet.trace.records import Kind, Record

PLAIN = DeliveryConfig(lazy_peers=0)
"""Flooding alone: publishers send to their neighbours only."""


def of_kind(village: Village, kind: Kind) -> list[Record]:
    return [record for _, record in village.notes.records if record.kind is kind]


def joined(peers: int, **options: object) -> tuple[Village, dict[str, int]]:
    options.setdefault("delivery", PLAIN)
    village = Village(peers=peers, storage=0, **options)  # type: ignore[arg-type]
    subscriptions = {name: village.subscribe(name) for name in village.names if name[0] == "p"}
    village.run(10)
    return village, subscriptions


@pytest.mark.parametrize("degree", [4, 6])
@pytest.mark.parametrize("peers", [8, 16])
def test_a_unit_is_sent_as_often_as_the_graph_says(peers: int, degree: int) -> None:
    village, subscriptions = joined(peers, options={STREAM: StreamOptions(degree=degree)})
    assert {len(village.status(name).streams[0].neighbors) for name in subscriptions} == {degree}
    for number in range(5):
        village.publish(f"p{number}", b"%d" % number)
    assert len(of_kind(village, Kind.SENT)) == 5 * (peers * degree - (peers - 1))
    assert len(of_kind(village, Kind.RECEIVED)) == 5 * (peers - 1)
    assert len(of_kind(village, Kind.DUPLICATE)) == 5 * (peers * degree - 2 * (peers - 1))
    for name, subscription in subscriptions.items():
        assert sorted(village.bodies(name, subscription)) == [b"%d" % n for n in range(5)], name


def test_hops_and_ages_grow_on_the_way_and_count_at_the_first_receipt_only() -> None:
    village, _ = joined(12)
    village.publish("p0", b"x")
    received = of_kind(village, Kind.RECEIVED)
    assert len(received) == 11
    hops = sorted(record.hops or 0 for record in received)
    assert hops[:4] == [1, 1, 1, 1]
    assert 2 <= hops[-1] <= 4
    for name in village.names:
        for _, message in village.heard.get(name, []):
            if isinstance(message, Data):
                # Each hop takes ten milliseconds here, and forwarding none.
                assert message.age_us == pytest.approx((message.hops - 1) * 10_000, abs=20)


def test_waiting_before_passing_on_saves_sends_for_delay() -> None:
    plain, _ = joined(12)
    plain.publish("p0", b"x", wait=3)
    held, subscriptions = joined(12, delivery=DeliveryConfig(suppress=0.05, lazy_peers=0))
    held.publish("p0", b"x", wait=3)
    assert len(of_kind(held, Kind.SENT)) < len(of_kind(plain, Kind.SENT)) == 12 * 4 - 11
    for name, subscription in subscriptions.items():
        assert held.bodies(name, subscription) == [b"x"]


def test_a_neighbour_that_falls_silent_is_replaced() -> None:
    village, subscriptions = joined(8)
    village.network.crash(village.peer("p7"), silent=True)
    village.run(60)
    assert Reason.PING_TIMEOUT in {record.reason for record in of_kind(village, Kind.LINK_DOWN)}
    left = [name for name in subscriptions if name != "p7"]
    for name in left:
        neighbors = village.status(name).streams[0].neighbors
        assert village.peer("p7") not in neighbors
        assert len(neighbors) == 4
    village.publish("p0", b"x", wait=2)
    assert all(village.bodies(name, subscriptions[name]) == [b"x"] for name in left)


SLOW = LinkModel(constant_latency(10.0), bandwidth=20_000.0, outbox_high=10_000, outbox_low=2_000)


def test_a_publisher_waits_while_all_its_links_are_congested_and_loses_nothing() -> None:
    village, subscriptions = joined(6, links=SLOW)
    bodies = [b"%d" % number + b"." * 3000 for number in range(30)]
    requests = [village.network.ask(village.peer("p0"), Publish(STREAM, (body,))) for body in bodies]
    village.run(0.5)
    waiting = [request for request in requests if request not in village.network.answers]
    assert 0 < len(waiting) < 30
    village.run(30)
    assert all(isinstance(village.network.answers[request], Published) for request in requests)
    for name, subscription in subscriptions.items():
        assert village.bodies(name, subscription) == bodies, name
    assert Reason.SLOW_PEER not in {record.reason for record in of_kind(village, Kind.LINK_DOWN)}


def test_too_many_publishes_that_wait_are_declined() -> None:
    village, _ = joined(6, links=SLOW, delivery=DeliveryConfig(publish_queue=5))
    requests = [village.network.ask(village.peer("p0"), Publish(STREAM, (b"." * 3000,))) for n in range(30)]
    village.run(30)
    outcomes = [village.network.answers[request] for request in requests]
    declined = [outcome for outcome in outcomes if isinstance(outcome, Declined)]
    assert declined
    assert {outcome.reason for outcome in declined} == {Reason.CONGESTED}
    assert sum(isinstance(outcome, Published) for outcome in outcomes) == 30 - len(declined)


def test_a_peer_that_does_not_keep_up_is_cut_and_catches_up_later() -> None:
    links = LinkModel(
        constant_latency(10.0), bandwidth=20_000.0, outbox_high=10**9, outbox_low=1, outbox_bytes=40_000
    )
    village = Village(peers=4, links=links, delivery=DeliveryConfig(page_bytes=10_000))
    durable = {name: village.subscribe(name, name="all", since=0.0) for name in ("p1", "p2")}
    village.run(10)
    for number in range(20):
        village.publish("p0", b"%d" % number + b"." * 4000, wait=0.02)
    village.run(240)
    assert Reason.SLOW_PEER in {record.reason for record in of_kind(village, Kind.LINK_DOWN)}
    for name, subscription in durable.items():
        bodies = village.bodies(name, subscription)
        assert [int(body.split(b".")[0]) for body in bodies] == list(range(20)), name
        assert village.missed(name, subscription) == []


@pytest.mark.parametrize("seed", range(100 if SOAK else 6))
def test_a_crash_right_after_publishing_loses_nothing_acknowledged_and_forks_nothing(seed: int) -> None:
    village = Village(seed, peers=5, commit_delay=0.1)
    subscription = village.subscribe("p1", name="all", since=0.0)
    village.subscribe("p0")
    village.run(10)
    acknowledged: dict[bytes, bytes] = {}
    for life in range(4):
        requests = {
            village.network.ask(village.peer("p0"), Publish(STREAM, (b"%d %d" % (life, n),))): b"%d %d"
            % (life, n)
            for n in range(6)
        }
        village.run(0.02 * (seed % 6))
        village.crash("p0")
        for request, body in requests.items():
            outcome = village.network.answers.get(request)
            if isinstance(outcome, Published):
                acknowledged[outcome.ids[0]] = body
        village.run(2)
        village.restart("p0")
        village.subscribe("p0", wait=10)
    village.publish("p0", b"last", wait=20)
    events = [item for item in village.items["p1", subscription] if isinstance(item, Event)]
    assert {event.id for event in events} >= set(acknowledged)
    assert [event.seq for event in events] == list(range(len(events)))
    assert events[-1].body == b"last"
    assert Reason.FORKED_CHAIN not in {record.reason for _, record in village.notes.records}


def test_publishes_that_wait_are_answered_when_the_node_stops() -> None:
    village, _ = joined(6, links=SLOW)
    requests = [village.network.ask(village.peer("p0"), Publish(STREAM, (b"." * 3000,))) for _ in range(30)]
    village.run(0.3)
    village.network.ask(village.peer("p0"), Stop())
    village.run(1)
    outcomes = [village.network.answers[request] for request in requests]
    declined = [outcome for outcome in outcomes if isinstance(outcome, Declined)]
    assert declined
    assert {outcome.reason for outcome in declined} == {Reason.SHUTDOWN}
