"""The card book: which devices are known, good, expired, revoked."""

from __future__ import annotations

import pytest

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.reasons import Reason
from linnet.delivery import context as cards_module
from linnet.delivery.context import CardBook, kept_cards, kept_revocations
from linnet.identity.cards import Card, issue_card, revoke
from linnet.identity.keys import SigningKey
from linnet.store.memory import MemoryStore

PERSON, DEVICE = SigningKey(b"p" * 32), SigningKey(b"d" * 32)
START, END = 1_000_000, 2_000_000


def card(start: int = START, end: int = END, device: SigningKey = DEVICE) -> Card:
    return issue_card(PERSON, device.public, start, end, "phone")


def book_with(*cards: Card, store: MemoryStore | None = None) -> CardBook:
    book = CardBook((store or MemoryStore()).cells)
    for one in cards:
        book.learn(one)
    return book


def why_not(book: CardBook, one: Card, now: float | None) -> Reason | None:
    try:
        book.card_for(one.person, one.device, now)
    except InvalidEvent as error:
        return error.reason
    return None


def test_a_known_card_is_good_between_its_dates() -> None:
    one = card()
    book = book_with(one)
    assert book.card_for(one.person, one.device, START + 1.0) == one
    assert book.find(one.person, one.device) == one


@pytest.mark.parametrize(
    ("now", "reason"),
    [
        (START - 301.0, Reason.CARD_NOT_YET_VALID),
        (START - 299.0, None),
        (END + 299.0, None),
        (END + 301.0, Reason.CARD_EXPIRED),
        (None, None),
    ],
)
def test_dates_are_judged_with_some_leeway_and_never_for_history(
    now: float | None, reason: Reason | None
) -> None:
    one = card()
    assert why_not(book_with(one), one, now) is reason


def test_an_unknown_device() -> None:
    assert why_not(book_with(), card(), START + 1.0) is Reason.UNKNOWN_DEVICE
    assert why_not(book_with(), card(), None) is Reason.UNKNOWN_DEVICE


def test_a_forged_card_is_not_learned() -> None:
    real = card()
    forged = Card(real.person, real.device_key, real.not_before, real.not_after + 1, real.label, real.sig)
    book = book_with()
    with pytest.raises(RemoteError) as error:
        book.learn(forged)
    assert error.value.reason is Reason.BAD_SIGNATURE
    assert book.find(real.person, real.device) is None


def test_a_later_card_replaces_an_earlier_one_and_not_the_other_way_round() -> None:
    early, late = card(), card(end=END + 10)
    assert book_with(early, late).find(early.person, early.device) == late
    assert book_with(late, early).find(early.person, early.device) == late


YEARS = 3 * 365 * 86_400


def test_a_card_from_a_clock_that_was_ahead_does_not_hide_the_good_one() -> None:
    """One start of a device with its clock three years ahead, then with the right clock again."""
    first, ahead, again = card(), card(START + YEARS, END + YEARS), card(START + 50, END + 50)
    book = book_with(first, ahead)
    assert why_not(book, first, START + 60.0) is None, "the card before it is still good"
    for one in (ahead, again, ahead):
        book.learn(one)
        assert book.card_for(first.person, first.device, START + 60.0) in (first, again)
    assert book.card_for(first.person, first.device, START + 60.0) == again
    assert book.current_card(first.person, first.device) == again, "and it is this one that others are shown"


def test_a_good_card_stands_also_if_the_one_from_the_future_came_first() -> None:
    ahead, good = card(START + YEARS, END + YEARS), card()
    book = book_with(ahead, good)
    assert why_not(book, good, START + 1.0) is None
    assert book.current_card(good.person, good.device) == good
    assert book.find(good.person, good.device) == ahead, "what it said then is judged by this one"


def test_our_own_clock_may_be_wrong_for_a_while_and_come_back() -> None:
    good, later = card(), card(START + YEARS, END + YEARS)
    book = book_with(good, later)
    for now, expected in ((START + 1.0, good), (START + YEARS + 1.0, later), (START + 2.0, good)):
        assert book.card_for(good.person, good.device, now) == expected
    assert why_not(book, good, START + 5.0 * YEARS) is Reason.CARD_EXPIRED
    assert why_not(book, good, START + 3.0) is None


