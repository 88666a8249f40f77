"""Boxes on the map."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.content.predicates import boxes

from linnet.content.attribute_types.geo_box import Box, read_box, read_point
from linnet.content.attribute_types.text import BadPredicate, Reader
from linnet.core.errors import BadText

POINTS = [
    Box(south, west, south, west)
    for south in (-3.0, -2.5, 0.0, 0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
    for west in (-3.0, -2.5, 0.0, 0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
]


@given(boxes())
def test_text_and_box_are_the_same(box: Box) -> None:
    assert (read_point(Reader(box.text[1:])) if box.exact else read_box(Reader(box.text))) == box


@given(boxes(), boxes(), st.booleans())
def test_a_merged_box_is_exactly_the_union(one: Box, other: Box, beside: bool) -> None:
    if beside:
        other = Box(one.south, other.west, one.north, other.east)
    merged = one.merged(other)
    assert merged == other.merged(one)
    if merged is not None:
        held = [point for point in POINTS if one.covers(point) or other.covers(point)]
        assert [point for point in POINTS if merged.covers(point)] == held


def test_boxes_side_by_side_become_one_and_others_do_not() -> None:
    assert Box(0, 0, 1, 1).merged(Box(0, 1, 1, 2)) == Box(0, 0, 1, 2)
    assert Box(0, 0, 1, 1).merged(Box(1, 0, 2, 1)) == Box(0, 0, 2, 1)
    assert Box(0, 0, 1, 1).merged(Box(0, 1.5, 1, 2)) is None
    assert Box(0, 0, 1, 1).merged(Box(0.5, 0.5, 2, 2)) is None


@given(boxes(), st.sampled_from([-180.0, -179.5, -3.0, -2.5, 0.0, 1.25, 2.0, 10.0, 11.0, 179.5, 180.0]))
def test_a_box_holds_the_longitudes_on_the_way_east_from_its_western_edge(box: Box, longitude: float) -> None:
    way = (box.east - box.west) % 360 if box.west != box.east else 0.0
    reached = (longitude - box.west) % 360 <= way
    assert box.covers(Box(box.south, longitude, box.south, longitude)) == reached
    pieces = [piece.covers(Box(box.south, longitude, box.south, longitude)) for piece in box.pieces]
    assert sum(pieces) == reached
    assert all(piece.west <= piece.east for piece in box.pieces)


@given(boxes(), boxes())
def test_a_box_covers_another_where_it_holds_all_points_of_it(one: Box, other: Box) -> None:
    longitudes = (-180.0, -179.5, -3.0, -2.5, -1.0, 0.0, 0.5, 1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 5.0, 10.0)
    points = [
        Box(point.south, each, point.south, each) for point in POINTS for each in (*longitudes, 11.0, 180.0)
    ]
    assert one.covers(other) == all(one.covers(point) for point in points if other.covers(point))


def test_both_names_of_the_line_at_180_degrees_are_in_a_box_that_crosses_it() -> None:
    box = read_box(Reader("{-20,170,-10,-175}"))
    assert box.text == "{-20,170,-10,-175}"
    assert [box.covers(Box(-15, at, -15, at)) for at in (169, 170, 180, -180, -175, -174)] == [
        *(False, True, True, True, True, False)
    ]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("{91,0,91,0}", 1),
        ("{0,181,0,0}", 3),
        ("{1,0,0,0}", 5),
        ("{0,1,0,-181}", 7),
        ("{0,0,1}", 6),
        ("{x", 1),
    ],
)
def test_what_is_wrong_with_a_box_is_pointed_at(text: str, at: int) -> None:
    with pytest.raises(BadPredicate) as caught:
        read_box(Reader(text))
    assert caught.value.at == at


def test_a_point_has_two_numbers() -> None:
    assert read_point(Reader("{38.7,-9.1}")) == Box(38.7, -9.1, 38.7, -9.1)
    with pytest.raises(BadPredicate):
        read_point(Reader("{38.7,-9.1,39}"))


@pytest.mark.parametrize(
    "edges", [(1, 0, 0, 0), (0, -181, 0, 0), (-91, 0, 0, 0), (0, 0, 0, 181), (0.1 + 0.2, 0, 1, 1)]
)
def test_boxes_that_cannot_be_are_not_made(edges: tuple[float, float, float, float]) -> None:
    with pytest.raises(BadText):
        Box(*edges)
