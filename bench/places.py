"""Places: what a host says to one guest and to fifty, beside what the machine itself allows.

Every fragment is signed by itself and checked by every guest, so the ceilings are signature checks, a
stream whose events are signed one by one, and bare TLS with as many bytes over as many links.
"""

from __future__ import annotations

import asyncio
import contextlib

from bench.crew import WorkerFailed, failure
from bench.fleet import ONE, Fleet, Outcome, nodes
from bench.network import AT_ONCE
from bench.place_fleet import bare_star, place, spread
from bench.results import Measure, Plan, percentile
from bench.signing import checks_per_second
from bench.workers.talk import Go

SECTION = "places"
CHECKS = "signature checks, beside"
STREAM = "stream 1→1, one by one, beside"
SMALL, LARGE = 256, 60_000
"""Bytes of a body: a remark, and about what one fragment holds."""
AROUND = 320
"""Bytes that a fragment takes beside its body on a link: unit, head, signature, frame."""
MANY = 50
MOST = {SMALL: 20_000, LARGE: 1_000}
"""Messages of one run, a tenth of it to many: everybody keeps all that was said."""
_WARM_UP = 64


def name_of(guests: int, size: int) -> str:
    """What is said to so many guests."""
    return f"host → {guests}, {_size(size)}"


def ceiling_name(guests: int, size: int) -> str:
    """The same bytes over bare links."""
    return f"bare TLS 1→{guests}, {_size(size)}, beside"


def megabytes_name(guests: int) -> str:
    """How much of large bodies comes through."""
    return f"host → {guests}, bytes"


def bare_megabytes_name(guests: int) -> str:
    """How much bare links carry."""
    return f"bare TLS 1→{guests}, bytes, beside"


def _size(size: int) -> str:
    return f"{size} bytes" if size < 1000 else f"{size // 1000} kB"


async def run_several(fleet: Fleet, at_once: int, plan: Plan, most: int) -> list[Outcome]:
    """As many runs as planned, of about four times `plan.seconds` each by what a shorter one says."""
    warm = await fleet.run(Go(_WARM_UP, at_once))
    rate = warm.deliveries_per_second / len(fleet.receivers)
    messages = max(_WARM_UP, min(most, int(rate * plan.seconds * 4)) // at_once * at_once)
    return [await fleet.run(Go(messages, at_once)) for _ in range(plan.runs)]


def rates(outcomes: list[Outcome], guests: int) -> tuple[float, ...]:
    """Deliveries a second to all guests: an outcome counts each process once."""
    share = guests / len(spread(guests))
    return tuple(outcome.deliveries_per_second * share for outcome in outcomes)


def note_of(outcomes: list[Outcome], guests: int) -> str:
    """Processor time of a message."""
    sender = percentile([outcome.sender_cpu_us for outcome in outcomes], 0.5)
    share = guests / len(spread(guests))
    receiver = percentile([outcome.receiver_cpu_us for outcome in outcomes], 0.5) / share
    return f"CPU a message: host {sender:.1f} µs, a guest {receiver:.1f} µs"


async def _said(plan: Plan, guests: int, size: int, taken: list[Measure]) -> None:
    most = plan.count(MOST[size] // (1 if guests == 1 else 10), _WARM_UP)
    at_once = AT_ONCE if size == SMALL else 8
    async with place(guests, size) as fleet:
        outcomes = await run_several(fleet, at_once, plan, most)
    told = rates(outcomes, guests)
    note = note_of(outcomes, guests)
    taken.append(Measure(SECTION, name_of(guests, size), "deliveries/s", told, note))
    if size == LARGE:
        megabytes = tuple(rate * size / 1e6 for rate in told)
        taken.append(Measure(SECTION, megabytes_name(guests), "MB/s", megabytes, "of bodies, to all guests"))


async def _bare(plan: Plan, guests: int, size: int, taken: list[Measure]) -> None:
    most = plan.count(50_000 if size == SMALL else 5_000, _WARM_UP)
    async with bare_star(guests, size + AROUND) as fleet:
        outcomes = await run_several(fleet, 1, plan, most)
    told = rates(outcomes, guests)
    taken.append(Measure(SECTION, ceiling_name(guests, size), "deliveries/s", told, "one write each"))
    if size == LARGE:
        megabytes = tuple(rate * (size + AROUND) / 1e6 for rate in told)
        taken.append(Measure(SECTION, bare_megabytes_name(guests), "MB/s", megabytes, "to all links"))


async def _stream(plan: Plan, taken: list[Measure]) -> None:
    async with nodes(ONE, None, 1) as fleet:
        outcomes = await run_several(fleet, AT_ONCE, plan, plan.count(20_000, AT_ONCE))
    told = tuple(outcome.deliveries_per_second for outcome in outcomes)
    taken.append(Measure(SECTION, STREAM, "deliveries/s", told, note_of(outcomes, 1)))


async def _all(plan: Plan) -> list[Measure]:
    checks = tuple(checks_per_second(plan.seconds) for _ in range(plan.runs))
    taken = [Measure(SECTION, CHECKS, "1/s", checks, "one core")]
    parts = [(STREAM, _stream(plan, taken))]
    for guests in (1, plan.count(MANY, 3)):
        for size in (SMALL, LARGE):
            parts.append((name_of(guests, size), _said(plan, guests, size, taken)))
            parts.append((ceiling_name(guests, size), _bare(plan, guests, size, taken)))
    with contextlib.ExitStack() as unrun:
        for _, part in parts:
            unrun.callback(part.close)
        for name, part in parts:
            try:
                await part
            except WorkerFailed as error:
                taken.append(failure(SECTION, name, error))
    return taken


def measure(plan: Plan) -> list[Measure]:
    """All of it."""
    return asyncio.run(_all(plan))
