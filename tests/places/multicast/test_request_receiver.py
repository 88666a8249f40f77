"""Requests at the host: whole in any order, heard once, bounded, and every fault named."""

from __future__ import annotations

from random import Random

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from linnet.core.errors import RemoteError
from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.places.config import PlacesConfig
from linnet.places.messages import Heard, Talk
from linnet.places.multicast.sealed_requests import (
    HEARD_EACH,
    OPEN_EACH,
    PATIENCE,
    TALK_PIECE,
    Request,
    RequestReceiver,
    RequestSender,
    check_heard,
    seal_piece,
)
from linnet.sim.clock import START
from linnet.sim.seeded_random import SeededEntropy
from linnet.store.memory import MemoryStore
from linnet.testing.identities import known_identity

PLACE = TopicId(b"t" * 32)
HOST, ANNA, EVE = known_identity("host"), known_identity("anna"), known_identity("eve")
ENTROPY = SeededEntropy(2, "hearing")


def talking(next_request: int = 1) -> RequestSender:
    return RequestSender(PLACE, ANNA.device, ANNA.card, PlacesConfig(), ENTROPY, next_request)


def hearing(cells: Cells | None = None, config: PlacesConfig | None = None) -> RequestReceiver:
    return RequestReceiver(PLACE, HOST.device, cells or MemoryStore().cells, config or PlacesConfig())


def piece(offset: int, data: bytes, last: bool, request: int = 1) -> Talk:
    blank = Talk(PLACE, ANNA.card, HOST.peer, request, offset, last, b"", bytes(64), 0)
    return seal_piece(ANNA.device, blank, data, ENTROPY)


def refused(host: RequestReceiver, talk: Talk, now: float = START) -> Reason:
    with pytest.raises(RemoteError) as raised:
        host.take(talk, now)
    return raised.value.reason


@settings(max_examples=15)
@given(length=st.integers(0, 3 * TALK_PIECE + 1), order=st.randoms(use_true_random=False))
def test_a_request_is_whole_in_any_order_of_its_pieces(length: int, order: Random) -> None:
    body = order.randbytes(length)
    request, pieces = talking().say(HOST.peer, body)
    order.shuffle(pieces)
    host = hearing()
    taken = [host.take(each, START) for each in [*pieces[:-1], *pieces[:-1], pieces[-1]]]
    assert taken[:-1] == [None] * (len(taken) - 1)
    assert taken[-1] == Request(ANNA.author, ANNA.peer, request, body)
    assert (len(host), host.held) == (0, 0)


def test_a_request_is_heard_once_and_its_receipt_given_again_also_after_a_restart() -> None:
    cells = MemoryStore().cells
    host = hearing(cells)
    request, pieces = talking().say(HOST.peer, b"hello")
    taken = host.take(pieces[0], START)
    assert isinstance(taken, Request)
    receipt = host.answer(taken, Reason.NOT_ALLOWED)
    check_heard(receipt, HOST.peer)
    assert (receipt.device, receipt.request, receipt.reason) == (ANNA.peer, request, Reason.NOT_ALLOWED)
    assert host.take(pieces[0], START + 9) == receipt
    assert hearing(cells).take(pieces[0], START + 99) == receipt


def test_a_recorded_request_is_stale_when_its_receipt_is_forgotten() -> None:
    host, source = hearing(), talking()
    first = source.say(HOST.peer, b"pay me")[1][0]
    for number in range(HEARD_EACH + 1):
        host.answer(Request(ANNA.author, ANNA.peer, number + 1, b""))
    taken = host.take(first, START)
    assert isinstance(taken, Heard)
    assert taken.reason is Reason.STALE


def test_requests_for_others_and_forged_ones_are_named() -> None:
    host = hearing()
    good = piece(0, b"x", True)
    late = float(ANNA.card.not_after + 1000)
    assert refused(host, msgspec.structs.replace(good, place=TopicId(b"u" * 32))) is Reason.NOT_RESPONSIBLE
    assert refused(host, msgspec.structs.replace(good, to=EVE.peer)) is Reason.NOT_RESPONSIBLE
    assert refused(host, msgspec.structs.replace(good, sig=bytes(64))) is Reason.BAD_SIGNATURE
    assert refused(host, msgspec.structs.replace(good, card=EVE.card)) is Reason.BAD_SIGNATURE
    assert refused(host, good, late) is Reason.CARD_EXPIRED
    assert len(host) == 0


@pytest.mark.parametrize(
    ("pieces", "reason"),
    [
        ([piece(5, b"x", True)], Reason.MALFORMED),
        ([piece(0, b"short", False)], Reason.MALFORMED),
        ([piece(TALK_PIECE, b"x", True), piece(2 * TALK_PIECE, b"", True)], Reason.MALFORMED),
        ([piece(TALK_PIECE, bytes(TALK_PIECE), False), piece(0, b"x", True)], Reason.MALFORMED),
        ([piece(TALK_PIECE, b"x", True), piece(TALK_PIECE, b"y", True)], Reason.EQUIVOCATION),
        ([piece(300 * TALK_PIECE, b"x", True)], Reason.TOO_LARGE),
    ],
)
def test_pieces_that_do_not_fit_end_the_request(pieces: list[Talk], reason: Reason) -> None:
    host = hearing()
    for each in pieces[:-1]:
        assert host.take(each, START) is None
    assert refused(host, pieces[-1]) is reason
    assert (len(host), host.held) == (0, 0)


def test_incomplete_requests_are_bounded_and_given_up() -> None:
    host = hearing()
    for request in range(1, OPEN_EACH + 1):
        assert host.take(piece(TALK_PIECE, b"x", True, request), START) is None
    assert refused(host, piece(TALK_PIECE, b"x", True, 99)) is Reason.TOO_MANY
    assert host.expire(START + PATIENCE - 1) == []
    records = host.expire(START + PATIENCE)
    assert [(each.reason, each.note) for each in records] == [
        (Reason.TIMEOUT, f"request {request}, 1 bytes of it") for request in range(1, OPEN_EACH + 1)
    ]
    assert host.held == 0
    few = hearing(config=PlacesConfig(talks_open=1))
    few.take(piece(TALK_PIECE, b"x", True, 1), START)
    assert refused(few, piece(TALK_PIECE, b"x", True, 2)) is Reason.TOO_MANY


def test_the_bytes_of_all_incomplete_requests_are_bounded() -> None:
    host = hearing(config=PlacesConfig(talk_bytes=TALK_PIECE + 10))
    for request in range(1, 5):
        assert host.take(piece(0, bytes(TALK_PIECE), False, request), START) is None
    blank = Talk(PLACE, EVE.card, HOST.peer, 1, 0, False, b"", bytes(64), 0)
    other = seal_piece(EVE.device, blank, bytes(TALK_PIECE), ENTROPY)
    assert refused(host, other) is Reason.QUOTA
    assert isinstance(host.take(piece(TALK_PIECE, bytes(10), True, 1), START), Request)
    assert host.take(other, START) is None
    assert host.held == 4 * TALK_PIECE
