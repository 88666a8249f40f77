"""The way to a running node's control API: requests, answers, lines, and the errors of all of them."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
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


_LIMITS = httpx.Limits(keepalive_expiry=1.0)
"""The server closes a connection that was idle for five seconds; one that closes just as it is used again
looks like a node that is gone. So ours are given up long before."""


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


class Caller:
    """A connection to the control API; close it, or use it as a context."""

    def __init__(self, home: Path | None = None, url: str | None = None, token: str | None = None) -> None:
        """The node of a home, or one at a loopback address with its token."""
        self._socket: Path | None = None
        self._reading: socket.socket | None = None
        if url is not None:
            self._where = url
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            self._http = httpx.Client(
                base_url=url,
                headers=headers,
                timeout=_timeouts(ANSWER_SECONDS),
                limits=_LIMITS,
                trust_env=False,
            )
            return
        self._socket = control_socket(Home(home_path(home)))
        self._where = str(self._socket)
        transport = httpx.HTTPTransport(uds=self._where, limits=_LIMITS)
        self._http = httpx.Client(
            base_url="http://localhost",
            transport=transport,
            timeout=_timeouts(ANSWER_SECONDS),
            trust_env=False,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the connection."""
        self._http.close()

    def cut(self) -> None:
        """End what this client is reading line by line; for another thread, as reading blocks."""
        reading = self._reading
        if reading is not None:
            with contextlib.suppress(OSError):
                reading.shutdown(socket.SHUT_RDWR)

    def _get(self, path: str, kind: type[R], query: Struct | None = None, limit: float = ANSWER_SECONDS) -> R:
        given: dict[str, Any] = {} if query is None else msgspec.to_builtins(query)
        with self._reaching():
            return _read(self._http.get(path, params=given, timeout=_timeouts(limit)), kind)

    def _post(self, path: str, request: Struct | None, kind: type[R], limit: float = ANSWER_SECONDS) -> R:
        content = b"{}" if request is None else msgspec.json.encode(request)
        headers = {"content-type": "application/json"}
        with self._reaching():
            return _read(
                self._http.post(path, content=content, headers=headers, timeout=_timeouts(limit)), kind
            )

    def _lines(self, path: str, query: Struct) -> Iterator[ItemView]:
        return self._lines_of(path, query, _ITEM)

    def _lines_of(self, path: str, query: Struct, item: msgspec.json.Decoder[R]) -> Iterator[R]:
        given: dict[str, Any] = msgspec.to_builtins(query)
        with (
            self._reaching(),
            self._http.stream("GET", path, params=given, timeout=_timeouts(LINE_SECONDS)) as response,
        ):
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _declined(response)
            self._reading = response.extensions["network_stream"].get_extra_info("socket")
            try:
                for line in response.iter_lines():
                    yield item.decode(line)
            finally:
                self._reading = None

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        if self._socket is not None:
            # Looked at first: httpcore leaves a socket open that could not connect.
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(str(self._socket))
                except OSError as error:
                    raise NodeUnreachable(
                        f"no node answers at {self._where}; start one with: linnet up"
                    ) from error
        try:
            yield
        except httpx.ConnectError as error:
            raise NodeUnreachable(f"no node answers at {self._where}; start one with: linnet up") from error
        except httpx.TimeoutException as error:
            raise NodeUnreachable(f"the node at {self._where} does not answer in time") from error
        except (httpx.TransportError, msgspec.DecodeError) as error:
            raise NodeUnreachable(f"the node at {self._where} stopped answering: {error}") from error


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


def _timeouts(answer: float) -> httpx.Timeout:
    return httpx.Timeout(answer, connect=CONNECT_SECONDS)


def _read(response: httpx.Response, kind: type[R]) -> R:
    if response.is_success:
        return msgspec.json.decode(response.content, type=kind)
    raise _declined(response)


def _declined(response: httpx.Response) -> ControlError:
    try:
        view = msgspec.json.decode(response.content, type=ErrorReply).error
    except msgspec.DecodeError:
        return ControlError(response.status_code, "unknown", response.text[:200], "")
    return ControlError(response.status_code, view.reason, view.detail, view.hint, view.elsewhere)
