"""Sealed streams, as a program asks about them: who may read, and asking to be one of them.

::

    await owner.declare("me/news", Policy(), sealed=True)
    line = (await reader.sealed.request(stream)).line      # handed over by any way there is
    await owner.sealed.allow("me/news", line)
"""

from __future__ import annotations

from linnet.core.ids import AuthorId, DeviceId
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.streams.commands import (
    AllowReader,
    AskToRead,
    DisallowReader,
    ListReaders,
    ReadersAre,
    RequestIs,
)


class SealedStreams:
    """The sealed streams of one node. Everything raises `Refused` with why it cannot be."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def request(self, stream: str) -> RequestIs:
        """A line by which this device asks to read a stream. A new one replaces those that wait."""
        return expected(await self._ask(AskToRead(stream)), RequestIs)

    async def allow(self, stream: str, line: str, from_now: bool = False) -> ReadersAre:
        """Let the device in that made a line. `from_now`: it reads nothing that was said before."""
        return expected(await self._ask(AllowReader(stream, line, from_now)), ReadersAre)

    async def disallow(
        self, stream: str, person: AuthorId | None = None, device: DeviceId | None = None
    ) -> ReadersAre:
        """Put out a person with all devices, or one device; what is said from now on has a new key."""
        return expected(await self._ask(DisallowReader(stream, person, device)), ReadersAre)

    async def readers(self, stream: str) -> ReadersAre:
        """Who may read a stream that this device seals."""
        return expected(await self._ask(ListReaders(stream)), ReadersAre)
