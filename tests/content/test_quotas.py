"""What one peer may have a node do within a period."""

from __future__ import annotations

import pytest

from linnet.content.config import ContentConfig
from linnet.content.messages import Claim, ContentMessage, Kept, Replace, StandIn, Subscribe
from linnet.content.quotas import Quotas
from linnet.core.errors import RemoteError
from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason

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
