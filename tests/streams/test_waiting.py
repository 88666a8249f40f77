"""Publishes wait in their order while links are slow, no more than allowed, and everybody is answered."""

from __future__ import annotations

from linnet.core.effects import Reply
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.streams.commands import Publish
from linnet.streams.waiting import Waiting

ONE, TWO = Publish("me/a", (b"one",)), Publish("me/a", (b"two",))
TOPIC, OTHER = TopicId(b"t" * 32), TopicId(b"o" * 32)


def test_each_stream_has_its_own_in_order() -> None:
    waiting = Waiting(2)
    assert waiting.add(TOPIC, 1, ONE) == []
    assert waiting.add(TOPIC, 2, TWO) == []
    assert waiting.add(OTHER, 3, ONE) == []
    assert TOPIC in waiting
    assert waiting.take(TOPIC) == [(1, ONE), (2, TWO)]
    assert TOPIC not in waiting
    assert waiting.take(TOPIC) == []
    assert waiting.take(OTHER) == [(3, ONE)]


def test_no_more_than_allowed_and_all_are_answered_in_the_end() -> None:
    waiting = Waiting(1)
    assert waiting.add(TOPIC, 1, ONE) == []
    (full,) = waiting.add(TOPIC, 2, TWO)
    assert (full.request, full.result.reason) == (2, Reason.CONGESTED)
    told = Declined(Reason.SHUTDOWN, "the node stops, and links were slow until the end")
    assert waiting.close() == [Reply(1, told)]
    assert waiting.close() == []
