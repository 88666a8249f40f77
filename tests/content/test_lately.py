"""What went by lately: by attribute, for a while, and no more than so many."""

from __future__ import annotations

from tests.content.one_event import event

from linnet.content.branch_ledger import Lately, WentBy
from linnet.content.config import ContentConfig
from linnet.core.ids import PeerId

CONFIG = ContentConfig(lately=30.0, waiting=2)
PASSING = event()
LEADER, ROUTE = PeerId(b"l" * 32), PeerId(b"r" * 32)


def went_by(at: float, attribute: str = "stock", leader: PeerId | None = None) -> WentBy:
    return WentBy(at, (PASSING.id, attribute), PASSING, 2, leader)


def test_what_went_down_here_and_elsewhere_is_kept_apart_for_a_while() -> None:
    lately = Lately(CONFIG)
    here, other, elsewhere = went_by(0.0), went_by(0.0, "price"), went_by(5.0)
    lately.went_down(here)
    lately.went_down(other)
    lately.finished_elsewhere(elsewhere)
    assert [*lately.here("stock", 29.0)] == [here]
    assert [*lately.here("price", 29.0)] == [other]
    assert [*lately.elsewhere("stock", 29.0)] == [elsewhere]
    assert [*lately.here("stock", 30.0)] == []
    lately.tidy(30.0)
    assert [*lately.here("stock", 0.0)] == []
    assert [*lately.elsewhere("stock", 30.0)] == [elsewhere]


def test_the_oldest_are_forgotten_where_there_are_too_many() -> None:
    lately = Lately(CONFIG)
    some = [went_by(float(at)) for at in range(3)]
    for each in some:
        lately.went_down(each)
    assert [*lately.here("stock", 3.0)] == some[1:]


def test_who_reads_may_add_meanwhile() -> None:
    lately = Lately(CONFIG)
    lately.went_down(went_by(0.0))
    for each in lately.here("stock", 1.0):
        lately.went_down(each)
    assert len([*lately.here("stock", 1.0)]) == 2


def test_what_was_tracked_is_known_once_by_who_led_it_and_the_oldest_goes_first() -> None:
    lately = Lately(CONFIG)
    for attribute in ("stock", "price", "stock"):
        lately.finished_elsewhere(went_by(1.0, attribute, LEADER))
    assert lately.led_by(LEADER) == ["price", "stock"]
    assert lately.led_by(ROUTE) == []
    lately.finished_elsewhere(went_by(2.0, "rain", LEADER))
    assert lately.led_by(LEADER) == ["rain", "stock"], "the price was told of before the stock was again"
    assert lately.has((PASSING.id, "rain"))
    lately.tidy(32.0)
    assert not lately.has((PASSING.id, "rain"))


def test_who_came_back_is_known_for_a_while_by_attribute() -> None:
    lately = Lately(CONFIG)
    lately.came_back("stock", ROUTE, 1.0)
    assert lately.is_back("stock", ROUTE, 30.0)
    assert not lately.is_back("stock", ROUTE, 31.0)
    assert not lately.is_back("price", ROUTE, 1.0)
    lately.tidy(31.0)
    assert not lately.is_back("stock", ROUTE, 1.0), "forgotten"
