"""Comparing what storage nodes say that they keep with what any of them has shown."""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId, EventId, PeerId, TopicId
from linnet.delivery.items import StorageDiffers, StorageTold
from linnet.delivery.messages import ChainPlace, Kept
from linnet.delivery.storage_ends import Ends
from linnet.delivery.storage_statements import sign_kept
from linnet.identity.keys import SigningKey

TOPIC, PHONE = TopicId(b"t" * 32), DeviceId(b"d" * 8)
ONE, TWO = PeerId(b"1" * 32), PeerId(b"2" * 32)


def author(number: int) -> AuthorId:
    return AuthorId(number.to_bytes(32, "big"))


def said(*ranges: tuple[int, int, int], done: bool = True) -> Kept:
    places = tuple(ChainPlace(author(who), PHONE, first, last, True) for who, first, last in ranges)
    heads = (EventId(bytes(32)),) * len(places)
    return sign_kept(SigningKey(b"k" * 32), TOPIC, b"store no", 1, 1.0, places, heads, request=1, done=done)


def ends(one: Kept, two: Kept) -> Ends:
    made = Ends(most=100)
    for peer, kept in ((ONE, one), (TWO, two)):
        made.asked[peer] = made.awaited[peer] = None
        assert made.take(peer, kept)
    assert not made.awaited
    return made


def differs(who: int, last: int | None, one: int | None, two: int | None, others: int = 0) -> StorageDiffers:
    told = (StorageTold(ONE, one), StorageTold(TWO, two))
    return StorageDiffers(TOPIC, author(who), PHONE, last, told, others)


def test_who_keeps_less_than_was_shown_differs() -> None:
    made = ends(said((1, 0, 50), (2, 0, 5)), said((1, 0, 12)))
    made.shown = {author(1) + PHONE: 51, author(2) + PHONE: 6}
    assert made.judge({}) == (TWO,)
    assert made.differences(TOPIC) == [differs(1, 50, 50, 12), differs(2, 5, 5, None)]
    # It says so again later, and then it has it.
    assert made.take(TWO, said((1, 0, 50), (2, 0, 5)))
    assert made.lacking() == ()
    assert made.differences(TOPIC) == []


def test_who_has_evicted_what_it_had_does_not_differ() -> None:
    made = ends(said((1, 0, 50)), said((1, 51, 50)))
    made.shown = {author(1) + PHONE: 51}
    assert (made.judge({}), made.differences(TOPIC)) == ((), [])
    assert (made.count(ONE), made.count(TWO)) == (51, 0)


def test_who_claims_more_than_anybody_has_shown_differs_unless_our_own_log_has_it() -> None:
    made = ends(said((1, 0, 50)), said((1, 0, 12)))
    made.shown = {author(1) + PHONE: 13}
    assert made.judge({author(1) + PHONE: 51}) == ()
    assert made.differences(TOPIC) == []
    made.judge({author(1) + PHONE: 13})
    assert made.differences(TOPIC) == [differs(1, 12, 50, 12)]


def test_of_many_chains_some_are_told_and_the_others_counted() -> None:
    made = ends(said(*((who, 0, 3) for who in range(20))), said())
    made.shown = {author(who) + PHONE: 4 for who in range(20)}
    assert made.judge({}) == (TWO,)
    told = made.differences(TOPIC)
    assert told == [differs(who, 3, 3, None, others=12 if who == 7 else 0) for who in range(8)]


def test_pages_without_end_are_cut_off() -> None:
    made = Ends(most=100)
    made.awaited[ONE] = None
    pages = [
        made.take(ONE, said(*((who, 0, 3) for who in range(start, start + 40)), done=False))
        for start in (0, 40, 80)
    ]
    assert pages == [False, False, True]
    assert made.awaited == {}


def test_more_is_what_lies_behind_what_was_handed_over() -> None:
    made = ends(said((1, 0, 50)), said((1, 51, 50), (2, 3, 3)))
    reached = {author(1) + PHONE: 51}
    assert not made.has_more(ONE, reached)
    assert made.has_more(ONE, {author(1) + PHONE: 50})
    assert made.has_more(TWO, reached), "a chain that was not seen"
    assert not made.has_more(TWO, {**reached, author(2) + PHONE: 4})
    assert made.first_of(author(1) + PHONE, (ONE, TWO)) == 0
    assert (made.covers(author(1) + PHONE, 50, (ONE,)), made.covers(author(1) + PHONE, 50, (TWO,))) == (
        True,
        False,
    )
