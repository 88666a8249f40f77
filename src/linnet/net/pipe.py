"""Pipes in memory between nodes of one process: ``pipe://name:number``.

For tests and for programs with several nodes. Nothing is encrypted, since nothing leaves the process; each
end passes its key to the other, and only `Hello` is exchanged. With `luck` a pipe delivers data out of order,
as transports without an order may.

All nodes of one event loop share the names. Number 0 stands for a free one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from itertools import cycle
from random import Random

from linnet.core.ids import PeerId
from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.net.address import Address, parse_address
from linnet.net.failure import LinkFailure
from linnet.net.transport import Consumer, Incoming, Lane
from linnet.wire.frame import HEADER_BYTES

PIPE = "pipe"

HIGH_MARK = 256 * KIB
"""The bytes on their way to one end past which the other end is paused; it resumes at half of them."""

_numbers = cycle(range(1, 65_536))
"""Free numbers, given in turn: a dial to a name that was freed must not reach the next holder."""

_listeners: dict[tuple[str, int], PipeListener] = {}


class PipeTransport:
    """The pipes of one node."""

    schemes = (PIPE,)

    def __init__(self, key: SigningKey, luck: Random | None = None) -> None:
        """With `luck`, data of this node and of the nodes that it dials arrive in any order."""
        self._key = PeerId(key.public)
        self._luck = luck

    async def resolve(self, hint: str) -> list[str]:
        """See `Transport`."""
        return [str(parse_address(hint))]

    async def dial(self, hint: str, expected: PeerId) -> PipeConnection:
        """See `Transport`."""
        address = parse_address(hint)
        listener = _listeners.get((address.host, address.port))
        if listener is None:
            raise LinkFailure(Reason.CONNECTION_REFUSED, f"nothing listens at {address}")
        if listener.key != expected:
            raise LinkFailure(Reason.WRONG_KEY, "another device answers at this address")
        incoming = PipeIncoming(self._key, listener.key, f"{PIPE}:{self._key.hex()[:8]}", self._luck)
        listener.offer(incoming)
        try:
            taken = await incoming.taken
        except asyncio.CancelledError:
            incoming.withdraw()
            raise
        if isinstance(taken, LinkFailure):
            raise taken
        return taken

    def listen(self, hint: str) -> PipeListener:
        """See `Transport`."""
        address = parse_address(hint)
        host, port = address.host, address.port
        if not port:
            port = next(number for number in _numbers if (host, number) not in _listeners)
        if (host, port) in _listeners:
            raise LinkFailure(Reason.NO_ADDRESS, f"cannot listen at {address}: it is taken")
        listener = PipeListener(Address(PIPE, host, port), self._key)
        _listeners[host, port] = listener
        return listener


class PipeListener:
    """A name at which one node can be dialled."""

    def __init__(self, address: Address, key: PeerId) -> None:
        self.address = address
        """The address, with the number that was given."""
        self.key = key
        """The key of the listening node."""
        self._accept: Callable[[Incoming], None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[PipeIncoming] = deque()

    @property
    def hint(self) -> str:
        """See `TransportListener`."""
        return str(self.address)

    def offer(self, incoming: PipeIncoming) -> None:
        """Hand a stranger over, or keep it until `start` is called."""
        if self._loop not in (None, asyncio.get_running_loop()):
            raise LinkFailure(Reason.UNREACHABLE, f"{self.address} is in another event loop")
        self._waiting.append(incoming)
        if self._accept is not None:
            asyncio.get_running_loop().call_soon(self._hand_over)

    def start(self, accept: Callable[[Incoming], None], failed: Callable[[OSError], None]) -> None:
        """See `TransportListener`."""
        self._accept = accept
        self._loop = asyncio.get_running_loop()
        self._loop.call_soon(self._hand_over)

    def stop(self) -> None:
        """See `TransportListener`."""
        self._accept = None

    def close(self) -> None:
        """See `TransportListener`."""
        self.stop()
        if _listeners.get((self.address.host, self.address.port)) is self:
            del _listeners[self.address.host, self.address.port]
        while self._waiting:
            self._waiting.popleft().refuse()

    def _hand_over(self) -> None:
        while self._waiting and self._accept is not None:
            self._accept(self._waiting.popleft())


class PipeIncoming:
    """A stranger that dialled a name."""

    def __init__(self, client: PeerId, server: PeerId, remote_address: str, luck: Random | None) -> None:
        self.remote_address = remote_address
        """See `Incoming`."""
        self.taken: asyncio.Future[PipeConnection | LinkFailure] = asyncio.get_running_loop().create_future()
        """The client's end, once the server has taken the other; or the failure if it has not."""
        self._client, self._server = PipeConnection.make_pair(client, server, luck)
        self._is_taken = False

    async def establish(self) -> PipeConnection:
        """See `Incoming`."""
        self._is_taken = True
        if self.taken.done():
            raise LinkFailure(Reason.REMOTE_CLOSED, "the client withdrew its dial")
        self.taken.set_result(self._client)
        return self._server

    def refuse(self) -> None:
        """See `Incoming`."""
        if not self._is_taken and not self.taken.done():
            failure = LinkFailure(Reason.CONNECTION_REFUSED, f"{self.remote_address} was sent away")
            self.taken.set_result(failure)

    def withdraw(self) -> None:
        """Withdraw the client's dial."""
        self._client.abort()


