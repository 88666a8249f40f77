"""Names are cut at whole keywords."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.places.channel.packet import NAME_CHARS, covers, is_name, slices

_names = st.text("_ab", min_size=1, max_size=8)


def test_slices_of_a_method_are_tried_from_the_specific_to_the_empty_name() -> None:  # E3
    assert slices("_message_public_shout") == ("_message_public_shout", "_message_public", "_message", "")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("", ("",)),
        ("_", ("_", "")),
        ("plain", ("plain", "")),
        ("a_b", ("a_b", "a", "")),
        ("__a", ("__a", "_", "")),
    ],
)
def test_slices_of_odd_names(name: str, expected: tuple[str, ...]) -> None:
    assert slices(name) == expected


@given(_names, _names)
def test_a_prefix_covers_exactly_the_names_whose_slices_it_is_among(prefix: str, name: str) -> None:
    assert covers(prefix, name) == (prefix in slices(name))


def test_a_prefix_covers_whole_keywords_only() -> None:
    assert covers("_a_b", "_a_b_c")
    assert not covers("_a_b", "_a_bc")
    assert covers("", "_anything")


@pytest.mark.parametrize("text", ["", "a b", "_é", "_a\n", "_a-b", "_" * (NAME_CHARS + 1), "_٣"])
def test_what_is_no_name(text: str) -> None:
    assert not is_name(text)


@pytest.mark.parametrize("text", ["_", "_a", "plain", "_A9_z", "_" * NAME_CHARS])
def test_what_is_a_name(text: str) -> None:
    assert is_name(text)
