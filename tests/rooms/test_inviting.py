"""Tickets that members hand out: what is in them, and who may not."""

from __future__ import annotations

import pytest
from tests.rooms.bench import Bench

from linnet.core.errors import Refused
from linnet.core.ids import Contact
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.rooms.commands import MakeTicket, SetLevel, SetMembership
from linnet.rooms.content import RELAY, Membership, Relay, body_of
from linnet.rooms.inviting import ticket_of
from linnet.rooms.ticket import check_ticket


def test_it_names_us_relays_and_some_members() -> None:
    bench = Bench()
    bench.join("bob")
    rex = bench.who("rex")
    bench.govern(RELAY, to_text(Sort.DEVICE, rex.peer), body_of(Relay(True, rex.author, ("tls://rex:1",))))
    made = ticket_of(bench.room, MakeTicket(bench.id, 99))
    check_ticket(made.ticket)
    assert (made.ticket.room, made.ticket.person, made.ticket.expires_ms) == (bench.id, None, 99)
    assert made.name == "tea"
    assert made.contacts[:2] == (
        Contact(bench.link("ann"), ("tls://ann:1",)),
        Contact(rex.peer, ("tls://rex:1",)),
    )
    assert Contact(bench.link("bob"), ("tls://bob:1",)) in made.contacts


def test_no_two_are_the_same() -> None:
    bench = Bench()
    nonces = {ticket_of(bench.room, MakeTicket(bench.id, 99)).ticket.nonce for _ in range(5)}
    assert len(nonces) == 5


def test_nobody_invites_who_could_not_come_or_without_the_level_or_from_outside() -> None:
    bench = Bench()
    bob = bench.who("bob").author
    bench.join("bob")
    bench.say(SetMembership(bench.id, bob, Membership.BAN))

    def why(command: MakeTicket) -> Reason:
        with pytest.raises(Refused) as error:
            ticket_of(bench.room, command)
        return error.value.reason

    assert why(MakeTicket(bench.id, 99, bob)) is Reason.BANNED
    bench.say(SetLevel(bench.id, 2**40, kind="invite"))
    ticket_of(bench.room, MakeTicket(bench.id, 99))  # founders may do anything
    bench.say(SetMembership(bench.id, bench.who("ann").author, Membership.LEAVE))
    assert why(MakeTicket(bench.id, 99)) is Reason.NOT_A_MEMBER
