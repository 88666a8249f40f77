"""A stream scenario in whole numbers, for studies that add up many runs: the same on any machine.

`linnet.sim.streams.course` reports means for people; sums and counts of the same runs are here.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from msgspec import Struct

from linnet.sim.streams.course import Played, play_streams
from linnet.sim.streams.shortest_paths import Graph, path_sums
from linnet.sim.streams.world import FIRST_JOIN, StreamScenario
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import NullTrace

MICRO = 1_000_000


class StreamTally(Struct, frozen=True):
    """The counts of one run of a scenario. Times are microseconds unless stated otherwise."""

    totals: dict[str, int]
    """Sums by name, see `tally_streams`."""
    delays: dict[int, int]
    """First receipts by whole milliseconds since publication, rounded up."""
    hops: dict[int, int]
    """First receipts by links crossed."""
    hop_delays: dict[int, int]
    """Sums of the delays of first receipts by links crossed."""
    degrees: dict[int, int]
    """Nodes by number of neighbours."""


def tally_streams(scenario: StreamScenario, hashed: bool = False) -> StreamTally:
    """Run a scenario to its end and count.

    Totals: ``messages`` published; ``expected`` pairs of a message and another node, ``reached`` those
    whose application has it; ``receipts``, ``delay`` their delays; ``sent``; ``duplicates``, of which
    ``returned`` at the publisher itself; ``links`` in each direction, ``near_links`` of them inside one
    region, ``link_delay``; ``one_sided`` links that the other end does not count; ``regular`` is 1 or 0;
    ``pair_delay`` over ``all_pairs`` of nodes; ``path_delay`` of shortest paths over ``paths`` from every
    node, ``source_path_delay`` over ``source_paths`` from those that published; ``control`` messages,
    ``stale`` ones, and ``settled`` after the last join, all before the first event; ``trace``, the first
    63 bits of the trace's hash, if that was asked for.
    """
    kept = ColumnTrace() if hashed else None
    played = play_streams(scenario, NullTrace() if kept is None else kept)
    meter = played.world.meter
    waits = np.rint(np.array(meter.delays) * MICRO).astype(np.int64)
    links = np.array(meter.links, dtype=np.int64)
    totals = _flow(played) | {"delay": int(waits.sum())} | _shape(played) | _paths(played)
    if kept is not None:
        totals["trace"] = int(kept.sha256()[:16], 16) >> 1
    return StreamTally(
        totals=totals,
        delays=_counts(-(-waits // 1000)),  # up: no receipt is earlier than it was
        hops=_counts(links),
        hop_delays={int(hops): int(waits[links == hops].sum()) for hops in np.unique(links)},
        degrees=dict(sorted(played.overlay.degrees().items())),
    )


def _counts(values: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> dict[int, int]:
    found, counts = np.unique(values, return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _flow(played: Played) -> dict[str, int]:
    scenario, meter = played.world.scenario, played.world.meter
    last_join = FIRST_JOIN + (scenario.nodes - 1) * scenario.join
    settled = 0.0 if played.converged_at is None else max(0.0, played.converged_at - last_join)
    return {
        "messages": len(meter.published),
        "expected": len(meter.published) * (scenario.nodes - 1),
        "reached": meter.reached(),
        "receipts": len(meter.delays),
        "sent": meter.sent,
        "duplicates": meter.duplicates,
        "returned": meter.returned,
        "control": played.control_messages,
        "stale": played.statuses_stale,
        "settled": round(settled * MICRO),
    }


def _shape(played: Played) -> dict[str, int]:
    world, overlay = played.world, played.overlay
    region, between = world.network.region, world.network.table.between
    links = [(peer, other) for peer, others in overlay.neighbors.items() for other in others]
    ends = Counter((region(peer), region(other)) for peer, other in links)
    places = Counter(region(peer) for peer in world.peers)
    pairs = {(a, b): m * (n - (a == b)) for a, m in places.items() for b, n in places.items()}
    return {
        "regular": int(overlay.is_regular()),
        "links": len(links),
        "near_links": sum(count for (a, b), count in ends.items() if a == b),
        "link_delay": sum(count * _micro(between(a, b)) for (a, b), count in ends.items()),
        "one_sided": sum(peer not in overlay.neighbors[other] for peer, other in links),
        "all_pairs": sum(pairs.values()),
        "pair_delay": sum(count * _micro(between(a, b)) for (a, b), count in pairs.items()),
    }


def _paths(played: Played) -> dict[str, int]:
    world = played.world
    number = {peer: place for place, peer in enumerate(world.peers)}
    edges = world.edges(played.overlay)
    graph = Graph(
        len(number),
        np.array([number[peer] for peer, _ in edges], dtype=np.int64),
        np.array([number[other] for _, other in edges], dtype=np.int64),
        np.array([_micro(seconds) for seconds in edges.values()], dtype=np.int64),
    )
    everyone = path_sums(graph)
    sources = path_sums(graph, {number[peer]: count for peer, count in world.meter.publishers.items()})
    return {
        "path_delay": everyone.microseconds,
        "paths": everyone.pairs,
        "source_path_delay": sources.microseconds,
        "source_paths": sources.pairs,
    }


def _micro(seconds: float) -> int:
    return round(seconds * MICRO)
