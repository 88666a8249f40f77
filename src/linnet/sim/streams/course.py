"""The scenario of ``linnet sim streams``: events through an overlay that a tracker built.

Nodes join, the overlay settles, events are published one after another, and the delays are compared with
shortest paths over the overlay (Juslenius 2021, sections 5.4.2 to 5.4.4).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from linnet.core.ids import PeerId
from linnet.core.quantiles import quantile
from linnet.overlay.config import Control
from linnet.peer.interface import NodeMachine
from linnet.sim.churn import drawn_churn, schedule_churn
from linnet.sim.report import Progress, RunReport, tell_nobody
from linnet.sim.seeded_random import named_luck
from linnet.sim.streams.shortest_paths import mean_path
from linnet.sim.streams.world import FIRST_JOIN, STREAM, Overlay, StreamScenario, StreamWorld
from linnet.streams.commands import Publish
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import NullTrace, TraceSink

JOINED = 0.3
"""The share of a run's progress that joining counts for."""

SLOWEST = 16
"""Time for the last event to arrive, in mean delays of the underlay: three times what 2,048 nodes need."""

REPAIR_SECONDS = 30.0
"""Virtual seconds after the last event, if there is something to repair: loss or churn."""


class HashedTrace(TraceSink, Protocol):
    """A trace that can be compared with another."""

    def sha256(self) -> str:
        """Return a hash over all records with node and time."""


class Played(Struct, frozen=True):
    """The result of running a scenario to its end."""

    world: StreamWorld
    overlay: Overlay
    converged_at: float | None
    """Virtual seconds at which the overlay changed last before the first event."""
    control_messages: int
    statuses_stale: int
    """Stale statuses; like control messages, counted until the first event."""
    received: int
    """Messages handled while events were published."""
    publishing_took: float
    """Seconds of one core."""


def run_streams(
    scenario: StreamScenario, trace: HashedTrace | None = None, progress: Progress = tell_nobody
) -> StreamReport:
    """Run a scenario to its end and report. Equal scenarios give equal reports and traces."""
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    played = play_streams(scenario, kept, progress)
    world, took = played.world, played.publishing_took
    paths, all_paths = _estimates(world, played.overlay)
    return StreamReport(
        **_flow(world),
        **_shape(world, played.overlay),
        received=played.received,
        estimate_ms=paths,
        estimate_all_ms=all_paths,
        converged_at=played.converged_at,
        control_messages=played.control_messages,
        statuses_stale=played.statuses_stale,
        virtual_seconds=world.network.elapsed,
        trace_sha256=kept.sha256(),
        wall_seconds=time.perf_counter() - began,
        receives_per_second=played.received / took if took else 0.0,
    )


def play_streams(scenario: StreamScenario, trace: TraceSink, progress: Progress = tell_nobody) -> Played:
    """Run a scenario to its end, and return its world for further measurements."""
    world = StreamWorld(scenario, trace)
    with _unhurried_collector():
        progress(0.0, f"{scenario.nodes} nodes join")
        world.join()
        world.settle(lambda done: progress(done * JOINED, "the overlay settles"))
        if scenario.still:
            world.still()
        converged_at = world.converged_at
        control, stale = world.control_messages, world.meter.stale
        publishing_began = time.process_time()
        handled = world.network.handled
        _publish_all(world, progress)
        publishing_took = time.process_time() - publishing_began
        received = world.network.handled - handled
    progress(1.0, "measuring")
    return Played(world, world.overlay(), converged_at, control, stale, received, publishing_took)


def _publish_all(world: StreamWorld, progress: Progress) -> None:
    scenario, network = world.scenario, world.network
    world.meter.began()
    first = float(ceil(network.elapsed) + 1)
    last = first + max(0, scenario.messages - 1) * scenario.gap
    sources = named_luck(scenario.seed, "sources").choices(world.peers, k=scenario.messages)
    bodies = named_luck(scenario.seed, "bodies")
    for number, peer in enumerate(sources):
        body = bodies.randbytes(scenario.body_bytes)
        network.ask(peer, Publish(STREAM, (body,)), at=first + number * scenario.gap)
    if scenario.churn is not None:
        _churn(world, scenario.churn, first, last)
    for number in range(scenario.messages):
        network.run(first + number * scenario.gap)
        progress(JOINED + (1 - JOINED) * number / scenario.messages, f"event {number + 1}")
    hurt = scenario.loss or scenario.churn is not None
    arrived = max(scenario.gap, 2.0, SLOWEST * network.table.mean())
    network.run(scenario.until or last + (REPAIR_SECONDS if hurt else arrived))


def _churn(world: StreamWorld, mean_up: float, first: float, last: float) -> None:
    """Schedule churn. Storage nodes stay; returning nodes ask for missed events if there is storage."""
    scenario = world.scenario
    since = world.network.now if scenario.storage else None

    def revive(peer: PeerId) -> NodeMachine:
        return world.revive(peer, since)

    changing = world.peers[scenario.storage :]
    changes = drawn_churn(scenario.seed, changing, (first, last), mean_up, scenario.churn_down)
    schedule_churn(world.network, changes, revive)


def _flow(world: StreamWorld) -> dict[str, Any]:
    """Return the figures of messages."""
    meter, published = world.meter, len(world.meter.published)
    messages = max(1, published)
    others = published * (world.scenario.nodes - 1)
    delays = sorted(meter.delays)
    receipts = sum(meter.hops.values())
    return {
        "messages": published,
        "completeness": meter.reached() / others if others else 1.0,
        "sends_per_message": meter.sent / messages,
        "duplicates_per_message": meter.duplicates / messages,
        "mean_delay_ms": 1000 * sum(delays) / len(delays) if delays else 0.0,
        "p99_delay_ms": 1000 * (quantile(delays, 0.99) or 0.0),
        "mean_hops": sum(hops * count for hops, count in meter.hops.items()) / receipts if receipts else 0.0,
        "max_hops": max(meter.hops, default=0),
    }


