"""Filters that are kept for others."""

from __future__ import annotations

import pytest

from linnet.content.config import ContentConfig
from linnet.content.filter_backup import Copies
from linnet.content.messages import ROUTES, Backup, KeptRoute, Routes, StandIn
from linnet.content.predicate import read_attributes
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, PeerId
from linnet.core.reasons import Reason

OWNER, OTHER, FIRST, SECOND = (PeerId(bytes([number]) * 32) for number in range(1, 5))
EVENT = EventId(b"e" * 32)


def route(peer: PeerId, *predicates: str, whole: bool = False) -> KeptRoute:
    return KeptRoute(Contact(peer, ("tls://a:1",)), (Contact(OTHER),), predicates, whole)


def backup(*routes: KeptRoute, fresh: bool = False, rendezvous: bool = False) -> Backup:
    return Backup(1, "stock", rendezvous, fresh, routes)


def wanting(copies: Copies, event: str) -> list[PeerId] | None:
    found = copies.routes(OWNER, "stock", read_attributes(event))
    return None if found is None else [each.contact.peer for each in found]


def test_what_is_told_adds_up_and_what_is_whole_or_fresh_replaces() -> None:
    copies = Copies(ContentConfig())
    assert wanting(copies, "stock") is None
    copies.keep(OWNER, backup(route(FIRST, "apple/stock")))
    copies.keep(OWNER, backup(route(FIRST, "pear/stock"), route(SECOND, "stock")))
    assert wanting(copies, "pear/stock") == [SECOND, FIRST] or wanting(copies, "pear/stock") == [
        FIRST,
        SECOND,
    ]
    copies.keep(OWNER, backup(route(FIRST, "apple/stock", whole=True)))
    assert wanting(copies, "pear/stock") == [SECOND]
    copies.keep(OWNER, backup(route(FIRST, "stock"), fresh=True))
    assert wanting(copies, "stock") == [FIRST]


def test_routes_are_named_with_those_who_keep_their_own_filters() -> None:
    copies = Copies(ContentConfig())
    copies.keep(OWNER, backup(route(FIRST, "stock")))
    known = KeptRoute(Contact(FIRST, ("tls://a:1",)), (Contact(OTHER),))
    assert copies.answers(StandIn(EVENT, "stock", "stock", OWNER)) == [
        Routes(EVENT, "stock", OWNER, (known,), False, None)
    ]
    (nothing,) = copies.answers(StandIn(EVENT, "stock", "stock", OTHER))
    assert nothing.reason is Reason.NOT_HELD


def test_many_routes_are_named_in_several_messages() -> None:
    copies = Copies(ContentConfig())
    peers = [PeerId(bytes([9, number]) * 16) for number in range(ROUTES + 3)]
    for peer in peers:
        copies.keep(OWNER, backup(route(peer, "stock")))
    first, last = copies.answers(StandIn(EVENT, "stock", "stock", OWNER))
    assert (len(first.routes), first.more, len(last.routes), last.more) == (ROUTES, True, 3, False)


def test_a_rendezvous_without_subscriptions_is_known_as_that_and_who_is_none_any_more_is_forgotten() -> None:
    copies = Copies(ContentConfig())
    copies.keep(OWNER, backup(fresh=True, rendezvous=True))
    assert (copies.rendezvous("stock"), wanting(copies, "stock")) == ([OWNER], [])
    copies.keep(OWNER, backup(fresh=True))
    assert (copies.rendezvous("stock"), wanting(copies, "stock")) == ([], None)


def test_what_is_not_told_again_for_three_periods_is_forgotten() -> None:
    copies = Copies(ContentConfig())
    copies.keep(OWNER, backup(route(FIRST, "stock")))
    for _ in range(2):
        copies.turn()
        assert wanting(copies, "stock") == [FIRST]
    copies.turn()
    assert (wanting(copies, "stock"), len(copies)) == (None, 0)


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        (backup(route(FIRST, "stock/apple")), Reason.MALFORMED),
        (backup(route(FIRST, "apple")), Reason.MALFORMED),
        (backup(route(FIRST, "a/stock", "b/stock", "c/stock")), Reason.TOO_MANY),
    ],
)
def test_what_must_not_be_told_is_named_and_changes_nothing(message: Backup, reason: Reason) -> None:
    copies = Copies(ContentConfig(kept=2))
    with pytest.raises(RemoteError) as raised:
        copies.keep(OWNER, message)
    assert raised.value.reason is reason
    assert (len(copies), wanting(copies, "stock")) == (0, None)


def test_the_number_of_nodes_is_bounded() -> None:
    copies = Copies(ContentConfig(routes=1))
    copies.keep(OWNER, backup(route(FIRST, "stock")))
    with pytest.raises(RemoteError):
        copies.keep(OTHER, backup(route(FIRST, "stock")))
