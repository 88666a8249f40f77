"""The most specific name that somebody waits for hears a method; objects are watched by prefix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import Refused
from linnet.places.audience import WATCHES, MethodDispatch, ObjectWatches
from linnet.places.channel.packet import Modifier, covers
from linnet.places.channel.state import State

_names = st.sampled_from(["", "_m", "_m_p", "_m_p_s", "_m_q", "_n", "_mp"])


def test_e3_the_most_specific_name_wins_and_then_the_catch_all() -> None:
    listeners: MethodDispatch[str] = MethodDispatch()
    listeners.add("", "all")
    listeners.add("_message", "messages")
    listeners.add("_message_public", "public")
    assert listeners.dispatch("_message_public_shout") == ("public",)
    assert listeners.dispatch("_message_private") == ("messages",)
    assert listeners.dispatch("_notice") == ("all",)


def test_several_listeners_of_one_name_all_hear_it_once() -> None:
    listeners: MethodDispatch[str] = MethodDispatch()
    for listener in ("first", "second", "first"):
        listeners.add("_message", listener)
    assert listeners.dispatch("_message") == ("first", "second")


def test_listeners_come_and_go_at_run_time() -> None:
    listeners: MethodDispatch[str] = MethodDispatch()
    assert listeners.dispatch("_message") == ()
    listeners.add("", "all")
    listeners.add("_message", "one")
    listeners.remove("_message", "never there")
    assert listeners.dispatch("_message") == ("one",)
    listeners.remove("_message", "one")
    assert listeners.dispatch("_message") == ("all",)
    listeners.remove("", "all")
    assert listeners.dispatch("_message") == ()


def test_an_older_listener_makes_sense_of_a_newer_method() -> None:
    listeners: MethodDispatch[str] = MethodDispatch()
    listeners.add("_message", "written long ago")
    assert listeners.dispatch("_message_public_sung_in_chorus") == ("written long ago",)


def test_a_name_that_cannot_come_is_refused() -> None:
    with pytest.raises(Refused):
        MethodDispatch[str]().add("_a b", "x")


@given(st.dictionaries(_names, st.integers()), _names)
def test_dispatch_equals_the_longest_name_that_covers(known: dict[str, int], method: str) -> None:
    listeners: MethodDispatch[int] = MethodDispatch()
    for name, listener in known.items():
        listeners.add(name, listener)
    best = max((name for name in known if covers(name, method)), key=len, default=None)
    assert listeners.dispatch(method) == (() if best is None else (known[best],))


def _changed(
    watches: ObjectWatches[str], state: State, *modifiers: Modifier, reset: bool = False
) -> list[tuple[str, str, bytes | None]]:
    changes = state.apply(modifiers, reset).changes
    return [(who, name, value) for name, value in changes.items() for who in watches.watchers_of(name)]


def test_watch_fires_with_the_new_value_for_matching_names_only() -> None:
    watches: ObjectWatches[str] = ObjectWatches()
    watches.watch("_location", "map")
    watches.watch("", "log")
    modifiers = [
        Modifier("=", "_location_planet", b"Earth"),
        Modifier("=", "_locations", b"9"),
        Modifier(":", "_x", b"1"),
    ]
    assert _changed(watches, State(), *modifiers) == [
        ("map", "_location_planet", b"Earth"),
        ("log", "_location_planet", b"Earth"),
        ("log", "_locations", b"9"),
    ]


def test_watch_sees_the_result_of_an_operation_not_its_operand() -> None:
    watches: ObjectWatches[str] = ObjectWatches()
    watches.watch("_list_guests", "door")
    state = State(variables={"_list_guests": b"|alice"})
    assert _changed(watches, state, Modifier("+", "_list_guests", b"|bob")) == [
        ("door", "_list_guests", b"|alice|bob")
    ]


def test_watch_fires_when_an_object_is_deleted_and_when_all_begin_anew() -> None:
    state = State(variables={"_a": b"1", "_a_b": b"2", "_c": b"3"})
    watches: ObjectWatches[str] = ObjectWatches()
    watches.watch("_a", "w")
    assert _changed(watches, state, Modifier("=", "_a_b", b"")) == [("w", "_a_b", None)]
    assert _changed(watches, state, Modifier("=", "_a_d", b"4"), reset=True) == [
        ("w", "_a", None),
        ("w", "_a_d", b"4"),
    ]


def test_watches_end_each_on_its_own() -> None:
    watches: ObjectWatches[str] = ObjectWatches()
    first, second = watches.watch("_a", "first"), watches.watch("_a", "second")
    watches.unwatch(first)
    watches.unwatch(first)
    assert watches.watchers_of("_a") == ["second"]
    watches.unwatch(second)
    assert watches.watchers_of("_a") == []


def test_watches_are_bounded_and_named_rightly() -> None:
    watches: ObjectWatches[str] = ObjectWatches()
    with pytest.raises(Refused):
        watches.watch("_a b", "x")
    for _ in range(WATCHES):
        watches.watch("_a", "x")
    with pytest.raises(Refused):
        watches.watch("_a", "x")
