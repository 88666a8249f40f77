"""Where a node can be dialled. Ports are taken first, so that a node knows its addresses at birth."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable, Sequence

from linnet.core.errors import Refused
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.net.address import Address, Scheme, parse_address
from linnet.net.channel import Channel
from linnet.net.config import NetConfig
from linnet.net.failure import LinkFailure
from linnet.net.tls import cut_short, server_context
from linnet.net.websocket import WebSocket

LOOPBACK = ("tls://127.0.0.1:0",)
"""Where a node listens if nobody says otherwise: only for this machine, at a free port."""

Taken = Callable[[socket.socket, str], None]
"""Told of a connection, and from where it came."""

_AT_ONCE = 64
"""Connections that are taken in one loop turn: a mass join should not hold up those who have joined."""

_FIRST_BACKLOG = 128
"""Connections that may wait until the node that took the port runs."""

_PAUSE = 0.1
"""Seconds until accepting is tried again when the system has no room for one more connection."""


class Listener:
    """One bound port. A driver accepts links from it."""

    def __init__(self, address: Address, bound: socket.socket, context: ssl.SSLContext) -> None:
        self.address = address
        """With the port that the system gave."""
        self._socket = bound
        self._context = context
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def hint(self) -> str:
        """What others dial, as far as this machine knows."""
        return str(self.address)

    def start(self, backlog: int, taken: Taken, failed: Callable[[OSError], None]) -> None:
        """Hand over every connection with where it came from, until `stop`.

        What cannot be accepted is told, and tried again after a pause. By a callback and not by a
        task: a task that is cancelled between an accept and its result loses the connection.
        """
        self._taken, self._failed = taken, failed
        self._socket.listen(backlog)
        self._socket.setblocking(False)
        self._resume()

    def _resume(self) -> None:
        if self.is_open:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._socket.fileno(), self._accept)

    def _accept(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                accepted, origin = self._socket.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self.stop()
                self._failed(error)
                asyncio.get_running_loop().call_later(_PAUSE, self._resume)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._taken(accepted, f"{origin[0]}:{origin[1]}")

    def stop(self) -> None:
        """Take no more connections for now."""
        if self._loop is not None and self.is_open:
            self._loop.remove_reader(self._socket.fileno())
        self._loop = None

    async def encrypt(self, accepted: socket.socket, config: NetConfig) -> Channel:
        """TLS on an accepted connection; `LinkFailure` if the stranger cannot."""
        loop = asyncio.get_running_loop()
        channel = Channel(WebSocket() if self.address.scheme is Scheme.WSS else None, config.write_bytes)
        try:
            # What uvloop returns here is not the protocol that it was given.
            await loop.connect_accepted_socket(
                lambda: channel,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=config.handshake_timeout,
            )
        except BaseException as error:
            cut_short(accepted, error)
            if isinstance(error, OSError | RuntimeError):
                raise LinkFailure(Reason.TLS_FAILED, f"no TLS 1.3: {error!r}") from error
            raise
        return channel

    @property
    def is_open(self) -> bool:
        """Whether connections can still come."""
        return self._socket.fileno() >= 0

    def close(self) -> None:
        """Give the port back."""
        self.stop()
        self._socket.close()


def listen(addresses: Sequence[str], key: SigningKey) -> list[Listener]:
    """Take these ports for this device; port 0 takes a free one.

    `Refused` names the address that cannot be had.
    """
    context = server_context(key)
    listeners: list[Listener] = []
    try:
        for text in addresses:
            listeners.append(_bind(text, context))  # noqa: PERF401 - those before a failure are closed
    except LinkFailure as failure:
        for listener in listeners:
            listener.close()
        raise Refused(failure.reason, failure.detail) from failure
    return listeners


def _bind(text: str, context: ssl.SSLContext) -> Listener:
    address = parse_address(text)
    try:
        family, kind, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind)
    except OSError as error:
        raise LinkFailure(Reason.NO_ADDRESS, f"cannot listen at {text}: {error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)
        bound.bind(place)
        # At once: until somebody listens at it, another process may bind the same port.
        bound.listen(_FIRST_BACKLOG)
    except OSError as error:
        bound.close()
        raise LinkFailure(Reason.NO_ADDRESS, f"cannot listen at {text}: {error}") from error
    port = int(bound.getsockname()[1])
    return Listener(Address(address.scheme, address.host, port), bound, context)
