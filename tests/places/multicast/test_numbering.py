"""Pieces of exact size, in turn; and their numbers."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack
from tests.raised import reason_of

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
    Numbering,
    Piece,
    Standing,
    encode_head,
)

BOB = AuthorId(b"b" * 32)
WHOLE = Piece(0, 0, b"", True, True)
FIRST = Piece(0, 0, b"x", True, False)
MIDDLE = Piece(0, 1, b"x", False, False)
LAST = Piece(0, 2, b"x", False, True)
BOTH = Flag.FIRST | Flag.LAST


def begun() -> Numbering:
    numbering = Numbering(Standing())
    numbering.open_term(Standing())
    return numbering


def test_fragments_count_from_0_and_messages_from_1() -> None:
    numbering = begun()
    heads = [numbering.head(numbering.begin().number, WHOLE) for _ in range(3)]
    assert heads == [
        Head(1, 0, 1, 0, 0, int(BOTH | Flag.OPENING)),
        Head(1, 1, 2, 0, 0, int(BOTH)),
        Head(1, 2, 3, 0, 0, int(BOTH)),
    ]


def test_numbers_go_on_after_a_restart() -> None:
    numbering = Numbering(Standing(fragment=41, message=9, generation=2, term=3, state=4))
    assert numbering.standing == Standing(41, 9, 2, 3, 4)
    message = numbering.begin(state=True)
    assert message.delta == 6
    assert numbering.head(message.number, WHOLE) == Head(3, 42, 10, 0, 2, int(BOTH | Flag.STATE))


def test_a_removal_cuts_what_is_under_way() -> None:
    """Message 40 is being sent when somebody is removed by message 41: its rest is of the next generation."""
    numbering = Numbering(Standing(fragment=99, message=39, generation=3, term=1))
    upload = numbering.begin()
    heads = [numbering.head(upload.number, FIRST), numbering.head(upload.number, MIDDLE)]
    kick = numbering.begin_part(BOB)
    heads.append(numbering.head(kick.number, WHOLE))
    heads.append(numbering.head(upload.number, LAST))
    assert [(each.fragment, each.message, each.generation) for each in heads] == [
        (100, 40, 3),
        (101, 40, 3),
        (102, 41, 3),
        (103, 40, 4),
    ]
    assert heads[2].change == Change(BOB, False, 0)
    assert numbering.under_way == ()


def test_the_distance_of_state_is_that_to_the_state_message_before() -> None:
    numbering = begun()
    deltas = [numbering.begin(state=kind == "s", reset=kind == "r").delta for kind in "-s--ss---srs"]
    assert deltas == [None, 0, None, None, 3, 1, None, None, None, 4, 0, 1]


def test_a_join_opens_from_itself_or_from_where_the_host_says() -> None:
    numbering = begun()
    changes = [numbering.begin_join(BOB, since).change for since in (None, 0, 3, None)]
    assert [each and each.effective_since for each in changes] == [1, 0, 3, 4]
    head = numbering.head(1, WHOLE)
    assert head.flags & Flag.HASH
    assert numbering.head(2, WHOLE).generation == 0  # nobody left
    assert reason_of(Refused, numbering.begin_join, BOB, 6) is Reason.NOT_ALLOWED
    assert reason_of(Refused, numbering.head, 3, FIRST) is Reason.TOO_LARGE


def test_a_term_opens_behind_the_fragment_it_names_and_leaves_what_was_under_way() -> None:
    numbering = begun()
    numbering.head(numbering.begin().number, FIRST)
    event = EventId(b"e" * 32)
    left = numbering.open_term(Standing(fragment=10, message=5, generation=1, term=4, state=2, head=event))
    assert left == (1,)
    message = numbering.begin(state=True)
    opening = numbering.head(message.number, WHOLE)
    assert opening == Head(5, 11, 6, 0, 1, int(BOTH | Flag.STATE | Flag.OPENING), None, Cut(4, 10, 5, event))
    assert message.delta == 4
    following = numbering.head(numbering.begin().number, WHOLE)
    assert (following.fragment, following.cut, following.flags) == (12, None, int(BOTH))
    assert reason_of(Refused, numbering.head, 1, LAST) is Reason.UNKNOWN


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (Standing(fragment=3, term=1), Reason.MISSING_DEPENDENCY),
        (Standing(term=2), Reason.MISSING_DEPENDENCY),
    ],
)
def test_no_term_opens_behind_what_is_unknown(last: Standing, reason: Reason) -> None:
    assert reason_of(Refused, Numbering(Standing()).open_term, last) is reason


def test_nothing_is_said_outside_of_a_term_or_past_the_last_number() -> None:
    for standing, reason in (
        (Standing(), Reason.NOT_ALLOWED),
        (Standing(term=1, message=2**63 - 1), Reason.TOO_LARGE),
    ):
        assert reason_of(Refused, Numbering(standing).begin) is reason


def test_a_term_does_not_open_in_the_middle_of_a_message() -> None:
    numbering = begun()
    message = numbering.begin()
    with pytest.raises(Refused):
        numbering.head(message.number, MIDDLE)


def test_pieces_of_two_messages_are_numbered_in_the_order_in_which_they_leave() -> None:
    numbering, cutting = begun(), Fragmenter(piece_bytes=2)
    large, small = numbering.begin().number, numbering.begin().number
    for number, body in ((large, b"aabbc"), (small, b"z")):
        cutting.open(number)
        cutting.feed(number, body)
        cutting.finish(number)
    heads = [numbering.head(piece.message, piece) for piece in iter(cutting.take, None)]
    assert [(each.fragment, each.message, each.offset) for each in heads] == [
        (0, 1, 0),
        (1, 2, 0),
        (2, 1, 2),
        (3, 1, 4),
    ]


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
    assert reason_of(Refused, cutting.feed, 1, b"89") is Reason.QUEUE_FULL
    cutting.take()
    assert cutting.room(1) == 5
    cutting.abandon(1)
    cutting.abandon(1)


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
