"""Each kind's finder finds what its conditions accept."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from linnet.content.attribute_types.geo_box import Box
from linnet.content.attribute_types.registry import FINDERS, Condition, covers
from linnet.content.attribute_types.text import Words
from linnet.content.structures.conditions import Beginnings
from linnet.testing.predicates import conditions, values


@given(st.lists(conditions(), max_size=40), st.lists(values(), min_size=1, max_size=6), st.data())
def test_found_is_what_a_scan_finds(
    asked: list[Condition], said: list[Condition], data: st.DataObject
) -> None:
    for kind, make in FINDERS.items():
        finder = make()
        kept: dict[int, Any] = {at: each for at, each in enumerate(asked) if type(each) is kind}
        for handle, condition in kept.items():
            finder.add(handle, condition)
        for handle in list(kept):
            if data.draw(st.booleans()):
                finder.remove(handle, kept.pop(handle))
        for value in said:
            if type(value) is kind:
                accepting = sorted(handle for handle, each in kept.items() if covers(each, value))
                assert sorted(finder.find(value)) == accepting
                assert finder.about(value) >= (1 if accepting else 0)


def test_a_text_is_looked_up_once_for_each_length() -> None:
    finder = Beginnings()
    for at, text in enumerate(("", "a", "ab", "b")):
        finder.add(at, Words(text, whole=False))
    finder.add(4, Words("abc"))
    assert finder.find(Words("abc")) == [4, 0, 1, 2]
    assert finder.find(Words("")) == [0]


def test_of_two_ways_to_look_for_boxes_the_narrower_is_taken() -> None:
    finder = FINDERS[Box]()
    for at in range(100):
        finder.add(at, Box(-90, at, 90, at))
    assert finder.about(Box(0, 7, 0, 7)) == 1
    assert finder.find(Box(0, 7, 0, 7)) == [7]
