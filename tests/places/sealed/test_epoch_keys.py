"""Keys of epochs lead forwards only, and a fragment opens nowhere but where it was sealed for."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.raised import reason_of

from linnet.core.errors import MalformedMessage, RemoteError, StoreError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.groups import labels as group_labels
from linnet.places.sealed.epoch_keys import (
    LABELS,
    STEPS,
    TOLD,
    EpochKey,
    Ring,
    at_step,
    pack_key,
    unpack_keys,
)
from linnet.store.memory import MemoryStore
from linnet.streams.sealed.stream_keys import LABELS as STREAM_LABELS

PLACE = TopicId(bytes(32))
FIRST = EpochKey(b"epoch--1", 0, 1, b"k" * 32)


def reached(key: EpochKey, step: int) -> EpochKey:
    found = at_step(key, step)
    assert found is not None
    return found


@given(st.integers(0, 40), st.integers(0, 40))
def test_every_later_step_is_reached_and_no_earlier_one(begin: int, end: int) -> None:
    key = reached(FIRST, begin)
    if end < begin:
        assert at_step(key, end) is None
    else:
        assert at_step(key, end) == reached(FIRST, end)


def test_steps_give_other_keys_and_other_epochs_others() -> None:
    other = replace(FIRST, epoch=b"epoch--2")
    keys = [reached(start, step).key for start in (FIRST, other) for step in (1, 2, 3)]
    assert len(set(keys)) == 6
    assert at_step(FIRST, STEPS) is None


def test_keys_are_told_as_bytes() -> None:
    keys = [FIRST, reached(FIRST, 7)]
    payload = b"".join(map(pack_key, keys))
    assert unpack_keys(payload) == keys
    with pytest.raises(MalformedMessage):
        unpack_keys(payload[:-1])
    with pytest.raises(MalformedMessage):
        unpack_keys(TOLD.pack(b"epoch--1", STEPS, 1, b"k" * 32))


def test_a_ring_keeps_the_earliest_step_and_survives() -> None:
    store = MemoryStore()
    ring = Ring(PLACE, store.cells)
    assert ring.add(reached(FIRST, 5))
    assert ring.find(FIRST.epoch, 4) is None
    assert ring.find(FIRST.epoch, 9) == reached(FIRST, 9)
    assert not ring.add(reached(FIRST, 6)), "that could be computed"
    assert ring.add(reached(FIRST, 2))
    assert ring.find(FIRST.epoch, 3) == reached(FIRST, 3)
    assert ring.find(b"epoch--2", 3) is None
    again = Ring(PLACE, store.cells)
    assert again.all() == ring.all() == [reached(FIRST, 2)]
    assert not Ring(TopicId(b"x" * 32), store.cells).all()


def test_two_keys_of_one_step_are_named() -> None:
    ring = Ring(PLACE, MemoryStore().cells)
    ring.add(reached(FIRST, 5))
    for step in (1, 5, 8):
        assert (
            reason_of(RemoteError, ring.add, replace(FIRST, step=step, key=b"x" * 32)) is Reason.EQUIVOCATION
        )
    assert ring.all() == [reached(FIRST, 5)]


def test_epochs_are_in_the_order_of_their_use() -> None:
    ring = Ring(PLACE, MemoryStore().cells)
    late, early = replace(FIRST, message=9), EpochKey(b"epoch--0", 0, 3, b"e" * 32)
    ring.add(late)
    ring.add(early)
    assert ring.all() == [early, late]


def test_nothing_shows_where_a_key_is_printed_or_cannot_be_read() -> None:
    assert "k" * 8 not in repr(FIRST)
    store = MemoryStore()
    store.cells.put(f"place epoch {PLACE.hex()}", b"epoch--1", b"secret")
    with pytest.raises(StoreError) as caught:
        Ring(PLACE, store.cells)
    assert "secret" not in str(caught.value)


def test_no_label_is_used_twice_nor_by_groups_nor_by_streams() -> None:
    every = (*LABELS, *group_labels.ALL, *STREAM_LABELS)
    assert len(set(every)) == len(every)
