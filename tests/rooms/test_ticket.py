"""Tickets: whose word they are, and until when."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.bench import Bench

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.rooms.ticket import Ticket, check_ticket, check_unexpired, issue_ticket


def test_a_ticket_is_its_inviters_word() -> None:
    bench = Bench()
    ticket = bench.ticket()
    check_ticket(ticket)
    assert ticket.inviter == bench.who("ann").author
    assert ticket.room == bench.id


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
