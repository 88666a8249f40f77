"""Ids in order against a plain sorted list."""

from __future__ import annotations

from bisect import bisect_left
from hashlib import sha256
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.delivery.graphs import name

from linnet.core.ids import EventId
from linnet.core.limits import LARGEST_COUNT
from linnet.delivery.set_reconciliation import END, START, Key, SortedIds

keys = st.tuples(st.integers(0, 20), st.integers(0, 30).map(name))


def fingerprint(ids: list[EventId]) -> bytes:
    total = sum(int.from_bytes(id, "big") for id in ids) % 2**256
    return sha256(len(ids).to_bytes(8, "big") + total.to_bytes(32, "big")).digest()


def check(ids: SortedIds, plain: list[Key], low: Key, high: Key) -> None:
    first, last = bisect_left(plain, low), bisect_left(plain, high)
    assert (ids.rank(low), ids.rank(high)) == (first, last)
    assert ids.keys(low, high, 10_000) == plain[first:last]
    assert ids.keys(low, high, 3) == plain[first : max(first, min(last, first + 3))]
    if first <= last:
        assert ids.fingerprint(low, high) == fingerprint([id for _, id in plain[first:last]])


@given(st.lists(st.tuples(st.booleans(), keys), max_size=60), keys, keys)
def test_it_is_a_sorted_set(changes: list[tuple[bool, Key]], low: Key, high: Key) -> None:
    ids, plain = SortedIds(), dict[Key, None]()
    for put, key in changes:
        if put:
            assert ids.add(*key) == (key not in plain)
            plain[key] = None
        else:
            assert ids.remove(*key) == (key in plain)
            plain.pop(key, None)
        assert (key in ids) == (key in plain)
    assert list(ids) == sorted(plain)
    assert len(ids) == len(plain)
    low, high = sorted((low, high))
    check(ids, sorted(plain), low, high)
    check(ids, sorted(plain), START, END)


@pytest.mark.parametrize("order", ["ascending", "descending", "any"])
def test_many_blocks(order: str) -> None:
    rng = Random(7)
    plain = sorted((number // 3, name(number)) for number in range(5_000))
    coming = list(plain)
    if order == "any":
        rng.shuffle(coming)
    elif order == "descending":
        coming.reverse()
    ids = SortedIds()
    for number, key in enumerate(coming):
        ids.add(*key)
        if number % 500 == 0:
            ids.fingerprint(START, END)
    assert list(ids) == plain
    assert [ids.key_at(rank) for rank in range(0, 5_000, 7)] == plain[::7]
    for _ in range(50):
        low, high = sorted(rng.sample([START, END, *plain], 2))
        check(ids, plain, low, high)
    for key in rng.sample(plain, 4_000):
        ids.remove(*key)
        plain.remove(key)
    check(ids, plain, START, END)
    check(ids, plain, *sorted(rng.sample(plain, 2)))


def test_ids_that_come_in_order_fill_their_blocks() -> None:
    ids = SortedIds()
    for number in range(5_120):
        ids.add(number, name(number))
    assert [len(block.ids) for block in ids._blocks] == [512] * 10


def test_an_empty_set_has_a_fingerprint_too() -> None:
    ids = SortedIds()
    assert ids.fingerprint(START, END) == fingerprint([])
    assert (list(ids), ids.rank(END), ids.keys(START, END, 9), START in ids) == ([], 0, [], False)


def test_the_size_is_part_of_the_fingerprint() -> None:
    """The id of zeros adds nothing to a sum."""
    ids = SortedIds()
    ids.add(*START)
    assert ids.fingerprint(START, END) != fingerprint([])


@pytest.mark.parametrize("key", [(-1, name(1)), (LARGEST_COUNT, END[1]), (LARGEST_COUNT + 1, name(1))])
def test_what_has_no_place_is_not_taken(key: Key) -> None:
    with pytest.raises(ValueError, match="height"):
        SortedIds().add(*key)
