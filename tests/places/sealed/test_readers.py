"""Devices by their prekeys: the newest count, a person has so many, and whoever leaves is forgotten."""

from __future__ import annotations

import random

import pytest
from tests.raised import reason_of

from linnet.core.errors import RemoteError
from linnet.core.ids import DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.groups.labels import Device
from linnet.groups.prekeys import encode_bundle, make_prekeys, renew
from linnet.places.sealed.key_boxes import DEVICES_EACH, Readers
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

NOW = 1_800_000_000.0
LUCK = random.Random(1).randbytes
PLACE = TopicId(b"p" * 32)
ANN, BEN = known_identity("ann").author, known_identity("ben").author


def device(person: bytes, number: int = 0) -> Device:
    return Device(ANN if person == ANN else BEN, DeviceId(number.to_bytes(8, "big")))


def test_the_newest_prekeys_count_and_survive() -> None:
    store = MemoryStore()
    readers = Readers(PLACE, store.cells)
    first = make_prekeys(LUCK, NOW, 0)
    second = renew(first, LUCK, NOW + 10, 0)
    other = make_prekeys(LUCK, NOW + 20, 0)
    old, new, newest = (encode_bundle(each.bundle) for each in (first, second, other))
    assert readers.learn(device(ANN), old)
    assert not readers.learn(device(ANN), old)
    assert readers.learn(device(ANN), new)
    assert not readers.learn(device(ANN), old), "played again"
    assert readers.learn(device(ANN), newest), "a store that was lost"
    assert not readers.learn(device(ANN), new)
    again = Readers(PLACE, store.cells)
    assert again.bundle(device(ANN)) == other.bundle
    assert again.prekeys(device(ANN)) == newest
    assert again.all() == [device(ANN)]


def test_prekeys_from_a_clock_that_was_ahead_give_way_to_later_ones_of_the_same_device() -> None:
    readers = Readers(PLACE, MemoryStore().cells)
    ahead = make_prekeys(LUCK, NOW + 3 * 365 * 86_400, 0)
    true = renew(ahead, LUCK, NOW, 0)
    assert readers.learn(device(ANN), encode_bundle(ahead.bundle))
    assert readers.learn(device(ANN), encode_bundle(true.bundle))
    assert not readers.learn(device(ANN), encode_bundle(ahead.bundle)), "played again"
    assert readers.bundle(device(ANN)) == true.bundle


def test_who_gave_none_or_something_else_has_none() -> None:
    readers = Readers(PLACE, MemoryStore().cells)
    with pytest.raises(RemoteError):
        readers.learn(device(ANN), b"nothing")
    assert reason_of(RemoteError, readers.bundle, device(ANN)) is Reason.MISSING_PREKEYS
    assert readers.prekeys(device(ANN)) == b""


def test_a_person_has_so_many_devices_and_is_forgotten_with_all_of_them() -> None:
    store = MemoryStore()
    readers = Readers(PLACE, store.cells)
    prekeys = encode_bundle(make_prekeys(LUCK, NOW, 0).bundle)
    for number in range(DEVICES_EACH + 2):
        readers.learn(device(ANN, number), prekeys)
    readers.learn(device(BEN), prekeys)
    mine = [each for each in readers.all() if each.author == ANN]
    assert mine == readers.of(ANN) == [device(ANN, number) for number in range(2, DEVICES_EACH + 2)]
    readers.forget(ANN)
    readers.forget(ANN)
    assert readers.all() == Readers(PLACE, store.cells).all() == [device(BEN)]
