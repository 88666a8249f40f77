"""Serving the HTTP face of a relay: plain on loopback, or under TLS with the node's own certificate.

Plain HTTP is for programs and reverse proxies of the same machine. Whoever asks under TLS compares
the key in the certificate with the relay's device key, as on a link: no authority vouches for it.
"""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Self

from starlette.types import ASGIApp

from linnet.identity.keys import SigningKey
from linnet.net.tls import server_context
from linnet.node.addresses import HttpAddress, parse_http
from linnet.node.background import Background
from linnet.node.home import HomeError
from linnet.node.library import Node
from linnet.node.ports import KeptPorts
from linnet.node.relay_http import RelayHttp, RelayIdentity
from linnet.node.web_server import GRACE_SECONDS, WebServer, bind_tcp

_KEEP_ALIVE_SECONDS = 15
_CONNECTIONS = 1024
"""Connections at once; one more is answered 503 in plain words, without being read."""


class RelayHttpServer:
    """Serves an application while its block lasts."""

    def __init__(
        self, app: ASGIApp, address: HttpAddress, key: SigningKey, ports: KeptPorts | None = None
    ) -> None:
        self._app = app
        self._address = address
        self._ports = KeptPorts(None) if ports is None else ports
        self._context = server_context(key) if address.tls else None
        self._background = Background()

    async def __aenter__(self) -> Self:
        sock = self._bound()
        self._port = int(sock.getsockname()[1])
        await self._background.__aenter__()
        self._server = WebServer(
            self._app,
            self._context,
            limit_concurrency=_CONNECTIONS,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        )
        self._background.spawn(self._server.serve([sock]), "relay HTTP")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        try:
            await self._background.finish(GRACE_SECONDS + 1)
        finally:
            await self._background.__aexit__(kind, error, trace)

    def _bound(self) -> socket.socket:
        """The port that was asked for; for "any", that of the last start if it can be had."""
        address, setting = self._address, f"relay.http: {self._address}"
        if address.port:
            return bind_tcp(address.host, address.port, setting)
        kept = self._ports.port(str(address), 0)
        try:
            sock = bind_tcp(address.host, kept, setting)
        except HomeError:
            if not kept:
                raise
            sock = bind_tcp(address.host, 0, setting)
            taken = HttpAddress(address.host, int(sock.getsockname()[1]), address.tls)
            self._ports.tell_moved(str(HttpAddress(address.host, kept, address.tls)), str(taken))
        self._ports.keep(str(address), int(sock.getsockname()[1]))
        return sock

    @property
    def url(self) -> str:
        """Where it is served, with the port that the system gave."""
        return str(HttpAddress(self._address.host, self._port, self._address.tls))


def relay_server(node: Node) -> RelayHttpServer | None:
    """The face of a running node, to be entered; None if its configuration wants none."""
    section = node.config.relay
    if not section.enabled or not section.http:
        return None
    identity = RelayIdentity(node.peer, node.author, section.max_lifetime)
    face = RelayHttp(node.ask_relay, identity, node.clock.now, node.note)
    return RelayHttpServer(face.app(), parse_http(section.http), node.identity.device, node.ports)
