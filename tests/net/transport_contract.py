"""What every transport must do, whatever carries it: the bodies of `test_transport_contract`.

A `Wire` says how one transport is set up; everything else here knows only `linnet.net.transport`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from random import Random

from tests.net.live import LIMIT, named_key

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.net.config import NetConfig
from linnet.net.pipe import PipeTransport
from linnet.net.tls_transport import TlsTransport
from linnet.net.transport import Connection, Incoming, Transport, TransportListener
from linnet.wire.frame import FrameReader, frame

CLIENT, SERVER, OTHER = named_key("client"), named_key("server"), named_key("other")
SERVERS = PeerId(SERVER.public)

Make = Callable[[SigningKey], Transport]

WIRES: dict[str, tuple[str, Make]] = {
    "tls": ("tls://127.0.0.1:0", lambda key: TlsTransport(key, NetConfig())),
    "wss": ("wss://127.0.0.1:0", lambda key: TlsTransport(key, NetConfig())),
    "pipe": ("pipe://contract:0", PipeTransport),
    "unordered pipe": ("pipe://contract:0", lambda key: PipeTransport(key, Random(7))),
}
"""Where a server listens, and how either end makes its transport."""


class Reader:
    """A consumer that remembers what came, and can be waited for."""

    def __init__(self, connection: Connection, reads: bool = True) -> None:
        self.connection = connection
        self.frames: list[bytes] = []
        self.raw = bytearray()
        self.ends: list[Reason] = []
        self.writable_count = 0
        self._frames = FrameReader()
        self._happened = asyncio.Event()
        connection.hand_over(self)
        if not reads:
            connection.pause_reading()

    def data_received(self, data: bytes) -> None:
        assert self.ends == [], "bytes after the end"
        self.raw += data
        self.frames += self._frames.feed(data)
        self._happened.set()

    def writable(self) -> None:
        self.writable_count += 1
        self._happened.set()

    def connection_lost(self, reason: Reason) -> None:
        self.ends.append(reason)
        self._happened.set()

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(LIMIT):
            while not holds():
                self._happened.clear()
                await self._happened.wait()

    async def until_frames(self, count: int) -> None:
        await self.until(lambda: len(self.frames) >= count)

    async def until_lost(self) -> Reason:
        await self.until(lambda: bool(self.ends))
        assert self.connection.lost.done()
        assert not self.connection.is_open
        return self.ends[0]


class Server:
    """A listener whose strangers a test takes by hand."""

    def __init__(self, wire: str, key: SigningKey = SERVER) -> None:
        where, make = WIRES[wire]
        self.make = make
        self.listener: TransportListener = make(key).listen(where)
        self.strangers: asyncio.Queue[Incoming] = asyncio.Queue()
        self.failures: list[OSError] = []
        self.listener.start(self.strangers.put_nowait, self.failures.append)

    @property
    def hint(self) -> str:
        return self.listener.hint

    async def dial(self, expected: PeerId = SERVERS) -> Connection:
        transport = self.make(CLIENT)
        [place] = await transport.resolve(self.hint)
        return await transport.dial(place, expected)

    async def connect(self) -> tuple[Connection, Connection]:
        """Both ends of a new connection: the client's and the server's."""
        async with asyncio.timeout(LIMIT), asyncio.TaskGroup() as group:
            near = group.create_task(self.dial())
            far = group.create_task(self.accept())
        return near.result(), far.result()

    async def accept(self) -> Connection:
        return await (await self.strangers.get()).establish()


@asynccontextmanager
async def connected(wire: str) -> AsyncIterator[tuple[Connection, Connection]]:
    """Two ends; whatever the test does to them, both are gone afterwards."""
    server = Server(wire)
    near, far = await server.connect()
    try:
        yield near, far
    finally:
        near.abort()
        far.abort()
        server.listener.close()
        async with asyncio.timeout(LIMIT):
            await asyncio.wait((near.lost, far.lost))


async def turns(count: int = 10) -> None:
    """Let everything happen that is ready to."""
    for _ in range(count):
        await asyncio.sleep(0)


async def fill(connection: Connection, most: int = 64 << 20) -> int:
    """Write until it is paused for good; how many frames of 64 KiB that took."""
    written = 0
    while written << 16 < most:
        while not connection.is_paused:
            connection.write(frame(written.to_bytes(4, "big") + bytes(65_528)))
            written += 1
        before = connection.unsent
        await turns(100)  # The system may still take some of it.
        if connection.unsent == before:
            return written
    raise AssertionError("nothing ever held it up")


async def fails(work: Awaitable[object]) -> object:
    """What it raised, or what it gave."""
    try:
        async with asyncio.timeout(LIMIT):
            return await work
    except Exception as error:
        return error
