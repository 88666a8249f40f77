"""Advertisements and enrolments are the words of who signed them, for a time; receipts of who has the key."""

from __future__ import annotations

import pytest
from msgspec import structs
from tests.content.one_event import lone_context

from linnet.content.fast.messages import Posting
from linnet.content.fast.signed_records import (
    RECEIPT_BYTES,
    check_enrolment,
    check_posting,
    group_id,
    is_receipt,
    make_enrolment,
    make_posting,
    receipt,
)
from linnet.core.errors import RemoteError
from linnet.core.ids import Contact, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.identity.cards import DATES_LEEWAY
from linnet.sim.clock import START
from linnet.testing.identities import known_identity

US, OTHER = known_identity("us"), known_identity("other")
HINTS = ("tls://a:1",)
NOW = int(START)
GROUP = TopicId(b"g" * 32)


def context() -> Context:
    return lone_context(US)


def posting() -> Posting:
    return make_posting(context(), HINTS, "stock", True, 1000 * NOW, NOW + 2700)


def fault(each: Posting, now: float = START) -> Reason:
    with pytest.raises(RemoteError) as caught:
        check_posting(each, context(), 5, 2700.0, now)
    return caught.value.reason


def test_an_advertisement_that_was_signed_so_is_taken() -> None:
    assert check_posting(posting(), context(), 5, 2700.0, START).text == "stock"


def test_whatever_is_changed_in_an_advertisement_is_seen() -> None:
    said = posting()
    assert fault(structs.replace(said, predicate="gold")) is Reason.BAD_SIGNATURE
    assert fault(structs.replace(said, open=False)) is Reason.BAD_SIGNATURE
    assert fault(structs.replace(said, issued=said.issued - 1)) is Reason.BAD_SIGNATURE
    assert fault(structs.replace(said, publisher=Contact(US.peer, ("tls://b:1",)))) is Reason.BAD_SIGNATURE
    assert fault(structs.replace(said, publisher=Contact(OTHER.peer))) is Reason.UNKNOWN_DEVICE
    assert fault(structs.replace(said, card=OTHER.card)) is Reason.UNKNOWN_DEVICE
    assert fault(structs.replace(said, card=structs.replace(US.card, label="me"))) is Reason.BAD_SIGNATURE
    assert fault(structs.replace(said, predicate="stock/apple")) is Reason.MALFORMED


def test_an_advertisement_needs_a_card_that_is_valid_now() -> None:
    end = US.card.not_after + int(DATES_LEEWAY)
    said = make_posting(context(), HINTS, "stock", True, 1000 * end, end + 2700)
    check_posting(said, context(), 5, 2700.0, end - 1.0)
    assert fault(said, end + 1.0) is Reason.CARD_EXPIRED


def test_an_advertisement_lasts_for_a_time_and_not_longer_than_all_do() -> None:
    said = posting()
    assert fault(said, START + 2700) is Reason.STALE
    assert fault(make_posting(context(), HINTS, "stock", True, 1000 * NOW, NOW + 4000)) is Reason.FUTURE_TIME
    early = make_posting(context(), HINTS, "stock", True, 1000 * (NOW + 400), NOW + 2700)
    assert fault(early) is Reason.FUTURE_TIME


def test_a_group_is_named_by_whose_it_is_and_what_it_carries() -> None:
    names = {group_id(who.peer, text) for who in (US, OTHER) for text in ("stock", "gold")}
    assert len(names) == 4
    assert group_id(US.peer, "stock") == group_id(US.peer, "stock")


def test_an_enrolment_is_the_members_own_word() -> None:
    said = make_enrolment(US.device, GROUP, HINTS, ("stock",), "here", 3, NOW + 10)
    assert [each.text for each in check_enrolment(said, 5, START)] == ["stock"]
    for changed in (
        structs.replace(said, capacity=300),
        structs.replace(said, member=Contact(US.peer, ("tls://victim:1",))),
        structs.replace(said, member=Contact(OTHER.peer, HINTS)),
        structs.replace(said, group=TopicId(bytes(32))),
    ):
        with pytest.raises(RemoteError) as caught:
            check_enrolment(changed, 5, START)
        assert caught.value.reason is Reason.BAD_SIGNATURE


def test_an_enrolment_is_bounded_and_ends() -> None:
    over = make_enrolment(US.device, GROUP, HINTS, ("stock",), "here", 3, NOW - 400)
    long = make_enrolment(US.device, GROUP, HINTS, ("a" * 60 + "/stock",) * 70, "here", 3, NOW + 10)
    for said, reason in ((over, Reason.STALE), (long, Reason.TOO_LARGE)):
        with pytest.raises(RemoteError) as caught:
            check_enrolment(said, 5, START)
        assert caught.value.reason is reason


def test_a_receipt_is_of_one_member_for_one_event() -> None:
    key, event = b"k" * 32, EventId(b"e" * 32)
    given = receipt(key, event)
    assert len(given) == RECEIPT_BYTES
    assert is_receipt(key, event, given)
    assert not is_receipt(b"l" * 32, event, given)
    assert not is_receipt(key, EventId(b"f" * 32), given)
    assert not is_receipt(key, event, bytes(RECEIPT_BYTES))
    assert not is_receipt(key, event, None)
