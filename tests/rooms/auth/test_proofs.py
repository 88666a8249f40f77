from __future__ import annotations

import msgspec
import pytest
from tests.rooms.chronicle import Chronicle, person, person_key, ticket_of

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import Card, Revocation, check_card, revoke
from linnet.rooms.auth.event_auth import proven
from linnet.rooms.auth.room_state import Fact, fact_of
from linnet.rooms.event_types import MEMBER, REVOCATION, Member, Membership, Revoked, member_key
from linnet.rooms.invitations import Ticket

ROOM = Chronicle("founder")
DEVICE = person("alice").card.device
OTHER_ROOM = TopicId(b"r" * 32)
GOOD = ticket_of("founder", ROOM.room)


def join(ticket: Ticket, membership: Membership = Membership.JOIN, time: int = 0) -> Fact:
    key = member_key(person("alice").author)
    unit = ROOM.make("alice", MEMBER, key, Member(membership, None, ticket), [ROOM.create], time=time)
    return fact_of(unit.events[0])


def revocation(content: Revocation) -> Fact:
    unit = ROOM.make("alice", REVOCATION, content.device.hex(), Revoked(content), [ROOM.create])
    return fact_of(unit.events[0])


def reason(fact: Fact) -> Reason | None:
    refusal = proven(fact, ROOM.room)
    return None if refusal is None else refusal.reason


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (join(GOOD), None),
        (join(ticket_of("founder", ROOM.room, "alice")), None),
        (join(ticket_of("founder", ROOM.room, "bob")), Reason.NOT_INVITED),
        (join(ticket_of("founder", OTHER_ROOM)), Reason.NOT_INVITED),
        (join(ticket_of("founder", ROOM.room, expires=5), time=5), None),
        (join(ticket_of("founder", ROOM.room, expires=5), time=6), Reason.INVITATION_EXPIRED),
        (join(msgspec.structs.replace(GOOD, expires_ms=GOOD.expires_ms + 1)), Reason.BAD_SIGNATURE),
        (join(msgspec.structs.replace(GOOD, sig=bytes(64))), Reason.BAD_SIGNATURE),
        (
            join(msgspec.structs.replace(GOOD, card=person("bob").card)),
            Reason.BAD_SIGNATURE,
        ),
        (
            join(msgspec.structs.replace(GOOD, card=msgspec.structs.replace(GOOD.card, label="forged"))),
            Reason.BAD_SIGNATURE,
        ),
        (join(GOOD, Membership.LEAVE), Reason.MALFORMED),
        (join(GOOD, Membership.KNOCK), Reason.MALFORMED),
    ],
)
def test_tickets(fact: Fact, expected: Reason | None) -> None:
    assert reason(fact) is expected


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (revoke(person_key("alice"), DEVICE, 0), None),
        (revoke(person_key("bob"), DEVICE, 0), Reason.NOT_ALLOWED),
        (msgspec.structs.replace(revoke(person_key("alice"), DEVICE, 0), at=1), Reason.BAD_SIGNATURE),
    ],
)
def test_revocations(content: Revocation, expected: Reason | None) -> None:
    assert reason(revocation(content)) is expected


def test_cards_are_checked_by_what_is_given() -> None:
    seen: list[Card] = []

    def doubtful(card: Card) -> None:
        seen.append(card)
        check_card(card)
        raise RemoteError(Reason.CARD_REVOKED, "revoked elsewhere")

    refusal = proven(join(GOOD), ROOM.room, doubtful)
    assert refusal is not None
    assert refusal.reason is Reason.CARD_REVOKED
    assert seen == [GOOD.card]
