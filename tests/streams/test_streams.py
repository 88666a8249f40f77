"""Streams over whole small networks: the machines of real nodes on a virtual clock."""

from __future__ import annotations

from tests.streams.village import STREAM, Village

from linnet.delivery.commands import Unsubscribe
from linnet.delivery.items import CaughtUp
from linnet.streams.commands import Published
from linnet.streams.subscribe import SUBSCRIBED, UNSUBSCRIBED
from linnet.trace.records import Kind


def test_everyone_gets_every_event_once() -> None:
    village = Village(peers=8)
    subscriptions = {name: village.subscribe(name) for name in village.names if name[0] == "p"}
    village.run(5)
    outcome = village.publish("p0", b"rain", b"sun")
    assert isinstance(outcome, Published)
    assert outcome.neighbors == 4
    village.run(5)
    for name, subscription in subscriptions.items():
        assert village.bodies(name, subscription) == [b"rain", b"sun"], name


def test_a_late_subscriber_gets_history_then_what_comes() -> None:
    village = Village(peers=6)
    village.subscribe("p1")
    village.run(5)
    village.publish("p0", *(b"%d" % i for i in range(10)))
    village.run(3)
    late = village.subscribe("p5", since=0.0)
    village.run(5)
    village.publish("p0", b"live")
    village.run(2)
    assert village.bodies("p5", late) == [*(b"%d" % i for i in range(10)), b"live"]
    assert any(isinstance(item, CaughtUp) for item in village.items["p5", late])


def test_a_trace_tells_who_took_part_and_what_it_was_handed_from_history() -> None:
    village = Village(peers=4)
    village.subscribe("p1")
    village.run(5)
    village.publish("p0", b"a", b"b")
    village.run(3)
    late = village.subscribe("p3", since=0.0)
    village.run(5)
    village.ask("p3", Unsubscribe(late))
    ours = [record for node, record in village.notes.records if node == village.peer("p3")]
    told = [r.note for r in ours if r.kind is Kind.CONTROL and r.note in (SUBSCRIBED, UNSUBSCRIBED)]
    assert told == [SUBSCRIBED, UNSUBSCRIBED]
    assert [(r.seq, r.events, r.hops) for r in ours if r.kind is Kind.DELIVERED] == [(0, 2, None)]


def test_a_durable_subscription_resumes_after_a_crash() -> None:
    village = Village(peers=6)
    first = village.subscribe("p1", name="mine")
    village.run(5)
    village.publish("p0", b"before")
    village.run(2)
    village.crash("p1")
    village.publish("p0", b"meanwhile")
    village.publish("p2", b"and another")
    village.run(10)
    village.restart("p1")
    again = village.subscribe("p1", name="mine")
    village.run(20)
    village.publish("p0", b"after")
    village.run(5)
    assert village.bodies("p1", first) == [b"before"]
    assert sorted(village.bodies("p1", again)) == sorted([b"meanwhile", b"and another", b"after"])
    assert village.missed("p1", again) == []


def test_storage_confirms_what_was_published() -> None:
    from linnet.streams.commands import Publish

    village = Village(peers=4)
    village.subscribe("p1")
    village.run(5)
    outcome = village.ask("p0", Publish(STREAM, (b"x",), confirm=5.0), wait=8)
    assert isinstance(outcome, Published)
    assert [fate.delivered_at is not None for fate in outcome.fates] == [True]
    assert outcome.fates[0].receiver == village.peer("s0")


def test_a_standby_takes_over_when_the_tracker_dies() -> None:
    village = Village(trackers=2, peers=8)
    subscriptions = {name: village.subscribe(name) for name in village.names if name[0] == "p"}
    village.run(8)
    status = village.status("p0").streams[0]
    tracker = next(n for n in village.names if village.peer(n) == status.tracker)
    village.crash(tracker)
    village.run(1)
    village.publish("p0", b"during", wait=0.5)
    # The standby is not asked yet: it came by the links that are there.
    for name, subscription in subscriptions.items():
        assert village.status(name).streams[0].tracker == village.peer(tracker)
        assert village.bodies(name, subscription) == [b"during"], name
    village.run(20)
    village.crash("p7")
    village.run(30)
    village.publish("p1", b"after")
    village.run(10)
    for name, subscription in subscriptions.items():
        if name != "p7":
            assert village.bodies(name, subscription) == [b"during", b"after"], name
            assert village.status(name).streams[0].tracker != village.peer(tracker)
            assert len(village.status(name).streams[0].neighbors) == 4