def test_the_good_card_is_the_one_that_is_kept() -> None:
    store = MemoryStore()
    ahead, good = card(START + YEARS, END + YEARS), card()
    book = book_with(ahead, store=store)
    book.keep(ahead.person, ahead.device)
    book.learn(good)
    assert why_not(book, good, START + 1.0) is None
    book.keep(good.person, good.device)
    again = CardBook(store.cells)
    assert again.current_card(good.person, good.device) == good
    assert again.find(good.person, good.device) == ahead, "and the other one beside it"


def test_our_own_card_stands_before_what_a_wrong_clock_left_behind() -> None:
    store = MemoryStore()
    ahead, good = card(START + YEARS, END + YEARS), card()
    book = book_with(ahead, store=store)
    book.keep(ahead.person, ahead.device)
    again = CardBook(store.cells)
    again.learn(good, own=True)
    assert again.current_card(good.person, good.device) == good, "before anybody has told the time"


def test_cards_of_one_device_are_bounded() -> None:
    many = [card(START + n, END + n) for n in range(cards_module.SPARE_CARDS + 20)]
    book = book_with(*many)
    assert book.find(many[0].person, many[0].device) == many[-1]
    assert all(len(spare) <= cards_module.SPARE_CARDS for spare in book._spare.values())


def test_a_revoked_device_is_refused_but_its_history_is_not() -> None:
    one = card()
    book = book_with(one)
    word = revoke(PERSON, one.device, START + 5)
    assert book.revoke(word)
    assert not book.revoke(word)
    assert why_not(book, one, START + 6.0) is Reason.CARD_REVOKED
    assert why_not(book, one, None) is None
    assert book.revocation_of(one.person, one.device) == word


def test_nobody_else_can_revoke_a_device() -> None:
    one = card()
    book = book_with(one)
    forged = revoke(SigningKey(b"x" * 32), one.device, START)
    forged = type(forged)(one.person, forged.device, forged.at, forged.sig)
    with pytest.raises(RemoteError):
        book.revoke(forged)
    assert why_not(book, one, START + 6.0) is None


def test_kept_cards_and_revocations_survive() -> None:
    store = MemoryStore()
    one, other = card(), card(device=SigningKey(b"e" * 32))
    book = book_with(one, other, store=store)
    book.keep(one.person, one.device)
    book.revoke(revoke(PERSON, other.device, START))
    again = CardBook(store.cells)
    assert again.find(one.person, one.device) == one
    assert again.find(other.person, other.device) is None, "only what has events in the log is kept"
    assert again.revocation_of(other.person, other.device) is not None


def test_a_renewed_card_is_kept_too() -> None:
    store = MemoryStore()
    early, late = card(), card(end=END + 10)
    book = book_with(early, store=store)
    book.keep(early.person, early.device)
    book.learn(late)
    book.keep(early.person, early.device)
    assert CardBook(store.cells).find(early.person, early.device) == late


def test_there_is_a_most_of_cards_and_of_revocations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cards_module, "MAX_CARDS", 2)
    devices = [SigningKey(bytes([n]) * 32) for n in range(3)]
    book = book_with(card(device=devices[0]), card(device=devices[1]))
    with pytest.raises(RemoteError) as error:
        book.learn(card(device=devices[2]))
    assert error.value.reason is Reason.TOO_MANY
    book.learn(card(end=END + 1, device=devices[0]))
    for device in devices[:2]:
        book.revoke(revoke(PERSON, card(device=device).device, START))
    with pytest.raises(RemoteError) as error:
        book.revoke(revoke(PERSON, card(device=devices[2]).device, START))
    assert error.value.reason is Reason.TOO_MANY


def test_whoever_looks_finds_what_is_kept_of_one_person() -> None:
    store = MemoryStore()
    phone, laptop, other = card(), card(device=SigningKey(b"l" * 32)), SigningKey(b"o" * 32)
    theirs = issue_card(other, DEVICE.public, START, END)
    book = book_with(phone, laptop, theirs, store=store)
    assert kept_cards(store.cells, phone.person) == []
    for each in (phone, laptop, theirs):
        book.keep(each.person, each.device)
    assert sorted(one.device for one in kept_cards(store.cells, phone.person)) == sorted(
        [phone.device, laptop.device]
    )
    word = revoke(PERSON, phone.device, START)
    book.revoke(word)
    book.revoke(revoke(other, theirs.device, START))
    assert kept_revocations(store.cells, phone.person) == [word]
