"""Publish invented live feeds of stocks, weather and earthquakes to five subscribers by content.

Each subscriber states a predicate, and receives the events that satisfy it. Run it: python examples/feeds.py
"""

from __future__ import annotations

import asyncio
import csv
from contextlib import AsyncExitStack
from pathlib import Path

from linnet import Node, NodeConfig
from linnet.node.config import ContentSection, KademliaSection

ON = ContentSection(enabled=True)
FEEDS = {
    "stocks": 'stock/symbol="{symbol}"/price={price}/day={day}',
    "weather": 'weather/station="{station}"/rain={rain}/wind={wind}/day={day}',
    "quakes": "quake/strength={strength}/depth={depth}/at={{{latitude},{longitude}}}/time={time}",
}
WANTED = {
    "a trader": 'stock/symbol="LINN"/price[85,)',
    "a gardener": "weather/rain[5,)/day[2026-10-01,2026-10-08)",
    "a pilot": 'weather/station="NORTH"*/wind(10,)',
    "a rescuer": "quake/strength[4,)/at{36,-12,44,-6}",
    "a geologist": "quake/depth[40,)",
}


def settings(*known: str) -> NodeConfig:
    return NodeConfig(kademlia=KademliaSection(enabled=True, bootstrap=known), content=ON)


async def feed(node: Node, name: str) -> int:
    lines = Path(__file__).with_name("feeds").joinpath(f"{name}.csv").read_text().splitlines()[1:]
    said = (FEEDS[name].format(**record) for record in csv.DictReader(lines))
    outcomes = [await node.content.publish(text, name) for text in said]
    return sum(fate.delivered for each in outcomes for fate in each.fates)


async def main() -> None:
    async with asyncio.timeout(50), AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(Node(config=settings()))]
        for _ in range(4):
            nodes.append(await stack.enter_async_context(Node(config=settings(nodes[0].address))))
        wanted = [node.content.subscribe(text) for node, text in zip(nodes, WANTED.values(), strict=True)]
        for node, subscription in zip(nodes, wanted, strict=True):
            await subscription.open()
            await node.content.settled()
        handed = sum(await asyncio.gather(*map(feed, nodes, FEEDS)))
        for who, subscription in zip(WANTED, wanted, strict=True):
            print(f"{who} has {len(await subscription.take(36))} of 36: {subscription.predicate}")
        print(f"handed over, as the publishers were told: {handed}")


if __name__ == "__main__":
    asyncio.run(main())
