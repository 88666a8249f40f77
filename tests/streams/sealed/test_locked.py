from __future__ import annotations

from tests.delivery.voices import Voice

from linnet.core.limits import BODY_BYTES
from linnet.core.reasons import Reason
from linnet.streams.sealed.reader import MAX_BYTES, MAX_EVENTS, Locked


def test_what_may_pass_waits_and_is_taken_once() -> None:
    locked = Locked()
    (one, two) = Voice().say(b"one", b"two").events
    locked.add(one, Reason.KEY_MISSING)
    locked.add(two, Reason.UNDECRYPTABLE)
    assert locked.take() == [one]
    assert locked.take() == []


def test_the_oldest_go_where_there_are_too_many_or_too_large_ones() -> None:
    locked, (event,) = Locked(), Voice().say(b"x").events
    for _ in range(MAX_EVENTS + 10):
        locked.add(event, Reason.NOT_A_MEMBER)
    assert len(locked) == MAX_EVENTS
    (large,) = Voice().say(b"x" * BODY_BYTES).events
    for _ in range(100):
        locked.add(large, Reason.KEY_MISSING)
    assert len(locked) == MAX_BYTES // BODY_BYTES
