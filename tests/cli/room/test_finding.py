from __future__ import annotations

import pytest

from linnet.cli.room.finding import choose_person, is_whole
from linnet.core.errors import BadText
from linnet.identity.text import Sort, to_text
from linnet.node.room_types import MemberView
from linnet.rooms.content import Membership

ADA, BEA = to_text(Sort.PERSON, b"a" * 32), to_text(Sort.PERSON, b"b" * 32)


def member(person: str, label: str) -> MemberView:
    return MemberView(person, label, Membership.JOIN, 0, False, (), False)


MEMBERS = [member(ADA, "ada"), member(BEA, "")]


def wrong(text: str, members: list[MemberView]) -> str:
    with pytest.raises(BadText) as caught:
        choose_person(text, members)
    return str(caught.value)


def test_a_person_by_label_or_beginning() -> None:
    assert choose_person("ada", MEMBERS) == ADA
    assert choose_person("Ada", MEMBERS) == ADA
    assert choose_person(BEA[:10].upper(), MEMBERS) == BEA


def test_candidates_are_listed() -> None:
    twins = [member(ADA, "x"), member(BEA, "x")]
    assert f"can be 2 people; say who by the id: {ADA[:12]}… ('x'), {BEA[:12]}…" in wrong("x", twins)
    assert f"there is nobody called 'cal' in the room; there are {ADA[:12]}…" in wrong("cal", MEMBERS)
    assert "there is nobody called 'lp1'" in wrong("lp1", MEMBERS)
    assert "there are none" in wrong("cal", [])


def test_a_whole_id_is_told_from_a_beginning() -> None:
    assert is_whole(Sort.PERSON, f" {ADA.upper()} ")
    assert not is_whole(Sort.PERSON, ADA[:-1])
    assert not is_whole(Sort.EVENT, ADA)
