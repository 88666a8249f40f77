from __future__ import annotations

import pytest

from linnet.cli.place.finding import choose_person, choose_place
from linnet.core.errors import BadText
from linnet.identity.text import Sort, to_text
from linnet.node.place_types import DeedView, PlaceView
from linnet.places.deed import Policy

ADA = to_text(Sort.PERSON, b"a" * 32)
BEA = to_text(Sort.PERSON, b"b" * 32)


def view(name: str | None, letter: bytes) -> PlaceView:
    deed = DeedView(1, Policy.PUBLIC, ADA, (), ())
    place = to_text(Sort.TOPIC, letter * 32)
    return PlaceView(place, name, "host", deed, None, 1, 1, 1, 0, 0, 0, (), (), 0, 0, "")


TEA, POT, BARE = view("tea", b"a"), view("Tea", b"b"), view(None, b"c")


def test_a_place_by_its_name_or_the_beginning_of_its_id() -> None:
    assert choose_place("tea", [TEA, POT, BARE]) is TEA
    assert choose_place(BARE.place[:9], [TEA, POT, BARE]) is BARE
    with pytest.raises(BadText, match="can be 2 places"):
        choose_place("TEA", [TEA, POT])
    with pytest.raises(BadText, match="there are none"):
        choose_place("tea", [])
    with pytest.raises(BadText, match="there is no place 'lt1'"):
        choose_place("lt1", [TEA])


def test_a_person_by_a_whole_id_or_the_beginning_of_one_that_is_there() -> None:
    assert choose_person(BEA, [], "here") == BEA
    assert choose_person(ADA[:8], [ADA, BEA], "here") == ADA
    for wrong in ("", "lp1", "lp1zzzz"):
        with pytest.raises(BadText, match="of those here"):
            choose_person(wrong, [ADA, BEA], "here")
