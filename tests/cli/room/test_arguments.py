from __future__ import annotations

import pytest

from linnet.api.rooms import KnownMember
from linnet.cli.room.arguments import choose_person
from linnet.core.errors import BadText
from linnet.core.ids import AuthorId
from linnet.identity.lookup import is_whole
from linnet.identity.text import Sort, person_text
from linnet.rooms.event_types import Membership

ADA, BEA = AuthorId(b"a" * 32), AuthorId(b"b" * 32)


ADA_TEXT, BEA_TEXT = person_text(ADA), person_text(BEA)


def member(person: AuthorId, label: str) -> KnownMember:
    return KnownMember(person, label, Membership.JOIN, 0, False, (), False)


MEMBERS = [member(ADA, "ada"), member(BEA, "")]


def wrong(text: str, members: list[KnownMember]) -> str:
    with pytest.raises(BadText) as caught:
        choose_person(text, members)
    return str(caught.value)


def test_a_person_by_label_or_beginning() -> None:
    assert choose_person("ada", MEMBERS) == ADA
    assert choose_person("Ada", MEMBERS) == ADA
    assert choose_person(BEA_TEXT[:10].upper(), MEMBERS) == BEA


def test_candidates_are_listed() -> None:
    twins = [member(ADA, "x"), member(BEA, "x")]
    assert f"can be 2 people; say who by the id: {ADA_TEXT[:12]}… ('x'), {BEA_TEXT[:12]}…" in wrong(
        "x", twins
    )
    assert f"there is nobody called 'cal' in the room; there are {ADA_TEXT[:12]}…" in wrong("cal", MEMBERS)
    assert "there is nobody called 'lp1'" in wrong("lp1", MEMBERS)
    assert "there are none" in wrong("cal", [])


def test_a_whole_id_is_told_from_a_beginning() -> None:
    assert is_whole(Sort.PERSON, f" {ADA_TEXT.upper()} ")
    assert not is_whole(Sort.PERSON, ADA_TEXT[:-1])
    assert not is_whole(Sort.EVENT, ADA_TEXT)
