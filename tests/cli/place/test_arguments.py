from __future__ import annotations

import pytest

from linnet.cli.place.places import choose_person
from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, TopicId
from linnet.identity.text import person_text, topic_text
from linnet.node.places import choose_place
from linnet.places.commands import PlaceIs
from linnet.places.deed import Deed, Policy

ADA, BEA = AuthorId(b"a" * 32), AuthorId(b"b" * 32)


def status(name: str | None, letter: bytes) -> PlaceIs:
    place = TopicId(letter * 32)
    deed = Deed(place, 1, Policy.PUBLIC, ADA, (), (), bytes(64))
    return PlaceIs(place, name, deed, "host", None, 1, 1, 1, 0, 0, 0, (), (), 0, 0, b"")


TEA, POT, BARE = status("tea", b"a"), status("Tea", b"b"), status(None, b"c")


def test_a_place_by_its_name_or_the_beginning_of_its_id() -> None:
    assert choose_place("tea", [TEA, POT, BARE]) is TEA
    assert choose_place(topic_text(BARE.place)[:9], [TEA, POT, BARE]) is BARE
    with pytest.raises(BadText, match="can be 2 places"):
        choose_place("TEA", [TEA, POT])
    with pytest.raises(BadText, match="there are none"):
        choose_place("tea", [])
    with pytest.raises(BadText, match="there is no place 'lt1'"):
        choose_place("lt1", [TEA])


def test_a_person_by_a_whole_id_or_the_beginning_of_one_that_is_there() -> None:
    assert choose_person(person_text(BEA), [], "here") == BEA
    assert choose_person(person_text(ADA)[:8], [ADA, BEA], "here") == ADA
    for wrong in ("", "lp1", "lp1zzzz"):
        with pytest.raises(BadText, match="of those here"):
            choose_person(wrong, [ADA, BEA], "here")
