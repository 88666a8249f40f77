"""Serving the control API: a Unix socket for its owner alone, and a loopback port behind a token."""

from __future__ import annotations

import hmac
import os
import socket
import stat
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from starlette.datastructures import Headers
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from linnet.node.background import Background
from linnet.node.control_errors import ApiError, told
from linnet.node.home import HomeError
from linnet.node.web_server import BACKLOG, GRACE_SECONDS, WebServer, bind_tcp

_PRIVATE_UMASK = 0o177


class RequireToken:
    """Passes on what carries the token, and answers 401 to the rest."""

    def __init__(self, app: ASGIApp, token: str) -> None:
        self._app = app
        self._expected = f"Bearer {token}".encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        given = Headers(scope=scope).get("authorization", "").encode("utf-8", "surrogateescape")
        if hmac.compare_digest(given, self._expected):
            await self._app(scope, receive, send)
            return
        error = ApiError(
            401, "unauthorized", "the token is missing or wrong", "it is in <home>/control.token"
        )
        status, reply = told(error)
        response = Response(msgspec.json.encode(reply), status, media_type="application/json")
        response.headers["www-authenticate"] = "Bearer"
        await response(scope, receive, send)


class ControlServer:
    """Serves an application while its block lasts."""

    def __init__(self, app: ASGIApp, path: Path, port: int | None, token: str | None) -> None:
        """A `port` needs a `token`."""
        self._app = app
        self._path = path
        self._port = port
        self._token = token
        self._servers: list[WebServer] = []
        self._background = Background()

    async def __aenter__(self) -> Self:
        bound = [(bind_unix(self._path), self._app)]
        if self._port is not None and self._token is not None:
            try:
                bound.append((bind_loopback(self._port), RequireToken(self._app, self._token)))
            except HomeError:
                bound[0][0].close()
                self._path.unlink(missing_ok=True)
                raise
        await self._background.__aenter__()
        for sock, app in bound:
            server = WebServer(app)
            self._servers.append(server)
            self._background.spawn(server.serve([sock]), "control API")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for server in self._servers:
            server.should_exit = True
        try:
            await self._background.finish(GRACE_SECONDS + 1)
        finally:
            await self._background.__aexit__(kind, error, trace)
            self._path.unlink(missing_ok=True)


def bind_unix(path: Path) -> socket.socket:
    """A listening Unix socket that only its owner can use; a dead one in its place is removed."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        _remove_dead(path)
        mask = os.umask(_PRIVATE_UMASK)
        try:
            sock.bind(str(path))
        finally:
            os.umask(mask)
        sock.listen(BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise HomeError(f"{path}: cannot be the control socket: {error.strerror or error}") from error
    except HomeError:
        sock.close()
        raise
    return sock


def bind_loopback(port: int) -> socket.socket:
    """A listening TCP socket that only this machine reaches."""
    return bind_tcp("127.0.0.1", port, f"control.port: {port}")


def _remove_dead(path: Path) -> None:
    try:
        is_socket = stat.S_ISSOCK(path.lstat().st_mode)
    except FileNotFoundError:
        return
    if not is_socket:
        raise HomeError(f"{path}: is in the way of the control socket and is no socket; move it")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        try:
            probe.connect(str(path))
        except OSError:
            path.unlink()
            return
    raise HomeError(f"{path}: another node answers at this control socket")
