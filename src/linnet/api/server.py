"""The operations over HTTP: a request becomes a command, its answer JSON, every error a reply.

A subscription is answered line by line, one JSON value each, until either side closes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from linnet.api.errors import ApiError, length_in_words, told
from linnet.api.items import HeartbeatView, ItemView, SubscribedView
from linnet.api.openapi import Media
from linnet.api.operations import Operation
from linnet.delivery.items import Ended, Item
from linnet.machine.commands import Ask, Command

HEARTBEAT = 15.0
"""Seconds of silence after which a heartbeat line is sent."""

ITEMS_PER_WRITE = 256
"""The most items in one write: few enough that a reader sees the first of them soon."""

Beside = Callable[[Sequence[Item]], Awaitable[Sequence[ItemView]]]
"""Returns extra lines to write before these items; first called without items."""

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
_encode = msgspec.json.Encoder().encode


class Source(Protocol[T_co]):
    """A subscription whose items are written as lines."""

    @property
    def number(self) -> int:
        """The number of the subscription at its node."""

    @property
    def resumed(self) -> bool:
        """Whether a durable subscription of this name existed before."""

    @property
    def unhandled(self) -> int:
        """The number of items that were taken and not handled yet."""

    async def open(self) -> None:
        """Open the subscription."""

    async def close(self) -> None:
        """Close the subscription."""

    async def take(self, most: int) -> Sequence[T_co]:
        """Return the next items, at least one."""

    def handled(self, items: int, /) -> None:
        """Note that this many of the taken items were handled."""

    async def consume(self, items: int, /) -> None:
        """Report this many as handled; returns when that is durable."""


class Lines(Response, Generic[T]):
    """Writes the items of a subscription, and closes it whatever happens to the caller."""

    media_type = Media.LINES.value

    def __init__(
        self,
        subscription: Source[T],
        is_manual: bool,
        closed: Callable[[Source[T]], None],
        view: Callable[[T], Struct],
        beside: Callable[[Sequence[T]], Awaitable[Sequence[Struct]]] | None = None,
    ) -> None:
        super().__init__()
        # The length is not known in advance.
        del self.headers["content-length"]
        self._subscription = subscription
        self._is_manual = is_manual
        self._closed = closed
        self._view = view
        self._beside = beside

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve until the subscription ends or the caller disconnects."""
        try:
            async with asyncio.TaskGroup() as tasks:
                writing = tasks.create_task(self._write(send), name="write a subscription")
                watching = tasks.create_task(_gone(receive), name="watch for the caller's end")
                writing.add_done_callback(lambda _: watching.cancel())
                watching.add_done_callback(lambda _: writing.cancel())
        finally:
            self._closed(self._subscription)
            await self._subscription.close()

    async def _write(self, send: Send) -> None:
        subscription = self._subscription
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        await _chunk(
            send, [SubscribedView(subscription.number, subscription.resumed), *await self._aside(())]
        )
        is_over = False
        while not is_over:
            try:
                async with asyncio.timeout(HEARTBEAT):
                    items = await subscription.take(ITEMS_PER_WRITE)
            except TimeoutError:
                await _chunk(send, [HeartbeatView()])
                continue
            await _chunk(send, [*await self._aside(items), *map(self._view, items)])
            if not self._is_manual:
                subscription.handled(len(items))
            is_over = any(isinstance(item, Ended) for item in items)
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    async def _aside(self, items: Sequence[T]) -> Sequence[Struct]:
        return () if self._beside is None else await self._beside(items)


