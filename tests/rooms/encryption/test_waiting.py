"""What cannot be read yet is found by its epoch, in its author's order, also after a restart."""

from __future__ import annotations

from msgspec.structs import replace
from tests.rooms.encryption.test_guarding import devices

from linnet.event.event import Event
from linnet.groups.sealing import read_clear
from linnet.rooms.encryption.waiting import Waiting


def test_epochs_keep_their_messages_in_order_and_lose_what_was_read() -> None:
    world = devices("ann", "ben")
    ids = world.say("ann", *(f"m{number}" for number in range(12)))
    world.run(5.0)
    memory = world.secrecy("ben")._memory
    events = [event for event in map(memory.event, ids) if event is not None]
    member, epoch, _ = read_clear(events[0].tail.clear or b"")
    waiting = Waiting(memory, sorted(ids))  # As a store gives them back: by id.
    assert waiting.of_epoch(member, epoch) == events == waiting.all()
    assert waiting.of_epoch(member, epoch + 1) == []
    for event in events[1:]:
        waiting.remove(event)
    assert waiting.all() == events[:1]
    waiting.remove(events[0])
    assert waiting.all() == []
    waiting.add(events[3])
    assert waiting.all() == [events[3]]


def test_what_names_no_epoch_waits_for_none() -> None:
    world = devices("ann", "ben")
    (id,) = world.say("ann", "hello")
    world.run(5.0)
    memory = world.secrecy("ben")._memory
    event = memory.event(id)
    assert isinstance(event, Event)
    broken = replace(event, tail=replace(event.tail, clear=b"?"))
    waiting = Waiting(memory, ())
    waiting.add(broken)
    waiting.remove(broken)
    assert waiting.all() == []
