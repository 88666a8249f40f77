"""Durable appends to the SQLite store, beside what the disk itself takes for a sync."""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
import time
from pathlib import Path

from bench.results import Measure, Plan, percentile
from bench.sizes import CARD, unit_of
from linnet.core.ids import EventId, TopicId
from linnet.core.stores import Entry
from linnet.store.sqlite import SqliteStore

SECTION = "store"
_BODY = bytes(256)
_BLOCK = bytes(4096)
_TOPIC = TopicId(b"t" * 32)
_OUTSTANDING = 256
"""Commits that may be under way at once: many callers, each of which waits for its own."""


def sync_times(directory: Path, seconds: float) -> list[float]:
    """Seconds that single appends of 4 KiB with fdatasync take, one after the other."""
    taken: list[float] = []
    with tempfile.NamedTemporaryFile(dir=directory) as file:
        ended = time.perf_counter() + seconds
        while (began := time.perf_counter()) < ended or not taken:
            os.write(file.fileno(), _BLOCK)
            os.fdatasync(file.fileno())
            taken.append(time.perf_counter() - began)
    return taken


def entries(count: int, events: int) -> list[Entry]:
    """So many units of one chain."""
    raw = unit_of(events, _BODY)
    return [
        Entry(
            _TOPIC,
            CARD.person,
            CARD.device,
            number * events,
            events,
            EventId(hashlib.sha256(number.to_bytes(8, "big")).digest()),
            1_700_000_000.0,
            raw,
        )
        for number in range(count)
    ]


def appended_per_second(directory: Path, units: list[Entry], outstanding: int) -> float:
    """Units a second, each committed by itself, with so many commits under way at once."""
    room = threading.Semaphore(outstanding)
    with tempfile.TemporaryDirectory(dir=directory) as below:
        store = SqliteStore(Path(below) / "events.db")
        try:
            began = time.perf_counter()
            for unit in units:
                room.acquire()
                store.log.append(unit)
                store.commit(room.release)
            for _ in range(outstanding):
                room.acquire()
            return len(units) / (time.perf_counter() - began)
        finally:
            store.close()


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    cases = (
        ("units of 1, each awaited", 1, 1, plan.count(1_000, 100)),
        ("units of 1, grouped", 1, _OUTSTANDING, plan.count(20_000, 2_000)),
        ("units of 256, each awaited", 256, 1, plan.count(200, 20)),
        ("units of 256, grouped", 256, _OUTSTANDING, plan.count(1_000, 100)),
    )
    rates: dict[str, list[float]] = {name: [] for name, *_ in cases}
    middles: list[float] = []
    worst: list[float] = []
    for _ in range(plan.runs):
        syncs = sync_times(plan.directory, plan.seconds)
        middles.append(1000 * percentile(syncs, 0.5))
        worst.append(1000 * percentile(syncs, 0.99))
        for name, events, outstanding, count in cases:
            units = entries(count, events)
            rates[name].append(events * appended_per_second(plan.directory, units, outstanding))
    return [
        Measure(SECTION, "fdatasync p50", "ms", tuple(middles), "append of 4 KiB"),
        Measure(SECTION, "fdatasync p99", "ms", tuple(worst)),
        *(Measure(SECTION, name, "events/s", tuple(each), "durable") for name, each in rates.items()),
    ]
