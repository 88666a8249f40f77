"""The line of terms: the same from the same openings and fragments, whatever the order and the duplicates."""

from __future__ import annotations

import hashlib
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.raised import reason_of

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.places.deed import Deed, PastTerm, Policy, sign_deed
from linnet.places.multicast.fragmentation import Cut, Flag, Head
from linnet.places.multicast.terms import (
    AHEAD,
    EACH,
    Base,
    Opening,
    Segment,
    Shift,
    Spoken,
    Terms,
    Where,
    opening_of,
)

KEY = SigningKey(b"p" * 32)
HOST, ANNA, BOB, EVE = (AuthorId(letter * 32) for letter in (b"h", b"a", b"b", b"e"))
BOTH = int(Flag.FIRST | Flag.LAST)


def deed(version: int = 1, cohosts: tuple[AuthorId, ...] = (ANNA, BOB)) -> Deed:
    return sign_deed(KEY, version, Policy.PUBLIC, HOST, cohosts)


def device(person: AuthorId) -> DeviceId:
    return DeviceId(person[:8])


def event_id(term: int, fragment: int, person: AuthorId, variant: int = 0) -> EventId:
    return EventId(hashlib.sha256(b"%d/%d/%s/%d" % (term, fragment, person, variant)).digest())


class World:
    """Everything that anybody said."""

    def __init__(self) -> None:
        self.fragments: dict[EventId, Spoken] = {}
        self.openings: list[Opening] = []

    def says(self, person: AuthorId, term: int, first: int, last: int) -> None:
        for fragment in range(first, last + 1):
            spoken = Spoken(term, fragment, fragment + 1, device(person))
            self.fragments[event_id(term, fragment, person)] = spoken

    def opens(self, person: AuthorId, term: int, behind: tuple[AuthorId, int] | None, upto: int) -> Opening:
        """A term from behind a fragment of the one before, and what is said in it."""
        cut = None
        first = 0
        if behind is not None:
            first = behind[1] + 1
            cut = Cut(term - 1, behind[1], behind[1] + 1, event_id(term - 1, behind[1], behind[0]))
        head = Head(term, first, first + 1, 0, 0, BOTH | int(Flag.OPENING), None, cut)
        opening = opening_of(head, person, device(person), event_id(term, first, person))
        self.openings.append(opening)
        self.says(person, term, first, upto)
        return opening


def head(term: int, fragment: int) -> Head:
    return Head(term, fragment, fragment + 1, 0, 0, BOTH)


def test_a_co_host_goes_on_where_the_host_stopped() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 10)
    second = world.opens(ANNA, 2, (HOST, 10), 12)
    terms = Terms(deed(), world.fragments.get)
    assert terms.offer(first) == Shift(-1, 0)
    assert terms.voice == first
    assert terms.offer(second) == Shift(10, 11)
    assert terms.offer(second) is None
    assert terms.line == (Segment(first, 10), Segment(second, None))
    assert terms.where(head(1, 10), device(HOST)) is Where.IN_LINE
    assert terms.where(head(1, 11), device(HOST)) is Where.ORPHANED
    assert terms.where(head(2, 11), device(ANNA)) is Where.IN_LINE
    assert terms.where(head(2, 11), device(BOB)) is Where.ORPHANED
    assert terms.where(head(3, 13), device(BOB)) is Where.WAITING


def test_of_two_openings_the_higher_rank_counts_and_the_loser_is_orphaned() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 10)
    low = world.opens(BOB, 2, (HOST, 9), 15)
    high = world.opens(ANNA, 2, (HOST, 8), 12)
    terms = Terms(deed(), world.fragments.get)
    shifts = [terms.offer(each) for each in (first, low, high)]
    assert shifts == [Shift(-1, 0), Shift(9, 10), Shift(8, 9)]
    assert terms.line == (Segment(first, 8), Segment(high, None))
    assert terms.where(head(1, 9), device(HOST)) is Where.ORPHANED
    assert terms.where(head(2, 11), device(BOB)) is Where.ORPHANED


def test_of_two_devices_of_one_person_the_smaller_id_counts() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 3)
    cut = Cut(1, 3, 4, event_id(1, 3, HOST))
    two = [Opening(2, 4, 5, cut, ANNA, DeviceId(bytes([n] * 8)), EventId(bytes([n] * 32))) for n in (9, 2)]
    terms = Terms(deed(), world.fragments.get)
    for each in (first, *two):
        terms.offer(each)
    assert terms.voice == two[1]


