"""The contact book: what is remembered, what is told, and whose word counts."""

from __future__ import annotations

from hashlib import sha256

from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.rooms.member_links import BOOK, ContactBook, Known
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
    book = ContactBook(ROOM, store.cells, Outbox())
    book.note_meeting(contact(1), ANN, 10.0)
    book.note_hearsay(contact(2))
    again = ContactBook(ROOM, store.cells, Outbox())
    assert again.find(peer(1)) == Known(contact(1).hints, (), ANN, 10.0)
    assert again.find(peer(2)) == Known((), contact(2).hints, None, None)
    assert len(ContactBook(TopicId(b"s" * 32), store.cells, Outbox())) == 0
    again.forget(peer(1))
    assert peer(1) not in ContactBook(ROOM, store.cells, Outbox())
    assert peer(2) in again


def test_that_a_device_is_still_there_is_not_worth_a_write_each_time() -> None:
    store = MemoryStore()
    book = ContactBook(ROOM, store.cells, Outbox())
    for now in (10.0, 69.0, 71.0, 80.0):
        book.note_meeting(contact(1), ANN, now)
    known = book.find(peer(1))
    kept = ContactBook(ROOM, store.cells, Outbox()).find(peer(1))
    assert known is not None
    assert kept is not None
    assert (known.met, kept.met) == (80.0, 71.0)


def test_what_a_device_says_of_itself_is_dialled_first_and_what_others_say_too() -> None:
    book = ContactBook(ROOM, MemoryStore().cells, Outbox())
    own = Contact(peer(1), tuple(f"tls://own:{number}" for number in range(8)))
    book.note_meeting(own, ANN, 1.0)
    assert book.contact(peer(1)) == own
    book.note_hearsay(contact(1, "elsewhere"))
    assert book.contact(peer(1)).hints == (*own.hints[:6], "tls://elsewhere:1")
    book.note_hearsay(contact(1, "nowhere"))
    assert book.contact(peer(1)).hints == (*own.hints[:6], "tls://nowhere:1")
    book.note_hearsay(Contact(peer(1)))
    assert "tls://nowhere:1" in book.contact(peer(1)).hints
    book.note_meeting(contact(1, "moved"), ANN, 2.0)
    assert book.contact(peer(1)) == contact(1, "moved")


def test_only_who_was_met_and_may_be_dialled_is_told_to_others() -> None:
    book = ContactBook(ROOM, MemoryStore().cells, Outbox())
    book.note_meeting(contact(1), ANN, 1.0)
    book.note_meeting(contact(2), ANN, 2.0)
    book.note_meeting(Contact(peer(3)), ANN, 3.0)
    book.note_hearsay(contact(4))
    book.note_hearsay(contact(1, "rumour"))
    assert book.share(9) == (contact(2), contact(1))
    assert book.share(2, [contact(9), contact(1)]) == (contact(9), contact(1))
    assert book.by_freshness() == [peer(3), peer(2), peer(1), peer(4)]
    assert (book.met_since(2.0), book.devices_of(ANN), book.devices_of(BEN)) == (
        2,
        [peer(1), peer(2), peer(3)],
        [],
    )


def test_a_full_book_drops_who_was_never_met_first_and_never_for_a_rumour_who_was() -> None:
    out = Outbox()
    book = ContactBook(ROOM, MemoryStore().cells, out)
    for number in range(BOOK - 1):
        assert book.note_meeting(contact(number), ANN, 100.0 + number) is None
    assert book.note_hearsay(contact(5000)) is None
    assert out.take() == []
    assert book.note_hearsay(contact(5001)) == peer(5000)
    assert out.take() == dropped(5000)
    assert book.note_meeting(contact(5002), BEN, 9000.0) == peer(5001)
    assert out.take() == dropped(5001)
    assert book.note_hearsay(contact(5003)) == peer(5003)
    assert out.take() == dropped(5003)
    assert book.note_meeting(contact(5004), BEN, 9001.0) == peer(0)
    assert out.take() == dropped(0)
    assert len(book) == BOOK
    assert book.note_hearsay(contact(7, "moved")) is None
    assert out.take() == []
