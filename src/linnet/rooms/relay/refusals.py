"""The requests about a room that a relay answers, and the answer to each that says no."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from linnet.core.ids import PeerId, TopicId
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
from linnet.rooms.relay.door import Caller
from linnet.trace.records import Kind, Record

Request: TypeAlias = RelaySend | RelayForward | Resync | Want | AskControl | ChunkPut | ChunkWant
Answer: TypeAlias = RelayTaken | ResyncPage | Given | ControlPage | ChunkTaken | ChunkIs


def refuse_request(message: Request, reason: Reason, caller: Caller | None, out: Outbox) -> list[Answer]:
    """Record that a request is refused of which nothing was looked at; returns the answers to it."""
    peer = None if caller is None else caller.peer
    room = message.topic if isinstance(message, Want) else message.room
    if isinstance(message, Resync):
        out.record(Record(Kind.RESYNC, room, peer=peer, reason=reason, note="reject-resync"))
    else:
        out.record(Record(Kind.REJECTED, room, peer=peer, reason=reason, note=type(message).__name__))
    match message:
        case RelaySend() | RelayForward():
            return [RelayTaken(room, message.request, (), reason)]
        case Resync():
            return [ResyncPage(room, message.request, (), (), (), (), None, False, None, (), reason)]
        case Want():
            return [Given(room, message.request, (), (), message.ids, reason)]
        case AskControl():
            return [ControlPage(room, message.request, (), (), False, (), (), reason)]
        case ChunkPut():
            return [ChunkTaken(room, message.digest, reason)]
        case ChunkWant():
            return [ChunkIs(room, digest, None, reason) for digest in message.digests]
        case _:
            assert_never(message)


def stale(room: TopicId, peer: PeerId, answer: ControlPage | Given | RelayTaken) -> Record:
    """An answer to nothing that was asked, or to what is not waited for any more."""
    return Record(Kind.REJECTED, room, peer=peer, reason=Reason.STALE, note=type(answer).__name__)
