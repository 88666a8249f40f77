"""What is kept of sealed streams, and that it is deleted when its time has come."""

from __future__ import annotations

import pytest
from tests.delivery.voices import TOPIC
from tests.streams.sealed.hall import OWNER, Hall
from tests.streams.stage import NOW

from linnet.core.errors import StoreError
from linnet.core.ids import TopicId
from linnet.delivery.config import DeliveryConfig
from linnet.groups.prekeys import IN_FLIGHT, LIFE
from linnet.store.memory import MemoryStore
from linnet.streams.sealed.stream_keys import find
from linnet.streams.sealed.vault import OWNING, READING, Vault, prune_all, sealed_topics

CONFIG = DeliveryConfig()
DAY = 86_400.0


def test_what_is_kept_comes_back_whole() -> None:
    hall, store = Hall(), MemoryStore()
    hall.hear("ben", hall.allow("ben"), hall.turn())
    vault = Vault(TOPIC, store.cells, CONFIG)
    assert (vault.owning, vault.reading) == (None, None)
    vault.keep_owning(hall.owning, NOW)
    vault.keep_reading(hall.readings["ben"], NOW)
    again = Vault(TOPIC, store.cells, CONFIG)
    assert (again.owning, again.reading) == (hall.owning, hall.readings["ben"])
    assert sealed_topics(store.cells) == (TOPIC,)


def test_a_key_that_is_deleted_is_in_no_cell() -> None:
    hall, store = Hall(), MemoryStore()
    hall.hear("ben", hall.allow("ben"))
    old = hall.key(1).key
    for _ in range(5):
        hall.now += DAY
        hall.hear("ben", hall.turn())
    vault = Vault(TOPIC, store.cells, CONFIG)
    vault.keep_owning(hall.owning, hall.now)
    vault.keep_reading(hall.readings["ben"], hall.now)
    for space in (OWNING, READING):
        held = store.cells.get(space, TOPIC) or b""
        assert old not in held
        assert hall.key(6).key in held


def test_keys_go_also_while_nothing_is_said() -> None:
    hall, store = Hall(), MemoryStore()
    hall.hear("ben", hall.allow("ben"), hall.turn())
    opened = Vault(TOPIC, store.cells, CONFIG)
    opened.keep_owning(hall.owning, hall.now)
    closed = Vault(TopicId(b"u" * 32), store.cells, CONFIG)
    closed.keep_reading(hall.readings["ben"], hall.now)
    assert prune_all(store.cells, CONFIG, {TOPIC: opened}.get, hall.now + 8 * DAY)
    after = Vault(TopicId(b"u" * 32), store.cells, CONFIG).reading
    assert after is not None
    assert opened.owning is not None
    for keys in (after.keys, opened.owning.keys):
        assert find(keys, OWNER.device, 1) is None
        assert find(keys, OWNER.device, 2) is not None
    assert not prune_all(MemoryStore().cells, CONFIG, lambda topic: None, hall.now)


def test_the_prekeys_of_a_request_that_nobody_answered_go_as_well() -> None:
    hall, store = Hall(), MemoryStore()
    hall.ask("ben")
    vault = Vault(TOPIC, store.cells, CONFIG)
    vault.keep_reading(hall.readings["ben"], NOW)
    vault.prune(NOW + LIFE + IN_FLIGHT + 1)
    assert vault.reading is not None
    assert vault.reading.accesses[0].prekeys.signed == ()
    assert vault.reading.accesses[0].prekeys.one_time == ()


def test_a_request_is_granted_once() -> None:
    vault = Vault(TOPIC, MemoryStore().cells, CONFIG)
    assert not vault.was_granted(b"i" * 32)
    vault.note_granted(b"i" * 32)
    assert vault.was_granted(b"i" * 32)
    assert not vault.was_granted(b"j" * 32)


def test_a_damaged_store_is_told_without_what_it_holds() -> None:
    store = MemoryStore()
    store.cells.put(OWNING, TOPIC, b"\x81secret")
    with pytest.raises(StoreError) as error:
        Vault(TOPIC, store.cells, CONFIG)
    assert "secret" not in str(error.value)
