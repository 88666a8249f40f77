"""The remembering verifier says what the real one says."""

from __future__ import annotations

from hashlib import sha256
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.event.units import identities, units
from tests.overlay.harness import peer_id

from linnet.core.errors import InvalidEvent, RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.event.event import Unverified, Verified
from linnet.event.signing import verify_unit
from linnet.identity.cards import Card, check_card
from linnet.identity.keys import SigningKey
from linnet.overlay.gossip.descriptor import sign_descriptor
from linnet.overlay.gossip.private_set_intersection import RISTRETTO, Group, Initiator, Party, Responder
from linnet.overlay.gossip.topic_tags import TopicKeys, topic_keys
from linnet.peer.config import Identity
from linnet.sim.seeded_random import SeededEntropy
from linnet.sim.signature_cache import (
    IDEAL,
    RememberingCardCheck,
    RememberingDescriptorCheck,
    RememberingVerifier,
)
from linnet.testing.identities import known_identity


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


def test_each_descriptor_is_checked_once_and_forgeries_fail_each_time() -> None:
    good = sign_descriptor(SigningKey(bytes(32)), 1, 1, b"", 0, 1, (), 10)
    forged = msgspec.structs.replace(good, version=2)
    check = RememberingDescriptorCheck()
    for _ in range(3):
        check(good, 1.0)
        check(msgspec.structs.replace(good), 1.0)
        with pytest.raises(RemoteError, match="bad_signature"):
            check(forged, 1.0)
    assert check.checked == 1 + 3
    with pytest.raises(RemoteError, match="stale"):
        check(good, 11.0)


ANN, BEN = peer_id("ann"), peer_id("ben")
KEYS = [topic_keys(TopicId(sha256(bytes([number])).digest())) for number in range(90)]


def run(
    group: Group, ann: list[TopicKeys], ben: list[TopicKeys]
) -> tuple[set[TopicId], set[TopicId], list[int]]:
    entropy = SeededEntropy(1, "equal")
    initiator = Initiator(Party(ANN, group, entropy), BEN, ann, 7)
    responder = Responder(Party(BEN, group, entropy), ANN, ben, initiator.message)
    end = initiator.handle_answer(responder.message)
    last, at_ben = responder.handle_end(end)
    at_ann = initiator.handle_end(last)
    messages = (initiator.message, responder.message, end, last)
    return {*at_ann}, {*at_ben}, [len(msgspec.msgpack.encode(message)) for message in messages]


@pytest.mark.parametrize("seed", range(8))
def test_results_and_sizes_are_those_of_the_real_group(seed: int) -> None:
    rng = Random(seed)
    most = rng.choice((5, 16, 60))
    ann, ben = (rng.sample(KEYS[: most * 3 // 2], rng.randint(0, most)) for _ in range(2))
    ideal = run(IDEAL, ann, ben)
    assert ideal == run(RISTRETTO, ann, ben)
    assert ideal[0] == ideal[1] == {keys.topic for keys in ann if keys in ben}


@pytest.mark.parametrize("point", [bytes(32), b"", bytes(31), b"x" * 33])
def test_the_identity_and_what_has_not_the_size_of_a_point_are_refused(point: bytes) -> None:
    with pytest.raises(RemoteError):
        IDEAL.multiply(b"m" * 32, point)


def test_a_mask_goes_on_in_either_order_and_off_again() -> None:
    entropy = SeededEntropy(1, "masks")
    one, two = IDEAL.scalar(entropy), IDEAL.scalar(entropy)
    element = IDEAL.hash_to_group(b"x")
    there = IDEAL.multiply(two, IDEAL.multiply(one, element))
    assert there == IDEAL.multiply(one, IDEAL.multiply(two, element)) != element
    [off] = IDEAL.inverses([one])
    assert IDEAL.multiply(off, there) == IDEAL.multiply(two, element)
