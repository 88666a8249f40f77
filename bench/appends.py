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
_VALUE = bytes(100)
_SPACE = "bench"
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


def cells_per_second(directory: Path, count: int) -> tuple[float, float, float]:
    """Values a second of our own work, without the disk's: written, read one by one, and scanned."""
    keys = [hashlib.sha256(number.to_bytes(8, "big")).digest() for number in range(count)]
    with tempfile.TemporaryDirectory(dir=directory) as below:
        store = SqliteStore(Path(below) / "events.db")
        try:
            rates = []
            for work in (
                lambda: _write(store, keys),
                lambda: [store.cells.get(_SPACE, key) for key in keys],
                lambda: list(store.cells.scan(_SPACE)),
            ):
                began = time.process_time()
                work()
                rates.append(count / (time.process_time() - began))
            return rates[0], rates[1], rates[2]
        finally:
            store.close()


def _write(store: SqliteStore, keys: list[bytes]) -> None:
    for begin in range(0, len(keys), _OUTSTANDING):
        for key in keys[begin : begin + _OUTSTANDING]:
            store.cells.put(_SPACE, key, _VALUE)
        _commit(store)
    _commit(store)


def _commit(store: SqliteStore) -> None:
    done = threading.Event()
    store.commit(done.set)
    done.wait()


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    cases = (
        ("units of 1, each awaited", 1, 1, plan.count(1_000, 100)),
        ("units of 1, grouped", 1, _OUTSTANDING, plan.count(20_000, 2_000)),
        ("units of 256, each awaited", 256, 1, plan.count(200, 20)),
        ("units of 256, grouped", 256, _OUTSTANDING, plan.count(1_000, 100)),
    )
    rates: dict[str, list[float]] = {name: [] for name, *_ in cases}
    cells: dict[str, list[float]] = {}
    middles: list[float] = []
    worst: list[float] = []
    for _ in range(plan.runs):
        syncs = sync_times(plan.directory, plan.seconds)
        middles.append(1000 * percentile(syncs, 0.5))
        worst.append(1000 * percentile(syncs, 0.99))
        for name, events, outstanding, count in cases:
            units = entries(count, events)
            rates[name].append(events * appended_per_second(plan.directory, units, outstanding))
        found = cells_per_second(plan.directory, plan.count(50_000, 2_000))
        for name, rate in zip(("written", "read one by one", "scanned"), found, strict=True):
            cells.setdefault(f"values {name}", []).append(rate)
    return [
        Measure(SECTION, "fdatasync p50", "ms", tuple(middles), "append of 4 KiB"),
        Measure(SECTION, "fdatasync p99", "ms", tuple(worst)),
        *(Measure(SECTION, name, "events/s", tuple(each), "durable") for name, each in rates.items()),
        *(Measure(SECTION, name, "values/s", tuple(each), "of a core") for name, each in cells.items()),
    ]
