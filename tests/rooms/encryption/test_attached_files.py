"""Files in encrypted rooms, through real node machines: members get them, a relay reads nothing of them."""

from __future__ import annotations

import pickle

import pytest
from tests.rooms.circle import Circle, founded

from linnet.event.event import Event
from linnet.machine.commands import Done
from linnet.rooms.attachments import Attachment, Joining, Piece, attachment_body, attachment_of, split
from linnet.rooms.commands import (
    ChunkFetched,
    ExamineRooms,
    FetchChunk,
    KeepChunk,
    RoomsAre,
    SendToRoom,
    Sent,
)
from linnet.rooms.event_types import ATTACHMENT, Newcomers
from linnet.rooms.messages import CHUNK_BYTES

CONTENT = b"".join(b"line %d of the letter\n" % number for number in range(9000))
assert len(CONTENT) > CHUNK_BYTES
KEY = bytes(range(200, 232))


def stored(world: Circle, name: str) -> bytes:
    """All that is on a node's disk."""
    store = world.stores[name]
    log = [entry.raw for _, entry in store.log._units.values()]
    return pickle.dumps((store.cells._spaces, log))


def encrypted(world: Circle, name: str) -> bool:
    (status,) = world.get(name, ExamineRooms(), RoomsAre).rooms
    return status.encrypted


def attach(world: Circle, name: str, key: bytes | None) -> None:
    for step in split([CONTENT], "letter.txt", "text/plain", key=key):
        if isinstance(step, Piece):
            world.get(name, KeepChunk(world.room, step.digest, step.data), Done)
        else:
            world.get(name, SendToRoom(world.room, (attachment_body(step),), ATTACHMENT), Sent)


def shared(world: Circle, name: str) -> Attachment:
    (event,) = [each for each in world.items[name] if isinstance(each, Event) and each.kind == ATTACHMENT]
    return attachment_of(event.body)


def fetch(world: Circle, name: str, attachment: Attachment) -> bytes:
    joining, parts = Joining(attachment), []
    while not joining.complete:
        (digest,) = joining.wanted(1)
        piece = world.get(name, FetchChunk(world.room, digest, 20.0), ChunkFetched)
        parts += joining.give(digest, piece.data)
    return b"".join(parts)


@pytest.mark.parametrize("secret", [True, False])
def test_a_file_left_at_a_relay_is_got_from_it_by_members_alone(secret: bool) -> None:
    """In a room that is not encrypted the same relay holds it all: so the look would find it."""
    world = founded("ann", "ben", "r0", newcomers=Newcomers.FROM_NOW if secret else None)
    world.run(20.0)
    assert [encrypted(world, name) for name in ("ann", "ben", "r0")] == [secret] * 3
    world.offline("ben")
    world.run(5.0)
    attach(world, "ann", KEY if secret else None)
    world.run(10.0)
    world.offline("ann")
    world.online("ben")
    world.run(20.0)
    attachment = shared(world, "ben")
    assert (attachment.name, attachment.key) == ("letter.txt", KEY if secret else None)
    assert fetch(world, "ben", attachment) == CONTENT
    disk = stored(world, "r0")
    assert all(digest in disk for digest in attachment.digests)
    for trace in (b"of the letter", b"letter.txt", attachment.sha256):
        assert (trace in disk) is not secret
    assert KEY not in disk
