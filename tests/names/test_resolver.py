"""The walk along an address, step by step, with answers put into its hands."""

from __future__ import annotations

import pytest
from tests.names.people import DAY, NOW, PLACE_A, PLACE_C, X, Z, delegation, person, place, zone_of

from linnet.names.address import read_address
from linnet.names.commands import Fault, NotResolved, Resolved, Step, Via, WantsPassword
from linnet.names.derivation import Password, derive, stretch
from linnet.names.records import Block
from linnet.names.resolver import Answer, Secret, Walk
from linnet.names.zone import LONGEST

ALICE, BOB = person("alice"), person("bob")
START = Step(Via.PETNAME, "bob", None, BOB.author, None)


def walk(text: str = "music.alice.bob") -> Walk:
    return Walk(read_address(text), START, depth=8)


def found(*blocks: Block, remembered: Block | None = None) -> Answer:
    return Answer(blocks, remembered, True)


def test_it_wants_one_record_after_the_other() -> None:
    to_alice = zone_of("bob").publish("alice", delegation(ALICE.author), DAY, NOW).block
    music = zone_of("alice").publish("music", place(PLACE_C, Z), DAY, NOW).block
    way = walk()
    assert way.lookup == derive(BOB.author, "alice").lookup
    way.handle_answer(found(to_alice), NOW)
    assert (way.outcome, way.learned, way.lookup) == (None, to_alice, music.lookup)
    way.handle_answer(found(music), NOW)
    assert isinstance(way.outcome, Resolved)
    assert (way.outcome.address, way.outcome.place) == ("music.alice.bob", PLACE_C)
    with pytest.raises(ValueError, match="over"):
        _ = way.lookup


def test_only_older_ones_than_we_have_seen_are_a_replay() -> None:
    zone = zone_of("bob")
    old = zone.publish("alice", delegation(ALICE.author), 30 * DAY, NOW).block
    new = zone.publish("alice", delegation(ALICE.author), DAY, NOW + 1).block
    way = walk()
    way.handle_answer(found(old, remembered=new), NOW)
    assert (way.learned, way.older, way.outcome) == (new, (old,), None)
    for blocks, fault in (((old,), Fault.REPLAYED), ((), Fault.EXPIRED), ((new,), Fault.EXPIRED)):
        way = walk()
        way.handle_answer(found(*blocks, remembered=new), NOW + 2 * DAY)
        assert isinstance(way.outcome, NotResolved)
        assert (way.outcome.fault, way.learned) == (fault, new)
    way = walk()
    way.handle_answer(found(old, remembered=new), NOW + 40 * DAY)
    assert isinstance(way.outcome, NotResolved)
    assert way.outcome.fault is Fault.EXPIRED, "all of them have ended"


def test_a_removal_that_was_seen_outlives_what_is_played_again() -> None:
    zone = zone_of("bob")
    old = zone.publish("alice", delegation(ALICE.author), 30 * DAY, NOW).block
    gone = zone.remove("alice", NOW + 1).block
    way = walk()
    way.handle_answer(found(old, remembered=gone), NOW + 2 * DAY)
    assert isinstance(way.outcome, NotResolved)
    assert (way.outcome.fault, way.older) == (Fault.REMOVED, (old,))


def test_what_a_revoked_device_said_does_not_stand_against_older_words() -> None:
    zone = zone_of("bob")
    old = zone.publish("alice", delegation(ALICE.author), 30 * DAY, NOW).block
    new = zone.publish("alice", delegation(BOB.author), 30 * DAY, NOW + 1).block
    way = Walk(read_address("music.alice.bob"), START, 8, revoked=lambda said: said.version > NOW * 1000)
    way.handle_answer(found(old, remembered=new), NOW + 2)
    assert (way.learned, way.forged, way.outcome) == (old, (new,), None)


def test_a_password_is_asked_for_when_its_zone_is_known() -> None:
    to_alice = zone_of("bob").publish("alice", delegation(ALICE.author), DAY, NOW).block
    stretched = stretch(Password("swordfish"), ALICE.author, "music")
    for given in (None, stretch(Password("swordfish"), BOB.author, "music")):
        way = Walk(read_address("music.alice.bob"), START, 8, Secret(True, given))
        assert way.outcome is None, "the labels behind it have none"
        way.handle_answer(found(to_alice), NOW)
        assert way.outcome == WantsPassword("music.alice.bob", ALICE.author, "music")
    way = Walk(read_address("music.alice.bob"), START, 8, Secret(True, stretched))
    way.handle_answer(found(to_alice), NOW)
    assert way.lookup == derive(ALICE.author, "music", stretched).lookup


def test_a_record_ends_with_its_signers_card() -> None:
    end = BOB.card.not_after
    block = zone_of("bob").publish("alice", delegation(ALICE.author), LONGEST, end - 10).block
    way = walk()
    way.handle_answer(found(block), end - 1)
    assert way.outcome is None
    way = walk()
    way.handle_answer(found(block), end)
    assert isinstance(way.outcome, NotResolved)
    assert way.outcome.fault is Fault.EXPIRED


def test_a_label_may_lead_to_a_place_and_go_on() -> None:
    both = (*place(PLACE_A, X), *delegation(ALICE.author))
    block = zone_of("bob").publish("alice", both, DAY, NOW).block
    way = walk("alice.bob")
    way.handle_answer(found(block), NOW)
    assert isinstance(way.outcome, Resolved)
    assert way.outcome.place == PLACE_A
    way = walk()
    way.handle_answer(found(block), NOW)
    assert way.lookup == derive(ALICE.author, "music").lookup


@pytest.mark.parametrize(("answered", "fault"), [(True, Fault.UNKNOWN), (False, Fault.UNANSWERED)])
def test_that_there_is_nothing_differs_from_that_nobody_says(answered: bool, fault: Fault) -> None:
    way = walk()
    way.handle_answer(Answer((), None, answered), NOW)
    assert isinstance(way.outcome, NotResolved)
    assert (way.outcome.fault, way.outcome.label, way.outcome.path) == (fault, "alice", (START,))
