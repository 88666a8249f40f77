from __future__ import annotations

from tests.rooms.circle import Circle

from linnet.delivery.commands import Done
from linnet.rooms.commands import NotePerson
from linnet.rooms.room_store import notes


def test_what_is_noted_is_there_after_a_restart_and_replaced_by_the_next() -> None:
    world = Circle("ann")
    person = world.person("ann")
    assert notes(world.stores["ann"].cells) == {}
    world.get("ann", NotePerson(person, b"one"), Done)
    world.get("ann", NotePerson(person, b"two"), Done)
    world.offline("ann")
    world.online("ann")
    assert notes(world.stores["ann"].cells) == {person: b"two"}
