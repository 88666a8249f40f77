"""Memory of an idle node process."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path

from bench.crew import Crew
from bench.fleet import ONE, nodes
from bench.results import Measure, Plan
from bench.workers.idle import IdleRole
from bench.workers.talk import Ready

SECTION = "memory"
_MIB = 2**20
_CALM_SECONDS = 1.0


async def _daemon(directory: Path) -> float:
    with tempfile.TemporaryDirectory(dir=directory) as below:
        async with Crew() as crew:
            worker = await crew.start("idle", IdleRole(str(Path(below) / "home")))
            await worker.hear(Ready)
            await asyncio.sleep(_CALM_SECONDS)
            return (worker.resident_bytes or 0) / _MIB


async def _library() -> float:
    async with nodes(ONE, None) as fleet:
        await asyncio.sleep(_CALM_SECONDS)
        return (fleet.receivers[0].resident_bytes or 0) / _MIB


def measure(plan: Plan) -> list[Measure]:
    """Both shapes of a node."""
    daemons = tuple(asyncio.run(_daemon(plan.directory)) for _ in range(plan.runs))
    libraries = tuple(asyncio.run(_library()) for _ in range(plan.count(2, 1)))
    return [
        Measure(SECTION, "idle node process", "MiB", daemons, "store, trace and control API; resident"),
        Measure(SECTION, "idle program with a node", "MiB", libraries, "subscribed, one link; resident"),
    ]