def test_a_cut_behind_an_unknown_fragment_waits() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 10)
    second = world.opens(ANNA, 2, (HOST, 10), 12)
    named = event_id(1, 10, HOST)
    late = world.fragments.pop(named)
    terms = Terms(deed(), world.fragments.get)
    terms.offer(first)
    assert terms.offer(second) is None
    assert terms.voice == first
    assert terms.awaited == (named,)
    assert terms.where(head(2, 11), device(ANNA)) is Where.WAITING
    world.fragments[named] = late
    assert terms.arrived(event_id(1, 9, HOST)) is None
    assert terms.arrived(named) == Shift(10, 11)
    assert terms.voice == second
    assert len(terms.awaited) == 0


def test_a_cut_in_a_term_that_somebody_else_won_does_not_count() -> None:
    """Bob lost term 2 to Anna, unknowing, and went on from his own: he has to open behind her."""
    world = World()
    openings = [
        world.opens(HOST, 1, None, 5),
        world.opens(ANNA, 2, (HOST, 5), 8),
        world.opens(BOB, 2, (HOST, 5), 9),
        world.opens(BOB, 3, (BOB, 9), 20),
    ]
    terms = Terms(deed(), world.fragments.get)
    for each in openings:
        terms.offer(each)
    assert terms.voice == openings[1]
    assert terms.where(head(3, 10), device(BOB)) is Where.WAITING
    again = Opening(3, 9, 10, Cut(2, 8, 9, event_id(2, 8, ANNA)), BOB, device(BOB), EventId(b"z" * 32))
    assert terms.offer(again) == Shift(8, 9)
    assert not terms.equivocated(again), "behind another fragment: he had to"
    assert terms.equivocated(Opening(3, 9, 10, again.cut, BOB, device(BOB), EventId(b"y" * 32)))
    assert not terms.equivocated(openings[1])


@pytest.mark.parametrize(
    "cut",
    [
        Cut(1, 4, 5, event_id(1, 5, HOST)),  # the id of another number
        Cut(1, 5, 3, event_id(1, 5, HOST)),  # fewer messages than began
        Cut(1, 5, 6, event_id(1, 5, BOB)),  # of somebody who did not speak
    ],
)
def test_a_cut_that_lies_is_not_followed(cut: Cut) -> None:
    world = World()
    first = world.opens(HOST, 1, None, 5)
    world.says(BOB, 1, 5, 5)
    terms = Terms(deed(), world.fragments.get)
    terms.offer(first)
    lie = Opening(2, cut.fragment + 1, cut.message + 1, cut, ANNA, device(ANNA), EventId(b"l" * 32))
    assert terms.offer(lie) is None
    assert terms.voice == first


def flagged(term: int, fragment: int, message: int, cut: Cut | None, flags: int = BOTH) -> Head:
    return Head(term, fragment, message, 0, 0, flags | int(Flag.OPENING), None, cut)


@pytest.mark.parametrize(
    "bad",
    [
        head(1, 0),
        flagged(2, 0, 1, None),
        flagged(1, 0, 2, None),
        flagged(3, 6, 7, Cut(1, 5, 6, EventId(b"x" * 32))),
        flagged(1, 6, 7, Cut(0, 5, 6, EventId(b"x" * 32))),
        flagged(2, 6, 9, Cut(1, 5, 6, EventId(b"x" * 32))),
        flagged(2, 8, 7, Cut(1, 5, 6, EventId(b"x" * 32))),
        flagged(1, 0, 1, None, flags=0),
    ],
)
def test_openings_that_cannot_count_are_named(bad: Head) -> None:
    assert reason_of(RemoteError, opening_of, bad, HOST, device(HOST), EventId(b"e" * 32)) is Reason.MALFORMED


def test_strangers_and_terms_far_ahead_are_refused() -> None:
    world = World()
    terms = Terms(deed(), world.fragments.get)
    cases = [
        (world.opens(EVE, 1, None, 0), Reason.NOT_A_PUBLISHER),
        (world.opens(ANNA, AHEAD + 1, (HOST, 5), 6), Reason.MISSING_DEPENDENCY),
    ]
    for opening, reason in cases:
        assert reason_of(RemoteError, terms.offer, opening) is reason
    assert list(terms.openings) == []


