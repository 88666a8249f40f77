"""Storage nodes over whole networks: eviction, history, receipts, a publisher that keeps its own stream."""

from __future__ import annotations

import pytest
from tests.conftest import SOAK
from tests.streams.village import STREAM, Village

from linnet.core.reasons import Reason
from linnet.delivery.config import DeliveryConfig
from linnet.delivery.items import CaughtUp, Ended, Missed
from linnet.event.event import Event
from linnet.streams.commands import Publish, Published
from linnet.streams.config import StorageRule
from linnet.trace.records import Kind


def caught_up(village: Village, name: str, subscription: int) -> CaughtUp:
    (note,) = [item for item in village.items[name, subscription] if isinstance(item, CaughtUp)]
    return note


def test_eviction_is_recorded_and_history_says_where_it_begins() -> None:
    village = Village(peers=4, rules=(StorageRule(STREAM, retention=20.0),))
    village.subscribe("p1")
    village.run(5)
    village.publish("p0", b"old 0", b"old 1")
    village.run(30)
    village.publish("p0", b"new")
    began = village.network.now
    village.run(8)
    history = village.subscribe("p3", since=0.0, live=False, wait=5)
    assert village.bodies("p3", history) == [b"new"]
    note = caught_up(village, "p3", history)
    assert note.evicted
    assert note.begins_at == pytest.approx(began, abs=2.0)
    assert village.items["p3", history][-1] == Ended(None)
    evicted = [record for _, record in village.notes.records if record.kind is Kind.EVICTED]
    assert [(record.seq, record.events, record.reason) for record in evicted] == [(0, 2, Reason.RETENTION)]


def test_a_quota_evicts_the_oldest() -> None:
    village = Village(peers=4, rules=(StorageRule(STREAM, quota=3000),))
    village.subscribe("p1")
    village.run(5)
    for number in range(10):
        village.publish("p0", b"%d" % number * 500, wait=0.2)
    village.run(15)
    kept = village.status("s0").streams[0]
    assert 0 < kept.kept_bytes <= 3000
    evicted = [record for _, record in village.notes.records if record.kind is Kind.EVICTED]
    assert {record.reason for record in evicted} == {Reason.QUOTA}
    assert sum(record.events for record in evicted) == 10 - kept.kept_events


def test_a_storage_node_whose_own_events_were_evicted_does_not_fork_its_chain() -> None:
    village = Village(peers=4, rules=(StorageRule(STREAM, retention=5.0),))
    subscription = village.subscribe("p1", wait=5)
    village.publish("s0", b"before", wait=30)
    assert village.status("s0").streams[0].kept_events == 0
    village.crash("s0")
    village.run(2)
    village.restart("s0")
    village.run(10)
    outcome = village.publish("s0", b"after", wait=5)
    assert isinstance(outcome, Published)
    assert outcome.first == 1
    assert village.bodies("p1", subscription) == [b"before", b"after"]


def test_history_from_a_point() -> None:
    village = Village(peers=4)
    village.subscribe("p1", wait=5)
    village.publish("p0", b"a", wait=5)
    point = village.network.now
    village.publish("p0", b"b", wait=5)
    late = village.subscribe("p2", since=point, wait=5)
    assert village.bodies("p2", late) == [b"b"]


def test_without_storage_history_says_so_and_goes_live() -> None:
    village = Village(peers=4, storage=0)
    village.subscribe("p1", wait=5)
    village.publish("p0", b"a", wait=2)
    late = village.subscribe("p2", since=0.0, wait=10)
    assert caught_up(village, "p2", late).reason is Reason.NO_STORAGE
    village.publish("p0", b"b", wait=2)
    assert village.bodies("p2", late) == [b"b"]


def test_when_storage_dies_history_says_so_and_goes_live() -> None:
    village = Village(peers=4)
    village.subscribe("p1", wait=5)
    village.publish("p0", b"a", wait=2)
    village.network.crash(village.peer("s0"), silent=True)
    late = village.subscribe("p2", since=0.0, wait=12)
    assert caught_up(village, "p2", late).reason is Reason.TIMEOUT
    village.publish("p0", b"b", wait=2)
    assert village.bodies("p2", late) == [b"b"]


