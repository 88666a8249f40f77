"""The remembering verifier says what the real one says."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.reasons import Reason
from linnet.event.event import Unverified, Verified
from linnet.event.signing import verify_unit
from linnet.identity.cards import Card, check_card
from linnet.peer.config import Identity
from linnet.sim.verifier import RememberingCardCheck, RememberingVerifier
from linnet.testing.identities import known_identity
from linnet.testing.units import identities, units


def outcome(verifier: object, unit: Unverified, card: Card) -> Verified | tuple[Reason, str]:
    assert callable(verifier)
    try:
        result = verifier(unit, card)
    except InvalidEvent as error:
        return error.reason, error.detail
    assert isinstance(result, Verified)
    return result


def forged(unit: Unverified, choice: int) -> Unverified:
    """The unit, or the unit with one thing changed."""
    wrong = bytes(byte ^ 1 for byte in unit.sig)
    changes: list[dict[str, object]] = [
        {},
        {"sig": wrong},
        {"tails": (unit.tails[0] + b"\0", *unit.tails[1:])},
        {"seq": (unit.seq or 0) + 1},
        {"seq": None},
        {"topic": bytes(32)},
    ]
    return msgspec.structs.replace(unit, **changes[choice])


@given(st.lists(st.tuples(units(), st.integers(0, 5), st.integers(0, 5)), min_size=1, max_size=6))
def test_it_equals_the_real_one(asked: list[tuple[tuple[Identity, Verified], int, int]]) -> None:
    remembering = RememberingVerifier()
    stranger = known_identity("stranger").card
    for (identity, verified), first, second in asked:
        for choice in (first, second, first):
            unit = forged(verified.unit, choice)
            other_person = msgspec.structs.replace(identity.card, person=stranger.person)
            for card in (identity.card, stranger, other_person, identity.card):
                assert outcome(remembering, unit, card) == outcome(verify_unit, unit, card)


@given(units())
def test_a_value_is_checked_once(asked: tuple[Identity, Verified]) -> None:
    identity, verified = asked
    remembering = RememberingVerifier()
    same = msgspec.structs.replace(verified.unit)
    for unit in (verified.unit, same, verified.unit):
        assert remembering(unit, identity.card) == verified
    assert remembering.checked == 1


@given(units())
def test_a_forgery_after_the_real_one_still_fails(asked: tuple[Identity, Verified]) -> None:
    identity, verified = asked
    remembering = RememberingVerifier()
    remembering(verified.unit, identity.card)
    with pytest.raises(InvalidEvent):
        remembering(forged(verified.unit, 1), identity.card)
    with pytest.raises(InvalidEvent):
        remembering(forged(verified.unit, 1), identity.card)
    assert remembering(verified.unit, identity.card) == verified


@given(identities(), st.integers(0, 3))
def test_card_checks_equal_the_real_one(identity: Identity, choice: int) -> None:
    changes: list[dict[str, object]] = [{}, {"label": "other"}, {"sig": bytes(64)}, {"not_after": 2**40}]
    card = msgspec.structs.replace(identity.card, **changes[choice])
    remembering = RememberingCardCheck()
    for _ in range(2):
        if choice:
            with pytest.raises(RemoteError) as real:
                check_card(card)
            with pytest.raises(RemoteError) as remembered:
                remembering(card)
            assert (real.value.reason, real.value.detail) == (
                remembered.value.reason,
                remembered.value.detail,
            )
        else:
            check_card(card)
            remembering(card)
        remembering(identity.card)
    assert remembering.checked == (2 if choice else 1)
