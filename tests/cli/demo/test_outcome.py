from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from linnet.cli.demo.member import PublishedLine, ReceivedLine
from linnet.cli.demo.story import Facts, Outcome, PeerTally, Plan, publication_times, published_ids, tally
from linnet.core.ids import DeviceId, PeerId
from linnet.trace.jsonlines import JsonTrace
from linnet.trace.records import Kind, Level, Record

DEVICE = DeviceId(b"d" * 8)


NODE, OTHER = PeerId(bytes(32)), PeerId(bytes([1]) * 32)


def write(path: Path, *lines: msgspec.Struct, rest: bytes = b"") -> None:
    path.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in lines) + rest)


def test_the_numbers_come_from_what_was_written(tmp_path: Path) -> None:
    write(
        tmp_path / "published.jsonl",
        PublishedLine("a"),
        PublishedLine("b"),
        PublishedLine("c"),
        rest=b'{"id":"cut',
    )
    write(
        tmp_path / "received.jsonl",
        ReceivedLine("a", at=10.0, got=10.001),
        ReceivedLine("b", at=10.0, got=10.003),
        ReceivedLine(missed=2),
        ReceivedLine("a", at=10.0, got=12.0),
        ReceivedLine("z", at=10.0, got=10.002),
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


def facts(homes: list[Path], resumed: bool = True) -> Facts:
    names = tuple(f"peer {number}" for number in range(1, len(homes) + 1))
    return Facts(names, tuple(homes), names[:1], names[-1], 2.0, resumed, 1.5, 20.0)


def homes(tmp_path: Path, received: tuple[str, ...]) -> list[Path]:
    made = [tmp_path / "one", tmp_path / "two"]
    for home in made:
        home.mkdir()
    (made[0] / "published.jsonl").write_bytes(
        b"".join(msgspec.json.encode(PublishedLine(id)) + b"\n" for id in "ab")
    )
    for home, ids in zip(made, (("a", "b"), received), strict=True):
        lines = b"".join(msgspec.json.encode(ReceivedLine(id, 1.0, 1.25)) + b"\n" for id in ids)
        (home / "received.jsonl").write_bytes(lines)
    return made


def test_all_delivered_is_all_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = Outcome.of(Plan(2, 2, 1), facts(homes(tmp_path, ("a", "b"))))
    assert outcome.ok
    outcome.show(as_json=False)
    said = capsys.readouterr().out
    assert said.splitlines()[-1] == "missing: 0"
    assert "peer 2 was away for 2.0 s" in said
    assert max(map(len, said.splitlines())) <= 80
    outcome.show(as_json=True)
    assert msgspec.json.decode(capsys.readouterr().out)["missing"] == 0


@pytest.mark.parametrize(
    ("received", "messages", "resumed", "verdict"),
    [
        (("a",), 2, True, "1 deliveries are missing"),
        (("a", "b", "z"), 2, True, "1 event came that nobody published"),
        (("a", "b"), 3, True, "2 of 3 messages were published"),
        (("a", "b"), 2, False, "did not find its durable subscription again"),
    ],
)
def test_any_loss_is_told(
    tmp_path: Path, received: tuple[str, ...], messages: int, resumed: bool, verdict: str
) -> None:
    outcome = Outcome.of(Plan(2, messages, 1), facts(homes(tmp_path, received), resumed))
    assert not outcome.ok
    assert verdict in outcome.verdict
