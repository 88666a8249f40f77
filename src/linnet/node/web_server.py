"""Serves an application over HTTP in the node's event loop, without output or signal handlers of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Generator, Iterable
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from linnet.node.background import Background
from linnet.node.home import HomeError

BACKLOG = 128
GRACE_SECONDS = 3
"""Seconds that open requests have to finish when the node stops."""


class WebServer(uvicorn.Server):
    """A server of one application on bound sockets; it ends when `should_exit` is set."""

    def __init__(self, app: ASGIApp, context: ssl.SSLContext | None = None, **limits: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                http="h11",
                ws="none",
                lifespan="off",
                interface="asgi3",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_graceful_shutdown=GRACE_SECONDS,
                ssl_context_factory=None if context is None else lambda config, default: context,
                **limits,
            )
        )

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Leave signals to the node."""
        yield


@contextlib.asynccontextmanager
async def serving(bound: Iterable[tuple[socket.socket, WebServer]], name: str) -> AsyncIterator[None]:
    """Serve while the block lasts; open requests then have a short time to finish."""
    async with Background() as background:
        servers = []
        for sock, server in bound:
            background.spawn(server.serve([sock]), name)
            servers.append(server)
        try:
            yield
        finally:
            for server in servers:
                server.should_exit = True
            await background.finish(GRACE_SECONDS + 1)


def bind_tcp(host: str, port: int, setting: str) -> socket.socket:
    """Return a listening TCP socket; `HomeError` names the setting that asked for it."""
    try:
        family, kind, _, _, place = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind)
    except OSError as error:
        raise HomeError(f"{setting} cannot be had: {error.strerror or error}") from error
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(place)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise HomeError(f"{setting} cannot be had: {error.strerror or error}") from error
    return sock
