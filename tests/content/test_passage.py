"""What peers send along the way to a rendezvous and back, at one machine: honest and hostile."""

from __future__ import annotations

import msgspec
import pytest
from tests.content.one_scout import (
    FAR,
    FARTHER,
    NEAR,
    published,
    rejected,
    scout,
    sends,
    subscribed,
    subscribes,
)

from linnet.content.config import ContentConfig
from linnet.content.messages import Notice, Publish, Reached, Replace, Settled, Subscribe, Subscribed, Taken
from linnet.core.effects import Send
from linnet.core.ids import EventId
from linnet.core.reasons import Reason
from linnet.sim.clock import START


def test_a_covered_subscription_goes_no_further_and_is_answered_when_the_cover_stands() -> None:
    machine = scout()
    wide = machine.hear(FAR, Subscribe(1, "stock", "stock", 0), START)
    assert subscribes([*wide]) == [(NEAR, 1, "stock", 1)]
    covered = machine.hear(FARTHER, Subscribe(5, "stock", "apple/stock", 0), START)
    assert (subscribes([*covered]), subscribed([*covered])) == ([], [])
    stands = machine.hear(NEAR, Subscribed(1, None), START)
    assert sends([*stands]) == [Send(FAR, Subscribed(1, None)), Send(FARTHER, Subscribed(5, None))]
    later = machine.hear(FARTHER, Subscribe(6, "stock", "pear/stock", 0), START)
    assert (subscribes([*later]), subscribed([*later])) == ([], [(FARTHER, Subscribed(6, None))])


def test_what_can_be_merged_goes_on_as_one() -> None:
    machine = scout()
    machine.hear(FAR, Subscribe(1, "stock", "price[1,5]/stock", 0), START)
    merged = machine.hear(FARTHER, Subscribe(1, "stock", "price[5,9]/stock", 0), START)
    assert subscribes([*merged]) == [(NEAR, 2, "price[1,9]/stock", 1)]


def test_walks_go_closer_and_notices_come_from_closer() -> None:
    machine = scout()
    event = published()
    assert rejected([*machine.hear(NEAR, Subscribe(1, "stock", "stock", 0), START)]) == [
        Reason.NOT_RESPONSIBLE
    ]
    assert rejected([*machine.hear(NEAR, Publish("stock", *event, 0), START)]) == [Reason.NOT_RESPONSIBLE]
    assert rejected([*machine.hear(FAR, Notice("stock", *event, 0), START)]) == [Reason.NOT_RESPONSIBLE]
    assert len(machine.scout.table) == 0


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (Subscribe(1, "stock", "stock/", 0), Reason.MALFORMED),
        (Subscribe(1, "stock", "stock/apple", 0), Reason.MALFORMED),
        (Subscribe(1, "stock", "apple", 0), Reason.MALFORMED),
        (Subscribe(1, "stock", "stock", 200), Reason.TOO_MANY),
        (Subscribe(1, "stock", "a/b/c/d/e/stock", 0), Reason.MALFORMED),
        (Replace("stock", ("stock",)), Reason.STALE),
        (Replace("stock", ("apple",)), Reason.MALFORMED),
        (Subscribed(7, None), Reason.STALE),
        (Taken(EventId(b"e" * 32), "stock", None), Reason.STALE),
        (Reached(EventId(b"e" * 32), "stock", 5, 0), Reason.STALE),
        (Settled(EventId(b"e" * 32), "stock", 5, 0), Reason.STALE),
    ],
)
def test_what_peers_must_not_send_is_named_and_changes_nothing(message: object, reason: Reason) -> None:
    machine = scout()
    assert rejected([*machine.hear(FAR, message, START)]) == [reason]  # type: ignore[arg-type] # one of them
    assert len(machine.scout.table) == 0


def test_a_forged_event_is_not_passed_on() -> None:
    machine = scout()
    unit, card = published()
    forged = msgspec.structs.replace(unit, sig=bytes(64))
    effects = machine.hear(FAR, Publish("stock", forged, card, 0), START)
    assert rejected([*effects]) == [Reason.BAD_SIGNATURE]
    assert sends([*effects]) == []


def test_filters_and_routes_are_bounded() -> None:
    machine = scout(ContentConfig(filters=2, routes=1))
    for number in range(2):
        machine.hear(FAR, Subscribe(number, "stock", f"a{number}/stock", 0), START)
    too_many = machine.hear(FAR, Subscribe(9, "stock", "b/stock", 0), START)
    assert sends([*too_many]) == [Send(FAR, Subscribed(9, Reason.TOO_MANY))]
    other = machine.hear(FARTHER, Subscribe(3, "stock", "stock", 0), START)
    assert rejected([*other]) == [Reason.TOO_MANY]
    assert len(machine.scout.table) == 2


def test_filters_in_all_and_those_with_two_ranges_are_bounded() -> None:
    machine = scout(ContentConfig(held=3, expensive=1))
    for number, text in enumerate(("a[1,2]/b[1,2]/stock", "a[5,6]/b[5,6]/stock")):
        effects = machine.hear(FAR, Subscribe(number, "stock", text, 0), START)
    assert subscribed([*effects]) == [(FAR, Subscribed(1, Reason.TOO_MANY))]
    for number, text in enumerate(("c/stock", "d/stock", "e/stock")):
        effects = machine.hear(FARTHER, Subscribe(number, "stock", text, 0), START)
    assert subscribed([*effects]) == [(FARTHER, Subscribed(2, Reason.TOO_MANY))]
    assert len(machine.scout.table) == 3


def test_who_sends_more_than_its_budget_is_refused_by_name_and_others_are_served() -> None:
    machine = scout(ContentConfig(budget=2))
    refused = [
        rejected([*machine.hear(FAR, Subscribe(number, "stock", f"a{number}/stock", 0), START)])
        for number in range(4)
    ]
    assert refused == [[], [], [Reason.QUOTA], [Reason.QUOTA]]
    assert rejected([*machine.hear(FARTHER, Subscribe(9, "stock", "stock", 0), START)]) == []
    assert len(machine.scout.table) == 3
