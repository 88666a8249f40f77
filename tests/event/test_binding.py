"""What a sealed event binds."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.event.event import Event, Tail, bound_of

ID = EventId(b"i" * 32)
TAIL = Tail((EventId(b"1" * 32),), None, 3, (EventId(b"2" * 32),), "message", None, 1000, b"clear", b"body")
EVENT = Event(ID, TopicId(b"t" * 32), AuthorId(b"a" * 32), DeviceId(b"d" * 8), 5, EventId(b"p" * 32), TAIL)


@pytest.mark.parametrize(
    "changed",
    [
        replace(EVENT, topic=TopicId(b"u" * 32)),
        replace(EVENT, author=AuthorId(b"b" * 32)),
        replace(EVENT, device=DeviceId(b"e" * 8)),
        replace(EVENT, seq=6),
        replace(EVENT, prev=None),
        *(
            replace(EVENT, tail=replace(TAIL, **change))
            for change in (
                {"deps": None},
                {"concurrent": (EventId(b"3" * 32),)},
                {"height": 4},
                {"control": None},
                {"kind": "attachment"},
                {"key": ""},
                {"time": 1001},
                {"clear": b"other"},
            )
        ),
    ],
)
def test_every_other_field_is_bound(changed: Event) -> None:
    assert bound_of(changed) != bound_of(EVENT)


def test_the_body_and_the_id_come_after() -> None:
    assert bound_of(replace(EVENT, id=EventId(b"j" * 32), tail=replace(TAIL, body=b"x"))) == bound_of(EVENT)
