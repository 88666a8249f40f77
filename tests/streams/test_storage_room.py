"""A storage node that runs low refuses the newest events, says why, loses no older ones, and never ends."""

from __future__ import annotations

import pytest
from tests.streams.stage import context_of
from tests.streams.village import STREAM, Stored, Village

from linnet.core.ids import AuthorId, Contact, DeviceId, EventId, PeerId
from linnet.core.limits import MIB
from linnet.core.reasons import Reason
from linnet.core.stores import Entry
from linnet.delivery.config import DeliveryConfig
from linnet.sim.links import LinkModel, constant_latency
from linnet.store.memory import MemoryStore
from linnet.streams.commands import CheckStorage, Publish, Published, StorageChecked, StorageOutcome
from linnet.streams.config import StorageRule, StreamOptions
from linnet.streams.storage_room import StorageRoom
from linnet.streams.stream_names import topic_of
from linnet.trace.records import Kind

TOPIC, OTHER = topic_of(STREAM), topic_of("tides")
LIMIT = 20_000


def town(
    delivery: DeliveryConfig | None = None,
    rules: tuple[StorageRule, ...] = (StorageRule(STREAM),),
    stores: dict[str, Stored] | None = None,
    links: LinkModel | None = None,
) -> Village:
    contact = Contact(Village(storage=1, peers=0).peer("s0"), ("tls://s0:1",))
    options = {rule.stream: StreamOptions(storage=(contact,)) for rule in rules}
    village = Village(
        storage=1, peers=4, options=options, rules=rules, delivery=delivery, stores=stores, links=links
    )
    village.run(5)
    return village


def say(village: Village, name: str = "p0", stream: str = STREAM, size: int = 1000) -> Published:
    outcome = village.ask(name, Publish(stream, (b"x" * size,), confirm=2.0), wait=3.0)
    assert isinstance(outcome, Published)
    return outcome


def say_until_refused(village: Village, name: str = "p0", stream: str = STREAM) -> int:
    """How many were confirmed before one was not."""
    for number in range(100):
        outcome = say(village, name, stream)
        if outcome.unconfirmed is not None:
            assert [each.delivered_at for each in outcome.fates if each.storage] == [None]
            return number
    raise AssertionError("nothing was ever refused")


def kept(village: Village, stream: str = STREAM) -> list[tuple[int, int]]:
    heads = village.stores["s0"].log.heads(topic_of(stream))
    return [(head.first, head.last) for head in heads]


def test_a_stream_without_a_quota_is_bounded_and_its_publisher_is_told() -> None:
    village = town(DeliveryConfig(stored_stream_bytes=LIMIT))
    count = say_until_refused(village)
    assert kept(village) == [(0, count - 1)]
    assert LIMIT // 2 < village.stores["s0"].log.kept(TOPIC).bytes <= LIMIT
    assert say(village).unconfirmed is Reason.QUOTA
    assert kept(village) == [(0, count - 1)], "the newest are refused, the older ones are there"
    (status,) = village.status("s0").streams
    assert status.refuses is Reason.QUOTA
    refused = [r for node, r in village.notes.records if (r.kind, r.note) == (Kind.DROPPED, "not stored")]
    assert {(record.reason, record.seq) for record in refused} == {
        (Reason.QUOTA, number) for number in (count, count + 1)
    }
    late = village.subscribe("p2", since=0.0, live=False, wait=15)
    assert len(village.bodies("p2", late)) >= count


def test_a_full_disk_refuses_the_newest_and_takes_them_once_there_is_room() -> None:
    disk = MemoryStore()
    village = town(stores={"s0": disk})
    for _ in range(5):
        assert say(village).unconfirmed is None
    disk.free_bytes = 256 * MIB
    for _ in range(5):
        assert say(village).unconfirmed is Reason.DISK_FULL
    assert kept(village) == [(0, 4)]
    disk.free_bytes = 2**40
    village.run(40)
    assert kept(village) == [(0, 9)]
    outcome = say(village)
    assert outcome.unconfirmed is None
    assert kept(village) == [(0, 10)]
    checked = village.ask("p0", CheckStorage(STREAM), wait=10)
    assert isinstance(checked, StorageChecked)
    assert [(each.outcome, each.number) for each in checked.checks] == [(StorageOutcome.KEPT, 10)]
    (status,) = village.status("s0").streams
    assert status.refuses is None
    entries = [entry for _, entry in disk.log.read(TOPIC, 0, 100)]
    assert [entry.first for entry in entries] == list(range(11)), "in order, without holes"


def test_what_follows_a_refused_event_is_not_stored_before_it() -> None:
    """There is room again, but what was refused is not there yet: what is kept has no holes."""
    disk = MemoryStore()
    village = town(DeliveryConfig(evict_period=60.0), stores={"s0": disk})
    assert say(village).unconfirmed is None
    disk.free_bytes = 256 * MIB
    assert say(village).unconfirmed is Reason.DISK_FULL
    disk.free_bytes = 2**40
    assert say(village).unconfirmed is Reason.DISK_FULL
    assert kept(village) == [(0, 0)]
    village.run(90)
    assert kept(village) == [(0, 2)]
    assert disk.log.kept(TOPIC).events == 3


