"""Who is at the other end of a link, as a room sees it."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench

from linnet.core.errors import RemoteError
from linnet.core.reasons import Reason
from linnet.identity.cards import revoke
from linnet.identity.keys import SigningKey
from linnet.rooms.commands import SetMembership
from linnet.rooms.event_types import REVOCATION, Membership, Revoked, body_of
from linnet.rooms.guests import Guests
from linnet.sim.seeded_random import SeededEntropy


def guests(bench: Bench) -> Guests:
    return bench.room.guests


def refused(bench: Bench, name: str, by: str | None = None) -> Reason:
    """Why a greeting is not taken."""
    with pytest.raises(RemoteError) as error:
        guests(bench).admit(bench.link(by or name), bench.greeting(name), bench.now)
    return error.value.reason


def test_a_member_is_one_by_the_state_and_the_card_of_its_link() -> None:
    bench = Bench()
    assert refused(bench, "bob") is Reason.NOT_A_MEMBER
    bench.join("bob")
    guest = guests(bench).admit(bench.link("bob"), bench.greeting("bob"), bench.now)
    assert (guest.person, guest.relay) == (bench.who("bob").author, False)
    assert guests(bench).members == (bench.link("bob"),)
    assert refused(bench, "bob", by="eve") is Reason.UNKNOWN_DEVICE


def test_who_is_banned_or_whose_device_is_revoked_is_none() -> None:
    bench = Bench("bob", "cid")
    bench.say(SetMembership(bench.id, bench.who("bob").author, Membership.BAN))
    assert refused(bench, "bob") is Reason.BANNED
    person = SigningKey.generate(SeededEntropy(1, "identity/cid"))
    card = bench.who("cid").card
    word = revoke(person, card.device, 1)
    bench.bring("cid", bench.forge("cid", REVOCATION, card.device.hex(), body_of(Revoked(word))))
    assert guests(bench).members == ()
    assert refused(bench, "cid") is Reason.CARD_REVOKED


def test_a_card_that_has_ended_opens_no_door() -> None:
    bench = Bench("bob")
    bench.now += 3000 * 86_400.0
    assert refused(bench, "bob") is Reason.CARD_EXPIRED


def test_a_relay_is_one_by_its_device_unless_its_person_is_banned() -> None:
    bench = Bench()
    rex = bench.who("rex")
    bench.name_relay("rex")
    guest = guests(bench).admit(rex.peer, bench.greeting("rex"), bench.now)
    assert guest.relay
    assert guests(bench).members == ()
    bench.say(SetMembership(bench.id, rex.author, Membership.BAN))
    assert rex.peer not in guests(bench).by_peer
    assert refused(bench, "rex") is Reason.BANNED


def test_who_greets_before_its_join_has_come_is_remembered_within_a_bound() -> None:
    bench = Bench()
    assert refused(bench, "bob") is Reason.NOT_A_MEMBER
    assert guests(bench).take_admitted() == []
    bench.up("cid")
    bench.join("cid")
    bench.bring("cid", bench.membership("bob", "bob", Membership.JOIN, bench.ticket()))
    assert bench.link("bob") in guests(bench).by_peer  # greeted as soon as its join came
    for number in range(70):
        refused(bench, f"stranger {number}")
    assert len(guests(bench)._early) == 64
    guests(bench).handle_link_down(bench.link("stranger 69"))
    assert len(guests(bench)._early) == 63


def test_who_does_not_say_who_it_is_sees_nothing() -> None:
    bench = Bench()
    for card in (None, bench.who("eve").card):
        with pytest.raises(RemoteError) as error:
            guests(bench).check_visitor(bench.link("bob"), card, bench.ticket(), bench.now)
        assert error.value.reason is Reason.UNKNOWN_DEVICE


def test_a_device_that_was_revoked_in_the_room_sees_nothing_of_it() -> None:
    bench = Bench("bob")
    card = bench.who("bob").card
    guests(bench).check_visitor(bench.link("bob"), card, None, bench.now)
    word = revoke(SigningKey.generate(SeededEntropy(1, "identity/bob")), card.device, 1)
    bench.bring("bob", bench.forge("bob", REVOCATION, card.device.hex(), body_of(Revoked(word))))
    for ticket in (None, bench.ticket()):
        with pytest.raises(RemoteError) as error:
            guests(bench).check_visitor(bench.link("bob"), card, ticket, bench.now)
        assert error.value.reason is Reason.CARD_REVOKED
