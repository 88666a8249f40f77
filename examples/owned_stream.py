"""Publish in an owned stream: the owner decides who may publish, and every node enforces it.

The name of an owned stream begins with its owner's person id.
Run it: python examples/owned_stream.py
"""

from __future__ import annotations

import asyncio

from linnet import Node, NodeConfig, NodeSection, Policy, Refused, StorageSection, TrackerSection
from linnet.identity.text import Sort, to_text


async def main() -> None:
    async with Node(config=NodeConfig(tracker=TrackerSection(enabled=True))) as owner:
        news = f"{to_text(Sort.PERSON, owner.author)}/news"
        section = NodeSection(trackers=(owner.address,))
        async with Node(config=NodeConfig(node=section, storage=(StorageSection(news),))):
            friend, stranger = Node(config=NodeConfig(node=section)), Node(config=NodeConfig(node=section))
            async with friend, stranger:
                await owner.declare(news, Policy(publishers=(friend.author,)))
                outcome = await owner.publish(news, "The friend and I write here.", confirm=5)
                print("kept by", sum(fate.delivered_at is not None for fate in outcome.fates), "storage node")
                print("friend:", await hear_and_answer(friend, news))
                print("stranger:", await hear_and_answer(stranger, news))


async def hear_and_answer(node: Node, stream: str) -> str:
    """Read the stream from its beginning, and so learn the owner's rule; then try to publish."""
    async with node.subscribe(stream, since=0) as reading:
        event = await anext(aiter(reading))
        try:
            await node.publish(stream, "May I?")
        except Refused as refused:
            return f"heard {event.body.decode()!r}, and was refused: {refused.reason}"
        return f"heard {event.body.decode()!r}, and published"


if __name__ == "__main__":
    asyncio.run(main())
