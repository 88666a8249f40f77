"""TLS over TCP: ``tls://host:port``, with WebSocket in it ``wss://host:port``.

On a local network ``lan://KEY@host:port``, which is TLS with the key that was announced there instead of the
device's own; the client asks for it by name. The certificate proves the server's key, nothing the client's:
the handshake has to do that.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.edge.announcement import SCHEME as LAN
from linnet.identity.keys import SigningKey
from linnet.net.address import Address, parse_address, resolve_host
from linnet.net.config import NetConfig
from linnet.net.failure import LinkFailure, WrongKey
from linnet.net.tls import client_context, cut_short, server_context, server_key, server_name
from linnet.net.tls_connection import TlsConnection
from linnet.net.transport import Incoming
from linnet.net.websocket import WebSocket

TLS, WSS = "tls", "wss"

ShownKey = Callable[[ssl.SSLContext], PeerId | None]
"""Returns the key that was shown under a server context; None: it is no longer ours."""

_AT_ONCE = 64
"""The connections accepted in one loop turn: a mass join should not hold up the peers that have joined."""

_FIRST_BACKLOG = 128
"""The connections that may wait until the node that took the port runs."""

_PAUSE = 0.1
"""Seconds until accepting is tried again when the system has no room for one more connection."""


class TlsTransport:
    """TLS 1.3 over TCP as one device. See docs/adr/0004-link-authentication.md."""

    schemes = (TLS, WSS, LAN)

    def __init__(self, key: SigningKey, config: NetConfig) -> None:
        self._key = key
        self._config = config
        self._client = client_context()
        self._server: ssl.SSLContext | None = None

    async def resolve(self, hint: str) -> list[str]:
        """See `Transport`."""
        return [str(address) for address in await resolve_host(parse_address(hint))]

    async def dial(self, hint: str, expected: PeerId) -> TlsConnection:
        """See `Transport`."""
        address = parse_address(hint)
        connection = await encrypt(await open_socket(address), address, self._client, self._config)
        with _closed_on_error(connection):
            found = server_key(connection.tls.getpeercert(True))
            if found != (address.lan or expected):
                raise WrongKey(found)
            connection.remote_key = found
            await connection.wait_open()
        return connection

    def listen(self, hint: str) -> TlsListener:
        """See `Transport`."""
        address = parse_address(hint)
        if self._server is None:
            self._server = server_context(self._key)
        own = PeerId(self._key.public)
        bound = _bind(address)
        given = Address(address.scheme, address.host, int(bound.getsockname()[1]))
        return TlsListener(given, bound, self._server, lambda _: own, self._config)


class TlsListener:
    """A listener on one bound port."""

    def __init__(
        self,
        address: Address,
        bound: socket.socket,
        context: ssl.SSLContext,
        shown_key: ShownKey,
        config: NetConfig,
    ) -> None:
        self.address = address
        """The address, with the port that the system gave."""
        self._socket = bound
        self._context = context
        self._shown_key = shown_key
        self._config = config
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def hint(self) -> str:
        """See `TransportListener`."""
        return str(self.address)

    @property
    def is_open(self) -> bool:
        """Whether connections can still arrive."""
        return self._socket.fileno() >= 0

    def start(self, accept: Callable[[Incoming], None], failed: Callable[[OSError], None]) -> None:
        """See `TransportListener`.

        A failed accept is repeated after a pause. By a callback and not by a task: a task that is cancelled
        between an accept and its result loses the connection.
        """
        self._hand_over, self._tell_failure = accept, failed
        self._socket.listen(self._config.backlog)
        self._socket.setblocking(False)
        self._resume()

    def stop(self) -> None:
        """See `TransportListener`."""
        if self._loop is not None and self.is_open:
            self._loop.remove_reader(self._socket.fileno())
        self._loop = None

    def close(self) -> None:
        """See `TransportListener`."""
        self.stop()
        self._socket.close()

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
                self._tell_failure(error)
                asyncio.get_running_loop().call_later(_PAUSE, self._resume)
                return
            accepted.setblocking(False)
            accepted.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._hand_over(TlsIncoming(accepted, f"{origin[0]}:{origin[1]}", self._establish))

    async def _establish(self, accepted: socket.socket) -> TlsConnection:
        """Establish TLS on an accepted connection, and WebSocket if this listener speaks it."""
        websocket = WebSocket() if self.address.scheme == WSS else None
        connection = TlsConnection(websocket, self._config.write_bytes)
        try:
            # What uvloop returns here is not the protocol that it was given.
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._config.handshake_timeout,
            )
        except BaseException as error:
            cut_short(accepted, error)
            if isinstance(error, OSError | RuntimeError):
                raise LinkFailure(Reason.TLS_FAILED, f"no TLS 1.3: {error!r}") from error
            raise
        with _closed_on_error(connection):
            connection.local_key = self._shown_key(connection.tls.context)
            if connection.local_key is None:
                raise LinkFailure(Reason.WRONG_KEY, "we are called so no longer")
            await connection.wait_open()
        return connection


class TlsIncoming:
    """A TCP connection that a stranger opened to us."""

    def __init__(
        self,
        accepted: socket.socket,
        remote_address: str,
        establish: Callable[[socket.socket], Awaitable[TlsConnection]],
    ) -> None:
        self.remote_address = remote_address
        """See `Incoming`."""
        self._socket = accepted
        self._establish = establish
        self._is_taken = False

    async def establish(self) -> TlsConnection:
        """See `Incoming`."""
        self._is_taken = True
        return await self._establish(self._socket)

    def refuse(self) -> None:
        """See `Incoming`."""
        if not self._is_taken:
            self._socket.close()


@contextmanager
def _closed_on_error(connection: TlsConnection) -> Iterator[None]:
    """Close a connection that does not become a link; after a `LinkFailure` waiting data are still sent."""
    try:
        yield
    except LinkFailure:
        connection.close()
        raise
    except BaseException:
        connection.abort()
        raise


async def open_socket(address: Address) -> socket.socket:
    """Open a TCP connection to an IP address."""
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        opened = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise LinkFailure(Reason.TOO_MANY_LINKS, f"{address}: the system gives no socket: {error}") from error
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        await asyncio.get_running_loop().sock_connect(opened, _place(address))
    except BaseException as error:
        opened.close()
        if isinstance(error, ConnectionRefusedError):
            raise LinkFailure(Reason.CONNECTION_REFUSED, f"nothing listens at {address}") from error
        if isinstance(error, TimeoutError):
            raise LinkFailure(Reason.DIAL_TIMEOUT, f"{address} does not answer") from error
        # An event loop has errors of its own about descriptors that are just being given away.
        if isinstance(error, OSError | OverflowError | RuntimeError):
            raise LinkFailure(Reason.UNREACHABLE, f"{address}: {error}") from error
        raise
    return opened


async def encrypt(
    opened: socket.socket, address: Address, context: ssl.SSLContext, config: NetConfig
) -> TlsConnection:
    """Establish TLS on a TCP connection that we opened. A WebSocket, if any, may still have to open."""
    loop = asyncio.get_running_loop()
    try:
        connection = TlsConnection(WebSocket(address) if address.scheme == WSS else None, config.write_bytes)
        await loop.create_connection(
            lambda: connection,
            sock=opened,
            ssl=context,
            # No name: it would tell every listener on the way which device we look for. On a local network
            # everyone has heard that key.
            server_hostname=server_name(address.lan) if address.lan else "",
            ssl_handshake_timeout=config.dial_timeout,
        )
    except BaseException as error:
        cut_short(opened, error)
        if isinstance(error, OSError | RuntimeError):
            raise LinkFailure(Reason.TLS_FAILED, f"{address} did not finish TLS: {error!r}") from error
        raise
    return connection


def listen_anywhere(context: ssl.SSLContext, shown_key: ShownKey, config: NetConfig) -> TlsListener:
    """Listen at a free port, for both versions of IP if this machine has both; `OSError` if there is none.

    The context chooses the key to show: on a local network the client asks for one.
    """
    try:
        bound = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
        host = "::"
    except OSError:
        bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        host = "0.0.0.0"  # noqa: S104 - it answers to none but those who heard its key
    try:
        bound.setblocking(False)
        if host == "::":
            bound.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        bound.bind((host, 0))
        bound.listen(_FIRST_BACKLOG)
    except OSError:
        bound.close()
        raise
    return TlsListener(Address(TLS, host, int(bound.getsockname()[1])), bound, context, shown_key, config)


def _bind(address: Address) -> socket.socket:
    try:
        family, kind, _, _, place = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        bound = socket.socket(family, kind)
    except OSError as error:
        raise LinkFailure(Reason.NO_ADDRESS, f"cannot listen at {address}: {error}") from error
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.setblocking(False)
        bound.bind(place)
        # At once: until this socket listens, another process may bind the same port.
        bound.listen(_FIRST_BACKLOG)
    except OSError as error:
        bound.close()
        raise LinkFailure(Reason.NO_ADDRESS, f"cannot listen at {address}: {error}") from error
    return bound


def _place(address: Address) -> tuple[str, int] | tuple[str, int, int, int]:
    host, _, zone = address.host.partition("%")
    return (host, address.port, 0, socket.if_nametoindex(zone)) if zone else (host, address.port)
