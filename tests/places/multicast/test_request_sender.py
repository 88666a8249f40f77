"""What a guest says to the host: sealed against those on the way, signed for the place, kept until heard."""

from __future__ import annotations

import msgspec
import pytest
from tests.raised import reason_of

from linnet.core.errors import MalformedMessage, Refused, RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.places.config import PlacesConfig
from linnet.places.messages import Talk
from linnet.places.multicast.sealed_requests import (
    TALK_PIECE,
    WAITING,
    RequestSender,
    check_heard,
    check_piece,
    open_piece,
    sign_heard,
)
from linnet.sim.seeded_random import SeededEntropy
from linnet.testing.identities import known_identity

PLACE = TopicId(b"t" * 32)
HOST, ANNA, EVE = known_identity("host"), known_identity("anna"), known_identity("eve")


def talking(config: PlacesConfig | None = None, next_request: int = 1) -> RequestSender:
    entropy = SeededEntropy(1, "talking")
    return RequestSender(PLACE, ANNA.device, ANNA.card, config or PlacesConfig(), entropy, next_request)


def refusal(piece: Talk) -> Reason:
    with pytest.raises(RemoteError) as raised:
        check_piece(piece)
    return raised.value.reason


def test_a_request_is_cut_signed_and_opens_only_at_the_voice() -> None:
    body = bytes(range(250)) * 500  # 125,000 bytes
    request, pieces = talking().say(HOST.peer, body)
    assert request == 1
    assert [(each.offset, each.last) for each in pieces] == [(0, False), (61_000, False), (122_000, True)]
    for each in pieces:
        check_piece(each)
        assert len(each.sealed) <= 61 * 1024
        assert reason_of(RemoteError, open_piece, EVE.device, each) is Reason.UNDECRYPTABLE
    assert b"".join(open_piece(HOST.device, each) for each in pieces) == body
    assert body[:16] not in pieces[0].sealed


def test_an_empty_request_is_one_piece_and_a_full_piece_needs_no_second() -> None:
    source = talking()
    assert [each.last for each in source.say(HOST.peer, b"")[1]] == [True]
    assert [each.last for each in source.say(HOST.peer, bytes(TALK_PIECE))[1]] == [True]
    assert source.waiting == (1, 2)


def test_every_field_but_the_hops_is_signed() -> None:
    piece = talking().say(HOST.peer, b"hello")[1][0]
    check_piece(msgspec.structs.replace(piece, hops=9))
    changes: list[dict[str, object]] = [
        {"place": TopicId(b"u" * 32)},
        {"to": EVE.peer},
        {"request": 2},
        {"offset": 61_000},
        {"last": False},
        {"sealed": piece.sealed[:-1] + bytes([piece.sealed[-1] ^ 1])},
        {"card": msgspec.structs.replace(ANNA.card, label="x")},
    ]
    assert [refusal(msgspec.structs.replace(piece, **each)) for each in changes] == [
        Reason.BAD_SIGNATURE
    ] * len(changes)


def test_what_is_sealed_cannot_be_put_elsewhere_even_by_who_signs_anew() -> None:
    """Eve copies the sealed bytes into a request of her own: it does not open under her name."""
    piece = talking().say(HOST.peer, b"hello")[1][0]
    stolen = msgspec.structs.replace(piece, card=EVE.card)
    assert reason_of(RemoteError, open_piece, HOST.device, stolen) is Reason.UNDECRYPTABLE


def test_it_waits_for_a_receipt_of_the_voice_and_can_be_said_again_to_another() -> None:
    source = talking(next_request=5)
    request, _ = source.say(HOST.peer, b"hello")
    good = sign_heard(HOST.device, PLACE, ANNA.peer, request, None)
    check_heard(good, HOST.peer)
    forged = sign_heard(EVE.device, PLACE, ANNA.peer, request, None)
    cases = [
        (forged, Reason.BAD_SIGNATURE),
        (msgspec.structs.replace(good, reason=Reason.BANNED), Reason.BAD_SIGNATURE),
        (sign_heard(HOST.device, PLACE, ANNA.peer, 77, None), Reason.SURPLUS),
        (sign_heard(HOST.device, PLACE, EVE.peer, request, None), Reason.SURPLUS),
        (sign_heard(HOST.device, TopicId(b"u" * 32), ANNA.peer, request, None), Reason.SURPLUS),
    ]
    for heard, reason in cases:
        assert reason_of(RemoteError, source.heard, heard) is reason
    again = source.again(request, EVE.peer)
    assert (again[0].request, open_piece(EVE.device, again[0])) == (5, b"hello")
    source.heard(forged)  # by now she is the voice
    assert source.waiting == ()
    with pytest.raises(Refused):
        source.again(request)
    assert source.next_request == 6


def test_requests_are_bounded() -> None:
    source = talking(PlacesConfig(talk_bytes=1024))
    assert reason_of(Refused, source.say, HOST.peer, bytes(1025)) is Reason.TOO_LARGE
    for _ in range(4):
        request, _ = source.say(HOST.peer, bytes(1024))
    assert reason_of(Refused, source.say, HOST.peer, b"x") is Reason.QUEUE_FULL
    source.give_up(request)
    for _ in range(WAITING - 3):
        source.say(HOST.peer, b"x")
    assert reason_of(Refused, source.say, HOST.peer, b"") is Reason.QUEUE_FULL


def test_nothing_is_sealed_to_what_is_no_key() -> None:
    with pytest.raises(MalformedMessage):
        talking().say(PeerId(bytes(32)), b"hello")
