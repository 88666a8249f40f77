"""A worker that is what `linnet up` runs: a node with store, trace and control API, and nothing to do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec import Struct

from bench.workers.talk import Ready, orders, role, say
from linnet.net.clock import Clock
from linnet.node import home as homes
from linnet.node.running import run, run_node


class IdleRole(Struct, frozen=True):
    """Where to make its home."""

    home: str


async def main(given: IdleRole) -> None:
    homes.init(Path(given.home), Clock().now())
    async with asyncio.TaskGroup() as group:
        running = group.create_task(
            run_node(Path(given.home), ready=lambda node: say(Ready(node.address))), name="node"
        )
        async for _ in orders():
            pass
        running.cancel()


if __name__ == "__main__":
    run(main(role(IdleRole)))
