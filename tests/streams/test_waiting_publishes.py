"""Publishes wait in their order while links are slow, no more than allowed, and everybody is answered."""

from __future__ import annotations

from tests.delivery.voices import asked

from linnet.core.effects import Reply
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.machine.outbox import Outbox
from linnet.streams.commands import Publish
from linnet.streams.part import Waiting

ONE, TWO = Publish("me/a", (b"one",)), Publish("me/a", (b"two",))
TOPIC, OTHER = TopicId(b"t" * 32), TopicId(b"o" * 32)


def test_each_stream_has_its_own_in_order() -> None:
    out = Outbox()
    waiting = Waiting(2, out)
    assert asked(out, waiting.add, TOPIC, 1, ONE) == []
    assert asked(out, waiting.add, TOPIC, 2, TWO) == []
    assert asked(out, waiting.add, OTHER, 3, ONE) == []
    assert TOPIC in waiting
    assert waiting.take(TOPIC) == [(1, ONE), (2, TWO)]
    assert TOPIC not in waiting
    assert waiting.take(TOPIC) == []
    assert waiting.take(OTHER) == [(3, ONE)]


def test_no_more_than_allowed_and_all_are_answered_in_the_end() -> None:
    out = Outbox()
    waiting = Waiting(1, out)
    assert asked(out, waiting.add, TOPIC, 1, ONE) == []
    (full,) = asked(out, waiting.add, TOPIC, 2, TWO)
    assert (full.request, full.result.reason) == (2, Reason.CONGESTED)
    told = Declined(Reason.SHUTDOWN, "the node stops, and links were slow until the end")
    assert asked(out, waiting.close) == [Reply(1, told)]
    assert asked(out, waiting.close) == []
