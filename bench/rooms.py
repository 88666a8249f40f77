"""Rooms: what a relay takes in, how fast a member catches up from it, what an event costs in a long room."""

from __future__ import annotations

import os
import tempfile
import threading
import time
from pathlib import Path

from bench.long_room import costs
from bench.results import Measure, Plan
from bench.rooms_stage import RELAY, Stage, written
from bench.signing import checks_per_second
from linnet.core.effects import AfterCommit
from linnet.core.ids import PeerId
from linnet.core.inputs import Received
from linnet.event.event import Verified
from linnet.peer.interface import NodeMachine
from linnet.peer.messages import CODEC
from linnet.rooms.messages import RelaySend
from linnet.store.base import CommittingStore
from linnet.store.sqlite import SqliteStore

SECTION = "rooms"
CHECKS = "signature checks, beside"
INGEST = "relay: events taken in, SQLite"
CATCH_UP = "resync: events caught up with"
EARLY = "cost of an event in a room of 1,000"
LATE = "cost of an event in a room of 100,000"
_BATCH = 50
"""Events in one message to a relay: what the HTTP face takes at most."""
_BODY = bytes(256)
_OUTSTANDING = 16


def ingested_per_second(directory: Path, count: int) -> float:
    """Events a second that a relay decodes, checks, judges, writes and answers for, durably."""
    with tempfile.TemporaryDirectory(dir=directory) as below:
        store = SqliteStore(Path(below) / "relay.db")
        try:
            stage = Stage()
            stage.add("ann")
            stage.add(RELAY, store)
            stage.found("ann", relay=True)
            units = written(stage.room_at("ann"), count, _BODY, stage.network.now)
            raw = [
                CODEC.encode(RelaySend(stage.room, number, tuple(each.unit for each in batch), ()))
                for number, batch in enumerate(_batches(units))
            ]
            relay = stage.network.machine(stage.identity[RELAY].peer)
            return count / _fed(relay, store, stage.identity["ann"].peer, raw, stage.network.now)
        finally:
            store.close()


def _batches(units: list[Verified]) -> list[list[Verified]]:
    return [units[at : at + _BATCH] for at in range(0, len(units), _BATCH)]


def _fed(machine: NodeMachine, store: CommittingStore, peer: PeerId, raw: list[bytes], now: float) -> float:
    """Seconds until all of it is answered for: with as many commits under way as a busy loop has."""
    room = threading.Semaphore(_OUTSTANDING)
    began = time.perf_counter()
    for frame in raw:
        effects = machine.handle(Received(peer, CODEC.decode(frame)), now)
        if not any(isinstance(effect, AfterCommit) for effect in effects):
            raise AssertionError("a relay answers after a commit")
        room.acquire()
        store.commit(room.release)
    for _ in range(_OUTSTANDING):
        room.acquire()
    return time.perf_counter() - began


def caught_up(count: int) -> tuple[float, float]:
    """Events a second that a member takes in from a relay after an absence, and its peak memory in MiB."""
    stage = Stage()
    for name in ("ann", "bob", RELAY):
        stage.add(name)
    stage.found("ann", "bob", relay=True)
    network = stage.network
    network.crash(stage.identity["bob"].peer)
    network.crash(stage.identity["ann"].peer)
    units = written(stage.room_at("ann"), count, _BODY, network.now)
    relay, ann = network.machine(stage.identity[RELAY].peer), stage.identity["ann"].peer
    for number, batch in enumerate(_batches(units)):
        relay.handle(
            Received(ann, RelaySend(stage.room, number, tuple(e.unit for e in batch), ())), network.now
        )
    known = len(stage.room_at("bob").dag)
    stage.back("bob")
    before = resident_mib()
    began = time.perf_counter()
    stage.until(lambda: len(stage.room_at("bob").dag) >= known + count)
    took = time.perf_counter() - began
    return count / took, resident_mib() - before


def resident_mib() -> float:
    """Memory of this process now."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    ingest = plan.count(20_000, 500)
    away = plan.count(100_000, 500)
    long = plan.count(100_000, 2_000)
    checks: list[float] = []
    taken: list[float] = []
    for _ in range(plan.runs):
        checks.append(checks_per_second(plan.seconds))
        taken.append(ingested_per_second(plan.directory, ingest))
    speed, memory = caught_up(away)
    early, late = costs(long)
    return [
        Measure(SECTION, CHECKS, "1/s", tuple(checks)),
        Measure(SECTION, INGEST, "events/s", tuple(taken), "decoded, checked, judged, durable"),
        Measure(SECTION, CATCH_UP, "events/s", (speed,), f"{away:,} events, relay and member on one core"),
        Measure(SECTION, "resync: memory", "MiB", (memory,), "of the member, its store in memory"),
        Measure(SECTION, EARLY, "µs", (1e6 * early,), "judged and placed, without its signature"),
        Measure(SECTION, LATE, "µs", (1e6 * late,), f"after {long:,} events, 2 % of them control"),
    ]