def _shape(world: StreamWorld, overlay: Overlay) -> dict[str, Any]:
    """Return the figures of the overlay."""
    degrees = overlay.degrees()
    edges = world.edges(overlay)
    return {
        "nodes": world.scenario.nodes,
        "degree_min": min(degrees),
        "degree_max": max(degrees),
        "regular": overlay.is_regular(),
        "mean_edge_delay_ms": 1000 * sum(edges.values()) / len(edges) if edges else 0.0,
        "pair_mean_delay_ms": 1000 * world.pair_mean(),
    }


def _estimates(world: StreamWorld, overlay: Overlay) -> tuple[float, float]:
    """Return mean shortest paths in milliseconds: from the publishers, and from all nodes."""
    edges = world.edges(overlay)
    published = mean_path(world.peers, edges, world.meter.publishers)
    return 1000 * published, 1000 * mean_path(world.peers, edges)


@contextmanager
def _unhurried_collector() -> Iterator[None]:
    """Raise the collector's thresholds: a simulation makes millions of tuples and no cycles, and looking for
    them takes a third of its time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


class StreamReport(RunReport, frozen=True, eq=False):
    """The outcome of one stream scenario."""

    OF_MACHINE = ("wall_seconds", "receives_per_second")

    nodes: int
    degree_min: int
    degree_max: int
    regular: bool
    """Whether every node has the requested degree, as far as numbers allow."""
    completeness: float
    """Share of (message, other node) pairs that reached the applications."""
    messages: int
    """Events that were published: with churn, some of the drawn publishers are down."""
    sends_per_message: float
    duplicates_per_message: float
    """Duplicates at all nodes together, for each message."""
    received: int
    """Messages that machines handled while events were published: new ones, duplicates, control."""
    mean_delay_ms: float
    """From publication to first receipt, over all (message, other node)."""
    p99_delay_ms: float
    estimate_ms: float
    """Mean shortest path from the publishers, weighted by messages, over the final overlay."""
    estimate_all_ms: float
    """Mean shortest path from every node."""
    mean_hops: float
    max_hops: int
    mean_edge_delay_ms: float
    """Mean latency of the overlay's links: if it is below the mean of pairs, near nodes are preferred."""
    pair_mean_delay_ms: float
    """Mean latency of all pairs of nodes."""
    converged_at: float | None
    """Virtual seconds until the overlay changed for the last time before the first message."""
    control_messages: int
    """Messages between tracker and nodes about the overlay, in both directions, until the first message."""
    statuses_stale: int
    """Statuses that were rejected as out of date."""
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float
    receives_per_second: float
    """Messages handled for each second of one core's time, while events were published."""


MEASURED_AT = 120.0
"""Virtual second at which an overlay is measured, regular or not."""


class MassJoin(Struct, frozen=True):
    """The overlay that one protocol has built by the time of the measurement."""

    control: Control
    join: float
    """Seconds between joins; 0: all at once."""
    nodes: int
    regular: bool
    degrees: dict[int, int]
    """Nodes by degree."""
    violations: int
    """Nodes that do not have the requested degree."""
    one_sided: int
    """Neighbours that do not count their neighbour as one."""
    converged_at: float | None
    """Virtual seconds after the last join at which the overlay changed last."""
    control_messages: int
    statuses_stale: int
    mean_edge_delay_ms: float
    pair_mean_delay_ms: float


def mass_join(
    scenario: StreamScenario,
    throttle: float = 0.05,
    measured_at: float = MEASURED_AT,
    progress: Progress = tell_nobody,
) -> list[MassJoin]:
    """Let a scenario's nodes join by both protocols, all at once and one after another, side by side."""
    cases = [(control, join) for control in (Control.COUNTER, Control.NAIVE) for join in (0.0, throttle)]
    results = []
    for number, (control, join) in enumerate(cases):
        progress(number / len(cases), f"{control}, {f'every {join} s' if join else 'all at once'}")
        results.append(join_once(replace(scenario, control=control, join=join), measured_at))
    return results


def join_once(
    scenario: StreamScenario, measured_at: float = MEASURED_AT, trace: TraceSink | None = None
) -> MassJoin:
    """Let a scenario's nodes join, and measure the overlay at a virtual second."""
    world = StreamWorld(scenario, NullTrace() if trace is None else trace)
    world.join()
    last_join = FIRST_JOIN + (scenario.nodes - 1) * scenario.join
    world.network.run(measured_at)
    overlay = world.overlay()
    edges = world.edges(overlay)
    degrees = overlay.degrees()
    converged_at = world.converged_at
    return MassJoin(
        control=scenario.control,
        join=scenario.join,
        nodes=scenario.nodes,
        regular=overlay.is_regular(),
        degrees=dict(sorted(degrees.items())),
        violations=scenario.nodes - degrees[min(scenario.degree, scenario.nodes - 1)],
        one_sided=sum((other, peer) not in edges for peer, other in edges),
        converged_at=None if converged_at is None else max(0.0, converged_at - last_join),
        control_messages=world.control_messages,
        statuses_stale=world.meter.stale,
        mean_edge_delay_ms=1000 * sum(edges.values()) / len(edges) if edges else 0.0,
        pair_mean_delay_ms=1000 * world.pair_mean(),
    )
