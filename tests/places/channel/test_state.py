"""Variables by name: reading, changing all or nothing, what plus and minus do, one encoding and one hash."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.raised import reason_of

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.places.channel.packet import Ignored, Modifier, covers, slices
from linnet.places.channel.state import State, operate, parse_list, render_list
from linnet.places.config import PlacesConfig

_names = st.sampled_from(["_a", "_a_b", "_a_b_c", "_a_bc", "_A", "_a0", "_list_a", "_amount", "_b", "plain"])
_values = st.sampled_from([b"", b"1", b"22", b"|a", b"|a|b", b"\n\x00"])
_modifiers = st.lists(st.builds(Modifier, st.sampled_from(":=+-"), _names, _values), max_size=8)
_states = st.dictionaries(_names, st.binary(min_size=1, max_size=5))


def _set(name: str, value: bytes) -> Modifier:
    return Modifier("=", name, value)


def test_e4_best_match_and_all_by_prefix() -> None:
    state = State(variables={"_a": b"1", "_a_b": b"2", "_a_b_c": b"3", "_a_bc": b"4"})
    assert state.get_all("_a_b") == {"_a_b": b"2", "_a_b_c": b"3"}
    assert state.get_all("") == state.variables
    assert state.get("_a_b_x") == ("_a_b", b"2")
    assert state.get("_a_b_c") == ("_a_b_c", b"3")
    assert state.get("_z") is None


@given(_states, _names)
def test_reading_equals_looking_at_every_variable(variables: dict[str, bytes], name: str) -> None:
    state = State(variables=variables)
    assert state.get_all(name) == {key: value for key, value in variables.items() if covers(name, key)}
    best = next((key for key in slices(name) if key in variables), None)
    assert state.get(name) == (None if best is None else (best, variables[best]))


def test_transient_modifiers_never_reach_the_state_and_persistent_ones_do() -> None:
    state = State()
    state.apply([Modifier(":", "_volume", b"100"), _set("_topic", b"birds")])
    assert state.variables == {"_topic": b"birds"}


def test_an_empty_value_removes_a_variable_and_changes_say_so() -> None:
    state = State(variables={"_a": b"1", "_b": b"2"})
    effect = state.apply([_set("_a", b""), _set("_c", b"3"), _set("_c", b"4")])
    assert effect.changes == {"_a": None, "_c": b"4"}
    assert state.variables == {"_b": b"2", "_c": b"4"}


def test_a_reset_removes_what_was_and_then_applies() -> None:
    state = State(variables={"_a": b"1", "_list": b"|x"})
    effect = state.apply([Modifier("+", "_list", b"|y"), _set("_c", b"3")], reset=True)
    assert effect.changes == {"_a": None, "_list": b"|y", "_c": b"3"}
    assert state.variables == {"_c": b"3", "_list": b"|y"}


def test_operations_that_make_no_sense_are_told_and_the_rest_applies() -> None:
    state = State(variables={"_topic": b"birds"})
    bad = Modifier("+", "_topic", b"x")
    effect = state.apply([bad, Modifier("+", "_amount", b"2")])
    assert effect.ignored == (Ignored(bad, Reason.UNSUPPORTED, "+ on a variable of this type"),)
    assert state.variables == {"_amount": b"2", "_topic": b"birds"}


@pytest.mark.parametrize(
    "modifiers",
    [
        [_set("_a", b"new"), _set("_b", b"x" * 1025)],
        [_set("_a", b"new"), *(_set(f"_b_{number}", b"x" * 500) for number in range(5))],
        [
            _set("_a", b"new"),
            Modifier("+", "_list", b"|" + b"x" * 600),
            Modifier("+", "_list", b"|" + b"x" * 600),
        ],
    ],
)
def test_what_is_too_large_changes_nothing_at_all(modifiers: list[Modifier]) -> None:
    state = State(PlacesConfig(value_bytes=1024, state_bytes=2048), {"_a": b"old"})
    before = state.digest()
    assert reason_of(RemoteError, state.apply, modifiers) == Reason.TOO_LARGE
    assert (state.variables, state.digest()) == ({"_a": b"old"}, before)


def test_what_was_removed_or_replaced_leaves_its_whole_room_to_others() -> None:
    state = State(PlacesConfig(value_bytes=2048, state_bytes=2048))
    for size in range(1, 200):
        state.apply([_set("_a", b"x" * size)])
        state.apply([_set("_a", b"")])
    whole = b"y" * (2048 - len("_b"))
    state.apply([_set("_b", whole)])
    assert state.variables == {"_b": whole}
    state.apply([_set("_c", whole)], reset=True)
    assert state.variables == {"_c": whole}
    assert reason_of(RemoteError, state.apply, [_set("_c", whole + b"y")]) == Reason.TOO_LARGE


@given(st.lists(st.tuples(_modifiers, st.booleans()), max_size=6))
def test_whatever_the_way_equal_variables_have_one_encoding_and_digest(
    steps: list[tuple[list[Modifier], bool]],
) -> None:
    state = State()
    for modifiers, reset in steps:
        state.apply(modifiers, reset)
        state.digest()  # what is cached must not outlive a change
    fresh = State(variables=dict(reversed(state.variables.items())))
    assert (state.encode(), state.digest()) == (fresh.encode(), fresh.digest())
    assert State.decode(state.encode()).variables == state.variables == state.copy().variables


@given(st.lists(_modifiers, max_size=3))
def test_modifiers_one_by_one_equal_all_at_once(steps: list[list[Modifier]]) -> None:
    apart, together = State(), State()
    for modifiers in steps:
        apart.apply(modifiers)
    together.apply([modifier for modifiers in steps for modifier in modifiers])
    assert apart.variables == together.variables


def test_the_digest_is_the_documented_one() -> None:
    expected = b"\0\0\0\2_B" + bytes(7) + b"\2xy" + b"\0\0\0\2_a" + bytes(7) + b"\1z"
    assert State(variables={"_a": b"z", "_B": b"xy"}).digest() == hashlib.sha256(expected).digest()


@pytest.mark.parametrize(
    "data",
    [
        b"\0",
        b"\0\0\0\2_a",
        b"\0\0\0\2_a" + bytes(7) + b"\2x",
        b"\0\0\0\2_a" + bytes(8),
        b"\0\0\0\2_-" + bytes(7) + b"\1x",
        (b"\0\0\0\2_a" + bytes(7) + b"\1x") * 2,
    ],
)
def test_only_the_one_encoding_of_a_state_is_decoded(data: bytes) -> None:
    with pytest.raises(RemoteError, match="offset") as caught:
        State.decode(data)
    assert caught.value.reason == Reason.MALFORMED


def test_decoding_is_bounded() -> None:
    data = State(variables={f"_{number}": b"x" * 400 for number in range(9)}).encode()
    assert reason_of(RemoteError, State.decode, data, PlacesConfig(state_bytes=2048)) == Reason.TOO_LARGE


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
    assert reason_of(RemoteError, operate, Modifier("+", name, value), old) == reason
