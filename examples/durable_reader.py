"""Stop a reader and start it again: a durable subscription resumes after the last handled event.

The reader has a home, so its position survives the process. A storage node keeps the events it misses.
Run it: python examples/durable_reader.py
"""

from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from linnet import Node, NodeConfig, NodeSection, StorageSection, TrackerSection
from linnet.node.home import init


async def read(home: Path, count: int) -> list[str]:
    """Handle this number of events, like a program that runs now and then."""
    texts: list[str] = []
    # The name makes it durable. `since=0` matters only the first time: later it resumes at its position.
    async with Node(home) as reader, reader.subscribe("log", since=0, name="archiver") as log:
        print("resumed" if log.resumed else "new", end=": ")
        async for event in log:
            texts.append(event.body.decode())
            if len(texts) == count:
                await log.acknowledge()
                break
    print(", ".join(texts))
    return texts


async def main() -> None:
    keeper = NodeConfig(tracker=TrackerSection(enabled=True), storage=(StorageSection("log"),))
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory, "reader")
        async with Node(config=keeper) as server:
            init(
                home, datetime.now(UTC).timestamp(), NodeConfig(node=NodeSection(trackers=(server.address,)))
            )
            await server.publish("log", ["one", "two", "three"])
            first = await read(home, 2)
            await server.publish("log", ["four", "five"])  # while no reader runs
            rest = await read(home, 3)
    print("nothing lost, nothing twice:", first + rest == ["one", "two", "three", "four", "five"])


if __name__ == "__main__":
    asyncio.run(main())
