"""Two nodes count together. Run it: python -m examples.counter"""

from __future__ import annotations

import asyncio

from examples.counter import COUNTER, AddToCounter, ExamineCounter, OpenCounter

from linnet import Node, NodeConfig, NodeSection, TrackerSection


async def main() -> None:
    """Let both add, and wait until both read the sum."""
    async with Node(config=NodeConfig(tracker=TrackerSection(enabled=True)), protocols=[COUNTER]) as ada:
        config = NodeConfig(node=NodeSection(trackers=(ada.address,)))
        async with Node(config=config, protocols=[COUNTER]) as bea:
            for node, amount in ((ada, 3), (bea, 4)):
                await node.ask(OpenCounter("visitors"))
                await node.ask(AddToCounter("visitors", amount))
            for name, node in (("ada", ada), ("bea", bea)):
                while (status := await node.ask(ExamineCounter("visitors"))).value < 7:  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
                print(f"{name} reads {status.value}: {[share.total for share in status.shares]} by device")


if __name__ == "__main__":
    asyncio.run(main())
