"""The way to a running node's control API: requests, answers, lines, and the errors of all of them."""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar
from urllib.parse import quote, urlencode, urlsplit

import msgspec
from msgspec import Struct

from linnet.core.errors import ConfigError, LocalError
from linnet.node import config_file
from linnet.node.config import ControlSection
from linnet.node.control_types import ErrorReply, ItemView
from linnet.node.home import Home, HomeError, home_path

CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 30.0
LINE_SECONDS = 60.0
"""A subscription that says nothing for this long, not even that it lives, is dead."""

R = TypeVar("R")
_ITEM: msgspec.json.Decoder[ItemView] = msgspec.json.Decoder(ItemView)


_IDLE_SECONDS = 1.0
"""The server closes a connection that was idle for five seconds; one that closes just as it is used again
looks like a node that is gone. So ours are given up long before."""
_OK = 200
_PIECE_BYTES = 65_536
_PATH_SIGNS = "/%!$&'()*+,;=:@~"


class NodeUnreachable(LocalError):
    """No node runs in this home, or it does not answer."""


class ControlError(LocalError):
    """The node declined; `status`, `reason`, `detail` and `hint` say why and what to do."""

    def __init__(self, status: int, reason: str, detail: str, hint: str, elsewhere: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.hint = hint
        self.elsewhere = elsewhere
        """The address of another place, where a host who does not let us in named one."""


class _UnixConnection(HTTPConnection):
    """HTTP over the socket of a home."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=CONNECT_SECONDS)
        self._path = path

    def connect(self) -> None:
        """See `HTTPConnection.connect`."""
        sock = socket.socket(socket.AF_UNIX)
        try:
            sock.settimeout(CONNECT_SECONDS)
            sock.connect(self._path)
        except BaseException:
            sock.close()
            raise
        self.sock = sock


class Caller:
    """Connections to the control API; close it, or use it as a context.

    By the standard library alone: a command that asks one thing has to start fast.
    """

    def __init__(self, home: Path | None = None, url: str | None = None, token: str | None = None) -> None:
        """The node of a home, or one at a loopback address with its token."""
        self._reading: socket.socket | None = None
        self._headers = {} if token is None else {"authorization": f"Bearer {token}"}
        self._idle: list[tuple[float, HTTPConnection]] = []
        self._host: tuple[str, int | None] | None = None
        if url is not None:
            self._where = url
            parts = urlsplit(url)
            self._host = (parts.hostname or "localhost", parts.port)
        else:
            self._where = str(control_socket(Home(home_path(home))))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connections."""
        while self._idle:
            self._idle.pop()[1].close()

    def cut(self) -> None:
        """End what this client is reading line by line; for another thread, as reading blocks."""
        reading = self._reading
        if reading is not None:
            with contextlib.suppress(OSError):
                reading.shutdown(socket.SHUT_RDWR)

    def _get(self, path: str, kind: type[R], query: Struct | None = None, limit: float = ANSWER_SECONDS) -> R:
        return self._asked("GET", _target(path, query), None, kind, limit)

    def _post(self, path: str, request: Struct | None, kind: type[R], limit: float = ANSWER_SECONDS) -> R:
        content = b"{}" if request is None else msgspec.json.encode(request)
        return self._asked("POST", _target(path, None), content, kind, limit)

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
        """A connection that nobody uses; it is kept for a moment if all went well."""
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

    def _lines(self, path: str, query: Struct) -> Iterator[ItemView]:
        return self._lines_of(path, query, _ITEM)

    def _lines_of(self, path: str, query: Struct, item: msgspec.json.Decoder[R]) -> Iterator[R]:
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


def control_socket(home: Home) -> Path:
    """Where the node of a home answers, by its configuration."""
    try:
        control = config_file.load(home.config).control
    except ConfigError:
        if home.config.exists():
            raise
        control = ControlSection()
    try:
        return home.socket(control)
    except HomeError as error:
        raise NodeUnreachable(str(error)) from error


def _declined(status: int, body: bytes) -> ControlError:
    try:
        view = msgspec.json.decode(body, type=ErrorReply).error
    except msgspec.DecodeError:
        return ControlError(status, "unknown", body.decode("utf-8", "replace")[:200], "")
    return ControlError(status, view.reason, view.detail, view.hint, view.elsewhere)
