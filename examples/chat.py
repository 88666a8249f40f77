"""Let two nodes chat: both publish to the same stream, and each prints the other's messages.

Run it: python examples/chat.py. It plays a short conversation and exits.
"""

from __future__ import annotations

import asyncio

from linnet import Node, NodeConfig, NodeSection, TrackerSection

CONVERSATION = {
    "ada": ["Did it arrive?", "And without a server?"],
    "bea": ["Yes.", "Without one: you are looking at both nodes."],
}


async def listen(name: str, node: Node, ready: asyncio.Event, turns: asyncio.Queue[str]) -> None:
    """Print the other node's messages. Each one received is a turn to answer."""
    heard = 0
    async with node.subscribe("chat") as chat:
        ready.set()
        async for event in chat:
            if event.author != node.author:
                print(f"{name} reads: {event.body.decode()}")
                turns.put_nowait(name)
                heard += 1
                if heard == 2:
                    return


async def talk(nodes: dict[str, Node], turns: asyncio.Queue[str]) -> None:
    """Let the node with the turn publish its next line."""
    lines = {name: iter(texts) for name, texts in CONVERSATION.items()}
    for _ in range(4):
        name = await turns.get()
        await nodes[name].publish("chat", next(lines[name]))


async def main() -> None:
    async with Node(config=NodeConfig(tracker=TrackerSection(enabled=True))) as ada:
        known = NodeConfig(node=NodeSection(trackers=(ada.address,)))
        async with Node(config=known) as bea, asyncio.TaskGroup() as tasks:
            nodes, turns = {"ada": ada, "bea": bea}, asyncio.Queue[str]()
            for name, node in nodes.items():
                ready = asyncio.Event()
                tasks.create_task(listen(name, node, ready, turns))
                await ready.wait()
            turns.put_nowait("ada")
            tasks.create_task(talk(nodes, turns))


if __name__ == "__main__":
    asyncio.run(main())
