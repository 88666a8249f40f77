"""Nodes that share a room, over pipes: what is tested with them is not TLS."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tests.net.live import PIPES

from linnet.node.config import NodeConfig, NodeSection, RelaySection
from linnet.rooms.config import RelayPolicy, RoomsConfig

LIMIT = 60.0
QUICK = RoomsConfig(receipt_delay=0.05, announce_delay=0.1, recovery_delay=0.1)
R = TypeVar("R")


def member(label: str, listen: tuple[str, ...] = PIPES) -> NodeConfig:
    """Someone who does not wait for long."""
    return NodeConfig(node=NodeSection(label=label, listen=listen), rooms=QUICK)


def relay(label: str = "relay", listen: tuple[str, ...] = PIPES) -> NodeConfig:
    """A relay of anyone's rooms."""
    section = RelaySection(enabled=True, policy=RelayPolicy.OPEN, stamp_bits=4, fetch_timeout=0.1)
    return NodeConfig(node=NodeSection(label=label, listen=listen), rooms=QUICK, relay=section)


async def until(look: Callable[[], Awaitable[R]], holds: Callable[[R], bool]) -> R:
    """Look again and again until what is seen holds."""
    async with asyncio.timeout(LIMIT):
        while True:
            seen = await look()
            if holds(seen):
                return seen
            await asyncio.sleep(0.02)
