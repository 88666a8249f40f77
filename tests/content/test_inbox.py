"""What waits to be read: windows, bounds, and what is kept over restarts."""

from __future__ import annotations

import pytest

from linnet.content.commands import ContentItem, GroupAt, Match, Overflow, SubscriptionIs, Via
from linnet.content.config import ContentConfig
from linnet.content.effects import ContentEffect
from linnet.content.inbox import Inbox, Wanted
from linnet.core.effects import AfterCommit, Deliver
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, Contact, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

AUTHOR = AuthorId(bytes(32))
CONFIG = ContentConfig(inbox=4, window=2)


def match(number: int, body: bytes = b"") -> Match:
    return Match(EventId(number.to_bytes(32)), AUTHOR, "a", 0, body, 1)


A = Wanted("a")
BY_GROUP = Wanted("a", Via.FAST, GroupAt(Contact(PeerId(bytes(32)), ()), "a"))


def handed(effects: list[ContentEffect]) -> list[ContentItem]:
    """What was delivered, at once or when it is durable."""
    promised = [each for effect in effects if isinstance(effect, AfterCommit) for each in effect.effects]
    delivers = [each for each in (*effects, *promised) if isinstance(each, Deliver)]
    return [item for each in delivers for item in each.items if isinstance(item, Match | Overflow)]


def test_a_reader_is_handed_a_window_and_more_when_it_has_handled_some() -> None:
    inbox = Inbox(CONFIG, MemoryStore().cells)
    number, was_there = inbox.open(9, A)
    assert not was_there
    assert [each.number for each in handed(inbox.take(number, match(1)))] == [1]
    assert [each.number for each in handed(inbox.take(number, match(2)))] == [2]
    assert handed(inbox.take(number, match(3))) == []
    with pytest.raises(Refused, match="2 items were handed over"):
        inbox.consumed(9, 3)
    assert [each.number for each in handed(inbox.consumed(9, 2))] == [3]
    assert inbox.reads(9)
    assert inbox.close(9) == (number, A)
    assert not inbox.reads(9)
    assert inbox.take(number, match(4)) == []


def test_what_is_too_much_is_not_taken_but_counted_and_told() -> None:
    inbox = Inbox(CONFIG, MemoryStore().cells)
    number, _ = inbox.open(9, A)
    for each in range(1, 5):
        inbox.take(number, match(each))
    for each in (5, 6):
        (record,) = inbox.take(number, match(each))
        assert isinstance(record, Record)
        assert (record.kind, record.reason) == (Kind.DROPPED, Reason.QUEUE_FULL)
    assert [each.number for each in handed(inbox.consumed(9, 2))] == [3, 4]
    assert handed(inbox.consumed(9, 2)) == [Overflow(5, 2, Reason.QUEUE_FULL)]
    assert [each.number for each in handed(inbox.take(number, match(7)))] == [6]
    assert inbox.status() == {1: SubscriptionIs(None, "a", "", True, 2, 2)}


def test_bytes_are_bounded_too() -> None:
    inbox = Inbox(ContentConfig(inbox_bytes=1_048_576), MemoryStore().cells)
    number, _ = inbox.open(9, A)
    inbox.take(number, match(1, bytes(1_048_576)))
    inbox.take(number, match(2, b"x"))
    assert inbox.status()[1].lost == 1
    inbox.consumed(9, 2)
    inbox.take(number, match(3, b"x"))
    assert (inbox.status()[1].waiting, inbox.status()[1].lost) == (1, 1)


def test_what_is_kept_survives_with_its_numbers_and_is_never_handed_twice() -> None:
    store = MemoryStore()
    inbox = Inbox(CONFIG, store.cells)
    number, _ = inbox.open(9, BY_GROUP, "kept")
    assert inbox.is_keeping
    for each in (1, 2, 3):
        effects = inbox.take(number, match(each), inbox.is_old(match(each).event))
        assert not any(isinstance(effect, Deliver) for effect in effects)
        inbox.taken(match(each).event)
    inbox.consumed(9, 1)
    assert inbox.close(9) is None
    again = Inbox(CONFIG, store.cells)
    ((number, wanted),) = again.kept
    assert wanted == BY_GROUP
    assert again.is_old(match(1).event)
    (record,) = again.take(number, match(1), is_old=True)
    assert isinstance(record, Record)
    assert record.kind is Kind.DUPLICATE
    assert again.open(3, BY_GROUP, "kept") == (number, True)
    assert [each.number for each in handed(again.hand(number))] == [2, 3]
    again.take(number, match(4), again.is_old(match(4).event))
    assert [each.number for each in handed(again.consumed(3, 2))] == [4]


def test_names_are_for_one_predicate_and_one_reader() -> None:
    store = MemoryStore()
    inbox = Inbox(CONFIG, store.cells)
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
    inbox.take(number, match(1))
    assert inbox.find("kept") == number
    assert inbox.forget(number) == (9, A)
    assert (inbox.find("kept"), inbox.kept, inbox.reads(9)) == (None, [], False)
    assert Inbox(CONFIG, store.cells).status() == {}
