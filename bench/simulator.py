"""The simulator: messages handled a second and core, and memory of simulated nodes."""

from __future__ import annotations

import asyncio

from bench.crew import Crew
from bench.results import Measure, Plan
from bench.workers.simulation import SimulationRole
from bench.workers.talk import Simulated, Weighed

SECTION = "simulator"
HANDLED = "messages handled, per core"
_MIB = 2**20


async def _simulate(role: SimulationRole) -> Simulated:
    async with Crew() as crew:
        return await (await crew.start("simulation", role)).hear(Simulated)


async def _weigh(role: SimulationRole) -> Weighed:
    async with Crew() as crew:
        return await (await crew.start("simulation", role)).hear(Weighed)


def measure(plan: Plan) -> list[Measure]:
    """All of it, each run in a process of its own."""
    speed = SimulationRole(plan.count(512, 64), plan.count(200, 50), weigh=False)
    runs = [asyncio.run(_simulate(speed)) for _ in range(plan.runs)]
    size = SimulationRole(plan.count(1_000, 200), 50, weigh=True)
    weighed = asyncio.run(_weigh(size))
    share = 1_000 / size.nodes / _MIB
    shape = f"{speed.nodes} nodes, d=4, {runs[0].received:,} receives, full trace"
    per_core = tuple(run.received / run.cpu_seconds for run in runs)
    by_clock = tuple(run.received / run.wall_seconds for run in runs)
    idle, after = (weighed.idle - weighed.empty) * share, (weighed.after - weighed.empty) * share
    messages = f"memory of 1,000 nodes, after {size.messages} messages"
    return [
        Measure(SECTION, HANDLED, "1/s", per_core, shape),
        Measure(SECTION, "messages handled, wall clock", "1/s", by_clock),
        Measure(SECTION, "memory of 1,000 nodes, idle", "MiB", (idle,), "joined, without a trace"),
        Measure(SECTION, messages, "MiB", (after,), "without a trace"),
    ]
