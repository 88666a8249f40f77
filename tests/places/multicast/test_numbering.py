"""The voice's numbers: from 0 and 1 on, through restarts, removals and terms."""

from __future__ import annotations

import pytest

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason
from linnet.places.multicast.fragmentation import (
    Change,
    Cut,
    Flag,
    Fragmenter,
    Head,
    Numbering,
    Piece,
    Standing,
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
    with pytest.raises(Refused) as refused:
        numbering.begin_join(BOB, 6)
    assert refused.value.reason is Reason.NOT_ALLOWED
    with pytest.raises(Refused) as refused:
        numbering.head(3, FIRST)
    assert refused.value.reason is Reason.TOO_LARGE


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
    with pytest.raises(Refused) as refused:
        numbering.head(1, LAST)
    assert refused.value.reason is Reason.UNKNOWN


@pytest.mark.parametrize(
    ("last", "reason"),
    [
        (Standing(fragment=3, term=1), Reason.MISSING_DEPENDENCY),
        (Standing(term=2), Reason.MISSING_DEPENDENCY),
    ],
)
def test_no_term_opens_behind_what_is_unknown(last: Standing, reason: Reason) -> None:
    with pytest.raises(Refused) as refused:
        Numbering(Standing()).open_term(last)
    assert refused.value.reason is reason


def test_nothing_is_said_outside_of_a_term_or_past_the_last_number() -> None:
    for standing, reason in (
        (Standing(), Reason.NOT_ALLOWED),
        (Standing(term=1, message=2**63 - 1), Reason.TOO_LARGE),
    ):
        with pytest.raises(Refused) as refused:
            Numbering(standing).begin()
        assert refused.value.reason is reason


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
