"""Letting go of a room."""

from __future__ import annotations

import hashlib

from tests.rooms.relay.scenes import Station, World, card_of

from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.rooms.config import RoomsConfig
from linnet.rooms.messages import ChunkPut
from linnet.rooms.receipt import sign_room_receipt
from linnet.rooms.relay.admission import RoomSweep
from linnet.rooms.relay.event_cache import EventCache
from linnet.rooms.relay.stored_chunks import StoredChunks
from linnet.rooms.relay.stored_receipts import StoredReceipts
from linnet.rooms.relay.usage import Budget
from linnet.testing.rooms import person
from linnet.trace.records import Record


def test_everything_goes_with_a_record_and_then_there_are_none() -> None:
    world, station = World(), Station("r0")
    context, cells, budget = station.context, station.store.cells, Budget(10**6)
    for name in ("ann", "ben"):
        context.cards.learn(card_of(name))
    out = Outbox()
    cache = EventCache(world.room, station.store, context.cards, budget, 10, out)
    for unit in world.chronicle.units.values():
        cache.keep_control(unit, True, 1.0)
    cache.keep(world.chronicle.units[world.say("ann").id], True, 1.0)
    receipts = StoredReceipts(world.room, context, RoomsConfig(), 10)
    receipts.learn(sign_room_receipt(person("ann").device, card_of("ann"), world.room, 1, ()))
    chunks = StoredChunks(world.room, cells, 10**6, out)
    chunks.put(ChunkPut(world.room, hashlib.sha256(b"piece").digest(), b"piece"), 1.0)
    sweep = RoomSweep(cache, receipts, chunks)
    assert [sweep.forget_some() for _ in range(3)] == [True, True, False]
    effects = out.take()
    records = [each for each in effects if isinstance(each, Record)]
    assert records == effects
    assert len(records) == len(world.chronicle.units) + 1
    assert {record.reason for record in records} == {Reason.NOT_A_RELAY}
    assert not sweep.forget_some()
    assert out.take() == []
    assert (budget.bytes, budget.events, chunks.bytes) == (0, 0, 0)
    assert [topic for topic in (world.room, *cache.topics) if station.store.log.kept(topic).units] == []
    assert list(cells.scan("chunk")) == []
    assert list(cells.scan(f"receipts/{world.room.hex()}")) == []
