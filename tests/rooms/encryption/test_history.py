"""The keys of old messages as bodies of events."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import InvalidEvent
from linnet.core.ids import EventId
from linnet.core.limits import BODY_BYTES
from linnet.groups.sealing import PLAINTEXT_BYTES
from linnet.rooms.encryption.history import KEYS, history_bodies, history_of

PAIRS = [(EventId(number.to_bytes(32, "big")), b"k" * 44) for number in range(2 * KEYS + 1)]


def test_as_many_events_as_it_takes_and_each_fits() -> None:
    bodies = list(history_bodies(PAIRS))
    assert len(bodies) == 3
    assert max(map(len, bodies)) <= PLAINTEXT_BYTES < BODY_BYTES
    assert [pair for body in bodies for pair in history_of(body).keys] == PAIRS
    assert list(history_bodies([])) == []


@given(st.binary(max_size=200))
def test_anything_else_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidEvent):
        history_of(body)


def test_keys_do_not_show() -> None:
    (body,) = history_bodies(PAIRS[:2])
    assert repr(history_of(body)) == "History(2 keys)"
