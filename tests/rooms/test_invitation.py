from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, Contact, PeerId, TopicId
from linnet.identity.cards import issue_card
from linnet.identity.keys import SigningKey
from linnet.rooms.invitation import (
    MAX_CONTACTS,
    NAME_CHARS,
    PREFIX,
    Invitation,
    invitation_text,
    parse_invitation,
)
from linnet.rooms.ticket import Ticket, issue_ticket

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
