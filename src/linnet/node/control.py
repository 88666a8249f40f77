"""The control API: what programs of this machine may ask a running node over HTTP.

One application, served at a Unix socket in the home and, if configured, at a loopback port with a token
(`serve_control`). See docs/adr/0007-control-api.md.
"""

from __future__ import annotations

import hmac
import os
import socket
import stat
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from linnet.api.errors import ApiError, told
from linnet.api.items import WarningView
from linnet.api.node_commands import StopNode
from linnet.api.openapi import DESCRIPTION, Media, document
from linnet.api.places import ListenToPlace, ReadPlaceHistory
from linnet.api.rooms import room_item_view, warning_view
from linnet.api.server import Lined, OpenLines, error_response, guarded, http_error_response, routes
from linnet.delivery.commands import Consumed
from linnet.delivery.items import Item
from linnet.machine.commands import Command, Done, answer_to
from linnet.node.home import HomeError
from linnet.node.library import Node
from linnet.node.place_messages import heard_view
from linnet.node.web_server import BACKLOG, WebServer, bind_tcp, serving
from linnet.rooms.commands import ReadRoom

R = TypeVar("R")


class Control:
    """The operations of one node, and the subscriptions that are open through them."""

    def __init__(self, node: Node, stop: Callable[[], None]) -> None:
        self._node = node
        self._stop = stop
        self._limits = node.config.control
        self._opened = OpenLines(self._limits.max_subscriptions)
        self._document = msgspec.json.encode(document(node.operations))

    def app(self) -> Starlette:
        """Return the application to be served."""
        description = Route(DESCRIPTION.path, guarded(self._describe), methods=[DESCRIPTION.method])
        derived = routes(
            self._node.operations, self._answer, self._subscribe, self._opened, self._limits.max_request_bytes
        )
        errors = {HTTPException: http_error_response, Exception: error_response}
        return Starlette(routes=[description, *derived], exception_handlers=errors)

    async def _describe(self, request: Request) -> Response:
        return Response(self._document, media_type=Media.JSON.value)

    async def _answer(self, command: Command[R]) -> R:
        asked: Command[Any] = command
        match asked:
            case StopNode():
                self._stop()
            case Consumed(subscription, items):
                await self._opened.consumed(subscription, items)
            case _:
                return await self._node.ask(command)
        return answer_to(command, Done())

    def _subscribe(self, command: Command[Any]) -> Lined:
        source = self._node.open(command)
        match command:
            case ListenToPlace() | ReadPlaceHistory():
                return Lined(source, heard_view)
            case ReadRoom(room=room):
                watch = self._node.people.watch(room)

                async def beside(items: Sequence[Item]) -> list[WarningView]:
                    return [*map(warning_view, await watch(items))]

                return Lined(source, partial(room_item_view, label_of=self._node.label_of), beside)
            case _:
                return Lined(source)


_PRIVATE_UMASK = 0o177


class RequireToken:
    """Passes on requests with the token, and answers 401 to others."""

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


@asynccontextmanager
async def serve_control(
    app: ASGIApp, path: Path, port: int | None = None, token: str | None = None
) -> AsyncIterator[None]:
    """Serve an application while the block lasts. A `port` needs a `token`."""
    with ExitStack() as leaving:
        bound = [(bind_unix(path), WebServer(app))]
        leaving.callback(path.unlink, missing_ok=True)
        if port is not None and token is not None:
            try:
                sock = bind_tcp("127.0.0.1", port, f"control.port: {port}")
            except HomeError:
                bound[0][0].close()
                raise
            bound.append((sock, WebServer(RequireToken(app, token))))
        async with serving(bound, "control API"):
            yield


def bind_unix(path: Path) -> socket.socket:
    """Return a listening Unix socket that only its owner can use; a dead one in its place is removed."""
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
