"""Serving an application over HTTP inside the node's own loop: quiet, without signals of its own."""

from __future__ import annotations

import contextlib
import socket
import ssl
from collections.abc import Generator
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from linnet.node.home import HomeError

BACKLOG = 128
GRACE_SECONDS = 3
"""What an open request has to finish in when the node stops."""


class WebServer(uvicorn.Server):
    """One application on sockets that are bound already; ends when `should_exit` is set."""

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


def bind_tcp(host: str, port: int, setting: str) -> socket.socket:
    """A listening TCP socket; `HomeError` names the setting that asked for it."""
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