def test_a_device_that_opens_one_term_over_and_over_costs_little() -> None:
    world = World()
    terms = Terms(deed(), world.fragments.get)
    ids = [EventId(hashlib.sha256(b"%d" % n).digest()) for n in range(50)]
    for each in ids:
        terms.offer(Opening(1, 0, 1, None, HOST, device(HOST), each))
    assert [each.event for each in terms.openings] == [each for each in ids if each in sorted(ids)[:EACH]]
    assert terms.voice is not None
    assert terms.voice.event == min(ids)


def test_who_left_the_deed_opens_nothing_but_what_was_built_upon_stays() -> None:
    world = World()
    openings = [
        world.opens(HOST, 1, None, 5),
        world.opens(BOB, 2, (HOST, 5), 8),
        world.opens(HOST, 3, (BOB, 8), 9),
        world.opens(BOB, 4, (HOST, 9), 11),
    ]
    terms = Terms(deed(), world.fragments.get)
    for each in openings:
        terms.offer(each)
    assert terms.voice == openings[3]
    assert terms.renew(deed(1, (ANNA,))) is None
    assert terms.renew(deed(2, (ANNA,))) == Shift(9, 10)
    assert [each.opening for each in terms.line] == openings[:3]


def test_a_newcomer_begins_with_the_term_of_its_admission() -> None:
    world = World()
    hidden = world.opens(HOST, 4, (ANNA, 30), 50)
    following = world.opens(ANNA, 5, (HOST, 45), 60)
    behind = world.opens(BOB, 5, (HOST, 38), 60)
    world.fragments = {key: each for key, each in world.fragments.items() if each.fragment >= 40}
    terms = Terms(deed(), world.fragments.get, Base(4, 40))
    assert reason_of(RemoteError, terms.offer, world.opens(ANNA, 3, (HOST, 20), 20)) is Reason.STALE
    terms.offer(hidden)
    assert terms.where(head(4, 41), device(HOST)) is Where.IN_LINE
    assert terms.where(head(3, 29), device(ANNA)) is Where.ORPHANED
    assert terms.offer(behind) == Shift(38, 39)  # by Bob's word, who cannot be checked here
    assert terms.offer(following) == Shift(38, 39)
    assert terms.voice == following


def drawn(luck: Random) -> World:
    """Some honest and some wild openings of three voices."""
    world = World()
    people = [HOST, ANNA, BOB]
    spoke: list[tuple[AuthorId, int, int, int]] = []  # person, term, first, last
    for person in luck.sample(people, luck.randint(1, 3)):
        world.opens(person, 1, None, 6)
        spoke.append((person, 1, 0, 6))
    for _ in range(luck.randint(0, 8)):
        before, term, first, last = luck.choice(spoke)
        person, at = luck.choice(people), luck.randint(first, last)
        known = [(each[0], each[1]) for each in spoke]
        if (person, term + 1) in known:
            continue
        world.opens(person, term + 1, (before, at), at + 5)
        spoke.append((person, term + 1, at + 1, at + 5))
    return world


def settled(world: World, steps: list[Opening | EventId], newest: Deed | None) -> Terms:
    held: dict[EventId, Spoken] = {}
    terms = Terms(deed(), held.get)
    for step in steps:
        if isinstance(step, Opening):
            terms.offer(step)
        else:
            held[step] = world.fragments[step]
            terms.arrived(step)
    if newest is not None:
        terms.renew(newest)
    return terms


@given(seed=st.integers(0, 2**32), order=st.randoms(use_true_random=False), leaves=st.booleans())
def test_any_order_and_any_duplicates_give_the_same_line(seed: int, order: Random, leaves: bool) -> None:
    luck = Random(seed)
    world = drawn(luck)
    kept = [each for each in world.fragments if luck.random() < 0.9]
    steps: list[Opening | EventId] = [*world.openings, *kept]
    newest = deed(2, (ANNA,)) if leaves else None
    plain = settled(world, steps, newest)
    again = [*steps, *order.choices(steps, k=5)]
    order.shuffle(again)
    other = settled(world, again, newest)
    assert plain.line == other.line
    assert sorted(plain.awaited) == sorted(other.awaited)


@given(seed=st.integers(0, 2**32), order=st.randoms(use_true_random=False))
def test_numbers_go_on_without_gap_or_overlap_along_the_line(seed: int, order: Random) -> None:
    world = drawn(Random(seed))
    steps: list[Opening | EventId] = [*world.openings, *world.fragments]
    order.shuffle(steps)
    terms = settled(world, steps, None)
    fragments = {
        (spoken.term, spoken.fragment): None
        for spoken in world.fragments.values()
        if terms.where(head(spoken.term, spoken.fragment), spoken.device) is Where.IN_LINE
    }
    assert [number for _, number in sorted(fragments)] == list(range(len(fragments)))
    assert [each.opening.term for each in terms.line] == list(range(1, len(terms.line) + 1))


