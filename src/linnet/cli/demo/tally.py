"""The numbers of the demo, from what its processes wrote: nothing is taken from the demo's own word."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TypeAlias, TypeVar

import msgspec
from msgspec import Struct

from linnet.cli.demo.member import PUBLISHED, RECEIVED
from linnet.cli.demo.messages import Published, Received
from linnet.core.quantiles import quantile, within_ms
from linnet.trace.jsonlines import FILE_NAME, Line
from linnet.trace.records import Kind

T = TypeVar("T")

Times: TypeAlias = dict[tuple[str, int], float]
"""When something happened to an event, which is known by its device and its place in that chain."""


class PeerTally(Struct, frozen=True):
    """What one peer got."""

    peer: str
    delivered: int
    """Distinct events that its subscription was handed."""
    missing: int
    """Events that were published and that it was not handed."""
    repeated: int
    """Events that it was handed once more, after a crash."""
    duplicates: int
    """Copies that came over another path and were filtered out; from its trace."""
    p50_ms: float
    """From publication to delivery, the time that it was away included; from the traces."""
    p99_ms: float
    felt_p50_ms: float
    """From the call to publish until the application held it: with both applications' own delays."""
    felt_p99_ms: float
    gaps_filled: int
    """Gaps in chains that it noticed and closed; from its trace."""
    resent: int
    """Events that it got by asking for them; from its trace."""
    reconnects: int
    """Links to peers that it had been linked to before; from its trace."""
    foreign: int
    """Events that nobody published: forged or damaged ones."""


def published_ids(homes: Iterable[Path]) -> dict[str, None]:
    """Every event that a publisher's node took."""
    return {line.id: None for home in homes for line in _lines(home / PUBLISHED, Published)}


def publication_times(homes: Iterable[Path]) -> Times:
    """When each event was published, by the traces of those who did."""
    return {
        (row.device, place): row.time
        for home in homes
        for row in _rows(home / "trace" / FILE_NAME)
        if row.kind is Kind.PUBLISHED and row.device is not None and row.seq is not None
        for place in range(row.seq, row.seq + row.events)
    }


def tally(name: str, home: Path, published: dict[str, None], times: Times) -> PeerTally:
    """What one peer got, by its own files."""
    first: dict[str, int] = {}
    repeated = 0
    for line in _lines(home / RECEIVED, Received):
        if not line.id:
            continue
        if line.id in first:
            repeated += 1
        else:
            first[line.id] = _microseconds(line.at, line.got)
    felt = sorted(first.values())
    traced = _Traced(home / "trace" / FILE_NAME)
    delays = sorted(
        _microseconds(times[event], time) for event, time in traced.delivered.items() if event in times
    )
    return PeerTally(
        peer=name,
        delivered=len(first),
        missing=sum(id not in first for id in published),
        repeated=repeated,
        duplicates=traced.duplicates,
        p50_ms=_within(delays, 0.50),
        p99_ms=_within(delays, 0.99),
        felt_p50_ms=_within(felt, 0.50),
        felt_p99_ms=_within(felt, 0.99),
        gaps_filled=traced.gaps_filled,
        resent=traced.resent,
        reconnects=traced.reconnects,
        foreign=sum(id not in published for id in first),
    )


def _microseconds(begin: float, end: float) -> int:
    """As the lab's audit has it: a clock that is ahead makes a delay negative, which counts as 0."""
    return max(0, round(end * 1_000_000) - round(begin * 1_000_000))


def _within(delays: list[int], share: float) -> float:
    return float(within_ms(quantile(delays, share) or 0))


class _Traced:
    """What the trace of one node counts up to."""

    def __init__(self, path: Path) -> None:
        self.duplicates = 0
        self.gaps_filled = 0
        self.resent = 0
        self.reconnects = 0
        self.delivered: dict[tuple[str, int], float] = {}
        """When each event was handed over first."""
        linked: dict[str, None] = {}
        for row in _rows(path):
            if row.kind is Kind.DUPLICATE:
                self.duplicates += row.events
            elif row.kind is Kind.DELIVERED and row.device is not None and row.seq is not None:
                for place in range(row.seq, row.seq + row.events):
                    self.delivered.setdefault((row.device, place), row.time)
            elif row.kind is Kind.RESYNC and row.note is not None:
                self.gaps_filled += row.note == "gap filled"
            elif row.kind is Kind.RESYNC:
                self.resent += row.events
            elif row.kind is Kind.LINK_UP and row.peer is not None:
                self.reconnects += row.peer in linked
                linked[row.peer] = None


def _rows(path: Path) -> Iterator[Line]:
    """The rows of a trace; a killed process may leave its last line cut short."""
    decoder = msgspec.json.Decoder(Line)
    for raw in _whole_lines(path):
        if not raw.startswith(b'{"linnet_trace"'):
            yield decoder.decode(raw)


def _lines(path: Path, kind: type[T]) -> Iterator[T]:
    decoder = msgspec.json.Decoder(kind)
    return (decoder.decode(raw) for raw in _whole_lines(path))


def _whole_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    *whole, _ = path.read_bytes().split(b"\n")
    return whole
