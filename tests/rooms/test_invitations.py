"""Tickets, the line of text that carries one, and what a member may invite to."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.rooms.bench import Bench
from tests.rooms.circle import founded

from linnet.core.errors import BadText, Refused, RemoteError
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey
from linnet.machine.commands import Declined
from linnet.rooms.commands import MakeTicket, Sent, SetLevel, SetMembership, SetState, TicketMade
from linnet.rooms.event_types import NAME, Membership
from linnet.rooms.invitations import (
    MAX_CONTACTS,
    NAME_CHARS,
    PREFIX,
    Invitation,
    Ticket,
    check_ticket,
    check_unexpired,
    invitation_text,
    issue_ticket,
    parse_invitation,
)
from linnet.rooms.room_commands import ticket_of


@pytest.mark.parametrize(
    "change",
    [
        {"room": TopicId(b"o" * 32)},
        {"person": b"p" * 32},
        {"expires_ms": 2**50},
        {"nonce": b"other123"},
        {"sig": bytes(64)},
    ],
    ids=str,
)
def test_nothing_of_it_can_be_changed(change: dict[str, object]) -> None:
    changed: Ticket = replace(Bench().ticket(), **change)
    with pytest.raises(RemoteError) as error:
        check_ticket(changed)
    assert error.value.reason is Reason.BAD_SIGNATURE


def test_another_cannot_put_their_card_in_its_place() -> None:
    bench = Bench()
    with pytest.raises(RemoteError):
        check_ticket(replace(bench.ticket(), card=bench.who("eve").card))


def test_nobody_signs_in_the_name_of_another() -> None:
    """The ticket is signed by the device of its card; only the card proves whose device that is."""
    bench = Bench()
    eve = bench.who("eve")
    card = replace(eve.card, person=bench.who("ann").author)
    forged = issue_ticket(eve.device, card, bench.id, None, 2**50, bytes(8))
    with pytest.raises(RemoteError) as error:
        check_ticket(forged)
    assert error.value.reason is Reason.BAD_SIGNATURE


def test_it_ends_with_some_leeway_for_clocks() -> None:
    bench = Bench()
    ticket = bench.ticket(lasts=60.0)
    check_unexpired(ticket, bench.now)
    check_unexpired(ticket, bench.now + 60.0 + 299.0)
    with pytest.raises(RemoteError) as error:
        check_unexpired(ticket, bench.now + 60.0 + 301.0)
    assert error.value.reason is Reason.INVITATION_EXPIRED


PERSON, DEVICE = SigningKey(b"p" * 32), SigningKey(b"d" * 32)


CARD = issue_card(PERSON, DEVICE.public, 1_700_000_000, 1_800_000_000, "laptop")


ROOM = TopicId(b"r" * 32)


EXPIRES = 1_760_000_000


OWN = Contact(PeerId(DEVICE.public), ("tls://192.0.2.7:7700",))


def ticket(person: AuthorId | None = None) -> Ticket:
    return issue_ticket(DEVICE, CARD, ROOM, person, EXPIRES * 1000, b"n" * 8)


TICKET = ticket()


INVITATION = Invitation(TICKET, (OWN,), "tea")


TEXT = invitation_text(INVITATION)


def wrong(text: str, now: float | None = None) -> str:
    with pytest.raises(BadText) as caught:
        parse_invitation(text, now)
    assert len(str(caught.value)) < 200
    return str(caught.value)


def test_what_was_invited_is_read_back() -> None:
    assert parse_invitation(TEXT) == INVITATION
    assert INVITATION.text == TEXT
    assert INVITATION.room == ROOM
    assert TEXT.startswith(PREFIX)
    assert TEXT.isalnum()
    assert len(TEXT) < 540, "one line that a chat takes"


def test_it_survives_capitals_and_mail() -> None:
    broken = "\n".join(TEXT[at : at + 72] for at in range(0, len(TEXT), 72))
    assert parse_invitation(f"  {broken.upper()} \n") == INVITATION


_hints = st.lists(
    st.sampled_from(("tls://[2001:db8::1]:1", "wss://name.example:443")), min_size=1, max_size=3
)


@given(
    st.lists(st.tuples(st.binary(min_size=32, max_size=32), _hints), max_size=MAX_CONTACTS),
    st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=NAME_CHARS),
    st.none() | st.binary(min_size=32, max_size=32),
)
def test_any_invitation_is_read_back(
    places: list[tuple[bytes, list[str]]], name: str | None, person: bytes | None
) -> None:
    contacts = tuple(Contact(PeerId(peer), tuple(hints)) for peer, hints in places)
    made = Invitation(ticket(None if person is None else AuthorId(person)), contacts, name)
    assert parse_invitation(made.text) == made


def test_only_so_much_goes_into_a_line() -> None:
    silent = Contact(PeerId(b"s" * 32))
    many = tuple(Contact(PeerId(bytes([number]) * 32), OWN.hints) for number in range(12))
    made = parse_invitation(Invitation(TICKET, (silent, *many), "x" * 100).text)
    assert made.contacts == many[:MAX_CONTACTS]
    assert made.name == "x" * NAME_CHARS


@given(st.integers(min_value=len(PREFIX), max_value=len(TEXT) - 2))
def test_a_cut_text_is_told_as_such(end: int) -> None:
    assert "cut short" in wrong(TEXT[:end])


@given(st.integers(min_value=len(PREFIX) + 8, max_value=len(TEXT) - 2), st.sampled_from("abcdefgh234567"))
def test_a_wrong_letter_is_noticed(at: int, letter: str) -> None:
    if TEXT[at] != letter:
        assert "fails its checksum" in wrong(TEXT[:at] + letter + TEXT[at + 1 :])


def test_other_things_are_named() -> None:
    assert "is no invitation: it should begin with li1" in wrong("hello")
    assert "is no invitation" in wrong("lt1" + "a" * 56)
    assert "is no invitation" in wrong("")
    assert "too many at its end" in wrong(TEXT + "aaaaaaaa")
    assert "a character that none has" in wrong(TEXT[:50] + "1" + TEXT[51:])
    assert "a character that none has" in wrong(TEXT[:50] + "\u017f" + TEXT[51:])
    assert "too many for an invitation" in wrong(PREFIX + "a" * 20_000)


def test_one_whose_time_has_passed_says_when() -> None:
    assert parse_invitation(TEXT, EXPIRES + 200) == INVITATION, "clocks may differ a little"
    assert "ended on 2025-10-09 at 08:53 UTC; ask" in wrong(TEXT, EXPIRES + 301)


def test_a_ticket_that_nobody_signed_is_no_invitation() -> None:
    forged = Ticket(ROOM, CARD, None, EXPIRES * 1000 + 1, b"n" * 8, TICKET.sig)
    assert "is not signed by whom it names" in wrong(Invitation(forged, (), None).text)


@given(st.text(max_size=60) | st.text("abcdefgh234567", max_size=600).map(PREFIX.__add__))
def test_no_text_breaks_it(text: str) -> None:
    with pytest.raises(BadText):
        parse_invitation(text, 0.0)


MEMBERS = ("bob", "cid", "dan", "eli", "fay", "gus")


RELAYS = ("rex", "roy", "ron", "rob", "ray", "rae")


def contact(bench: Bench, name: str) -> Contact:
    return Contact(bench.link(name), (f"tls://{name}:1",))


def add_relays(bench: Bench, *names: str) -> None:
    """These are named as relays, and join as such."""
    for name in names:
        bench.name_relay(name, f"tls://{name}:1")
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


def test_whoever_is_alone_names_itself() -> None:
    bench = Bench()
    assert ticket_of(bench.room, MakeTicket(bench.id, 1)).contacts == (contact(bench, "ann"),)


# Whom it names.


def test_relays_and_members_are_named_each_once() -> None:
    """A relay is among those that are told to others too; an invitation names it as a relay alone."""
    bench = Bench("bob")
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
    circle = founded("ann", "bob", read=False)
    circle.ticket("bob")
    circle.get("ann", SetLevel(circle.room, 50, kind="invite"), Sent)
    circle.run(1.0)
    declined = circle.declined("bob", MakeTicket(circle.room, 2**50))
    assert declined == Declined(Reason.NO_POWER, "invite: level 0 is below 50")
    circle.get("ann", SetLevel(circle.room, 50, person=circle.person("bob")), Sent)
    circle.run(1.0)
    circle.ticket("bob")


def test_nobody_makes_one_that_has_expired_already() -> None:
    circle = founded("ann", "bob", read=False)
    now_ms = int(circle.network.now * 1000)
    for expires_ms in (-(2**40), 0, now_ms):
        declined = circle.declined("ann", MakeTicket(circle.room, expires_ms))
        assert declined.reason is Reason.INVITATION_EXPIRED
        assert "lifetime above 0" in declined.detail
    circle.get("ann", MakeTicket(circle.room, int(circle.network.now * 1000) + 1), TicketMade)


def test_whoever_has_left_makes_none() -> None:
    bench = Bench()
    bench.say(SetMembership(bench.id, bench.who("ann").author, Membership.LEAVE))
    assert refusal(bench, MakeTicket(bench.id, 1)) is Reason.NOT_A_MEMBER


def test_a_founder_invites_whatever_the_level() -> None:
    bench = Bench()
    bench.say(SetLevel(bench.id, 2**40, kind="invite"))
    check_ticket(ticket_of(bench.room, MakeTicket(bench.id, 99)).ticket)


def test_nobody_who_is_banned_is_invited() -> None:
    bench = Bench("bob")
    bob = bench.who("bob").author
    bench.say(SetMembership(bench.id, bob, Membership.BAN))
    assert refusal(bench, MakeTicket(bench.id, 1, bob)) is Reason.BANNED
    ticket_of(bench.room, MakeTicket(bench.id, 1))  # Whoever holds it; bob is kept out at the door.
    bench.say(SetMembership(bench.id, bob, Membership.LEAVE))
    assert ticket_of(bench.room, MakeTicket(bench.id, 1, bob)).ticket.person == bob
