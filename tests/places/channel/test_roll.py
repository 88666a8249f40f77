"""The roll: what is in force, in one order, under one hash."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.raised import reason_of

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.places.channel.membership import LINE_BYTES, Known, Roll, in_force, packing, read_lines, unpack

ANN = AuthorId(b"\x01" + bytes(31))
BEN = AuthorId(b"\x01" + bytes(30) + b"\x01")
CAT = AuthorId(b"\xff" * 32)
JOIN = Known(10, 10, 0, True)
PART = Known(20, 0, 0, False)
AGAIN = Known(30, 30, 1, True)


def packed(*changes: Known) -> bytes:
    return b"".join(packing.pack(*each) for each in changes)


def test_only_what_is_in_force_is_in_the_lines_and_they_are_in_the_order_of_nyms() -> None:
    roll = Roll()
    roll.set(CAT, packed(JOIN, PART, AGAIN))
    roll.set(BEN, packed(JOIN, PART))
    roll.set(ANN, packed(JOIN))
    assert roll.lines() == ANN + packed(JOIN) + CAT + packed(AGAIN)
    assert read_lines(roll.lines()).digest() == roll.digest()


def test_the_hash_is_that_of_the_hashes_of_256_shelves() -> None:
    roll = Roll()
    roll.set(ANN, packed(JOIN))
    empty = hashlib.sha256(b"").digest()
    mine = hashlib.sha256(ANN + packed(JOIN)).digest()
    assert roll.digest() == hashlib.sha256(b"linnet/roll/1" + empty + mine + empty * 254).digest()


def test_what_is_taken_out_or_forgotten_is_not_in_the_hash() -> None:
    roll = Roll()
    nothing = roll.digest()
    for nym in (ANN, BEN, CAT):
        roll.set(nym, packed(JOIN))
    assert roll.digest() != nothing
    for nym in (ANN, BEN, CAT):
        roll.set(nym, b"")
    assert (roll.digest(), list(roll.items()), roll.get(ANN)) == (nothing, [], b"")
    roll.set(ANN, packed(JOIN))
    roll.clear()
    assert (roll.digest(), roll.lines()) == (nothing, b"")


@pytest.mark.parametrize(
    "lines",
    [
        bytes(LINE_BYTES - 1),
        CAT + packed(JOIN) + ANN + packed(JOIN),
        ANN + packed(JOIN) + ANN + packed(JOIN),
        ANN + packed(PART),
        ANN + packed(JOIN) + ANN + packed(PART),
        ANN + packed(JOIN)[:-1] + b"\x02",
    ],
    ids=["a piece of one", "order", "twice", "a part", "not in force", "neither"],
)
def test_what_is_no_roll_is_refused(lines: bytes) -> None:
    """A part that were taken would make a generation known that is not."""
    assert reason_of(RemoteError, read_lines, lines) is Reason.MALFORMED


CHANGES = st.lists(st.tuples(st.integers(0, 2), st.booleans(), st.integers(0, 9)), max_size=16)


@given(CHANGES)
def test_one_hash_whatever_the_order_of_changes_between_nyms(course: list[tuple[int, bool, int]]) -> None:
    mine: dict[AuthorId, list[Known]] = {}
    stepwise = Roll()
    for number, (who, joins, back) in enumerate(course, 1):
        nym = (ANN, BEN, CAT)[who]
        known = Known(number, max(0, number - back) if joins else 0, 0, joins)
        mine.setdefault(nym, []).append(known)
        stepwise.set(nym, packed(*mine[nym]))
        stepwise.digest()
    at_once = Roll()
    for nym in sorted(mine, reverse=True):
        at_once.set(nym, packed(*in_force(mine[nym])))
    assert at_once.digest() == stepwise.digest()
    assert at_once.lines() == stepwise.lines()
    assert all(each.joins for _, rows in read_lines(stepwise.lines()).items() for each in unpack(rows))
