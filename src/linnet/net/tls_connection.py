"""One TLS connection over TCP, with or without WebSocket in it."""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.net.failure import LinkFailure
from linnet.net.transport import Consumer, Lane
from linnet.net.websocket import WebSocket


class TlsConnection(asyncio.Protocol):
    """A `Connection` over a transport of asyncio or uvloop."""

    is_ordered = True

    def __init__(self, websocket: WebSocket | None, buffer_bytes: int) -> None:
        self._websocket = websocket
        self._buffer_bytes = buffer_bytes
        self._early = bytearray()
        """The data received before there was a consumer."""
        self._consumer: Consumer | None = None
        self._opening: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport
        self._reason: Reason | None = None
        self.is_paused = False
        """See `Connection`."""
        self.remote_key: PeerId | None = None
        """See `Connection`. A dialling node has compared it with the server's certificate."""
        self.local_key: PeerId | None = None
        """See `Connection`."""
        self.remote_address: str | None = None
        """See `Connection`."""
        self.lost: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        """See `Connection`."""

    @property
    def tls(self) -> ssl.SSLObject:
        """The TLS state: version, certificate."""
        return cast(ssl.SSLObject, self._transport.get_extra_info("ssl_object"))

    @property
    def is_open(self) -> bool:
        """See `Connection`."""
        return self._reason is None and (self._websocket is None or self._websocket.is_open)

    @property
    def unsent(self) -> int:
        """See `Connection`."""
        return self._transport.get_write_buffer_size()

    async def wait_open(self) -> None:
        """Return when frames can be sent; `LinkFailure` if they never can."""
        while self._websocket is not None and not self._websocket.is_open:
            if self._reason is not None:
                raise LinkFailure(self._reason, "the connection was closed before it was open")
            self._opening = asyncio.get_running_loop().create_future()
            await self._opening
            self._opening = None

    def hand_over(self, consumer: Consumer) -> None:
        """See `Connection`."""
        is_first, self._consumer = self._consumer is None, consumer
        if self._early:
            early, self._early = bytes(self._early), bytearray()
            consumer.data_received(early)
        if self.lost.done():
            consumer.connection_lost(self._reason or Reason.REMOTE_CLOSED)
        elif is_first:
            self._transport.resume_reading()

    def write(self, data: bytes, lane: Lane = Lane.CONTROL) -> None:
        """See `Connection`."""
        if self._reason is not None:
            return
        if self._websocket is not None:
            data = self._websocket.wrap(data)
        self._transport.write(data)

    def pause_reading(self) -> None:
        """See `Connection`."""
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        """See `Connection`."""
        self._transport.resume_reading()

    def close(self, reason: Reason = Reason.NOT_NEEDED) -> None:
        """See `Connection`."""
        self._reason = self._reason or reason
        # Once only: before Python 3.11.4 a TLS transport that is closed twice fails at every call after.
        if not self._transport.is_closing():
            self._transport.close()

    def abort(self) -> None:
        """See `Connection`."""
        self._reason = self._reason or Reason.NOT_NEEDED
        if not self.lost.done():
            self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`; TLS is established."""
        # uvloop's transports are no subclasses of asyncio's, only alike.
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=self._buffer_bytes)
        if (name := transport.get_extra_info("peername")) is not None:  # None: the peer is gone already.
            host, port = name[:2]
            self.remote_address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
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
                self._wake()
                return
            self._send_own()
        if self._consumer is not None:
            if data:
                self._consumer.data_received(data)
            return
        if data:
            self._early += data
            self._transport.pause_reading()
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        if self._reason is None:
            self._reason = Reason.TLS_FAILED if isinstance(exc, ssl.SSLError) else Reason.REMOTE_CLOSED
        if not self.lost.done():
            self.lost.set_result(None)
        self._wake()
        consumer, self._consumer = self._consumer, None
        if consumer is not None:
            consumer.connection_lost(self._reason)

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self.is_paused = True

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self.is_paused = False
        if self._consumer is not None:
            self._consumer.writable()

    def _wake(self) -> None:
        if self._opening is not None and not self._opening.done():
            self._opening.set_result(None)

    def _send_own(self) -> None:
        if self._websocket is None:
            return
        own = self._websocket.to_send()
        if not own:
            return
        if self.is_paused:
            # Endless pings from a peer that never reads the answers.
            self._reason = self._reason or Reason.SLOW_PEER
            self.abort()
            return
        self._transport.write(own)
