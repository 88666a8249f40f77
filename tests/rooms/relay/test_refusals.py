"""Every request has an answer that says no."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.rooms.relay.scenes import peer_of

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Given, Want
from linnet.machine.outbox import Outbox
from linnet.rooms.messages import (
    AskControl,
    ChunkIs,
    ChunkPut,
    ChunkTaken,
    ChunkWant,
    ControlPage,
    RelayForward,
    RelaySend,
    RelayTaken,
    Resync,
    ResyncPage,
)
from linnet.rooms.relay.access_control import Answer, Caller, Request, refuse_request, stale_answer
from linnet.testing.rooms import person
from linnet.trace.records import Kind, Record

ROOM, EVENT, DIGEST = TopicId(b"r" * 32), EventId(b"e" * 32), b"d" * 32
WHY = Reason.UNKNOWN_ROOM


@pytest.mark.parametrize(
    ("message", "answers"),
    [
        (RelaySend(ROOM, 1, (), ()), [RelayTaken(ROOM, 1, (), WHY)]),
        (RelayForward(ROOM, 2, (), ()), [RelayTaken(ROOM, 2, (), WHY)]),
        (
            Resync(ROOM, 3, None, 10, True),
            [ResyncPage(ROOM, 3, (), (), (), (), None, False, None, (), WHY)],
        ),
        (Want(ROOM, 4, (EVENT,)), [Given(ROOM, 4, (), (), (EVENT,), WHY)]),
        (AskControl(ROOM, 5, (), None), [ControlPage(ROOM, 5, (), (), False, (), (), WHY)]),
        (ChunkPut(ROOM, DIGEST, b""), [ChunkTaken(ROOM, DIGEST, WHY)]),
        (ChunkWant(ROOM, (DIGEST, DIGEST)), [ChunkIs(ROOM, DIGEST, None, WHY)] * 2),
    ],
    ids=lambda value: type(value).__name__,
)
def test_no(message: Request, answers: list[Answer]) -> None:
    caller = Caller(peer_of("ann"), person("ann").author)
    kind, note = Kind.REJECTED, type(message).__name__
    if isinstance(message, Resync):
        kind, note = Kind.RESYNC, "reject-resync"
    record = Record(kind, ROOM, peer=caller.peer, reason=WHY, note=note)
    out = Outbox()
    assert refuse_request(message, WHY, caller, out) == answers
    assert out.take() == [record]
    assert refuse_request(message, WHY, None, out) == answers
    assert out.take() == [replace(record, peer=None)]


def test_an_answer_that_nobody_waits_for_is_recorded() -> None:
    peer = PeerId(b"p" * 32)
    late = RelayTaken(ROOM, 5, (), None)
    expected = Record(Kind.REJECTED, ROOM, peer=peer, reason=Reason.STALE, note="RelayTaken")
    assert stale_answer(ROOM, peer, late) == expected
