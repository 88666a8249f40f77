"""Addresses as people type them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.names.people import person

from linnet.core.errors import BadText
from linnet.identity.text import Sort, to_text
from linnet.names.address import RESERVED, Address, read_address, read_label, read_name

ALICE = person("alice").author
KEY = to_text(Sort.PERSON, ALICE)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("music.alice", Address(("music",), "alice", None)),
        (" Music.ALICE ", Address(("music",), "alice", None)),
        ("music.alice.gnu", Address(("music",), "alice", None)),
        ("music.alice.gads", Address(("music",), "alice", None)),
        ("music.alice.", Address(("music",), "alice", None)),
        ("music.alice.bob.gnu", Address(("music", "alice"), "bob", None)),
        ("alice", Address((), "alice", None)),
        ("+.alice", Address(("+",), "alice", None)),
        (KEY, Address((), None, ALICE)),
        (KEY.upper(), Address((), None, ALICE)),
        (f"{KEY}.zkey", Address((), None, ALICE)),
        (f"music.{KEY}", Address(("music",), None, ALICE)),
        (f"music.{KEY}.zkey", Address(("music",), None, ALICE)),
        ("straße.jürgen", Address(("strasse",), "jürgen", None)),
    ],
)
def test_every_form_is_read(text: str, address: Address) -> None:
    assert read_address(text) == address


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("", "part 1 of the address '' is empty"),
        ("music..alice", "part 2 of the address 'music..alice' is empty"),
        (".alice", "part 1 of"),
        ("mu sic.alice", "the label 'mu sic' has ' '"),
        ("music.al/ice", "the name 'al/ice' has '/'"),
        ("mu\u200bsic.alice", "'\\u200b'"),
        ("gnu", "'gnu' is no name"),
        ("music.zkey", "no person id"),
        (f"{KEY[:-1]}.zkey", "some are missing"),
        (f"{KEY[:-1]}{'a' if KEY[-1] != 'a' else 'b'}", "checksum"),
        (f"{KEY}.alice", "looks like a key"),
        ("+", "the name '+' has '+'"),
        ("x" * 64 + ".alice", "has 64 bytes"),
        (".".join(["a"] * 33), "at most 32 parts"),
        ("a" * 3000, "at most 2048 characters"),
    ],
)
def test_what_is_wrong_is_named(text: str, wrong: str) -> None:
    with pytest.raises(BadText) as error:
        read_address(text)
    assert wrong in str(error.value)


LABELS = st.text(min_size=1, max_size=20).filter(lambda text: "." not in text)


@given(st.text(max_size=100) | st.from_regex(r"[a-zA-Z+.]{1,30}(\.(gnu|gads|zkey))?", fullmatch=True))
def test_any_text_is_an_address_or_bad_text(text: str) -> None:
    try:
        address = read_address(text)
    except BadText:
        return
    assert read_address(str(address)) == address


@given(LABELS)
def test_a_label_has_one_form(text: str) -> None:
    try:
        label = read_label(text)
    except BadText:
        return
    assert read_label(label) == label
    assert "." not in label
    assert 0 < len(label.encode()) <= 63


@given(st.lists(st.from_regex(r"[a-z0-9_-]{1,12}", fullmatch=True), min_size=1, max_size=8))
def test_what_is_put_together_comes_apart_again(parts: list[str]) -> None:
    if parts[-1] in RESERVED:
        return
    *labels, name = parts
    assert read_address(".".join(parts)) == Address(tuple(labels), name, None)


def test_names_of_people_have_the_form_of_labels_but_are_never_reserved() -> None:
    assert read_name("Alice") == "alice"
    for text in (*RESERVED, "+", KEY):
        with pytest.raises(BadText):
            read_name(text)
