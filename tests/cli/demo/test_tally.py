from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec.structs import replace

from linnet.cli.demo.messages import Published, Received
from linnet.cli.demo.tally import PeerTally, publication_times, published_ids, tally
from linnet.core.ids import DeviceId, PeerId
from linnet.trace.jsonlines import JsonTrace
from linnet.trace.records import Kind, Level, Record

DEVICE = DeviceId(b"d" * 8)
NODE, OTHER = PeerId(bytes(32)), PeerId(bytes([1]) * 32)


def write(path: Path, *lines: msgspec.Struct, rest: bytes = b"") -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines) + rest)


def test_the_numbers_come_from_what_was_written(tmp_path: Path) -> None:
    write(tmp_path / "published.jsonl", Published("a"), Published("b"), Published("c"), rest=b'{"id":"cut')
    write(
        tmp_path / "received.jsonl",
        Received("a", at=10.0, got=10.001),
        Received("b", at=10.0, got=10.003),
        Received(missed=2),
        Received("a", at=10.0, got=12.0),
        Received("z", at=10.0, got=10.002),
    )
    with JsonTrace(tmp_path / "trace", Level.FULL, 1 << 20, 1) as trace:
        for record in (
            Record(Kind.LINK_UP, peer=OTHER),
            Record(Kind.DUPLICATE, events=4),
            Record(Kind.RESYNC, events=3, peer=OTHER),
            Record(Kind.RESYNC, note="gap filled"),
            Record(Kind.RESYNC, note="pushed"),
            Record(Kind.LINK_DOWN, peer=OTHER),
            Record(Kind.LINK_UP, peer=OTHER),
            Record(Kind.PUBLISHED, device=DEVICE, seq=0, events=2),
        ):
            trace.write(NODE, record, 1.0)
        trace.write(NODE, Record(Kind.DELIVERED, device=DEVICE, seq=1), 1.25)
        trace.write(NODE, Record(Kind.DELIVERED, device=DEVICE, seq=0, events=2), 1.5)
    published = published_ids([tmp_path])
    assert list(published) == ["a", "b", "c"]
    found = tally("peer 1", tmp_path, published, publication_times([tmp_path]))
    assert (found.p50_ms, found.p99_ms) == (250.0, 500.0), "the first delivery counts"
    assert (round(found.felt_p50_ms, 3), round(found.felt_p99_ms, 3)) == (2.0, 3.0)
    assert replace(found, p50_ms=0.0, p99_ms=0.0, felt_p50_ms=0.0, felt_p99_ms=0.0) == PeerTally(
        peer="peer 1",
        delivered=3,
        missing=1,
        repeated=1,
        duplicates=4,
        p50_ms=0.0,
        p99_ms=0.0,
        felt_p50_ms=0.0,
        felt_p99_ms=0.0,
        gaps_filled=1,
        resent=3,
        reconnects=1,
        foreign=1,
    )


def test_a_peer_that_wrote_nothing_misses_everything(tmp_path: Path) -> None:
    found = tally("peer 1", tmp_path, {"a": None, "b": None}, {})
    assert (found.delivered, found.missing) == (0, 2)
