"""What an encrypted room keeps in the store."""

from __future__ import annotations

import pytest

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.groups.ids import Device
from linnet.rooms.encryption import keyring
from linnet.rooms.encryption.keyring import Keyring, Repaired, Text, Unread
from linnet.store.memory import MemoryStore

ROOM = TopicId(bytes(32))
EVENT, OTHER = EventId(b"e" * 32), EventId(b"o" * 32)
DEVICE = Device(AuthorId(b"a" * 32), DeviceId(b"d" * 8))


def test_all_of_it_is_there_after_a_restart() -> None:
    store = MemoryStore()
    ring = Keyring(ROOM, store.cells)
    assert not ring.parts
    ring.keep_state({b"": b"all", b"m1": b"one", b"m2": b"two"})
    ring.keep_state({b"": b"all", b"m1": b"changed"})
    ring.keep_bundle(DEVICE, EVENT)
    ring.use_identity(b"identity")
    ring.keep_text(EVENT, b"hello", b"k" * 44)
    ring.keep_why(OTHER, Reason.KEY_MISSING, 7, hope=True)
    ring.keep_stuck(OTHER, True)
    ring.repair(EVENT, 3)
    again = Keyring(ROOM, store.cells)
    assert again.parts == {b"": b"all", b"m1": b"changed"}
    assert again.bundles == {DEVICE: EVENT}
    assert again.is_used(b"identity")
    assert not again.is_used(b"another")
    assert again.text(EVENT) == Text(b"hello")
    assert again.text(OTHER) == Unread(Reason.KEY_MISSING, 7)
    assert again.shared_key(EVENT) == b"k" * 44
    assert list(again.shared()) == [(EVENT, b"k" * 44)]
    assert list(again.stuck) == [OTHER]
    assert list(again.unread) == [OTHER]
    assert again.repaired == {1: Repaired(EVENT, 3)}


def test_of_what_was_read_late_so_much_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring, "REPAIRED", 2)
    store = MemoryStore()
    ring = Keyring(ROOM, store.cells)
    for position in range(3):
        ring.repair(EVENT, position)
    assert (
        ring.repaired == {2: Repaired(EVENT, 1), 3: Repaired(EVENT, 2)} == Keyring(ROOM, store.cells).repaired
    )


def test_what_is_read_at_last_is_unread_no_more() -> None:
    ring = Keyring(ROOM, MemoryStore().cells)
    ring.keep_why(EVENT, Reason.KEY_MISSING, 7, hope=True)
    ring.keep_text(EVENT, b"at last", None)
    assert ring.text(EVENT) == Text(b"at last")
    assert not ring.unread
    assert ring.shared_key(EVENT) is None


def test_without_hope_nothing_is_tried_again() -> None:
    ring = Keyring(ROOM, MemoryStore().cells)
    ring.keep_why(EVENT, Reason.KEY_MISSING, 7, hope=True)
    ring.keep_why(EVENT, Reason.UNDECRYPTABLE, 7, hope=False)
    assert not ring.unread
    assert ring.text(EVENT) == Unread(Reason.UNDECRYPTABLE, 7)
    assert ring.text(OTHER) is None


def test_only_what_changed_is_written() -> None:
    store = MemoryStore()
    ring = Keyring(ROOM, store.cells)
    ring.keep_state({b"": b"all", b"m": b"one"})
    store.commit(lambda: None)
    ring.keep_state({b"": b"all", b"m": b"two"})
    assert len(store._journal) == 1


def test_rooms_are_apart() -> None:
    store = MemoryStore()
    Keyring(ROOM, store.cells).keep_text(EVENT, b"here", None)
    assert Keyring(TopicId(b"2" * 32), store.cells).text(EVENT) is None
