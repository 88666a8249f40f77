"""End to end over TLS between processes: throughput beside the bare ceiling, and latency."""

from __future__ import annotations

import asyncio
from pathlib import Path

from bench.appends import sync_times
from bench.crew import WorkerFailed, failure
from bench.fleet import EIGHT, FLOOD, ONE, Fleet, Layout, Outcome, bare, nodes
from bench.results import Measure, Plan, percentile
from bench.signing import checks_per_second
from bench.sizes import unit_of
from bench.workers.nodes import BODY_BYTES
from bench.workers.talk import Go
from linnet.core.limits import BURST_EVENTS

SECTION = "network"
LATENCY = "latency"
CHECKS = "signature checks beside"
SYNC = "fdatasync p50 beside"
ONE_BY_ONE = "one by one"
IN_BURSTS = "in bursts"
NO_STORE = "no store"
SQLITE = "SQLite"
COALESCED = "bare TLS, coalesced"
UNCOALESCED = "bare TLS, one write each"

COALESCED_BYTES = 64 * 1024
AT_ONCE = 64
"""Messages of one call where each is signed by itself: what a busy application says in a loop turn."""

PACE = 1_000.0
_WARM_UP = 512
MOST = 200_000
"""Messages of one run: a publisher keeps what it said."""

MOST_TO_MANY = 40_000
"""Where there are several links: less than one outbox holds, so that no slow receiver is cut."""


def name_of(layout: Layout, how: str, store: str) -> str:
    """What a throughput is called."""
    return f"{layout.name}, {how}, {store}"


def ceiling_name(layout: Layout, how: str) -> str:
    """What a ceiling is called."""
    return f"{layout.name}, {how}"


def payload_bytes() -> int:
    """Bytes that one event takes in a burst: the ceiling sends the same."""
    return len(unit_of(BURST_EVENTS, bytes(BODY_BYTES))) // BURST_EVENTS


async def run_several(
    fleet: Fleet, at_once: int, plan: Plan, seconds: float, most: int = MOST
) -> list[Outcome]:
    """As many runs as planned, each of about so many seconds by what two shorter ones say."""
    messages = _WARM_UP
    for share in (0.25, 1.0):
        warm = await fleet.run(Go(messages, at_once))
        rate = warm.deliveries_per_second / len(fleet.receivers)
        messages = max(_WARM_UP, min(most, int(rate * seconds * share)) // at_once * at_once)
    return [await fleet.run(Go(messages, at_once)) for _ in range(plan.runs)]


def _throughput(name: str, outcomes: list[Outcome]) -> Measure:
    rates = tuple(outcome.deliveries_per_second for outcome in outcomes)
    sender = percentile([outcome.sender_cpu_us for outcome in outcomes], 0.5)
    receiver = percentile([outcome.receiver_cpu_us for outcome in outcomes], 0.5)
    note = f"CPU a message: sender {sender:.1f} µs, receiver {receiver:.1f} µs"
    return Measure(SECTION, name, "deliveries/s", rates, note)


async def _layout(plan: Plan, layout: Layout, stores: Path | None, taken: list[Measure]) -> None:
    seconds = plan.seconds * 4
    most = MOST if layout is ONE else MOST_TO_MANY
    store = NO_STORE if stores is None else SQLITE
    for how, burst in ((ONE_BY_ONE, 1), (IN_BURSTS, BURST_EVENTS)):
        async with nodes(layout, stores, burst) as fleet:
            at_once = max(burst, AT_ONCE)
            outcomes = await run_several(fleet, at_once, plan, seconds, most)
            taken.append(_throughput(name_of(layout, how, store), outcomes))
            if layout is ONE and how is IN_BURSTS:
                taken += await _latency(plan, fleet, store)


async def _latency(plan: Plan, fleet: Fleet, store: str) -> list[Measure]:
    """At a steady pace far below what the links take."""
    outcomes: list[Outcome] = []
    syncs: list[float] = []
    for _ in range(plan.runs):
        if store == SQLITE:
            syncs.append(1000 * percentile(sync_times(plan.directory, plan.seconds), 0.5))
        outcomes.append(await fleet.run(Go(plan.count(3_000, 500), 1, PACE)))
    middles = tuple(outcome.p50_ms for outcome in outcomes)
    worst = tuple(outcome.p99_ms for outcome in outcomes)
    taken = [
        Measure(LATENCY, f"p50, {store}", "ms", middles, "1→1, 1,000/s"),
        Measure(LATENCY, f"p99, {store}", "ms", worst, "1→1, 1,000/s"),
    ]
    return [*taken, Measure(LATENCY, SYNC, "ms", tuple(syncs))] if syncs else taken


async def _ceiling(plan: Plan, layout: Layout, taken: list[Measure]) -> None:
    size = payload_bytes()
    async with bare(layout, size) as fleet:
        for how, at_once in ((COALESCED, COALESCED_BYTES // size), (UNCOALESCED, 1)):
            outcomes = await run_several(fleet, at_once, plan, plan.seconds * 2)
            taken.append(_throughput(ceiling_name(layout, how), outcomes))


async def _all(plan: Plan) -> list[Measure]:
    checks = tuple(checks_per_second(plan.seconds) for _ in range(plan.runs))
    taken = [Measure(SECTION, CHECKS, "1/s", checks, "one core")]
    for layout in (ONE, EIGHT, FLOOD):
        parts = [(NO_STORE, _layout(plan, layout, None, taken))]
        if layout is not FLOOD:
            parts.append(("bare TLS", _ceiling(plan, layout, taken)))
        if layout is ONE or not plan.quick:
            parts.append((SQLITE, _layout(plan, layout, plan.directory, taken)))
        for name, part in parts:
            try:
                await part
            except WorkerFailed as error:
                taken.append(failure(SECTION, f"{layout.name}, {name}", error))
    return taken


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    return asyncio.run(_all(plan))
