"""The contact book: what is remembered, what is told, and whose word counts."""

from __future__ import annotations

from hashlib import sha256

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.rooms.contact_book import BOOK, ContactBook, Known
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

ROOM = TopicId(b"r" * 32)
ANN, BEN = AuthorId(b"a" * 32), AuthorId(b"b" * 32)


def peer(number: int) -> PeerId:
    return PeerId(sha256(b"%d" % number).digest())


def contact(number: int, place: str = "home") -> Contact:
    return Contact(peer(number), (f"tls://{place}:{number}",))


def dropped(number: int) -> list[Record]:
    return [Record(Kind.EVICTED, ROOM, peer=peer(number), reason=Reason.TOO_MANY, note="contact")]


def test_what_is_known_outlives_a_restart() -> None:
    store = MemoryStore()
    book = ContactBook(ROOM, store.cells)
    book.met(contact(1), ANN, 10.0)
    book.told(contact(2))
    again = ContactBook(ROOM, store.cells)
    assert again.find(peer(1)) == Known(contact(1).hints, (), ANN, 10.0)
    assert again.find(peer(2)) == Known((), contact(2).hints, None, None)
    assert len(ContactBook(TopicId(b"s" * 32), store.cells)) == 0
    again.forget(peer(1))
    assert peer(1) not in ContactBook(ROOM, store.cells)
    assert peer(2) in again


def test_that_a_device_is_still_there_is_not_worth_a_write_each_time() -> None:
    store = MemoryStore()
    book = ContactBook(ROOM, store.cells)
    for now in (10.0, 69.0, 71.0, 80.0):
        book.met(contact(1), ANN, now)
    known = book.find(peer(1))
    kept = ContactBook(ROOM, store.cells).find(peer(1))
    assert known is not None
    assert kept is not None
    assert (known.met, kept.met) == (80.0, 71.0)


def test_what_a_device_says_of_itself_is_dialled_first_and_what_others_say_too() -> None:
    book = ContactBook(ROOM, MemoryStore().cells)
    own = Contact(peer(1), tuple(f"tls://own:{number}" for number in range(8)))
    book.met(own, ANN, 1.0)
    assert book.contact(peer(1)) == own
    book.told(contact(1, "elsewhere"))
    assert book.contact(peer(1)).hints == (*own.hints[:6], "tls://elsewhere:1")
    book.told(contact(1, "nowhere"))
    assert book.contact(peer(1)).hints == (*own.hints[:6], "tls://nowhere:1")
    book.told(Contact(peer(1)))
    assert "tls://nowhere:1" in book.contact(peer(1)).hints
    book.met(contact(1, "moved"), ANN, 2.0)
    assert book.contact(peer(1)) == contact(1, "moved")


def test_only_who_was_met_and_may_be_dialled_is_told_to_others() -> None:
    book = ContactBook(ROOM, MemoryStore().cells)
    book.met(contact(1), ANN, 1.0)
    book.met(contact(2), ANN, 2.0)
    book.met(Contact(peer(3)), ANN, 3.0)
    book.told(contact(4))
    book.told(contact(1, "rumour"))
    assert book.share(9) == (contact(2), contact(1))
    assert book.share(2, [contact(9), contact(1)]) == (contact(9), contact(1))
    assert book.by_freshness() == [peer(3), peer(2), peer(1), peer(4)]
    assert (book.met_since(2.0), book.devices_of(ANN), book.devices_of(BEN)) == (
        2,
        [peer(1), peer(2), peer(3)],
        [],
    )


def test_a_full_book_drops_who_was_never_met_first_and_never_for_a_rumour_who_was() -> None:
    book = ContactBook(ROOM, MemoryStore().cells)
    for number in range(BOOK - 1):
        assert book.met(contact(number), ANN, 100.0 + number) == []
    assert book.told(contact(5000)) == []
    assert book.told(contact(5001)) == dropped(5000)
    assert book.met(contact(5002), BEN, 9000.0) == dropped(5001)
    assert book.told(contact(5003)) == dropped(5003)
    assert book.met(contact(5004), BEN, 9001.0) == dropped(0)
    assert len(book) == BOOK
    assert book.told(contact(7, "moved")) == []
