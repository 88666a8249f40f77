"""Events of content whose clocks are ahead: taken within bounds, marked, and never handed over twice."""

from __future__ import annotations

import pytest
from tests.content.one_event import lone_context

from linnet.api.content import content_item_of, content_item_view
from linnet.content.application import TOPIC, Application
from linnet.content.commands import Match
from linnet.content.config import ContentConfig
from linnet.content.passing import EventSigner, Passing, check
from linnet.content.predicate import read_attributes
from linnet.core.errors import InvalidEvent
from linnet.core.reasons import Reason
from linnet.event.times import CLOCKS_APART
from linnet.machine.outbox import Outbox
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity

CONFIG = ContentConfig()
NOW = START + 10_000.0
US, THEM = lone_context(seeded_identity(7, "us", START)), lone_context(seeded_identity(7, "them", START))


def arriving(ahead: float, now: float = NOW) -> Passing:
    """An event that was signed by a clock so far ahead of ours, as we check it now."""
    made = EventSigner(THEM).sign(TOPIC, read_attributes("stock"), b"x", NOW + ahead)
    return check(made.unit, made.card, US, CONFIG, now)


class Reader:
    """The subscriptions of one application, and what they were handed."""

    def __init__(self) -> None:
        self.handed: list[Match] = []

        def hand(numbers: list[int], match: Match) -> None:
            self.handed.append(match)

        out = Outbox()
        self.application = Application(US, CONFIG, out, hand, lambda: out.committed)
        self.application.subscribe(1, "stock")

    def take(self, passing: Passing, now: float) -> None:
        self.application.take(passing, 1, now)
        self.application.hand_over()


@pytest.mark.parametrize(
    ("ahead", "doubtful"),
    [(0.0, False), (CLOCKS_APART - 1, False), (CLOCKS_APART + 1, True), (1500.0, True), (-1500.0, False)],
)
def test_a_match_says_whether_its_time_is_doubtful(ahead: float, doubtful: bool) -> None:
    reader = Reader()
    reader.take(arriving(ahead), NOW)
    [match] = reader.handed
    assert match.doubtful is doubtful
    assert content_item_of(content_item_view(match)) == match


def test_a_time_far_away_is_refused_either_way() -> None:
    for ahead in (CONFIG.taken_for + 1, -CONFIG.taken_for - 1, 2.0**50):
        with pytest.raises(InvalidEvent) as raised:
            arriving(ahead)
        assert raised.value.reason is Reason.STALE


def test_an_event_that_is_ahead_is_not_handed_over_again_while_it_is_taken() -> None:
    reader = Reader()
    ahead = CONFIG.taken_for - 1
    reader.take(arriving(ahead), NOW)
    last = NOW + ahead + CONFIG.taken_for  # the latest moment at which a copy is taken
    for now in (NOW + CONFIG.taken_for + 1, last):
        reader.application.tidy(now)
        reader.take(arriving(ahead, now), now)
    assert len(reader.handed) == 1
