"""Publish and subscribe with two nodes on this machine.

A tracker makes nodes of the same stream neighbours; here the first node is also a tracker.
Run it: python examples/publish_and_subscribe.py
"""

from __future__ import annotations

import asyncio

from linnet import Node, NodeConfig, NodeSection, TrackerSection


async def main() -> None:
    # Without a home a node has a new identity and keeps nothing on disk.
    async with Node(config=NodeConfig(tracker=TrackerSection(enabled=True))) as alice:
        known = NodeConfig(node=NodeSection(trackers=(alice.address,)))
        async with Node(config=known) as bob, bob.subscribe("weather") as weather:
            for text in ("rain", "sun", "rainbow"):
                outcome = await alice.publish("weather", text)
                print(f"alice said {text!r}, number {outcome.first}, to {outcome.neighbors} neighbours")
            heard = 0
            async for event in weather:
                print(f"bob heard {event.body.decode()!r}")
                heard += 1
                if heard == 3:
                    break


if __name__ == "__main__":
    asyncio.run(main())
