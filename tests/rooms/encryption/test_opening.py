"""Messages are opened once, or it is kept why not; when keys come they are tried again, within bounds."""

from __future__ import annotations

import pytest
from tests.rooms.encryption.test_guarding import Devices, devices

from linnet.core.errors import Refused
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.delivery.items import Unreadable
from linnet.event.event import MESSAGE, Event
from linnet.rooms.content import GROUP, MEMBER
from linnet.rooms.encryption import opening
from linnet.rooms.encryption.keyring import Text, Unread
from linnet.trace.records import Record


def event_of(world: Devices, name: str, id: EventId) -> Event:
    event = world.secrecy(name)._memory.event(id)
    assert event is not None
    return event


def without_keys(world: Devices, name: str, *said: str) -> list[Event]:
    """Messages that come while a device is outside."""
    ids = [world.say("ann", each)[0] for each in said]
    world.run(5.0)
    secrecy, events = world.secrecy(name), [event_of(world, name, id) for id in ids]
    secrecy.forget(world.network.now)
    for event in events:
        secrecy._context.store.cells.delete(f"group.text/{world.room.hex()}", event.id)
    return events


def test_what_is_said_is_kept_where_it_was_opened() -> None:
    world = devices("ann", "ben")
    (id,) = world.say("ann", "hello")
    world.run(5.0)
    for name in ("ann", "ben"):
        messages, event = world.secrecy(name).opening, event_of(world, name, id)
        assert messages.text(id) == Text(b"hello")
        assert messages.readable(event) == b"hello"
        shown = messages.shown(event)
        assert isinstance(shown, Event)
        assert (shown.id, shown.body) == (id, b"hello")
        messages.open_event(event, 1, world.network.now)
        assert world.secrecy(name)._out.take() == []  # It is not opened twice.


def test_kinds_that_carriers_must_understand_are_not_sealed() -> None:
    messages = devices("ann").secrecy("ann").opening
    assert messages.seals(MESSAGE, None)
    assert not messages.seals(GROUP, None)
    assert not messages.seals(MEMBER, "somebody")
    assert not messages.seals(MESSAGE, "state")


def test_only_so_many_are_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "UNREAD", 1)
    world = devices("ann", "ben")
    first, second = without_keys(world, "ben", "one", "two")
    secrecy, now = world.secrecy("ben"), world.network.now
    for place, event in enumerate((first, second)):
        secrecy.opening.open_event(event, place, now)
        (record,) = secrecy._out.take()
        assert isinstance(record, Record)
        assert (record.event, record.reason, record.note) == (
            event.id,
            Reason.BEFORE_JOINING,
            "cannot be read",
        )
        assert secrecy.opening.text(event.id) == Unread(Reason.BEFORE_JOINING, place)
        assert secrecy.opening.readable(event) == b""
        shown = secrecy.opening.shown(event)
        assert isinstance(shown, Unreadable)
        assert (shown.reason, shown.event.body) == (Reason.BEFORE_JOINING, b"")
    assert list(secrecy.keyring.unread) == [first.id]


def test_where_history_is_not_shared_no_key_is_shown() -> None:
    messages = devices("ann").secrecy("ann").opening
    with pytest.raises(Refused, match=Reason.NOT_ALLOWED):
        messages.shareable(None)
