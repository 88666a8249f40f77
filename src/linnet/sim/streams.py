"""The scenario of ``linnet sim streams``: events through an overlay that a tracker built.

Nodes join, the overlay settles, events are published one after another, and what happened is held
against shortest paths over the overlay (Juslenius 2021, sections 5.4.2 to 5.4.4).
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import ceil
from typing import Any

from msgspec import Struct

from linnet.core.ids import PeerId
from linnet.core.quantiles import quantile
from linnet.peer.interface import NodeMachine
from linnet.sim.churn import drawn_churn, schedule_churn
from linnet.sim.estimate import estimate
from linnet.sim.luck import named_luck
from linnet.sim.meter import HashedTrace
from linnet.sim.report import StreamReport
from linnet.sim.scenario import STREAM, StreamScenario
from linnet.sim.world import Overlay, StreamWorld
from linnet.streams.commands import Publish
from linnet.trace.columns import ColumnTrace
from linnet.trace.sink import TraceSink

Progress = Callable[[float, str], None]
"""Told how far a run is, from 0 to 1, and what it is at."""

JOINED = 0.3
"""Share of a run that joining counts for."""

SLOWEST = 16
"""Mean delays of the underlay that the last event has to arrive: three times what 2,048 nodes need."""

REPAIR_SECONDS = 30.0
"""Virtual seconds after the last event, if there is something to repair: loss or churn."""


class Played(Struct, frozen=True):
    """A scenario that has been run to its end."""

    world: StreamWorld
    overlay: Overlay
    converged_at: float | None
    """Virtual seconds at which the overlay changed last before the first event."""
    control_messages: int
    statuses_stale: int
    """Both until the first event."""
    received: int
    """Messages handled while events were published."""
    publishing_took: float
    """Seconds of one core."""


def run_streams(
    scenario: StreamScenario, trace: HashedTrace | None = None, progress: Progress | None = None
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


def play_streams(scenario: StreamScenario, trace: TraceSink, progress: Progress | None = None) -> Played:
    """Run a scenario to its end, for whoever wants to look at the world that is left."""
    tell = progress or _silent
    world = StreamWorld(scenario, trace)
    with _unhurried_collector():
        tell(0.0, f"{scenario.nodes} nodes join")
        world.join()
        world.settle(lambda done: tell(done * JOINED, "the overlay settles"))
        if scenario.still:
            world.still()
        converged_at = world.converged_at
        control, stale = world.control_messages, world.meter.stale
        publishing_began = time.process_time()
        handled = world.network.handled
        _publish_all(world, tell)
        publishing_took = time.process_time() - publishing_began
        received = world.network.handled - handled
    tell(1.0, "measuring")
    return Played(world, world.overlay(), converged_at, control, stale, received, publishing_took)


def _publish_all(world: StreamWorld, tell: Progress) -> None:
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
        tell(JOINED + (1 - JOINED) * number / scenario.messages, f"event {number + 1}")
    hurt = scenario.loss or scenario.churn is not None
    arrived = max(scenario.gap, 2.0, SLOWEST * network.table.mean())
    network.run(scenario.until or last + (REPAIR_SECONDS if hurt else arrived))


def _churn(world: StreamWorld, mean_up: float, first: float, last: float) -> None:
    """Nodes that store for others stay; those that return ask for what they missed if someone stores."""
    scenario = world.scenario
    since = world.network.now if scenario.storage else None

    def revive(peer: PeerId) -> NodeMachine:
        return world.revive(peer, since)

    changing = world.peers[scenario.storage :]
    changes = drawn_churn(scenario.seed, changing, first, last, mean_up, scenario.churn_down)
    schedule_churn(world.network, changes, revive)


def _flow(world: StreamWorld) -> dict[str, Any]:
    """What became of the messages."""
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
    """What the overlay is like."""
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
    """Mean shortest paths in milliseconds: from those that published, and from all."""
    edges = world.edges(overlay)
    published = estimate(world.peers, edges, world.meter.publishers)
    return 1000 * published.mean, 1000 * estimate(world.peers, edges).mean


@contextmanager
def _unhurried_collector() -> Iterator[None]:
    """A simulation makes millions of tuples and no cycles; looking for some takes a third of its time."""
    thresholds = gc.get_threshold()
    gc.set_threshold(1_000_000, *thresholds[1:])
    try:
        yield
    finally:
        gc.set_threshold(*thresholds)


def _silent(done: float, what: str) -> None:
    """Nobody watches."""
