"""What neighbours were told and have not shown: told again, a few times, and never to who has it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from linnet.core.ids import AuthorId, DeviceId, PeerId
from linnet.delivery.messages import ChainPlace
from linnet.streams.announcements import LAST_ROUND, REPEATS, Unheard

A, B = PeerId(b"a" * 32), PeerId(b"b" * 32)


def place(number: int, last: int) -> ChainPlace:
    return ChainPlace(AuthorId(bytes([number]) * 32), DeviceId(b"d" * 8), 0, last, False)


def key(number: int) -> bytes:
    return bytes([number]) * 32 + b"d" * 8


def rounds(unheard: Unheard, count: int) -> list[dict[PeerId, list[bytes]]]:
    return [unheard.next_round()[0] for _ in range(count)]


def test_each_neighbour_is_told_again_what_it_has_not_shown() -> None:
    unheard = Unheard(10)
    assert not unheard
    unheard.note_told(A, (place(1, 5), place(2, 7)))
    unheard.note_told(B, (place(1, 5),))
    unheard.note_shown(A, (place(1, 5), place(2, 6)), lambda _: False)
    assert rounds(unheard, 2) == [{}, {A: [key(2)], B: [key(1)]}]
    unheard.forget(B)
    unheard.note_shown(A, (place(2, 9),), lambda _: False)
    assert not unheard


def test_news_of_one_chain_does_not_put_off_another() -> None:
    unheard = Unheard(10)
    unheard.note_told(A, (place(1, 0),))
    told = []
    for number in range(max(REPEATS)):
        unheard.note_told(A, (place(2, number),))
        unheard.note_shown(A, (place(2, number),), lambda _: False)
        told.append(unheard.next_round()[0])
    assert [number for number, again in enumerate(told, 1) if again] == list(REPEATS)


def test_it_ends_and_says_for_how_many_chains() -> None:
    unheard = Unheard(10)
    unheard.note_told(A, (place(1, 0), place(2, 0)))
    ended = [unheard.next_round()[1] for _ in range(LAST_ROUND)]
    assert ended == [{}] * (LAST_ROUND - 1) + [{A: 2}]
    assert not unheard


def test_what_was_shown_before_is_remembered_for_so_many_chains() -> None:
    unheard = Unheard(2)
    unheard.note_shown(A, [place(number, 3) for number in range(5)], lambda _: True)
    unheard.note_told(A, [place(number, 3) for number in range(5)])
    assert rounds(unheard, 2)[-1] == {A: [key(number) for number in (2, 3, 4)]}


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 3), st.integers(0, 9)), max_size=60))
def test_nobody_is_left_to_be_told_what_it_has_shown_since(steps: list[tuple[bool, int, int]]) -> None:
    unheard = Unheard(100)
    told: dict[int, int] = {}
    for shows, number, last in steps:
        if shows:
            unheard.note_shown(A, (place(number, last),), lambda _: False)
            if last >= told.get(number, 10):
                del told[number]
        else:
            unheard.note_told(A, (place(number, last),))
            told[number] = max(last, told.get(number, -1))
    rounds(unheard, 1)
    again = {each for found in rounds(unheard, 1) for keys in found.values() for each in keys}
    assert again == {key(number) for number in told}
