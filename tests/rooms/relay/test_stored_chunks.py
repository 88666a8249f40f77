"""Pieces of attachments at a relay."""

from __future__ import annotations

import hashlib

from msgspec.structs import replace
from tests.rooms.relay.scenes import OPEN, World

from linnet.core.ids import TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.rooms.chunk_store import StoredChunks
from linnet.rooms.messages import ChunkIs, ChunkPut, ChunkTaken, ChunkWant
from linnet.sim.nemesis.open_node import DamageableStore
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

ROOM = TopicId(b"r" * 32)


def put(data: bytes, room: TopicId = ROOM) -> ChunkPut:
    return ChunkPut(room, hashlib.sha256(data).digest(), data)


def test_a_piece_is_kept_under_its_hash_over_a_restart() -> None:
    store = MemoryStore()
    chunk = put(b"piece")
    chunks = StoredChunks(ROOM, store.cells, 10_000, Outbox())
    assert chunks.put(chunk, 1.0) == ChunkTaken(ROOM, chunk.digest, None)
    again = StoredChunks(ROOM, store.cells, 10_000, Outbox())
    assert again.bytes == 4096
    want = ChunkWant(ROOM, (chunk.digest, bytes(32)))
    assert again.give(want, 0.0) == [
        ChunkIs(ROOM, chunk.digest, b"piece", None),
        ChunkIs(ROOM, bytes(32), None, Reason.NOT_HELD),
    ]


def test_a_piece_that_is_not_what_it_is_called_is_refused() -> None:
    store = MemoryStore()
    wrong = ChunkPut(ROOM, bytes(32), b"piece")
    chunks = StoredChunks(ROOM, store.cells, 10_000, Outbox())
    assert chunks.put(wrong, 1.0) == ChunkTaken(ROOM, bytes(32), Reason.MALFORMED)
    assert list(store.cells.scan(StoredChunks.data_space)) == []


def test_small_pieces_count_too_and_the_quota_holds() -> None:
    chunks = StoredChunks(ROOM, MemoryStore().cells, 2 * 4096, Outbox())
    reasons = [chunks.put(put(b"%d" % number), 1.0).reason for number in (0, 1, 1, 2)]
    assert reasons == [None, None, None, Reason.QUOTA]


def test_pieces_expire_as_events_do() -> None:
    store, out = MemoryStore(), Outbox()
    chunks = StoredChunks(ROOM, store.cells, 10**6, out)
    chunks.put(put(b"new"), 5.0)
    chunks = StoredChunks(ROOM, store.cells, 10**6, out)
    chunks.put(put(b"newer"), 6.0)
    assert chunks.oldest == 5.0
    assert chunks.give(ChunkWant(ROOM, (put(b"new").digest,)), 5.5)[0].reason is Reason.NOT_HELD
    gone = Record(Kind.EXPIRED, ROOM, bytes=4096, reason=Reason.RETENTION, note="chunk")
    assert chunks.expire_before(5.5)
    assert out.take() == [gone]
    assert not chunks.expire_before(5.5)
    assert out.take() == []
    assert (chunks.oldest, chunks.bytes) == (6.0, 4096)
    assert [key for key, _ in store.cells.scan(StoredChunks.data_space)] == [ROOM + put(b"newer").digest]


def test_only_members_put_and_get() -> None:
    world = World("r0", config=replace(OPEN, chunk_bytes=4096), met=("ann",))
    chunk = put(b"piece", world.room)
    assert world.tell("r0", "ann", chunk) == [ChunkTaken(world.room, chunk.digest, None)]
    world.link("r0", "ben")
    want = ChunkWant(world.room, (chunk.digest,))
    assert world.tell("r0", "ben", want) == [ChunkIs(world.room, chunk.digest, b"piece", None)]
    world.tell("r0", "eve", world.greet("eve"))
    assert world.tell("r0", "eve", want) == [ChunkIs(world.room, chunk.digest, None, Reason.NOT_A_MEMBER)]
    assert world.tell("r0", "eve", put(b"spam", world.room)) == [
        ChunkTaken(world.room, put(b"spam").digest, Reason.NOT_A_MEMBER)
    ]
    assert world.tell("r0", "ben", put(b"more", world.room)) == [
        ChunkTaken(world.room, put(b"more").digest, Reason.QUOTA)
    ]
    assert world.station("r0").records[-1].reason is Reason.QUOTA


def test_a_damaged_piece_is_held_no_more_and_taken_again() -> None:
    store, out = DamageableStore(), Outbox()
    chunk = put(b"piece")
    chunks = StoredChunks(ROOM, store.cells, 10_000, out)
    chunks.put(chunk, 1.0)
    store.cells.spoil(StoredChunks.data_space, ROOM + chunk.digest)
    want = ChunkWant(ROOM, (chunk.digest,))
    assert chunks.give(want, 0.0) == [ChunkIs(ROOM, chunk.digest, None, Reason.NOT_HELD)]
    assert out.take() == [Record(Kind.DROPPED, ROOM, bytes=4096, reason=Reason.DAMAGED, note="chunk")]
    assert chunks.bytes == 0
    assert chunks.put(chunk, 2.0) == ChunkTaken(ROOM, chunk.digest, None)
    assert chunks.give(want, 0.0) == [ChunkIs(ROOM, chunk.digest, b"piece", None)]
