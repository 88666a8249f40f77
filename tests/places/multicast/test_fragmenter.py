"""Messages are cut into pieces that leave early, take turns, and are put together again."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, EventId
from linnet.core.limits import LARGEST_COUNT
from linnet.core.reasons import Reason
from linnet.places.multicast.fragmentation import (
    OPEN_MESSAGES,
    PIECE_BYTES,
    Change,
    Cut,
    Flag,
    Fragmenter,
    Head,
    Piece,
    encode_head,
)


def drained(cutting: Fragmenter) -> list[Piece]:
    return list(iter(cutting.take, None))


def test_a_long_message_has_exact_sizes_offsets_and_flags() -> None:
    cutting = Fragmenter()
    cutting.open(1)
    cutting.feed(1, b"x" * 150_100)
    cutting.finish(1)
    shape = [(each.offset, len(each.data), each.flags) for each in drained(cutting)]
    assert shape == [
        (0, 61_440, Flag.FIRST),
        (61_440, 61_440, Flag(0)),
        (122_880, 27_220, Flag.LAST),
    ]
    assert len(cutting) == 0


def test_an_empty_body_is_one_piece_first_and_last() -> None:
    cutting = Fragmenter()
    cutting.open(7)
    assert cutting.take() is None
    cutting.finish(7)
    assert drained(cutting) == [Piece(7, 0, b"", True, True)]


def test_the_first_piece_leaves_before_the_body_ends() -> None:
    cutting = Fragmenter(piece_bytes=4)
    cutting.open(1)
    cutting.feed(1, b"abcde")
    assert drained(cutting) == [Piece(1, 0, b"abcd", True, False)]
    cutting.feed(1, b"f")  # suspended, and resumed
    assert cutting.take() is None
    cutting.finish(1)
    assert drained(cutting) == [Piece(1, 4, b"ef", False, True)]


def test_what_is_flushed_leaves_though_it_fills_no_piece() -> None:
    cutting = Fragmenter(piece_bytes=4)
    cutting.open(1)
    cutting.flush(1)
    assert cutting.take() is None
    cutting.feed(1, b"abcdef")
    cutting.flush(1)
    cutting.feed(1, b"g")
    assert drained(cutting) == [Piece(1, 0, b"abcd", True, False), Piece(1, 4, b"efg", False, False)]
    cutting.finish(1)
    assert drained(cutting) == [Piece(1, 7, b"", False, True)]


def test_small_messages_get_in_between() -> None:
    cutting = Fragmenter(piece_bytes=2)
    cutting.open(1)
    cutting.feed(1, b"aabbccdd")
    cutting.finish(1)
    first = cutting.take()
    cutting.open(2)
    cutting.feed(2, b"z")
    cutting.finish(2)
    rest = drained(cutting)
    assert first is not None
    assert [each.message for each in [first, *rest]] == [1, 1, 2, 1, 1]


def test_whoever_writes_too_fast_is_told() -> None:
    cutting = Fragmenter(piece_bytes=4, held_pieces=2)
    cutting.open(1)
    cutting.feed(1, b"1234567")
    assert cutting.room(1) == 1
    with pytest.raises(Refused) as refused:
        cutting.feed(1, b"89")
    assert refused.value.reason is Reason.QUEUE_FULL
    cutting.take()
    assert cutting.room(1) == 5
    assert cutting.abandon(1) == 3
    assert cutting.abandon(1) == 0


def test_only_open_messages_are_written_and_not_too_many() -> None:
    cutting = Fragmenter()
    reasons = []
    cutting.open(0)
    cutting.finish(0)
    calls: list[Callable[[], None]] = [
        lambda: cutting.feed(0, b"x"),
        lambda: cutting.finish(9),
        lambda: cutting.open(0),
    ]
    for call in calls:
        with pytest.raises(Refused) as refused:
            call()
        reasons.append(refused.value.reason)
    for number in range(1, OPEN_MESSAGES):
        cutting.open(number)
    with pytest.raises(Refused) as refused:
        cutting.open(OPEN_MESSAGES)
    assert [*reasons, refused.value.reason] == [
        Reason.UNKNOWN,
        Reason.UNKNOWN,
        Reason.IN_USE,
        Reason.TOO_MANY,
    ]


@given(
    bodies=st.lists(st.lists(st.binary(max_size=9), max_size=6), min_size=1, max_size=5),
    order=st.randoms(use_true_random=False),
)
def test_interleaved_messages_are_whole_again(bodies: list[list[bytes]], order: Random) -> None:
    cutting = Fragmenter(piece_bytes=4, held_pieces=16)
    steps = [(message, part) for message, parts in enumerate(bodies) for part in [*parts, None]]
    queues: dict[int, list[bytes | None]] = {}
    for message, part in steps:
        queues.setdefault(message, []).append(part)
    pieces: list[Piece] = []
    for message in queues:
        cutting.open(message)
    while queues:
        message = order.choice(list(queues))
        part = queues[message].pop(0)
        if part is None:
            cutting.finish(message)
            del queues[message]
        else:
            cutting.feed(message, part)
        pieces += drained(cutting)
    for message, parts in enumerate(bodies):
        mine = [each for each in pieces if each.message == message]
        assert b"".join(each.data for each in mine) == b"".join(parts)
        offsets = [sum(len(before.data) for before in mine[:index]) for index in range(len(mine))]
        assert [each.offset for each in mine] == offsets
        assert [each.is_first for each in mine] == [True] + [False] * (len(mine) - 1)
        assert [each.is_last for each in mine] == [False] * (len(mine) - 1) + [True]
        assert max(len(each.data) for each in mine) <= 4
        assert len(set(offsets)) == len(offsets)


def test_a_full_piece_with_the_longest_head_and_card_stays_below_64_kib() -> None:
    most, some = LARGEST_COUNT, bytes(32)
    change = Change(AuthorId(some), True, most)
    cut = Cut(most, most, most, EventId(some))
    head = encode_head(Head(most, most, most, most, most, 31, change, cut))
    around = len(msgpack.encode((some, some, bytes(8), most, some, bytes(64))))
    card = len(msgpack.encode((some, some, most, most, "x" * 64, bytes(64))))
    assert PIECE_BYTES + len(head) + around + card + 256 < 64 * 1024
