"""The values of a history, and how they are found."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.groups.causal import member, mid, op_id

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.groups.history import EMPTY, Addition, History, Removal, places
from linnet.groups.ids import MemberId

MEMBERS = tuple(sorted((member(name, op_id("create")) for name in "ABC"), key=lambda each: each.id))
A, B, C = (next(at for at, each in enumerate(MEMBERS) if each.id == mid(name)) for name in "ABC")
HISTORY = History(
    MEMBERS,
    (Addition(op_id("create"), None, 0b111, 0b111),),
    (Removal(op_id("remove"), 1 << C, 1 << A),),
)


def test_members_are_found_by_id() -> None:
    for place, each in enumerate(MEMBERS):
        assert HISTORY.member(each.id) == each
        assert HISTORY.bit(each.id) == HISTORY.known_bit(each.id) == 1 << place
        assert HISTORY.gap(each.id) == place
    assert HISTORY.ids(0b101) == (MEMBERS[0].id, MEMBERS[2].id)


@pytest.mark.parametrize("unknown", [b"", bytes(16), b"\xff" * 16])
def test_nobody_has_an_unknown_id(unknown: bytes) -> None:
    for history in (HISTORY, EMPTY):
        assert history.member(MemberId(unknown)) is None
        assert history.bit(MemberId(unknown)) == 0
        with pytest.raises(RemoteError) as caught:
            history.known_bit(MemberId(unknown))
        assert caught.value.reason is Reason.UNKNOWN_MEMBER


def test_operations_are_found_by_id() -> None:
    assert HISTORY.addition(op_id("create")) == HISTORY.additions[0]
    assert HISTORY.removal(op_id("remove")) == HISTORY.removals[0]
    assert HISTORY.addition(op_id("remove")) is None
    assert HISTORY.removal(op_id("create")) is None


def test_views_that_were_asked_for_are_no_part_of_the_value_and_stay_with_it() -> None:
    same = History(HISTORY.members, HISTORY.additions, HISTORY.removals)
    assert HISTORY.view(None) == HISTORY.view(mid("A")) == 1 << A | 1 << B
    assert HISTORY.view(mid("B")) == 0b111
    assert HISTORY.view_ids(None) is HISTORY.view_ids(None)
    assert same == HISTORY
    assert hash(same) == hash(HISTORY)
    assert "view" not in repr(HISTORY)
    later = replace(HISTORY, removals=(Removal(op_id("remove"), 1 << C, 1 << A | 1 << B),))
    assert later.view(mid("B")) == 1 << A | 1 << B


def test_places_of_a_set() -> None:
    assert list(places(0)) == []
    assert list(places(1 << 200 | 0b1001)) == [0, 3, 200]
