"""One encrypted connection: bytes in, bytes out, whatever carries them.

Until it becomes a link, frames are read from it one by one, small ones only. Then a `Consumer`
takes the bytes as they come.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import Protocol, cast

from linnet.core.limits import KIB
from linnet.core.reasons import Reason
from linnet.net.failure import LinkFailure
from linnet.net.websocket import WebSocket
from linnet.wire.frame import HEADER_BYTES

_HELD_BYTES = 64 * KIB
"""Bytes that a connection may send ahead before it is a link."""


class Consumer(Protocol):
    """Who gets what comes through a channel."""

    def data_received(self, data: bytes) -> None:
        """Bytes came."""

    def writable(self) -> None:
        """The transport takes bytes again."""

    def channel_lost(self, reason: Reason) -> None:
        """Nothing comes or goes any more. Called once."""


class Channel(asyncio.Protocol):
    """A TLS connection, with or without WebSocket in it."""

    def __init__(self, websocket: WebSocket | None, buffer_bytes: int) -> None:
        self._websocket = websocket
        self._buffer_bytes = buffer_bytes
        self._held = bytearray()
        self._consumer: Consumer | None = None
        self._arrival: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport
        self._reason: Reason | None = None
        self.is_paused = False
        """Whether the transport has enough bytes for now."""
        self.lan = b""
        """The key of a local network by which we dialled the other end, if it was there."""
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """Done when the connection is gone."""

    @property
    def tls(self) -> ssl.SSLObject:
        """The TLS state: version, certificate."""
        return cast(ssl.SSLObject, self._transport.get_extra_info("ssl_object"))

    @property
    def is_open(self) -> bool:
        """Whether frames can be sent."""
        return self._reason is None and (self._websocket is None or self._websocket.is_open)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`; TLS is established."""
        # uvloop's transports are no subclasses of asyncio's, only alike.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._buffer_bytes)
        self._send_own()

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._reason is not None:
            return
        if self._websocket is not None:
            try:
                data = self._websocket.feed(data)
            except LinkFailure as failure:
                self._send_own()
                self.close(failure.reason)
                return
            self._send_own()
        if self._consumer is not None:
            if data:
                self._consumer.data_received(data)
            return
        self._held += data
        if len(self._held) > _HELD_BYTES:
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._reason is None:
            self._reason = Reason.TLS_FAILED if isinstance(exc, ssl.SSLError) else Reason.REMOTE_CLOSED
        if not self.lost.done():
            self.lost.set_result(None)
        self._wake()
        if self._consumer is not None:
            self._consumer.channel_lost(self._reason)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self.is_paused = False
        if self._consumer is not None:
            self._consumer.writable()

    async def opened(self) -> None:
        """Return when the way is free for frames; `LinkFailure` if it never is."""
        while self._websocket is not None and not self._websocket.is_open:
            await self._more()

    async def read_frame(self, limit: int) -> bytes:
        """The next frame, before there is a consumer. `LinkFailure` if none comes or it is too long."""
        while True:
            if len(self._held) >= HEADER_BYTES:
                length = int.from_bytes(self._held[:HEADER_BYTES], "big")
                if length > limit:
                    raise LinkFailure(
                        Reason.OVERSIZED_FRAME, f"{length} bytes, at most {limit} are read here"
                    )
                end = HEADER_BYTES + length
                if len(self._held) >= end:
                    payload = bytes(self._held[HEADER_BYTES:end])
                    del self._held[:end]
                    return payload
            await self._more()

    def hand_over(self, consumer: Consumer) -> None:
        """From now on all bytes go to this consumer, first those that came already."""
        self._consumer = consumer
        held, self._held = bytes(self._held), bytearray()
        if held:
            consumer.data_received(held)
        if self.lost.done():
            consumer.channel_lost(self._reason or Reason.REMOTE_CLOSED)
        else:
            self._transport.resume_reading()

    def write(self, data: bytes) -> None:
        """Send these bytes, in one piece."""
        if self._websocket is not None:
            data = self._websocket.wrap(data)
        self._transport.write(data)

    @property
    def unsent(self) -> int:
        """Bytes that the transport holds."""
        return self._transport.get_write_buffer_size()

    def pause_reading(self) -> None:
        """Leave what comes in the hands of the system."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read again."""
        self._transport.resume_reading()

    def close(self, reason: Reason = Reason.NOT_NEEDED) -> None:
        """Send what was written, then close."""
        self._reason = self._reason or reason
        # Once only: before Python 3.11.4 a TLS transport that is closed twice fails at every call after.
        if not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """Close at once; nothing happens if the connection is gone."""
        self._reason = self._reason or Reason.NOT_NEEDED
        if not self.lost.done():
            self._transport.abort()

    async def _more(self) -> None:
        if self._reason is not None:
            raise LinkFailure(self._reason, "the connection was closed during the handshake")
        self._transport.resume_reading()
        self._arrival = asyncio.get_running_loop().create_future()
        await self._arrival
        self._arrival = None

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)

    def _send_own(self) -> None:
        if self._websocket is None:
            return
        own = self._websocket.to_send()
        if not own:
            return
        if self.is_paused:
            # Pings without end from someone who never reads the answers.
            self._reason = self._reason or Reason.SLOW_PEER
            self._transport.abort()
            return
        self._transport.write(own)
