"""What peers send along the way to a rendezvous and back, at one machine: honest and hostile."""

from __future__ import annotations

import msgspec
import pytest
from tests.content.one_event import event, lone_context
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
from linnet.content.messages import (
    Claim,
    ContentMessage,
    Kept,
    Notice,
    Publish,
    Reached,
    Replace,
    Settled,
    StandIn,
    Subscribe,
    Subscribed,
    Taken,
)
from linnet.content.passing import check
from linnet.content.scout import Quotas
from linnet.core.effects import Send
from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.sim.clock import START
from linnet.sim.seeded_random import seeded_identity


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


PEER, OTHER, THIRD = (PeerId(bytes([number]) * 32) for number in range(1, 4))
SUBSCRIBE = Subscribe(1, "stock", "stock", 0)


def refused(budgets: Quotas, peer: PeerId, message: ContentMessage) -> bool:
    try:
        budgets.spend(peer, message)
    except RemoteError as error:
        return error.reason is Reason.QUOTA
    return False


def test_each_peer_has_a_budget_for_each_kind_and_period() -> None:
    budgets = Quotas(ContentConfig(budget=2, claim_budget=1))
    assert [refused(budgets, PEER, SUBSCRIBE) for _ in range(3)] == [False, False, True]
    assert refused(budgets, PEER, Replace("stock", ())), "of the same kind"
    assert not refused(budgets, PEER, StandIn(EventId(b"e" * 32), "stock", "stock", OTHER))
    assert [refused(budgets, PEER, Claim(name)) for name in ("a", "b")] == [False, True]
    assert not refused(budgets, OTHER, SUBSCRIBE)
    budgets.turn()
    assert not refused(budgets, PEER, SUBSCRIBE)


def test_answers_cost_nothing() -> None:
    budgets = Quotas(ContentConfig(budget=1))
    assert not any(refused(budgets, PEER, Kept(number, None)) for number in range(5))


def test_what_is_counted_is_bounded_as_well() -> None:
    budgets = Quotas(ContentConfig(budget=1, routes=2))
    for peer in (PEER, OTHER, THIRD):
        budgets.spend(peer, SUBSCRIBE)
    with pytest.raises(RemoteError):
        budgets.spend(THIRD, SUBSCRIBE)
    assert not refused(budgets, PEER, SUBSCRIBE), "the oldest is forgotten first"


@pytest.mark.parametrize(("refresh", "lately", "limit"), [(10.0, 300.0, 320.0), (900.0, 30.0, 1830.0)])
def test_what_is_sent_again_because_it_went_by_lately_is_never_too_old(
    refresh: float, lately: float, limit: float
) -> None:
    context = lone_context(seeded_identity(7, "n", START))
    config, said = ContentConfig(refresh=refresh, lately=lately), event()
    for age in (0.0, lately, limit - 1.0):
        assert check(said.unit, said.card, context, config, START + age).id == said.id
    with pytest.raises(InvalidEvent) as refused:
        check(said.unit, said.card, context, config, START + limit + 1.0)
    assert refused.value.reason is Reason.STALE
