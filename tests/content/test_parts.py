"""Names of parts."""

from __future__ import annotations

import pytest

from linnet.content.attribute_keys import MOST_PARTS, base_of, check_part, is_part, part_name, part_of
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId


def test_the_first_part_has_the_name_of_the_attribute_and_no_part_that_of_another() -> None:
    names = [part_name("price", part) for part in range(MOST_PARTS)]
    assert names[:3] == ["price", "price/1", "price/2"]
    assert [is_part(name) for name in names] == [False] + [True] * 15
    assert {base_of(name) for name in names} == {"price"}
    for name in names:
        check_part(name)


@pytest.mark.parametrize(
    "name", ["price/", "price/0", "price/01", "price/16", "price/-1", "price/1/1", "price/x"]
)
def test_what_cannot_be_a_part_is_refused(name: str) -> None:
    with pytest.raises(RemoteError):
        check_part(name)


def test_events_are_spread_evenly_by_their_ids() -> None:
    counts = [0] * 4
    for number in range(256):
        counts[part_of(EventId(bytes([7, 7, 7, number]) * 8), 4)] += 1
    assert counts == [64] * 4