@pytest.mark.parametrize("seed", range(100 if SOAK else 5))
@pytest.mark.parametrize("ordered", [True, False])
def test_the_seam_between_history_and_live_has_no_hole_and_no_double(seed: int, ordered: bool) -> None:
    """Subscribe in the midst of a stream of events, many times."""
    village = Village(seed, peers=6, delivery=DeliveryConfig(page_units=7))
    village.subscribe("p1", wait=8)
    for number in range(60):
        village.network.ask(
            village.peer(f"p{number % 3}"), Publish(STREAM, (b"%d" % number,)), at=8 + number * 0.05
        )
    village.run(1.0 + 0.137 * seed)
    late = village.subscribe("p5", since=0.0, ordered=ordered, wait=30)
    events = [item for item in village.items["p5", late] if isinstance(item, Event)]
    assert sorted(int(event.body) for event in events) == list(range(60))
    assert not any(isinstance(item, Missed) for item in village.items["p5", late])


def test_a_second_storage_node_answers_when_the_first_is_gone() -> None:
    village = Village(peers=4, storage=2)
    village.subscribe("p1", wait=5)
    village.publish("p0", b"a", wait=5)
    village.network.crash(village.peer("s0"), silent=True)
    late = village.subscribe("p2", since=0.0, wait=12)
    assert village.bodies("p2", late) == [b"a"]
    assert caught_up(village, "p2", late).reason is None


def test_receivers_that_opted_in_show_in_the_fates_and_others_do_not() -> None:
    village = Village(peers=5)
    village.subscribe("p1", receipts=True)
    village.subscribe("p2", wait=8)
    village.publish("p0", b"first", wait=5)
    outcome = village.ask("p0", Publish(STREAM, (b"x",), confirm=6.0), wait=8)
    assert isinstance(outcome, Published)
    village.run(5)
    last = village.ask("p0", Publish(STREAM, (b"y",), confirm=6.0), wait=8)
    assert isinstance(last, Published)
    known = {village.name(fate.receiver): fate.storage for fate in last.fates}
    assert known == {"s0": True, "p1": False}


def test_a_durable_subscription_from_the_beginning_gets_what_was_seen_live_before() -> None:
    village = Village(peers=4)
    live = village.subscribe("p1", wait=5)
    village.publish("p0", b"a", b"b", wait=5)
    durable = village.subscribe("p1", name="all", since=0.0, wait=15)
    village.publish("p0", b"c", wait=5)
    assert village.bodies("p1", durable) == [b"a", b"b", b"c"]
    assert village.bodies("p1", live) == [b"a", b"b", b"c"]
    assert village.missed("p1", live) == []


def test_a_durable_subscription_from_now_on_does_not_get_older_events_when_it_resumes() -> None:
    village = Village(peers=5)
    village.subscribe("p2", wait=5)
    village.publish("p0", b"old", wait=3)
    first = village.subscribe("p1", name="mine", wait=8)
    village.publish("p3", b"new", wait=3)
    assert village.bodies("p1", first) == [b"new"]
    village.crash("p1")
    village.run(3)
    village.restart("p1")
    again = village.subscribe("p1", name="mine", wait=20)
    village.publish("p0", b"newer", wait=5)
    assert village.bodies("p1", again) == [b"newer"]


def test_neither_does_one_that_began_where_the_node_had_listened_before() -> None:
    village = Village(peers=5)
    village.subscribe("p2")
    village.subscribe("p1", wait=5)
    village.publish("p0", b"old", wait=3)
    village.subscribe("p1", name="mine", wait=8)
    village.crash("p1")
    village.run(3)
    village.restart("p1")
    again = village.subscribe("p1", name="mine", wait=20)
    assert village.bodies("p1", again) == []
    village.publish("p0", b"newer", wait=5)
    assert village.bodies("p1", again) == [b"newer"]


def test_own_publications_are_bounded_where_nobody_may_come_back_for_them() -> None:
    village = Village(peers=4, delivery=DeliveryConfig(own_bytes=2_000, evict_period=1.0))
    village.subscribe("p1", name="mine")
    village.run(5)
    for number in range(20):
        village.publish("p0", b"%d" % number * 100, wait=0.1)
        village.publish("p1", b"%d" % number * 100, wait=0.1)
    village.run(5)
    topic = village.status("p0").streams[0].topic
    assert village.stores["p0"].log.kept(topic).bytes <= 2_000
    assert village.stores["p1"].log.kept(topic).events == 40, "a durable subscription keeps all"
    assert "quota" in village.reasons("p0")
    outcome = village.publish("p0", b"on")
    assert isinstance(outcome, Published)
    assert outcome.first == 20
