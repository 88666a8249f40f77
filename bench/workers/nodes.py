"""The nodes of the workers: how they are configured, and when they are linked."""

from __future__ import annotations

import asyncio
from pathlib import Path

from linnet.core.limits import BURST_EVENTS
from linnet.delivery.config import DeliveryConfig
from linnet.net.clock import Clock
from linnet.node import home as homes
from linnet.node.config import NodeConfig, NodeSection
from linnet.node.library import Node

STREAM = "bench"
BODY_BYTES = 256
"""Bytes of a message: a stamp, and bytes that mean nothing."""

STAMP_BYTES = 8
_LOOK_PERIOD = 0.05


def member(tracker: str, home: str, burst: int = BURST_EVENTS) -> Node:
    """A node that follows a tracker: with a store if it is given the path of a home to make."""
    node, delivery = NodeSection(trackers=(tracker,)), DeliveryConfig(burst_events=burst)
    config = NodeConfig(node=node, delivery=delivery)
    if not home:
        return Node(config=config)
    homes.init(Path(home), Clock().now(), config)
    return Node(home)


async def linked(node: Node, neighbors: int) -> None:
    """Wait until a node has so many neighbours in the stream."""
    while True:
        streams = (await node.status()).streams
        if any(len(stream.neighbors) >= neighbors for stream in streams):
            return
        await asyncio.sleep(_LOOK_PERIOD)
