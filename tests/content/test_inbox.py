"""What waits to be read: windows, bounds, and what is kept over restarts."""

from __future__ import annotations

import pytest

from linnet.content.commands import ContentItem, GroupAt, Match, Overflow, SubscriptionIs, Via
from linnet.content.config import ContentConfig
from linnet.content.inbox import TAKEN, Inbox, Kept, KeptStore, Wanted
from linnet.core.effects import AfterCommit, Deliver
from linnet.core.errors import CellsDamaged, Refused
from linnet.core.ids import AuthorId, Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.sim.nemesis.open_node import DamageableStore
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

AUTHOR = AuthorId(bytes(32))
CONFIG = ContentConfig(inbox=4, window=2)


def match(number: int, body: bytes = b"") -> Match:
    return Match(EventId(number.to_bytes(32)), AUTHOR, "a", 0, body, 1)


A = Wanted("a")
BY_GROUP = Wanted("a", Via.FAST, GroupAt(Contact(PeerId(bytes(32)), ()), "a"))


def handed(out: Outbox) -> list[ContentItem]:
    """What was delivered, at once or when it is durable."""
    effects = out.take()
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    delivers = [each for each in (*effects, *promised) if isinstance(each, Deliver)]
    return [item for each in delivers for item in each.items if isinstance(item, Match | Overflow)]


def consumed(inbox: Inbox, out: Outbox, items: int, reader: int = 9) -> list[ContentItem]:
    """What a reader is handed that has handled so many more."""
    inbox.hand(inbox.consume(reader, items))
    return handed(out)


def test_a_reader_is_handed_a_window_and_more_when_it_has_handled_some() -> None:
    out = Outbox()
    inbox = Inbox(CONFIG, MemoryStore().cells, out)
    number, was_there = inbox.open(9, A)
    assert not was_there
    for each, numbers in ((1, [1]), (2, [2]), (3, [])):
        inbox.take([number], match(each))
        assert [item.number for item in handed(out)] == numbers
    with pytest.raises(Refused, match="2 items were handed over"):
        inbox.consume(9, 3)
    assert [each.number for each in consumed(inbox, out, 2)] == [3]
    assert 9 in inbox.readers
    assert inbox.close(9) == number
    assert 9 not in inbox.readers
    inbox.take([number], match(4))
    assert out.take() == []


def test_what_is_too_much_is_not_taken_but_counted_and_told() -> None:
    out = Outbox()
    inbox = Inbox(CONFIG, MemoryStore().cells, out)
    number, _ = inbox.open(9, A)
    for each in range(1, 5):
        inbox.take([number], match(each))
    out.clear()
    for each in (5, 6):
        inbox.take([number], match(each))
        (record,) = out.take()
        assert isinstance(record, Record)
        assert (record.kind, record.reason) == (Kind.DROPPED, Reason.QUEUE_FULL)
    assert [each.number for each in consumed(inbox, out, 2)] == [3, 4]
    assert consumed(inbox, out, 2) == [Overflow(5, 2, Reason.QUEUE_FULL)]
    inbox.take([number], match(7))
    assert [each.number for each in handed(out)] == [6]
    assert inbox.status() == {1: SubscriptionIs(None, "a", "", True, 2, 2)}


def test_bytes_are_bounded_too() -> None:
    out = Outbox()
    inbox = Inbox(ContentConfig(inbox_bytes=1_048_576), MemoryStore().cells, out)
    number, _ = inbox.open(9, A)
    inbox.take([number], match(1, bytes(1_048_576)))
    inbox.take([number], match(2, b"x"))
    assert inbox.status()[1].lost == 1
    consumed(inbox, out, 2)
    inbox.take([number], match(3, b"x"))
    assert (inbox.status()[1].waiting, inbox.status()[1].lost) == (1, 1)


def test_what_is_kept_survives_with_its_numbers_and_is_never_handed_twice() -> None:
    store = MemoryStore()
    out = Outbox()
    inbox = Inbox(CONFIG, store.cells, out)
    number, _ = inbox.open(9, BY_GROUP, "kept")
    assert inbox.is_keeping
    assert inbox.promise() is out.committed
    for each in (1, 2, 3):
        inbox.take([number], match(each))
        assert not any(isinstance(effect, Deliver) for effect in out.take())
    consumed(inbox, out, 1)
    assert inbox.close(9) is None
    again = Inbox(CONFIG, store.cells, out)
    ((number, wanted),) = again.kept
    assert wanted == BY_GROUP
    again.take([number], match(1))
    (record,) = out.take()
    assert isinstance(record, Record)
    assert record.kind is Kind.DUPLICATE
    assert again.open(3, BY_GROUP, "kept") == (number, True)
    again.hand(number)
    assert [each.number for each in handed(out)] == [2, 3]
    again.take([number], match(4))
    assert handed(out) == []
    assert [each.number for each in consumed(again, out, 2, reader=3)] == [4]


def test_names_are_for_one_predicate_and_one_reader() -> None:
    store = MemoryStore()
    out = Outbox()
    inbox = Inbox(CONFIG, store.cells, out)
    number, _ = inbox.open(9, A, "kept")
    with pytest.raises(Refused, match="a reader 9"):
        inbox.open(9, Wanted("b"))
    with pytest.raises(Refused, match="is a subscription to a by scout: forget it first"):
        inbox.open(10, Wanted("b"), "kept")
    with pytest.raises(Refused, match="is being read"):
        inbox.open(10, A, "kept")
    with pytest.raises(Refused, match="forget it first"):
        inbox.open(10, BY_GROUP, "kept")
    with pytest.raises(Refused, match="1 to 64 bytes"):
        inbox.open(10, A, "x" * 65)
    inbox.take([number], match(1))
    assert inbox.find("kept") == number
    assert inbox.forget(number) == 9
    assert (inbox.find("kept"), inbox.kept, 9 in inbox.readers) == (None, [], False)
    assert Inbox(CONFIG, store.cells, Outbox()).status() == {}


def test_in_the_place_of_a_damaged_match_a_reader_is_told_that_one_is_lost() -> None:
    store, out = DamageableStore(), Outbox()
    inbox = Inbox(CONFIG, store.cells, out)
    number, _ = inbox.open(9, A, "kept")
    for each in range(3):
        inbox.take([number], match(each))
    (key,) = (key for key, _ in store.cells.scan("content_items") if key.endswith(b"\2"))
    store.cells.spoil("content_items", key)
    for _ in range(2):
        out = Outbox()
        again = Inbox(ContentConfig(window=9), store.cells, out)
        number, _ = again.open(9, A, "kept")
        again.hand(number)
        first, lost, last = handed(out)
        assert isinstance(first, Match)
        assert lost == Overflow(2, 1, Reason.DAMAGED)
        assert isinstance(last, Match)


def test_a_match_that_is_nobodys_since_its_key_is_damaged_is_refused() -> None:
    store = DamageableStore()
    Inbox(CONFIG, store.cells, Outbox()).open(9, A, "kept")
    store.cells.put("content_items", b"\4kepz" + bytes(8), b"")
    store.cells.spoil("content_items", b"\4kepz" + bytes(8))
    with pytest.raises(CellsDamaged):
        Inbox(CONFIG, store.cells, Outbox())


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
