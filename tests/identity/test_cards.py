from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from linnet.core.errors import BadText, RemoteError
from linnet.core.reasons import Reason
from linnet.identity.cards import (
    LABEL_CHARS,
    Card,
    Revocation,
    check_card,
    check_dates,
    check_revocation,
    issue_card,
    revoke,
)
from linnet.identity.keys import SigningKey, device_id

PERSON = SigningKey(b"p" * 32)
OTHER = SigningKey(b"o" * 32)
DEVICE = SigningKey(b"d" * 32)
CARD = issue_card(PERSON, DEVICE.public, 1_000, 2_000, "phone")
REVOCATION = revoke(PERSON, CARD.device, 1_500)


def refusal(card: Card, now: float, leeway: float) -> Reason | None:
    try:
        check_dates(card, now, leeway)
    except RemoteError as error:
        return error.reason
    return None


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1), st.text(max_size=LABEL_CHARS))
def test_what_a_person_signed_is_good(not_before: int, not_after: int, label: str) -> None:
    card = issue_card(PERSON, DEVICE.public, not_before, not_after, label)
    check_card(card)
    assert card.person == PERSON.public
    assert card.device == device_id(DEVICE.public)


@pytest.mark.parametrize(
    "forged",
    [
        replace(CARD, person=OTHER.public),
        replace(CARD, device_key=OTHER.public),
        replace(CARD, not_before=999),
        replace(CARD, not_after=2_001),
        replace(CARD, label="phonE"),
        replace(CARD, sig=issue_card(OTHER, DEVICE.public, 1_000, 2_000, "phone").sig),
        replace(CARD, sig=CARD.sig[:-1] + bytes([CARD.sig[-1] ^ 1])),
        # The same bytes under another tag: a revocation is no card.
        replace(CARD, sig=REVOCATION.sig),
    ],
)
def test_a_change_of_any_field_is_noticed(forged: Card) -> None:
    with pytest.raises(RemoteError) as caught:
        check_card(forged)
    assert caught.value.reason is Reason.BAD_SIGNATURE


@pytest.mark.parametrize(
    ("now", "leeway", "reason"),
    [
        (1_000, 0, None),
        (2_000, 0, None),
        (999.999, 0, Reason.CARD_NOT_YET_VALID),
        (2_000.001, 0, Reason.CARD_EXPIRED),
        (700, 300, None),
        (699.999, 300, Reason.CARD_NOT_YET_VALID),
        (2_300, 300, None),
        (2_300.001, 300, Reason.CARD_EXPIRED),
    ],
)
def test_a_card_is_good_between_its_dates(now: float, leeway: float, reason: Reason | None) -> None:
    assert refusal(CARD, now, leeway) is reason


def test_a_card_whose_dates_are_the_wrong_way_round_is_never_good() -> None:
    card = issue_card(PERSON, DEVICE.public, 2_000, 1_000)
    assert all(refusal(card, now, 0) is not None for now in range(900, 2_100, 50))


def test_a_label_that_others_would_not_read_is_refused() -> None:
    issue_card(PERSON, DEVICE.public, 0, 1, "x" * LABEL_CHARS)
    with pytest.raises(BadText, match="at most 64 characters"):
        issue_card(PERSON, DEVICE.public, 0, 1, "x" * (LABEL_CHARS + 1))


def test_a_revocation_is_the_persons_word() -> None:
    check_revocation(REVOCATION)
    assert Revocation(CARD.person, CARD.device, 1_500, REVOCATION.sig) == REVOCATION


@pytest.mark.parametrize(
    "forged",
    [
        replace(REVOCATION, person=OTHER.public),
        replace(REVOCATION, device=bytes(8)),
        replace(REVOCATION, at=1_501),
        replace(REVOCATION, sig=CARD.sig),
        # The device itself cannot take its card back in the person's name.
        replace(REVOCATION, sig=revoke(DEVICE, CARD.device, 1_500).sig),
    ],
)
def test_a_change_of_any_field_of_a_revocation_is_noticed(forged: Revocation) -> None:
    with pytest.raises(RemoteError) as caught:
        check_revocation(forged)
    assert caught.value.reason is Reason.BAD_SIGNATURE


@pytest.mark.parametrize(("value", "kind"), [(CARD, Card), (REVOCATION, Revocation)])
def test_cards_and_revocations_survive_the_wire(value: Card | Revocation, kind: type) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(value), type=kind) == value
