"""How far each device has read, as far as it makes a difference."""

from __future__ import annotations

import pytest
from tests.rooms.relay.scenes import World

from linnet.core.ids import DeviceId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.rooms.event_types import GROUP
from linnet.rooms.relay import event_index
from linnet.rooms.relay.event_index import NOTE, Budget, GroupDevices, GroupShelf, Reader, key_of
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

WORLD = World()
EVENTS = [WORLD.chronicle.sign("ann", GROUP, None, b"", WORLD.control) for _ in range(3)]
ANN = key_of(EVENTS[0])
BEN = key_of(WORLD.chronicle.sign("ben", GROUP, None, b"", WORLD.control))


def devices_on(store: MemoryStore, out: Outbox | None = None) -> GroupDevices:
    shelf = GroupShelf(WORLD.room, store.cells, Budget(10**6))
    return GroupDevices(WORLD.room, store.cells, shelf, Outbox() if out is None else out)


def shelve(store: MemoryStore, out: Outbox) -> GroupDevices:
    """Three operations of ann, at 10, 20 and 30; ben takes part since 5."""
    shelf = GroupShelf(WORLD.room, store.cells, Budget(10**6))
    for number, event in enumerate(EVENTS, 1):
        shelf.add(event, 10 * number, 10, 0, 1.0)
    devices = GroupDevices(WORLD.room, store.cells, shelf, out)
    devices.add_reader(BEN, 5, lambda _: True)
    assert out.take() == []
    return devices


def test_what_a_device_says_last_counts_and_outlives_a_restart_where_it_matters() -> None:
    store = MemoryStore()
    devices = shelve(store, Outbox())
    assert devices.readers == {BEN: Reader(0, 5)}
    devices.add_reader(BEN, 40, lambda _: True)
    devices.note_read(ANN, 12)
    assert devices.readers == {BEN: Reader(0, 5)}  # who takes no part is not kept account of
    devices.note_read(BEN, 12)
    assert devices.readers == devices_on(store).readers == {BEN: Reader(12, 12)}
    devices.note_read(BEN, 15)
    assert (devices.readers, devices_on(store).readers) == ({BEN: Reader(15, 15)}, {BEN: Reader(12, 12)})
    devices.note_read(BEN, 0)
    assert devices.readers == devices_on(store).readers == {BEN: Reader(0, 15)}
    assert (devices.count_of(EVENTS[0].author), len(devices.readers)) == (0, 1)
    devices.clear()
    assert devices.readers == devices_on(store).readers == {}


def test_what_a_device_loses_is_said_once_until_it_has_read_on() -> None:
    store, out = MemoryStore(), Outbox()
    devices = shelve(store, out)
    devices.note_read(BEN, 10)
    assert not devices.note_loss(BEN, 10)  # it has had that
    assert devices.note_loss(BEN, 20)
    assert not devices.note_loss(BEN, 30)
    assert out.take() == []
    devices.record_loss(BEN, Reason.TOO_MANY)
    device, reason = DeviceId(BEN[32:]), Reason.TOO_MANY
    assert out.take() == [Record(Kind.EVICTED, WORLD.room, device=device, reason=reason, note=NOTE)]
    assert devices_on(store).readers[BEN].lost
    devices.note_read(BEN, 0)
    assert devices.readers[BEN] == Reader(0, 10, lost=True)
    devices.note_read(BEN, 25)
    assert devices.readers[BEN] == devices_on(store).readers[BEN] == Reader(25, 25)


def test_past_its_number_one_of_no_member_goes_and_else_the_oldest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_index, "DEVICES", 3)
    out = Outbox()
    devices = devices_on(MemoryStore(), out)
    keys = [bytes([number]) * 40 for number in range(5)]
    gone = [
        Record(Kind.EVICTED, WORLD.room, device=DeviceId(key[32:]), reason=Reason.TOO_MANY, note=NOTE)
        for key in keys
    ]
    for key in keys[:3]:
        devices.add_reader(key, 1, lambda _: True)
    assert out.take() == []
    devices.add_reader(keys[3], 1, lambda key: key != keys[1])
    assert out.take() == [gone[1]]
    devices.add_reader(keys[4], 1, lambda _: True)
    assert out.take() == [gone[0]]
    assert list(devices.readers) == keys[2:]
