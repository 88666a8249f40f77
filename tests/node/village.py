"""Nodes on real sockets that share a room."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from linnet.node.config import NodeConfig, NodeSection, RelaySection
from linnet.rooms.config import RelayPolicy, RoomsConfig

LIMIT = 60.0
QUICK = RoomsConfig(receipt_delay=0.05, announce_delay=0.1, recovery_delay=0.1)
R = TypeVar("R")


def member(label: str) -> NodeConfig:
    """Someone who does not wait for long."""
    return NodeConfig(node=NodeSection(label=label), rooms=QUICK)


def relay(label: str = "relay") -> NodeConfig:
    """A relay of anyone's rooms."""
    section = RelaySection(enabled=True, policy=RelayPolicy.OPEN, fetch_timeout=0.1)
    return NodeConfig(node=NodeSection(label=label), rooms=QUICK, relay=section)


async def until(look: Callable[[], Awaitable[R]], holds: Callable[[R], bool]) -> R:
    """Look again and again until what is seen holds."""
    async with asyncio.timeout(LIMIT):
        while True:
            seen = await look()
            if holds(seen):
                return seen
            await asyncio.sleep(0.02)
