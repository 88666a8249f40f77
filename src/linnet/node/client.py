"""Talking to a running node from another process of the same machine, by its control API.

::

    with ControlClient(home) as control:
        control.publish("weather", [b"rain"])
        for item in control.subscribe("weather", since=0):
            ...
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

import httpx
import msgspec
from msgspec import Struct

from linnet.core.errors import ConfigError, LocalError
from linnet.node import config_file
from linnet.node.config import ControlSection
from linnet.node.control_types import (
    BlockRequest,
    ConnectRequest,
    ConsumedRequest,
    DeclareRequest,
    DoctorReply,
    DoneReply,
    ErrorReply,
    GraphReply,
    HistoryQuery,
    ItemView,
    PeersReply,
    PublishReply,
    PublishRequest,
    StatusReply,
    SubscribeQuery,
)
from linnet.node.home import Home, HomeError, home_path

_CONNECT_SECONDS = 5.0
_ANSWER_SECONDS = 30.0
_LINE_SECONDS = 60.0
"""A subscription that says nothing for this long, not even that it lives, is dead."""

R = TypeVar("R")
_ITEM: msgspec.json.Decoder[ItemView] = msgspec.json.Decoder(ItemView)


class NodeUnreachable(LocalError):
    """No node runs in this home, or it does not answer."""


class ControlError(LocalError):
    """The node declined; `status`, `reason`, `detail` and `hint` say why and what to do."""

    def __init__(self, status: int, reason: str, detail: str, hint: str) -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.status = status
        self.reason = reason
        self.detail = detail
        self.hint = hint


class ControlClient:
    """One caller of the control API; close it, or use it as a context."""

    def __init__(self, home: Path | None = None, url: str | None = None, token: str | None = None) -> None:
        """The node of a home, or one at a loopback address with its token."""
        self._socket: Path | None = None
        if url is not None:
            self._where = url
            headers = {} if token is None else {"authorization": f"Bearer {token}"}
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=_timeouts(_ANSWER_SECONDS), trust_env=False
            )
            return
        self._socket = control_socket(Home(home_path(home)))
        self._where = str(self._socket)
        transport = httpx.HTTPTransport(uds=self._where)
        self._http = httpx.Client(
            base_url="http://localhost",
            transport=transport,
            timeout=_timeouts(_ANSWER_SECONDS),
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

    def status(self) -> StatusReply:
        """How things stand."""
        return self._get("/v1/status", StatusReply)

    def peers(self) -> PeersReply:
        """Every link, open or wanted."""
        return self._get("/v1/peers", PeersReply)

    def publish(self, stream: str, bodies: Sequence[bytes], confirm: float = 0.0) -> PublishReply:
        """Publish bodies, in this order."""
        request = PublishRequest(stream, tuple(bodies), confirm=confirm)
        return self._post("/v1/publish", request, PublishReply, _ANSWER_SECONDS + confirm)

    def subscribe(
        self,
        stream: str,
        since: float | None = None,
        name: str | None = None,
        ordered: bool = True,
        live: bool = True,
        receipts: bool = False,
        manual: bool = False,
    ) -> Iterator[ItemView]:
        """What is said in a stream, item by item; the first is `SubscribedView`. Closing it unsubscribes.

        With `manual`, call `consumed` with the number in the first item; that needs a client of its own.
        """
        query = SubscribeQuery(stream, since, name, ordered, live, receipts, "manual" if manual else "auto")
        return self._lines("/v1/subscribe", query)

    def history(self, stream: str, since: float = 0.0, ordered: bool = True) -> Iterator[ItemView]:
        """What is kept of a stream; ends with it."""
        return self._lines("/v1/history", HistoryQuery(stream, since, ordered))

    def consumed(self, subscription: int, items: int) -> None:
        """So many more items of a manual subscription were handled; returns when that is durable."""
        self._post(f"/v1/subscriptions/{subscription}/consumed", ConsumedRequest(items), DoneReply)

    def declare(self, request: DeclareRequest) -> PublishReply:
        """Decide about a stream of ours."""
        return self._post("/v1/declare", request, PublishReply)

    def block(self, device: str, blocked: bool = True) -> None:
        """Have nothing to do with a device any more, or again."""
        self._post("/v1/block", BlockRequest(device, blocked), DoneReply)

    def connect(self, contact: str) -> None:
        """Keep a link to a peer, ``KEY@HOST:PORT``."""
        self._post("/v1/connect", ConnectRequest(contact), DoneReply)

    def doctor(self) -> DoctorReply:
        """What the node knows about its own health."""
        return self._get("/v1/doctor", DoctorReply)

    def graph(self, topic: str) -> GraphReply:
        """The graph of a topic that the node tracks."""
        return self._get(f"/v1/trackers/{topic}", GraphReply)

    def stop(self) -> None:
        """Stop the node, in good order. Returns when it has begun to."""
        self._post("/v1/stop", None, DoneReply)

    def openapi(self) -> dict[str, Any]:
        """The description of the API."""
        return self._get("/v1/openapi.json", dict[str, Any])

    def _get(self, path: str, kind: type[R]) -> R:
        with self._reaching():
            return _read(self._http.get(path), kind)

    def _post(self, path: str, request: Struct | None, kind: type[R], limit: float = _ANSWER_SECONDS) -> R:
        content = b"{}" if request is None else msgspec.json.encode(request)
        headers = {"content-type": "application/json"}
        with self._reaching():
            return _read(
                self._http.post(path, content=content, headers=headers, timeout=_timeouts(limit)), kind
            )

    def _lines(self, path: str, query: Struct) -> Iterator[ItemView]:
        given: dict[str, Any] = msgspec.to_builtins(query)
        with (
            self._reaching(),
            self._http.stream("GET", path, params=given, timeout=_timeouts(_LINE_SECONDS)) as response,
        ):
            if response.status_code != httpx.codes.OK:
                response.read()
                raise _declined(response)
            for line in response.iter_lines():
                yield _ITEM.decode(line)

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
    return httpx.Timeout(answer, connect=_CONNECT_SECONDS)


def _read(response: httpx.Response, kind: type[R]) -> R:
    if response.is_success:
        return msgspec.json.decode(response.content, type=kind)
    raise _declined(response)


def _declined(response: httpx.Response) -> ControlError:
    try:
        view = msgspec.json.decode(response.content, type=ErrorReply).error
    except msgspec.DecodeError:
        return ControlError(response.status_code, "unknown", response.text[:200], "")
    return ControlError(response.status_code, view.reason, view.detail, view.hint)
