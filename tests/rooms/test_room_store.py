"""What a room keeps in the store."""

from __future__ import annotations

from tests.rooms.bench import Bench
from tests.rooms.circle import Circle

from linnet.core.ids import EventId, TopicId
from linnet.machine.commands import Done
from linnet.rooms.commands import NotePerson
from linnet.rooms.room_store import LATE, SOFT, RoomMemory, notes
from linnet.sim.nemesis.open_node import DamageableStore


class Scene:
    """The memory of one room, and events for it."""

    def __init__(self, rejected: int = 3) -> None:
        self.bench = Bench()
        self.store = DamageableStore()
        self.rejected = rejected
        self.memory = self.again()
        self.events = [self.bench.forge("bob", body=str(number).encode()) for number in range(600)]

    def again(self, room: TopicId | None = None) -> RoomMemory:
        return RoomMemory(room or self.bench.id, self.store, self.rejected)


def test_the_log_is_read_from_its_beginning_whatever_its_length() -> None:
    scene = Scene()
    for number, event in enumerate(scene.events):
        assert scene.memory.append(event, None, float(number)) == number + 1
    assert scene.memory.append(scene.events[0], None, 0.0) is None
    assert [each.head for each in scene.again().events()] == [each.head for each in scene.events]


def test_what_is_early_is_kept_aside_until_it_is_written_or_refused() -> None:
    scene = Scene()
    first, second, third = scene.events[:3]
    for each in (third, first, second):
        scene.memory.keep_early(each)
    again = scene.again()
    assert [each.head for each in again.early()] == [each.head for each in (first, second, third)]
    assert again.get(second.head) == second.unit
    again.append(first, None, 0.0)
    again.reject(second.head, 7)
    assert [each.head for each in scene.again().early()] == [third.head]
    assert scene.again().event(second.head) is None


def test_flags_tell_what_is_not_shown() -> None:
    scene = Scene()
    soft, late, shown = scene.events[:3]
    scene.memory.append(soft, SOFT, 0.0)
    scene.memory.append(late, LATE, 0.0)
    scene.memory.append(shown, None, 0.0)
    assert scene.again().hidden == {soft.head: SOFT, late.head: LATE}


def test_so_many_refused_ids_are_remembered() -> None:
    scene = Scene(rejected=3)
    ids = [EventId(bytes([number]) * 32) for number in range(4)]
    assert [scene.memory.reject(each, 5) for each in ids] == [None, None, None, ids[0]]
    assert scene.memory.rejected == {ids[1]: 5, ids[2]: 5, ids[3]: 5}
    assert scene.again().rejected == scene.memory.rejected


def test_what_is_gone_may_come_all_the_same() -> None:
    scene = Scene()
    event = scene.events[0]
    scene.memory.expire(event.head)
    assert list(scene.again().expired) == [event.head]
    scene.memory.append(event, LATE, 0.0)
    assert scene.memory.expired == scene.again().expired == {}


def test_rooms_share_a_store_and_nothing_else() -> None:
    scene = Scene()
    scene.memory.append(scene.events[0], SOFT, 0.0)
    scene.memory.keep_early(scene.events[1])
    scene.memory.reject(scene.events[2].head, 1)
    other = scene.again(TopicId(b"o" * 32))
    assert other.get(scene.events[0].head) is None
    assert (list(other.events()), other.early(), other.hidden, other.rejected) == ([], [], {}, {})


def test_an_early_event_that_is_damaged_is_let_go_and_asked_for_anew() -> None:
    scene = Scene()
    first, second = scene.events[:2]
    for each in (first, second):
        scene.memory.keep_early(each)
    for lost, left in ((first, second), (second, None)):
        scene.store.cells.spoil(f"room.early/{scene.bench.id.hex()}", lost.head)
        again = scene.again()
        assert [each.head for each in again.early()] == ([] if left is None else [left.head])
        assert again.get(lost.head) is None
        assert again.overflowed, "relays think that we have it"
        again.overflowed = False
    scene.memory.keep_early(first)
    scene.store.cells.spoil(f"room.early/{scene.bench.id.hex()}", first.head)
    assert scene.memory.get(first.head) is None
    assert scene.memory.overflowed


def test_what_is_noted_is_there_after_a_restart_and_replaced_by_the_next() -> None:
    world = Circle("ann")
    person = world.person("ann")
    assert notes(world.stores["ann"].cells) == {}
    world.get("ann", NotePerson(person, b"one"), Done)
    world.get("ann", NotePerson(person, b"two"), Done)
    world.offline("ann")
    world.online("ann")
    assert notes(world.stores["ann"].cells) == {person: b"two"}
