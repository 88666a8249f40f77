from __future__ import annotations

import pytest

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.stores import Entry


@pytest.mark.parametrize(("first", "count", "last"), [(0, 1, 0), (5, 256, 260), (None, 1, None)])
def test_the_last_number_of_an_entry(first: int | None, count: int, last: int | None) -> None:
    topic, author, device = TopicId(bytes(32)), AuthorId(bytes(32)), DeviceId(bytes(8))
    assert Entry(topic, author, device, first, count, EventId(bytes(32)), 0.0, b"").last == last