def test_terms_of_a_former_co_host_count_for_newcomers_as_the_deed_names_them() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 10)
    second = world.opens(ANNA, 2, (HOST, 10), 20)
    past = (PastTerm(2, ANNA, second.event, 15),)
    terms = Terms(sign_deed(KEY, 2, Policy.PUBLIC, HOST, (BOB,), (), past), world.fragments.get)
    terms.offer(first)
    terms.offer(second)
    assert terms.voice == second
    assert terms.where(head(2, 15), device(ANNA)) is Where.IN_LINE
    assert terms.where(head(2, 16), device(ANNA)) is Where.ORPHANED, "said after she was left out"
    third = world.opens(BOB, 3, (ANNA, 15), 17)
    terms.offer(third)
    assert terms.line == (Segment(first, 10), Segment(second, 15), Segment(third, None))


def test_a_former_co_host_opens_nothing_that_the_deed_does_not_name() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 10)
    past = (PastTerm(2, ANNA, event_id(2, 11, ANNA, 7), 15),)
    terms = Terms(sign_deed(KEY, 2, Policy.PUBLIC, HOST, (BOB,), (), past), world.fragments.get)
    terms.offer(first)
    assert terms.offer(world.opens(ANNA, 2, (HOST, 10), 20)) is None, "another opening than the named one"
    assert terms.voice == first
    assert reason_of(RemoteError, terms.offer, world.opens(EVE, 2, (HOST, 10), 20)) is Reason.NOT_A_PUBLISHER


def test_what_a_device_said_in_a_term_that_it_had_to_open_again_is_told_apart_by_its_chain() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 10)
    lost = replace(world.opens(ANNA, 2, (HOST, 7), 9), seq=0)  # fragments 8 and 9, under 0 and 1 of her chain
    later = Opening(3, 10, 11, Cut(2, 9, 10, event_id(2, 9, ANNA)), BOB, device(BOB), event_id(3, 10, BOB), 0)
    again = Opening(
        2, 9, 10, Cut(1, 8, 9, event_id(1, 8, HOST)), ANNA, device(ANNA), event_id(2, 9, ANNA, 1), 2
    )
    world.fragments[event_id(2, 9, ANNA)] = Spoken(2, 9, 10, device(ANNA), 1)
    world.fragments[again.event] = Spoken(2, 9, 10, device(ANNA), 2)
    for openings in ((first, again, lost, later), (later, lost, first, again)):
        terms = Terms(deed(), world.fragments.get)
        for each in openings:
            terms.offer(each)
        which = terms.line[1].opening
        own, other = (lost, again) if which == lost else (again, lost)
        assert terms.where(head(2, 9), device(ANNA), own.seq) is Where.IN_LINE
        if other.seq is not None:
            assert terms.where(head(2, 9), device(ANNA), other.seq) is Where.ORPHANED
        # The third term is built on what she said in the first of hers, and on nothing else.
        assert (len(terms.line) == 3) == (which == lost)


def test_behind_what_cannot_be_seen_the_last_word_of_a_device_counts() -> None:
    cuts = (Cut(1, 8, 9, event_id(1, 8, HOST)), Cut(1, 7, 8, event_id(1, 7, HOST)))
    for seqs in ((4, 9), (9, 4)):
        openings = [
            Opening(
                2, cut.fragment + 1, cut.message + 1, cut, ANNA, device(ANNA), event_id(2, 8, ANNA, seq), seq
            )
            for cut, seq in zip(cuts, seqs, strict=True)
        ]
        terms = Terms(deed(), World().fragments.get, Base(2, 20))
        for each in openings:
            terms.offer(each)
        assert terms.voice is not None
        assert terms.voice.seq == 9


def test_a_line_that_is_cut_before_we_came_in_is_none_that_we_can_follow() -> None:
    world = World()
    first = world.opens(HOST, 1, None, 10)
    terms = Terms(deed(), World().fragments.get, Base(1, 9))
    terms.offer(first)
    assert not terms.is_adrift
    terms.offer(world.opens(ANNA, 2, (HOST, 8), 12))
    assert terms.is_adrift
    seen = Terms(deed(), world.fragments.get, Base(1, 8))
    for each in world.openings:
        seen.offer(each)
    assert not seen.is_adrift
