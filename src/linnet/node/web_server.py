"""Serves an application over HTTP in the node's event loop, without output or signal handlers of its own."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator, Generator, Iterable
from functools import partial
from typing import Any, cast

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from linnet.node.background import Background
from linnet.node.home import HomeError

BACKLOG = 128
GRACE_SECONDS = 3
"""Seconds that open requests have to finish when the node stops."""


WAITING = 256
"""Connections that have not asked for anything; one more takes the place of the oldest."""
HEADER_SECONDS = 10.0
"""Seconds that a connection has to ask for something."""


class _Visitor(H11Protocol):
    """A connection that is closed unless it asks for something in time, at first and after each answer.

    Connections cost a stranger nothing. Those that send a request slowly, or never, would keep others out.
    """

    def __init__(self, waiting: dict[_Visitor, None], seconds: float, most: int, **given: Any) -> None:  # noqa: ANN401 - uvicorn's
        super().__init__(**given)
        self._waiting = waiting
        self._seconds = seconds
        self._most = most
        self._patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """See `asyncio.Protocol`."""
        super().connection_made(transport)
        self._await_request()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._stop_waiting()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Take what came; a whole request ends the wait."""
        super().handle_events()
        if self._is_asked:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        if not self._is_asked and not self.transport.is_closing():
            self._await_request()

    @property
    def _is_asked(self) -> bool:
        cycle = cast(RequestResponseCycle | None, self.cycle)  # None before the first request
        return cycle is not None and not cycle.response_complete

    def _await_request(self) -> None:
        while len(self._waiting) >= self._most:
            next(iter(self._waiting))._give_up()
        self._waiting[self] = None
        self._patience = self.loop.call_later(self._seconds, self._give_up)

    def _stop_waiting(self) -> None:
        self._waiting.pop(self, None)
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        self._stop_waiting()
        self.transport.abort()


class WebServer(uvicorn.Server):
    """A server of one application on bound sockets; it ends when `should_exit` is set."""

    def __init__(
        self,
        app: ASGIApp,
        context: ssl.SSLContext | None = None,
        *,
        header_seconds: float = HEADER_SECONDS,
        waiting: int = WAITING,
        **limits: Any,  # noqa: ANN401 - uvicorn's
    ) -> None:
        visitor = partial(_Visitor, waiting={}, seconds=header_seconds, most=waiting)
        super().__init__(
            uvicorn.Config(
                app,
                loop="none",
                http=cast(type[asyncio.Protocol], visitor),
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
