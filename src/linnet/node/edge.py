"""The edge, as a program asks about it: our proxies, our clients, and sleep.

::

    async with Node(config=NodeConfig(edge=EdgeSection(proxies=(address,)))) as node:
        await node.edge.sleep()
        await node.edge.wake()
"""

from __future__ import annotations

from linnet.delivery.commands import Done
from linnet.edge.proxy_commands import EdgeStatus, ExamineEdge, Sleep, Wake
from linnet.node.answers import expected
from linnet.node.batching import Ask


class NodeEdge:
    """The edge at one node. Everything raises `Refused` with why it cannot be."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def status(self) -> EdgeStatus:
        """Our proxies, and those whom this node serves as theirs."""
        return expected(await self._ask(ExamineEdge()), EdgeStatus)

    async def sleep(self) -> None:
        """Let go of all links until `wake`; what is said meanwhile waits at the proxies."""
        expected(await self._ask(Sleep()), Done)

    async def wake(self) -> None:
        """Turn to the proxies again."""
        expected(await self._ask(Wake()), Done)
