"""Kept subscriptions as they are written down."""

from __future__ import annotations

from linnet.content.commands import Match, Overflow
from linnet.content.inbox import TAKEN, Kept, KeptStore
from linnet.core.ids import AuthorId, EventId
from linnet.core.reasons import Reason
from linnet.store.memory import MemoryStore


def event(number: int) -> EventId:
    return EventId(number.to_bytes(32))


def test_what_is_written_is_read_back_in_its_order() -> None:
    cells = MemoryStore().cells
    store = KeptStore(cells, 10)
    match = Match(event(1), AuthorId(bytes(32)), "a=1/b", 7, b"body", 3, 1)
    lost = Overflow(2, 5, Reason.QUEUE_FULL)
    for name in ("b", "ä"):
        store.put(name, Kept("a/b", 3))
        store.put_item(name, lost)
        store.put_item(name, match)
    again = KeptStore(cells, 10)
    assert [*again.subscriptions()] == [("b", Kept("a/b", 3)), ("ä", Kept("a/b", 3))]
    assert [*again.items()] == [("b", match), ("b", lost), ("ä", match), ("ä", lost)]
    again.drop_item("b", 1)
    again.drop("ä")
    assert next(iter(again.items())) == ("b", lost)
    assert [name for name, _ in again.subscriptions()] == ["b"]


def test_what_was_taken_is_known_again_until_many_others_were() -> None:
    cells = MemoryStore().cells
    store = KeptStore(cells, 3)
    for number in (1, 2, 2, 3, 4):
        store.take(event(number))
    again = KeptStore(cells, 3)
    for either in (store, again):
        assert [either.has_taken(event(number)) for number in range(1, 6)] == [False, True, True, True, False]
    again.take(event(5))
    assert [again.has_taken(event(number)) for number in range(1, 6)] == [False, False, True, True, True]
    assert len([*cells.scan(TAKEN)]) == 3
