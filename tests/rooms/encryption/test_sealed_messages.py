"""Messages of an encrypted room: opened, waiting for keys, shown to newcomers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rooms.circle import Devices
from tests.rooms.encryption.test_guarding import devices

from linnet.core.errors import InvalidEvent
from linnet.core.ids import EventId
from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.event.event import MESSAGE, Event
from linnet.groups.message_crypto import PLAINTEXT_BYTES, read_clear
from linnet.rooms.encryption import room_group
from linnet.rooms.encryption.group_state import Unread
from linnet.rooms.encryption.room_group import KEYS, UnreadMessages, history_bodies, history_of
from linnet.rooms.event_types import GROUP, MEMBER
from linnet.trace.records import Record


def event_of(world: Devices, name: str, id: EventId) -> Event:
    event = world.group(name)._memory.event(id)
    assert event is not None
    return event


def without_keys(world: Devices, name: str, *said: str) -> list[Event]:
    """Messages that come while a device is outside."""
    ids = [world.say("ann", each)[0] for each in said]
    world.run(5.0)
    group, events = world.group(name), [event_of(world, name, id) for id in ids]
    group.forget(world.network.now)
    for event in events:
        group._context.store.cells.delete(f"group.text/{world.room.hex()}", event.id)
    return events


def test_kinds_that_carriers_must_understand_are_not_sealed() -> None:
    messages = devices("ann").group("ann").messages
    assert messages.seals(MESSAGE, None)
    assert not messages.seals(GROUP, None)
    assert not messages.seals(MEMBER, "somebody")
    assert not messages.seals(MESSAGE, "state")


def test_only_so_many_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_group, "UNREAD", 1)
    world = devices("ann", "ben")
    first, second = without_keys(world, "ben", "one", "two")
    group, now = world.group("ben"), world.network.now
    for place, event in enumerate((first, second)):
        group.messages.open_event(event, place, now)
        (record,) = group._out.take()
        assert isinstance(record, Record)
        assert (record.event, record.reason, record.note) == (
            event.id,
            Reason.BEFORE_JOINING,
            "cannot be read",
        )
        assert group.messages.text(event.id) == Unread(Reason.BEFORE_JOINING, place)
        assert group.messages.readable(event) == b""
        shown = group.messages.shown(event)
        assert isinstance(shown, Unreadable)
        assert (shown.reason, shown.event.body) == (Reason.BEFORE_JOINING, b"")
    assert list(group.texts.unread) == [first.id]


def test_epochs_keep_their_messages_in_order_and_lose_what_was_read() -> None:
    world = devices("ann", "ben")
    ids = world.say("ann", *(f"m{number}" for number in range(12)))
    world.run(5.0)
    memory = world.group("ben")._memory
    events = [event for event in map(memory.event, ids) if event is not None]
    member, epoch, _ = read_clear(events[0].tail.clear or b"")
    waiting = UnreadMessages(memory, sorted(ids))  # As a store gives them back: by id.
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
    memory = world.group("ben")._memory
    event = memory.event(id)
    assert isinstance(event, Event)
    broken = replace(event, tail=replace(event.tail, clear=b"?"))
    waiting = UnreadMessages(memory, ())
    waiting.add(broken)
    waiting.remove(broken)
    assert waiting.all() == []


PAIRS = [(EventId(number.to_bytes(32, "big")), b"k" * 44) for number in range(2 * KEYS + 1)]


def test_as_many_events_as_it_takes_and_each_fits() -> None:
    bodies = list(history_bodies(PAIRS))
    assert len(bodies) == 3
    assert max(map(len, bodies)) <= PLAINTEXT_BYTES < BODY_BYTES
    assert [pair for body in bodies for pair in history_of(body).keys] == PAIRS
    assert list(history_bodies([])) == []


@given(st.binary(max_size=200))
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidEvent):
        history_of(body)


def test_keys_do_not_show() -> None:
    (body,) = history_bodies(PAIRS[:2])
    assert repr(history_of(body)) == "History(2 keys)"
