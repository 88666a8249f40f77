"""Attacks on the memory of a node."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from tests.attacks.victim import victim
from tests.net.live import named_key
from tests.net.strangers import raw_link

from linnet.core.limits import KIB, MIB
from linnet.net.config import NetConfig
from linnet.wire.frame import frame

SOAK = bool(os.environ.get("LINNET_SOAK"))
LINKS = 400 if SOAK else 200
REST = LINKS * MIB
"""What links cost besides: TLS has buffers of its own, and so have waves that are just over."""


async def test_unfinished_frames_take_no_more_memory_than_their_budget(tmp_path: Path) -> None:
    begun = frame(bytes(1 * MIB))[: 1000 * KIB]
    async with victim(tmp_path / "home") as node:
        links = []
        for number in range(LINKS):
            link = await raw_link(node.hint, node.contact.peer, named_key(f"attacker {number}"))
            links.append(link)
        at_rest = node.memory
        for link in links:
            link.write(begun)
            await asyncio.sleep(0)
        await node.serves_newcomers()
        await asyncio.sleep(1.0)
        assert node.memory - at_rest < NetConfig().unfinished_bytes + REST
        for link in links:
            link.connection.abort()
        await node.serves_newcomers()
        assert node.memory - at_rest < REST, "what ended links held is free again"