class OpenLines:
    """The subscriptions that are open over HTTP."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._manual: dict[int, Source[object]] = {}
        self._open: dict[int, Source[object]] = {}

    async def respond(
        self,
        subscription: Source[T],
        is_manual: bool,
        view: Callable[[T], Struct],
        beside: Callable[[Sequence[T]], Awaitable[Sequence[Struct]]] | None = None,
    ) -> Response:
        """Return a response that writes the items of a subscription, line by line."""
        if len(self._open) >= self._most:
            raise ApiError(
                429,
                "too_many",
                f"{len(self._open)} subscriptions are open here, which is the most",
                "close some, or raise control.max_subscriptions",
            )
        await subscription.open()
        self._open[subscription.number] = subscription
        if is_manual:
            self._manual[subscription.number] = subscription
        return Lines(subscription, is_manual, self._closed, view, beside)

    async def consumed(self, number: int, items: int) -> None:
        """Report items of a subscription with ``ack=manual`` as handled; returns when that is durable."""
        subscription = self._manual.get(number)
        if subscription is None:
            raise ApiError(404, "not_found", "there is no open subscription of this number with ack=manual")
        if items > subscription.unhandled:
            detail = f"only {subscription.unhandled} items were handed over and are not consumed yet"
            raise ApiError(409, "too_many", detail)
        await subscription.consume(items)

    def _closed(self, subscription: Source[object]) -> None:
        self._open.pop(subscription.number, None)
        self._manual.pop(subscription.number, None)


async def _chunk(send: Send, views: Iterable[Struct]) -> None:
    body = b"".join(_encode(view) + b"\n" for view in views)
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


Q = TypeVar("Q", bound=Struct)
Endpoint = Callable[[Request], Awaitable[Response]]


class Lined(NamedTuple):
    """A subscription, and how the node writes its items."""

    source: Source[Any]
    view: Callable[[Any], Struct] | None = None
    """Converts an item to its line; None: as the operation says."""
    beside: Callable[[Sequence[Any]], Awaitable[Sequence[Struct]]] | None = None
    """Returns extra lines of the node between items."""


Subscribe = Callable[[Command[Any]], Lined]
"""Makes the subscription that a command asks for, under a new number."""
SEE = "see /v1/openapi.json"


def routes(
    operations: Iterable[Operation], ask: Ask, subscribe: Subscribe, opened: OpenLines, limit: int
) -> list[Route]:
    """Return a route for each operation; `limit` is the most bytes of a request."""
    return [
        Route(
            each.path,
            guarded(
                _endpoint(each, ask, limit) if each.item is None else _subscription(each, subscribe, opened)
            ),
            methods=[each.method],
        )
        for each in operations
    ]


def _subscription(operation: Operation, subscribe: Subscribe, opened: OpenLines) -> Endpoint:
    async def answer(request: Request) -> Response:
        query = query_of(request, operation.shape)
        command = operation.read(_converted(request.path_params, operation.path_shape), query)
        write = operation.item.write if operation.item is not None else None
        is_manual: bool = getattr(query, "ack", "auto") == "manual"
        source, view, beside = subscribe(command)
        return await opened.respond(source, is_manual, view or write or _same, beside)

    return answer


def _same(value: Any) -> Any:  # noqa: ANN401 - any value
    return value


def _endpoint(operation: Operation, ask: Ask, limit: int) -> Endpoint:
    write = operation.answer.write

    async def answer(request: Request) -> Response:
        result = await ask(await command_of(operation, request, limit))
        return json_response(result if write is None else write(result), operation.status)

    return answer


async def command_of(operation: Operation, request: Request, limit: int) -> Command[Any]:
    """Return the command of a request."""
    path = _converted(request.path_params, operation.path_shape)
    if not operation.fields:
        return operation.read(path, operation.shape())
    if operation.method == "GET":
        return operation.read(path, query_of(request, operation.shape))
    return operation.read(path, await body_of(request, operation.shape, limit))


def guarded(endpoint: Endpoint) -> Endpoint:
    """Wrap an endpoint so that all errors are answered as JSON; one that is not ours is a 500."""

    async def answered(request: Request) -> Response:
        try:
            return await endpoint(request)
        except ClientDisconnect:
            raise
        except Exception as error:  # Every error is told as JSON; one that is not ours is a 500.
            return await error_response(request, error)

    return answered


async def body_of(request: Request, kind: type[Q], limit: int) -> Q:
    """Read and decode the body of a request, no further than its limit."""
    form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if form != Media.JSON:
        raise ApiError(415, "not_json", f"the content type is {form[:80]!r}", f"send {Media.JSON}")
    content = bytearray()
    async for chunk in request.stream():
        content += chunk
        if len(content) > limit:
            raise ApiError(413, "too_large", f"a request has at most {limit} bytes", "send less at once")
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ApiError(400, "bad_request", length_in_words(str(error)), SEE) from error


def query_of(request: Request, kind: type[Q]) -> Q:
    """Decode the query of a request."""
    given = dict(request.query_params)
    if len(given) != len(request.query_params.multi_items()):
        raise ApiError(400, "bad_request", "a parameter is given twice", SEE)
    return _converted(given, kind)


def _converted(given: dict[str, Any], kind: type[Q]) -> Q:
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError(400, "bad_request", length_in_words(str(error)), SEE) from error


def json_response(reply: object, status: int = 200) -> Response:
    """Return a value as a JSON response."""
    return Response(_encode(reply), status, media_type=Media.JSON.value)


async def error_response(request: Request, error: Exception) -> Response:
    """Return an error as a JSON response."""
    status, reply = told(error)
    return json_response(reply, status)


async def http_error_response(request: Request, error: Exception) -> Response:
    """Answer a path that does not exist, or a method that it does not have."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "not_found", 405: "method_not_allowed"}
    detail = f"{request.method} {request.url.path[:200]}"
    response = json_response(told(ApiError(status, words.get(status, "bad_request"), detail))[1], status)
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response
