from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import BadText
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.places.address import MAX_CONTACTS, PREFIX, PlaceAddress, is_address, parse_address

PLACE = TopicId(bytes(range(32)))
HOST = Contact(PeerId(b"h" * 32), ("tls://192.0.2.7:7700",))
ADDRESS = PlaceAddress(PLACE, (HOST,), "tea")
WRONG = "b" if ADDRESS.text[20] != "b" else "c"


def test_an_address_comes_back_from_its_text() -> None:
    assert parse_address(ADDRESS.text) == ADDRESS
    assert ADDRESS.text.startswith(PREFIX)
    assert is_address(ADDRESS.text.upper())
    assert not is_address("music.alice")


def test_broken_lines_and_capitals_are_no_harm() -> None:
    text = ADDRESS.text.upper()
    assert parse_address(f" {text[:30]}\n  {text[30:]}\n") == ADDRESS


def test_contacts_that_nobody_can_dial_are_left_out_and_more_than_the_most() -> None:
    contacts = (
        Contact(PeerId(b"x" * 32)),
        *(Contact(PeerId(bytes([n]) * 32), HOST.hints) for n in range(12)),
    )
    assert parse_address(PlaceAddress(PLACE, contacts).text).contacts == contacts[1 : 1 + MAX_CONTACTS]
    assert parse_address(PlaceAddress(PLACE, (), "x" * 100).text).name == "x" * 64


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ADDRESS.text[:-9], "cut short"),
        (ADDRESS.text + "aaaaaaaa", "too many at its end"),
        (
            ADDRESS.text[:20] + ("b" if ADDRESS.text[20] != "b" else "c") + ADDRESS.text[21:],
            "a letter is wrong",
        ),
        (ADDRESS.text[:20] + "!" + ADDRESS.text[21:], "a character that none has"),
        ("lt1abc", "is no address of a place"),
        (PREFIX + "a" * 20_000, "too many for an address"),
    ],
)
def test_what_is_wrong_with_an_address_is_told(text: str, words: str) -> None:
    with pytest.raises(BadText, match=words):
        parse_address(text)


@given(st.text(alphabet="la1bcdefghij234567 \n", max_size=80))
def test_no_text_is_taken_for_an_address_by_chance(text: str) -> None:
    with pytest.raises(BadText):
        parse_address(PREFIX + text)
