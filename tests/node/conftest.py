from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from tests.net.live import PIPES

from linnet.net.config import NetConfig
from linnet.node.config import NodeConfig, NodeSection, StorageSection, TrackerSection
from linnet.node.library import Node

STREAM = "weather"
NET = NetConfig(linger=0.5)


@pytest.fixture
async def hub() -> AsyncIterator[Node]:
    """A node that tracks, and keeps one stream."""
    config = NodeConfig(
        node=NodeSection(listen=PIPES),
        tracker=TrackerSection(enabled=True),
        storage=(StorageSection(STREAM),),
        net=NET,
    )
    async with Node(config=config) as node:
        yield node


@pytest.fixture
def member_config(hub: Node) -> NodeConfig:
    """How a node joins the network of the hub."""
    return NodeConfig(node=NodeSection(listen=PIPES, trackers=(hub.address,)), net=NET)
