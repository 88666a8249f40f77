"""Invitations: who may make one, what it says, whom it names."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench
from tests.rooms.circle import Circle

from linnet.core.errors import Refused
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import MakeTicket, SetLevel, SetMembership, SetState
from linnet.rooms.content import NAME, RELAY, Membership, Relay, body_of
from linnet.rooms.inviting import ticket_of
from linnet.rooms.results import Sent
from linnet.rooms.ticket import check_ticket

MEMBERS = ("bob", "cid", "dan", "eli", "fay", "gus")
RELAYS = ("rex", "roy", "ron", "rob", "ray", "rae")


def contact(bench: Bench, name: str) -> Contact:
    return Contact(bench.link(name), (f"tls://{name}:1",))


def add_relays(bench: Bench, *names: str) -> None:
    """These are named as relays, and join as such."""
    for name in names:
        relay = Relay(True, bench.who(name).author, (f"tls://{name}:1",))
        bench.govern(RELAY, to_text(Sort.DEVICE, bench.link(name)), body_of(relay))
        bench.up(name)
        bench.bring(name, bench.membership(name, name, Membership.JOIN, bench.ticket()))


def names_of(bench: Bench, contacts: tuple[Contact, ...]) -> list[str]:
    """Whom these contacts name; nobody else is known."""
    by_peer = {bench.link(name): name for name in ("ann", *MEMBERS, *RELAYS)}
    return [by_peer[each.peer] for each in contacts]


def refusal(bench: Bench, command: MakeTicket) -> Reason:
    with pytest.raises(Refused) as error:
        ticket_of(bench.room, command)
    return error.value.reason


# What it says.


@pytest.mark.parametrize("person", ["bob", None])
def test_a_ticket_says_what_was_asked_for_and_is_signed(person: str | None) -> None:
    bench = Bench()
    whom = None if person is None else bench.who(person).author
    made = ticket_of(bench.room, MakeTicket(bench.id, 1234, whom))
    check_ticket(made.ticket)
    ticket = made.ticket
    assert (ticket.room, ticket.person, ticket.expires_ms) == (bench.id, whom, 1234)
    assert ticket.inviter == bench.who("ann").author
    assert made.name == "tea"


def test_no_two_tickets_are_the_same() -> None:
    bench = Bench()
    command = MakeTicket(bench.id, 1234)
    assert ticket_of(bench.room, command).ticket.nonce != ticket_of(bench.room, command).ticket.nonce


def test_an_invitation_calls_the_room_what_it_is_called_now() -> None:
    bench = Bench()
    bench.say(SetState(bench.id, NAME, "", b"coffee"))
    assert ticket_of(bench.room, MakeTicket(bench.id, 1234)).name == "coffee"


# Whom it names.


def test_whoever_is_alone_names_itself() -> None:
    bench = Bench()
    assert ticket_of(bench.room, MakeTicket(bench.id, 1)).contacts == (contact(bench, "ann"),)


def test_relays_and_members_are_named_each_once() -> None:
    """A relay is among those that are told to others too; an invitation names it as a relay alone."""
    bench = Bench()
    bench.join("bob")
    add_relays(bench, "rex")
    named = ticket_of(bench.room, MakeTicket(bench.id, 1)).contacts
    assert named == tuple(contact(bench, name) for name in ("ann", "rex", "bob"))


def test_only_so_many_are_named_but_always_members_too() -> None:
    bench = Bench()
    bench.join(*MEMBERS)
    add_relays(bench, *RELAYS)
    names = names_of(bench, ticket_of(bench.room, MakeTicket(bench.id, 1)).contacts)
    assert names[0] == "ann"
    assert len(names) == len(set(names)) == 9
    assert set(names[1:5]) < set(RELAYS)
    assert set(names[5:]) < set(MEMBERS)


# Who may make one.


def test_a_member_without_the_level_makes_none() -> None:
    circle = Circle("ann", "bob")
    circle.found("ann", "bob", read=False)
    circle.ticket("bob")
    circle.get("ann", SetLevel(circle.room, 50, kind="invite"), Sent)
    circle.run(1.0)
    declined = circle.declined("bob", MakeTicket(circle.room, 1))
    assert declined == Declined(Reason.NO_POWER, "invite: level 0 is below 50")
    circle.get("ann", SetLevel(circle.room, 50, person=circle.person("bob")), Sent)
    circle.run(1.0)
    circle.ticket("bob")


def test_whoever_has_left_makes_none() -> None:
    bench = Bench()
    bench.say(SetMembership(bench.id, bench.who("ann").author, Membership.LEAVE))
    assert refusal(bench, MakeTicket(bench.id, 1)) is Reason.NOT_A_MEMBER


def test_a_founder_invites_whatever_the_level() -> None:
    bench = Bench()
    bench.say(SetLevel(bench.id, 2**40, kind="invite"))
    check_ticket(ticket_of(bench.room, MakeTicket(bench.id, 99)).ticket)


def test_nobody_who_is_banned_is_invited() -> None:
    bench = Bench()
    bench.join("bob")
    bob = bench.who("bob").author
    bench.say(SetMembership(bench.id, bob, Membership.BAN))
    assert refusal(bench, MakeTicket(bench.id, 1, bob)) is Reason.BANNED
    ticket_of(bench.room, MakeTicket(bench.id, 1))  # Whoever holds it; bob is kept out at the door.
    bench.say(SetMembership(bench.id, bob, Membership.LEAVE))
    assert ticket_of(bench.room, MakeTicket(bench.id, 1, bob)).ticket.person == bob
