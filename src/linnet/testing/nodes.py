"""Whole nodes in memory: started for one test, joined by pipes instead of sockets."""

from __future__ import annotations

import itertools
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from msgspec.structs import replace

from linnet.identity.keys import SigningKey
from linnet.net.config import NetConfig
from linnet.net.pipe import PipeTransport
from linnet.net.transport import Transport
from linnet.node.config import NodeConfig
from linnet.node.library import Node
from linnet.sim.seeded_random import named_luck

PIPES = ("pipe://localhost:0",)
"""Where a node in memory listens."""


@asynccontextmanager
async def nodes_in_memory(
    count: int, config: NodeConfig | None = None, seed: int | None = None
) -> AsyncIterator[tuple[Node, ...]]:
    """Start so many nodes without homes, each with a link to the first, which is the tracker of all.

    They reach each other alone: no node opens a socket. `config` stands for everything but addresses and
    trackers. With a `seed` pipes deliver data out of order, as a transport without order may.
    """
    numbers = itertools.count()

    def make_transports(key: SigningKey, net: NetConfig) -> Sequence[Transport]:
        luck = None if seed is None else named_luck(seed, f"pipe/{next(numbers)}")
        return [PipeTransport(key, luck)]

    asked = config or NodeConfig()
    here = replace(asked.node, listen=PIPES, trackers=())
    tracking = replace(asked, node=here, tracker=replace(asked.tracker, enabled=True))
    async with AsyncExitStack() as stack:
        first = await stack.enter_async_context(Node(config=tracking, transports=make_transports))
        known = replace(asked, node=replace(here, trackers=(first.address,)))
        nodes = [first]
        for _ in range(count - 1):
            node = await stack.enter_async_context(Node(config=known, transports=make_transports))
            await node.connect(first.address)
            nodes.append(node)
        yield tuple(nodes)