def test_the_last_quarter_is_not_for_who_has_stored_most() -> None:
    village = town(DeliveryConfig(stored_stream_bytes=LIMIT))
    assert say(village, "p1").unconfirmed is None
    say_until_refused(village, "p0")
    assert village.stores["s0"].log.kept(TOPIC).bytes <= LIMIT * 3 // 4 + 1500
    for _ in range(3):
        assert say(village, "p1").unconfirmed is None
    assert say(village, "p0").unconfirmed is Reason.QUOTA
    assert say(village, "p3").unconfirmed is None


def test_all_streams_together_are_bounded() -> None:
    rules = (StorageRule(STREAM), StorageRule("tides"))
    village = town(DeliveryConfig(stored_bytes=LIMIT), rules)
    for _ in range(8):
        assert say(village).unconfirmed is None
    say_until_refused(village, "p1", "tides")
    log = village.stores["s0"].log
    assert LIMIT // 2 < log.kept(TOPIC).bytes + log.kept(OTHER).bytes <= LIMIT


def test_a_stream_with_a_quota_evicts_its_oldest_instead() -> None:
    rules = (StorageRule(STREAM, quota=5000),)
    village = town(DeliveryConfig(stored_stream_bytes=LIMIT, evict_period=1.0), rules)
    for _ in range(40):
        assert say(village).unconfirmed is None
    ((first, last),) = kept(village)
    assert last == 39
    assert first > 30


def test_what_this_node_reads_itself_is_not_refused() -> None:
    """A durable subscription of its own needs the log; the reserve of the disk is for that."""
    disk = MemoryStore()
    disk.free_bytes = 256 * MIB
    village = town(stores={"s0": disk})
    village.subscribe("s0", name="archive", wait=1)
    for _ in range(3):
        assert say(village).unconfirmed is None
    assert kept(village) == [(0, 2)]


def test_after_a_restart_what_is_there_counts() -> None:
    village = town(DeliveryConfig(stored_stream_bytes=LIMIT))
    count = say_until_refused(village)
    village.crash("s0")
    village.run(1)
    village.restart("s0")
    village.run(10)
    assert village.stores["s0"].log.kept(TOPIC).bytes <= LIMIT
    assert count - 1 <= kept(village)[0][1]


def test_the_room_is_counted_and_given_back() -> None:
    context = context_of(config=DeliveryConfig(stored_stream_bytes=1000, stored_bytes=1500, disk_reserve=0))
    room, ann, ben = StorageRoom(context), PeerId(b"a" * 32), PeerId(b"b" * 32)
    assert room.why_refused(TOPIC, ann, 1000, False) is None
    assert room.why_refused(TOPIC, ann, 1001, False) is Reason.QUOTA
    assert room.why_refused(TOPIC, ann, 1001, True) is None, "its own quota evicts"
    assert room.why_refused(TOPIC, ann, 1501, True) is Reason.QUOTA
    # Ann and Eve share a network: what Ann has stored counts for both.
    eve = PeerId(b"e" * 32)
    for peer in (ann, eve):
        context.origins.note(peer, "192.0.2.0/24")
    raw = b"r" * 700
    context.store.log.append(
        Entry(TOPIC, AuthorId(ann), DeviceId(b"d" * 8), 0, 1, EventId(bytes(32)), 1.0, raw)
    )
    room.note_stored(TOPIC, ann, 700)
    assert room.why_refused(TOPIC, eve, 51, False) is Reason.QUOTA
    assert room.why_refused(TOPIC, eve, 50, False) is None, "while there is room, nobody is refused"
    assert room.why_refused(TOPIC, ben, 300, False) is None
    assert room.why_refused(OTHER, eve, 400, False) is None
    context.store.log.evict(TOPIC, None, 0, 10)
    room.recount(TOPIC)
    assert room.why_refused(TOPIC, eve, 700, False) is None


def test_what_was_refused_just_before_there_was_room_again_is_not_confirmed() -> None:
    """Its publisher goes on all the time, so some event is refused right before the look that finds room."""
    disk = MemoryStore()
    village = town(stores={"s0": disk}, links=LinkModel(constant_latency(400.0)))
    for _ in range(5):
        village.publish("p0", b"early")
    disk.free_bytes = 256 * MIB
    for number in range(250):
        if number == 120:
            disk.free_bytes = 2**40
        village.publish("p0", b"x" * 100, wait=0.07)
    village.run(40)
    ((_, last),) = kept(village)
    assert last == 254
    assert not [r for _, r in village.notes.records if r.reason is Reason.EQUIVOCATION]
    assert say(village).unconfirmed is None


@pytest.mark.parametrize(("since", "count"), [(None, 1), (0.0, 8)])
def test_what_this_node_begins_to_read_itself_has_no_hole_where_events_were_refused(
    since: float | None, count: int
) -> None:
    disk = MemoryStore()
    village = town(stores={"s0": disk})
    for _ in range(3):
        assert say(village).unconfirmed is None
    disk.free_bytes = 256 * MIB
    for _ in range(4):
        assert say(village).unconfirmed is Reason.DISK_FULL
    archive = village.subscribe("s0", name="archive", since=since, wait=1)
    assert say(village).unconfirmed is None
    entries = [entry for _, entry in disk.log.read(TOPIC, 0, 100)]
    assert [entry.first for entry in entries] == list(range(8)), "in order, without holes"
    assert len(village.bodies("s0", archive)) == count
    (status,) = village.status("s0").streams
    assert status.refuses is None
