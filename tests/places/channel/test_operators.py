"""What plus and minus do to lists and numbers, and to nothing else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state import operate, parse_list, render_list

_elements = st.lists(st.binary(max_size=4) | st.sampled_from([b"", b"|", b"\n", b"3 a"]), max_size=6)


@given(_elements)
def test_lists_round_trip_whatever_is_in_them(elements: list[bytes]) -> None:
    assert parse_list(render_list(elements)) == elements


def test_both_forms_of_a_list_are_read() -> None:
    assert parse_list(b"|one||two") == [b"one", b"", b"two"]
    assert parse_list(b"3 o|e|0 |2 \n ") == [b"o|e", b"", b"\n "]


@given(_elements, _elements)
def test_what_is_added_to_a_list_can_be_taken_away_again(old: list[bytes], new: list[bytes]) -> None:
    grown = operate(Modifier("+", "_list_x", render_list(new)), render_list(old))
    assert parse_list(grown) == old + new
    shrunk = operate(Modifier("-", "_list_x", render_list(new)), grown)
    assert sorted(parse_list(shrunk)) == sorted(old)


def test_each_element_is_taken_away_once_the_first_that_is_equal() -> None:
    assert operate(Modifier("-", "_list", b"|a|z"), b"|a|b|a") == b"|b|a"
    assert operate(Modifier("-", "_list", b"|a"), b"|a") == b""


@given(st.integers(-(2**61), 2**61), st.integers(-(2**61), 2**61))
def test_amounts_are_added_and_subtracted(old: int, new: int) -> None:
    assert operate(Modifier("+", "_amount_guests", b"%d" % new), b"%d" % old) == b"%d" % (old + new)
    assert operate(Modifier("-", "_counter", b"%d" % new), b"%d" % old) == b"%d" % (old - new)
    assert operate(Modifier("+", "_amount", b"%d" % new), b"") == b"%d" % new


@pytest.mark.parametrize(
    ("name", "old", "value", "reason"),
    [
        ("_topic", b"", b"|a", Reason.UNSUPPORTED),
        ("_table_scores", b"", b"|a", Reason.UNSUPPORTED),
        ("_listing", b"", b"|a", Reason.UNSUPPORTED),
        ("_list", b"", b"bare", Reason.MALFORMED),
        ("_list", b"", b"9 short", Reason.MALFORMED),
        ("_list", b"", b"1 ab", Reason.MALFORMED),
        ("_list", b"", b"|a\nb", Reason.MALFORMED),
        ("_list", b"no list", b"|a", Reason.MALFORMED),
        ("_amount", b"", b"1.5", Reason.MALFORMED),
        ("_amount", b"", b"", Reason.MALFORMED),
        ("_amount", b"%d" % (2**63 - 1), b"1", Reason.TOO_LARGE),
    ],
)
def test_what_makes_no_sense_is_named(name: str, old: bytes, value: bytes, reason: Reason) -> None:
    with pytest.raises(RemoteError) as caught:
        operate(Modifier("+", name, value), old)
    assert caught.value.reason == reason
