"""The rooms of a node: after a restart, forgotten, and joined again."""

from __future__ import annotations

from tests.rooms.bench import Bench
from tests.rooms.circle import founded

from linnet.core.effects import Deliver
from linnet.core.reasons import Reason
from linnet.delivery.items import Ended
from linnet.rooms.commands import (
    ExamineRooms,
    LeaveRoom,
    RoomLeft,
    RoomsAre,
    SendToRoom,
    Sent,
)
from linnet.rooms.event_types import Membership
from linnet.trace.records import Kind


def test_a_room_without_its_first_event_is_dropped_with_a_record() -> None:
    bench = Bench()
    bench.store.cells.put("room.open", bytes(32), b"")
    bench.store.commit(lambda: None)
    bench.peer = bench._machine()
    effects = bench.do_start()
    assert [record.topic for record in bench.records(Kind.DROPPED, effects)] == [bytes(32)]
    assert [room.id for room in bench.rooms._registry] == [bench.id]


def test_who_reads_a_room_that_is_forgotten_is_told_its_end() -> None:
    bench = Bench()
    effects = bench.asked(LeaveRoom(bench.id))
    ended = [item for each in effects if isinstance(each, Deliver) for item in each.items]
    assert ended[-1] == Ended(None)
    rooms = bench.ask(ExamineRooms())
    assert rooms == RoomsAre(())
    assert 1 not in bench.rooms.own_subscriptions
    assert getattr(bench.ask(SendToRoom(bench.id, (b"x",))), "reason", None) is Reason.UNKNOWN_ROOM
    bench.restart()
    assert bench.ask(ExamineRooms()) == RoomsAre(())


def test_a_room_that_was_forgotten_and_is_joined_again_goes_on_where_it_was() -> None:
    """With the same chain, or others would see two events in one place of it; and nothing is lost."""
    circle = founded("ann", "bob")
    circle.say("bob", "one")
    circle.run(1.0)
    circle.get("bob", LeaveRoom(circle.room), RoomLeft)
    circle.run(2.0)
    circle.say("ann", "while you were away")
    circle.join("bob", by="ann")
    circle.items["bob"].clear()
    circle.read("bob")
    circle.run(3.0)
    circle.get("bob", SendToRoom(circle.room, (b"two",)), Sent)
    circle.run(3.0)
    assert circle.heard("ann") == ["one", "while you were away", "two"]
    assert circle.heard("bob") == ["while you were away", "two"]  # what it had handled before, it has
    room = circle.room_at("ann")
    chain = [room.memory.event(each) for each in room.dag.ids_in_order()]
    mine = [event.seq for event in chain if event is not None and event.author == circle.person("bob")]
    assert sorted(mine, key=lambda seq: -1 if seq is None else seq) == list(range(len(mine)))
    assert circle.fates("bob", circle.say("bob", "three")[0])
    assert circle.state("ann").digest == circle.state("bob").digest
    assert room.view.membership(circle.person("bob")) is Membership.JOIN
