"""Ledgers: what is open stays, what is settled is forgotten when it cannot come again; all are bounded."""

from __future__ import annotations

from tests.content.one_event import event

from linnet.content.branch_ledger import Branch, Ledger, Ledgers, Way
from linnet.content.config import ContentConfig
from linnet.core.ids import Contact, EventId, PeerId

PASSING = event()
ROUTE = PeerId(b"r" * 32)
CONFIG = ContentConfig(remembered=2, refresh=10.0, lately=5.0)


def way(number: int) -> Way:
    return EventId(bytes([number]) * 32), "stock"


def ledger() -> Ledger:
    return Ledger(PASSING, 1, None)


def test_what_is_settled_is_known_for_as_long_as_it_may_come_again() -> None:
    ledgers = Ledgers(CONFIG)
    ledgers.put(way(1), ledger())
    ledgers.open[way(1)] = None
    ledgers[way(1)].served[ROUTE] = None
    ledgers.tidy(1000.0)
    assert way(1) in ledgers, "it is open"
    ledgers.settle(way(1), 1000.0)
    assert (ledgers[way(1)].passing, ledgers[way(1)].served, ledgers.open) == (None, {}, {})
    ledgers.tidy(1000.0 + CONFIG.taken_for - 1)
    assert ledgers.get(way(1)) is not None
    ledgers.tidy(1000.0 + CONFIG.taken_for)
    assert ledgers.get(way(1)) is None
    assert len(ledgers) == 0


def test_the_oldest_is_given_up_where_there_are_too_many_and_named_if_it_was_open() -> None:
    ledgers = Ledgers(CONFIG)
    waiting = ledger()
    waiting.open[ROUTE] = Branch(Contact(ROUTE), [])
    assert ledgers.put(way(1), waiting) == []
    ledgers.open[way(1)] = None
    assert ledgers.put(way(2), ledger()) == []
    assert ledgers.put(way(3), ledger()) == [(way(1), waiting)]
    assert ledgers.put(way(4), ledger()) == [], "all had answered for the second"
    assert (len(ledgers), ledgers.open) == (2, {})