class PipeConnection:
    """One end of a pipe."""

    def __init__(self, local_key: PeerId, remote_key: PeerId, luck: Random | None) -> None:
        self.local_key: PeerId | None = local_key
        """See `Connection`."""
        self.remote_key: PeerId | None = remote_key
        """See `Connection`."""
        self.remote_address: str | None = None
        """See `Connection`: names are free."""
        self.is_ordered = luck is None
        """See `Connection`."""
        self.is_paused = False
        """See `Connection`."""
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[None] = self._loop.create_future()
        """See `Connection`."""
        self._luck = luck
        self._other: PipeConnection
        self._consumer: Consumer | None = None
        self._arriving: deque[tuple[bytes, Lane]] = deque()
        self._arriving_bytes = 0
        self._is_reading = True
        self._is_scheduled = False
        self._reason: Reason | None = None

    @classmethod
    def make_pair(
        cls, client: PeerId, server: PeerId, luck: Random | None = None
    ) -> tuple[PipeConnection, PipeConnection]:
        """Return both ends of a new pipe: the client's and the server's."""
        near, far = cls(client, server, luck), cls(server, client, luck)
        near._other, far._other = far, near
        return near, far

    @property
    def is_open(self) -> bool:
        """See `Connection`."""
        return self._reason is None

    @property
    def unsent(self) -> int:
        """See `Connection`."""
        return self._other._arriving_bytes

    def write(self, data: bytes, lane: Lane = Lane.CONTROL) -> None:
        """See `Connection`."""
        if self._reason is None:
            self._other._receive(data, lane)
            self.is_paused = self.unsent > HIGH_MARK

    def hand_over(self, consumer: Consumer) -> None:
        """See `Connection`."""
        self._consumer = consumer
        if self.lost.done():
            consumer.connection_lost(self._reason or Reason.REMOTE_CLOSED)
        else:
            self._deliver_soon()

    def pause_reading(self) -> None:
        """See `Connection`."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """See `Connection`."""
        self._is_reading = True
        self._deliver_soon()

    def close(self, reason: Reason = Reason.NOT_NEEDED) -> None:
        """See `Connection`."""
        if self._reason is None:
            self._reason = reason
            self._drop_arriving()
            # Data that we wrote go first: the other end looks at this when it has delivered everything.
            self._other._deliver_soon()

    def abort(self) -> None:
        """See `Connection`."""
        self._reason = self._reason or Reason.NOT_NEEDED
        self._drop_arriving()
        self._other._drop_arriving()
        self._other._deliver_soon()

    def _receive(self, data: bytes, lane: Lane) -> None:
        if self._reason is not None:
            return
        frames = _split_frames(data) if self._luck is not None and lane is Lane.DATA else (data,)
        self._arriving.extend((each, lane) for each in frames)
        self._arriving_bytes += len(data)
        self._deliver_soon()

    def _deliver_soon(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._loop.call_soon(self._deliver)

    def _deliver(self) -> None:
        self._is_scheduled = False
        # No more than there is now: a consumer that answers at once gets a turn of its own.
        for _ in range(len(self._arriving)):
            if self._consumer is None or not self._is_reading or not self._arriving:
                break
            data = self._take()
            self._arriving_bytes -= len(data)
            self._other._note_taken()
            self._consumer.data_received(data)
        if self._arriving:
            if self._consumer is not None and self._is_reading:
                self._deliver_soon()
        elif self._other._reason is not None:
            self._lose_both()

    def _take(self) -> bytes:
        if self._luck is not None:
            run = next(
                (n for n, (_, lane) in enumerate(self._arriving) if lane is not Lane.DATA),
                len(self._arriving),
            )
            if run:
                chosen = self._luck.randrange(run)
                self._arriving[0], self._arriving[chosen] = self._arriving[chosen], self._arriving[0]
        return self._arriving.popleft()[0]

    def _note_taken(self) -> None:
        if self.is_paused and self.unsent <= HIGH_MARK // 2:
            self._loop.call_soon(self._resume_writing)

    def _resume_writing(self) -> None:
        if self.is_paused and self._reason is None and self.unsent <= HIGH_MARK // 2:
            self.is_paused = False
            if self._consumer is not None:
                self._consumer.writable()

    def _drop_arriving(self) -> None:
        self._arriving.clear()
        self._arriving_bytes = 0

    def _lose_both(self) -> None:
        for end in (self, self._other):
            if not end.lost.done():
                end._reason = end._reason or Reason.REMOTE_CLOSED
                end.lost.set_result(None)
                if end._consumer is not None:
                    end._consumer.connection_lost(end._reason)


def _split_frames(data: bytes) -> list[bytes]:
    frames: list[bytes] = []
    start = 0
    while start < len(data):
        end = start + HEADER_BYTES + int.from_bytes(data[start : start + HEADER_BYTES], "big")
        frames.append(data[start:end])
        start = end
    return frames
