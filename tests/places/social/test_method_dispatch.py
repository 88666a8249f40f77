"""The most specific name that somebody waits for hears a method, and all of its pieces."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.places.channel.packet import covers
from linnet.places.social.method_dispatch import GivenUp, MethodDispatch, Opened

_names = st.sampled_from(["", "_m", "_m_p", "_m_p_s", "_m_q", "_n", "_mp"])


def test_e3_the_most_specific_name_wins_and_then_the_catch_all() -> None:
    slicer: MethodDispatch[str] = MethodDispatch()
    slicer.add("", "all")
    slicer.add("_message", "messages")
    slicer.add("_message_public", "public")
    assert slicer.dispatch("_message_public_shout") == ("_message_public", ("public",))
    assert slicer.dispatch("_message_private") == ("_message", ("messages",))
    assert slicer.dispatch("_notice") == ("", ("all",))


def test_several_listeners_of_one_name_all_hear_it_once() -> None:
    slicer: MethodDispatch[str] = MethodDispatch()
    for listener in ("first", "second", "first"):
        slicer.add("_message", listener)
    assert slicer.dispatch("_message") == ("_message", ("first", "second"))


def test_listeners_come_and_go_at_run_time() -> None:
    slicer: MethodDispatch[str] = MethodDispatch()
    assert slicer.dispatch("_message") == (None, ())
    slicer.add("", "all")
    slicer.add("_message", "one")
    slicer.remove("_message", "never there")
    assert slicer.dispatch("_message") == ("_message", ("one",))
    slicer.remove("_message", "one")
    assert slicer.dispatch("_message") == ("", ("all",))
    slicer.remove("", "all")
    assert slicer.dispatch("_message") == (None, ())


def test_an_older_listener_makes_sense_of_a_newer_method() -> None:
    slicer: MethodDispatch[str] = MethodDispatch()
    slicer.add("_message", "written long ago")
    assert slicer.begin(1, "_message_public_sung_in_chorus") == Opened("_message", ("written long ago",))


def test_later_pieces_go_by_message_to_whoever_heard_the_beginning() -> None:
    slicer: MethodDispatch[str] = MethodDispatch()
    slicer.add("_message", "one")
    slicer.add("_message", "two")
    slicer.begin(7, "_message_public")
    slicer.add("_message", "late")
    slicer.add("_message_public", "newcomer")
    slicer.begin(8, "_message_public")
    assert (slicer.piece(7), slicer.piece(8)) == (("one", "two"), ("newcomer",))
    slicer.remove("_message", "one")
    assert slicer.finish(7) == ("two",)
    assert (slicer.piece(7), slicer.finish(9), len(slicer)) == ((), (), 1)


def test_requests_of_two_guests_with_the_same_number_stay_apart() -> None:
    slicer: MethodDispatch[str] = MethodDispatch()
    slicer.add("_a", "a")
    slicer.add("_b", "b")
    alice, bob = AuthorId(b"a" * 32), AuthorId(b"b" * 32)
    slicer.begin(1, "_a", alice)
    slicer.begin(1, "_b", bob)
    assert (slicer.piece(1, alice), slicer.piece(1, bob), slicer.piece(1)) == (("a",), ("b",), ())


def test_open_messages_are_bounded_and_the_oldest_is_given_up_by_name() -> None:
    slicer: MethodDispatch[str] = MethodDispatch(limit=2)
    slicer.add("", "all")
    assert [slicer.begin(message, "_m").given_up for message in (1, 2, 2, 3)] == [
        None,
        None,
        None,
        GivenUp(None, 1),
    ]
    assert (slicer.piece(1), slicer.piece(3), len(slicer)) == ((), ("all",), 2)


def test_a_message_that_nobody_hears_is_not_remembered() -> None:
    slicer: MethodDispatch[str] = MethodDispatch()
    assert slicer.begin(1, "_m") == Opened(None, ())
    assert len(slicer) == 0


def test_a_name_that_cannot_come_is_refused() -> None:
    with pytest.raises(Refused):
        MethodDispatch[str]().add("_a b", "x")


@given(st.dictionaries(_names, st.integers()), _names)
def test_dispatch_equals_the_longest_name_that_covers(known: dict[str, int], method: str) -> None:
    slicer: MethodDispatch[int] = MethodDispatch()
    for name, listener in known.items():
        slicer.add(name, listener)
    best = max((name for name in known if covers(name, method)), key=len, default=None)
    assert slicer.dispatch(method) == ((None, ()) if best is None else (best, (known[best],)))
