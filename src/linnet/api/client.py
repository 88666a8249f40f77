"""The client of a running node's control API: requests, answers, lines, and the errors of all of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from socket import AF_UNIX, SHUT_RDWR
from socket import socket as Socket
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from linnet.api.errors import ControlError, ErrorReply, ErrorView, NodeUnreachable, RefusedThere
from linnet.api.operations import DESCRIPTION_PATH, Operation, operation_of
from linnet.core.reasons import Reason
from linnet.machine.commands import Command

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
LINE_SECONDS = 60.0
"""A subscription that sends nothing for this long, not even a heartbeat, is dead."""

R = TypeVar("R")
_IDLE_SECONDS = 1.0
"""The server closes a connection after five idle seconds; one that closes just as it is used again looks like
a node that is gone. So ours are dropped long before."""
_OK = 200
_REASONS = frozenset(Reason)
_PIECE_BYTES = 65_536
_PATH_SIGNS = "/%!$&'()*+,;=:@~"


class _UnixConnection(HTTPConnection):
    """An HTTP connection over the Unix socket of a home."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """See `HTTPConnection.connect`."""
        sock = Socket(AF_UNIX)
        try:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(self._path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


class Remote:
    """Connections to the control API; close it, or use it as a context.

    It uses the standard library alone: a command that asks one thing has to start fast.
    """

    def __init__(self, socket: Path | None, url: str | None = None, token: str | None = None) -> None:
        """Connect to the node at a Unix socket, or at a loopback address with its token."""
        self._reading: Socket | None = None
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._idle: list[tuple[float, HTTPConnection]] = []
        self._host: tuple[str, int | None] | None = None
        if url is not None:
            self._where = url
            parts = urlsplit(url)
            self._host = (parts.hostname or "localhost", parts.port)
        else:
            self._where = str(socket)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        while self._idle:
            self._idle.pop()[1].close()

    def cut(self) -> None:
        """End what this client is reading line by line; called from another thread, since reading blocks."""
        reading = self._reading
        if reading is not None:
            with contextlib.suppress(OSError):
                reading.shutdown(SHUT_RDWR)

    def ask(self, command: Command[R], operation: Operation | None = None) -> R:
        """Return the node's answer; raises `Refused` if it declines, `NodeUnreachable` if none runs.

        `operation` must be given for a protocol that a program has added to the node.
        """
        operation = operation or operation_of(command)
        path, rest = operation.write(command)
        where = _where(operation, path)
        waits = getattr(command, "confirm", 0.0) + getattr(command, "patience", 0.0)
        limit = ANSWER_SECONDS + operation.patience + waits
        if operation.method == "GET":
            answer = self._asked("GET", _target(where, rest), None, operation.answer.shape, limit)
        else:
            content = msgspec.json.encode(rest)
            answer = self._asked("POST", _target(where, None), content, operation.answer.shape, limit)
        read = operation.answer.read
        result: R = answer if read is None else read(answer)
        return result

    def lines(
        self, command: Command[Any], manual: bool = False, operation: Operation | None = None
    ) -> Generator[Any, None, None]:
        """Yield the items of a subscription; first that it is open. Closing the generator unsubscribes.

        With `manual`, handled items must be reported by `Consumed`, with the number in the first item; that
        needs another client.
        """
        operation = operation or operation_of(command)
        if operation.item is None:
            raise TypeError(f"{type(command).__name__} is no subscription")
        path, rest = operation.write(command, ack="manual" if manual else "auto")
        return self._lines_of(_where(operation, path), rest, msgspec.json.Decoder(operation.item.shape))

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI description of the API from the node."""
        return self._asked("GET", DESCRIPTION_PATH, None, dict[str, Any], ANSWER_SECONDS)

    def _asked(self, method: str, target: str, content: bytes | None, kind: type[R], limit: float) -> R:
        with self._reaching(), self._connected() as connection:
            response = self._ask(connection, method, target, content, limit)
            body = response.read()
            if not 200 <= response.status < 300:
                raise _declined(response.status, body)
            return msgspec.json.decode(body, type=kind)

    def _ask(
        self, connection: HTTPConnection, method: str, target: str, content: bytes | None, limit: float
    ) -> HTTPResponse:
        kind = {} if content is None else {"content-type": "application/json"}
        connection.request(method, target, content, {**self._headers, **kind})
        connection.sock.settimeout(limit)
        return connection.getresponse()

    @contextlib.contextmanager
    def _connected(self) -> Iterator[HTTPConnection]:
        """Lend an unused connection; it is kept for a moment if there was no error."""
        connection = self._free() or self._new()
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        self._idle.append((time.monotonic(), connection))

    def _free(self) -> HTTPConnection | None:
        while self._idle:
            since, connection = self._idle.pop()
            if connection.sock is not None and time.monotonic() - since < _IDLE_SECONDS:
                connection.sock.settimeout(ANSWER_SECONDS)
                return connection
            connection.close()
        return None

    def _new(self) -> HTTPConnection:
        if self._host is None:
            return _UnixConnection(self._where)
        host, port = self._host
        return HTTPConnection(host, port, timeout=CONNECT_SECONDS)

    def _lines_of(self, path: str, query: Struct, item: msgspec.json.Decoder[R]) -> Generator[R, None, None]:
        with self._reaching(), contextlib.closing(self._new()) as connection:
            connection.connect()
            # As it is handed to the response when that begins.
            reading = connection.sock
            response = self._ask(connection, "GET", _target(path, query), None, LINE_SECONDS)
            with contextlib.closing(response):
                if response.status != _OK:
                    raise _declined(response.status, response.read())
                self._reading = reading
                try:
                    yield from _decoded(response, item)
                finally:
                    self._reading = None

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except (ConnectionRefusedError, FileNotFoundError) as error:
            raise NodeUnreachable(f"no node answers at {self._where}; start one with: linnet up") from error
        except TimeoutError as error:
            raise NodeUnreachable(f"the node at {self._where} does not answer in time") from error
        except (OSError, HTTPException, msgspec.DecodeError) as error:
            raise NodeUnreachable(f"the node at {self._where} stopped answering: {error}") from error


def _where(operation: Operation, path: dict[str, Any]) -> str:
    return operation.path.format_map({name: quote(str(value), safe="") for name, value in path.items()})


def _target(path: str, query: Struct | None) -> str:
    target = quote(path, safe=_PATH_SIGNS)
    given: dict[str, Any] = {} if query is None else msgspec.to_builtins(query)
    words = {name: _word(value) for name, value in given.items() if value is not None}
    return f"{target}?{urlencode(words, doseq=True, quote_via=quote)}" if words else target


def _word(value: object) -> object:
    return ("true" if value else "false") if isinstance(value, bool) else value


def _decoded(response: HTTPResponse, item: msgspec.json.Decoder[R]) -> Iterator[R]:
    rest = b""
    while piece := response.read1(_PIECE_BYTES):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            yield item.decode(line)
    if rest:
        yield item.decode(rest)


def _declined(status: int, body: bytes) -> ControlError:
    try:
        view = msgspec.json.decode(body, type=ErrorReply).error
    except msgspec.DecodeError:
        return ControlError(status, ErrorView("unknown", body.decode("utf-8", "replace")[:200]))
    return (RefusedThere if view.reason in _REASONS else ControlError)(status, view)
