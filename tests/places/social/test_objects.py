"""Objects are looked at in the local copy, and watched by prefix."""

from __future__ import annotations

import pytest

from linnet.core.errors import Refused
from linnet.places.channel.packet import Modifier
from linnet.places.channel.state import State
from linnet.places.social.objects import WATCHES, Objects, Seen


def _changed(
    objects: Objects[str], state: State, *modifiers: Modifier, reset: bool = False
) -> list[Seen[str]]:
    return objects.changed(state.apply(modifiers, reset).changes)


def test_look_by_prefix_and_look_at_the_best_match() -> None:
    objects: Objects[str] = Objects(lambda: State(variables={"_a": b"1", "_a_b": b"2", "_a_b_c": b"3"}))
    assert objects.look("_a_b") == {"_a_b": b"2", "_a_b_c": b"3"}
    assert objects.look() == {"_a": b"1", "_a_b": b"2", "_a_b_c": b"3"}
    assert [objects.look_at(name) for name in ("_a_b_x", "_a", "_z")] == [("_a_b", b"2"), ("_a", b"1"), None]


def test_watch_fires_with_the_new_value_for_matching_names_only() -> None:
    state = State()
    objects: Objects[str] = Objects(lambda: state)
    objects.watch("_location", "map")
    objects.watch("", "log")
    modifiers = [
        Modifier("=", "_location_planet", b"Earth"),
        Modifier("=", "_locations", b"9"),
        Modifier(":", "_x", b"1"),
    ]
    assert _changed(objects, state, *modifiers) == [
        Seen("map", "_location_planet", b"Earth"),
        Seen("log", "_location_planet", b"Earth"),
        Seen("log", "_locations", b"9"),
    ]


def test_watch_sees_the_result_of_an_operation_not_its_operand() -> None:
    state = State(variables={"_list_guests": b"|alice"})
    objects: Objects[str] = Objects(lambda: state)
    objects.watch("_list_guests", "door")
    assert _changed(objects, state, Modifier("+", "_list_guests", b"|bob")) == [
        Seen("door", "_list_guests", b"|alice|bob")
    ]


def test_watch_fires_when_an_object_is_deleted_and_when_all_begin_anew() -> None:
    state = State(variables={"_a": b"1", "_a_b": b"2", "_c": b"3"})
    objects: Objects[str] = Objects(lambda: state)
    objects.watch("_a", "w")
    assert _changed(objects, state, Modifier("=", "_a_b", b"")) == [Seen("w", "_a_b", None)]
    assert _changed(objects, state, Modifier("=", "_a_d", b"4"), reset=True) == [
        Seen("w", "_a", None),
        Seen("w", "_a_d", b"4"),
    ]


def test_watches_end_each_on_its_own() -> None:
    state = State()
    objects: Objects[str] = Objects(lambda: state)
    first, second = objects.watch("_a", "first"), objects.watch("_a", "second")
    objects.unwatch(first)
    objects.unwatch(first)
    assert objects.changed({"_a": b"1"}) == [Seen("second", "_a", b"1")]
    objects.unwatch(second)
    assert objects.changed({"_a": b"1"}) == []


def test_watches_are_bounded_and_named_rightly() -> None:
    objects: Objects[str] = Objects(State)
    with pytest.raises(Refused):
        objects.watch("_a b", "x")
    for _ in range(WATCHES):
        objects.watch("_a", "x")
    with pytest.raises(Refused):
        objects.watch("_a", "x")


def test_objects_follow_a_state_that_was_replaced() -> None:
    states = [State(variables={"_a": b"old"})]
    objects: Objects[str] = Objects(lambda: states[-1])
    states.append(State(variables={"_a": b"new"}))
    assert objects.look_at("_a") == ("_a", b"new")
