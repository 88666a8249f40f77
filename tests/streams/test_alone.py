"""A node that nobody can find, or that has nobody to ask, is not kept waiting, and is told why."""

from __future__ import annotations

from tests.streams.village import STREAM, Village

from linnet.core.reasons import Reason
from linnet.delivery.items import CaughtUp, Ended
from linnet.event.event import Event
from linnet.streams.commands import Publish, Published
from linnet.trace.records import Kind


def test_a_lone_node_confirms_and_reads_from_its_own_store_at_once() -> None:
    village = Village(trackers=0, storage=0, peers=1)
    outcome = village.ask("p0", Publish(STREAM, (b"rain",), 2.0), wait=0.001)
    assert isinstance(outcome, Published)
    assert (outcome.fates, outcome.unconfirmed, outcome.unsent) == ((), Reason.NO_STORAGE, Reason.NO_ADDRESS)
    reader = village.subscribe("p0", since=0.0, wait=0.001)
    event, note = village.items["p0", reader]
    assert isinstance(event, Event)
    assert event.body == b"rain"
    assert isinstance(note, CaughtUp)
    assert note.reason is Reason.NO_STORAGE
    village.publish("p0", b"sun", wait=0.001)
    assert village.bodies("p0", reader) == [b"rain", b"sun"]


def test_the_history_of_a_lone_node_ends_at_once_and_says_that_nobody_else_was_asked() -> None:
    village = Village(trackers=0, storage=0, peers=1)
    for number in range(700):
        village.publish("p0", b"%d" % number, wait=0.001)
    reader = village.subscribe("p0", since=0.0, live=False, wait=0.001)
    assert village.bodies("p0", reader) == [b"%d" % number for number in range(700)]
    note, last = village.items["p0", reader][-2:]
    assert isinstance(note, CaughtUp)
    assert (note.reason, note.begins_at is not None, last) == (Reason.NO_STORAGE, True, Ended(None))


def test_while_the_tracker_is_away_what_is_here_comes_at_once_and_the_rest_is_asked_for() -> None:
    village = Village(peers=2)
    village.run(3)
    village.publish("p0", b"a", wait=3)
    village.publish("p1", b"b", wait=70)
    village.crash("t0")
    village.run(1)
    reader = village.subscribe("p0", since=0.0, wait=0.01)
    assert village.bodies("p0", reader) == [b"a"], "its own"
    village.restart("t0")
    village.run(20)
    assert village.bodies("p0", reader) == [b"a", b"b"], "each once"


def test_where_the_tracker_knows_no_storage_node_nobody_waits_for_one() -> None:
    village = Village(storage=0, peers=2)
    village.subscribe("p1", wait=5)
    village.publish("p0", b"a", wait=2)
    outcome = village.ask("p0", Publish(STREAM, (b"b",), 60.0), wait=0.1)
    assert isinstance(outcome, Published)
    assert (outcome.unconfirmed, outcome.unsent, outcome.neighbors) == (Reason.NO_STORAGE, None, 1)


def test_a_storage_node_that_does_not_confirm_in_time_is_named_as_the_reason() -> None:
    village = Village(peers=2)
    village.subscribe("p1", wait=5)
    village.publish("p0", b"a", wait=3)
    village.network.crash(village.peer("s0"), silent=True)
    outcome = village.ask("p0", Publish(STREAM, (b"b",), 2.0), wait=3)
    assert isinstance(outcome, Published)
    assert outcome.unconfirmed is Reason.TIMEOUT
    assert [fate.delivered_at for fate in outcome.fates if fate.storage] == [None]


def test_two_nodes_that_only_dial_are_told_at_once_why_they_do_not_meet() -> None:
    village = Village(storage=0, peers=2, dial_only=("p0", "p1"))
    village.subscribe("p1", wait=2)
    outcome = village.publish("p0", b"hello?", wait=0.1)
    assert isinstance(outcome, Published)
    assert outcome.unsent is Reason.UNREACHABLE_INBOUND
    village.run(2)
    for name in ("p0", "p1"):
        assert village.status(name).streams[0].alone is Reason.UNREACHABLE_INBOUND
        told = [
            record
            for node, record in village.notes.records
            if node == village.peer(name) and record.reason is Reason.UNREACHABLE_INBOUND
        ]
        assert [(record.kind, record.topic) for record in told] == [
            (Kind.CONTROL, village.status(name).streams[0].topic)
        ]


def test_a_node_that_only_dials_is_told_nothing_of_the_kind_once_another_listens() -> None:
    village = Village(storage=0, peers=2, dial_only=("p0",))
    reader = village.subscribe("p1", wait=2)
    village.publish("p0", b"hello", wait=5)
    assert village.bodies("p1", reader) == [b"hello"]
    assert village.status("p0").streams[0].alone is None
    assert "unreachable_inbound" not in village.reasons("p0") + village.reasons("p1")
