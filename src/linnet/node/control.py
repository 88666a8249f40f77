"""The control API: what programs of this machine may ask a running node, over HTTP.

One application, served at a Unix socket in the home and, if configured, at a loopback port behind
a token (`linnet.node.control_server`). See docs/adr/0007-control-api.md.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from importlib.metadata import version
from typing import TypeVar

import msgspec
from msgspec import Struct
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.identity.text import Sort, from_text
from linnet.node.addresses import parse_contact
from linnet.node.control_errors import ApiError, told
from linnet.node.control_types import (
    BlockRequest,
    ConnectRequest,
    ConsumedRequest,
    DeclareRequest,
    DoctorReply,
    DoneReply,
    HistoryQuery,
    PeersReply,
    PublishRequest,
    SubscribeQuery,
)
from linnet.node.control_views import graph_view, peer_views, publish_view, status_view
from linnet.node.doctor import node_checks
from linnet.node.library import Node
from linnet.node.lines import Lines
from linnet.node.openapi import document
from linnet.node.operations import OPERATIONS, Form
from linnet.node.subscription import Subscription
from linnet.streams.commands import Policy

Q = TypeVar("Q", bound=Struct)
Endpoint = Callable[[Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode


class Control:
    """The endpoints, over one node."""

    def __init__(self, node: Node, stop: Callable[[], None]) -> None:
        self._node = node
        self._stop = stop
        self._limits = node.config.control
        self._manual: dict[int, Subscription] = {}
        self._open: dict[int, Subscription] = {}
        self._document = _encode(document())

    def app(self) -> Starlette:
        """The application, to be served."""
        routes = [
            Route(operation.path, self._endpoint(operation.name), methods=[operation.method])
            for operation in OPERATIONS
        ]
        return Starlette(routes=routes, exception_handlers={HTTPException: _http_error, Exception: _error})

    async def status(self, request: Request) -> Response:
        """How things stand."""
        node = self._node
        status = await node.status()
        label, now = node.identity.card.label, node.clock.now()
        return _json(status_view(status, label, node.address, version("linnet"), now))

    async def peers(self, request: Request) -> Response:
        """Every link."""
        status = await self._node.status()
        return _json(PeersReply(peer_views(status)))

    async def publish(self, request: Request) -> Response:
        """Publish events."""
        asked = await self._body(request, PublishRequest)
        bodies = (*asked.bodies, *(text.encode() for text in asked.texts))
        published = await self._node.publish(asked.stream, bodies, asked.confirm)
        return _json(publish_view(asked.stream, published))

    async def subscribe(self, request: Request) -> Response:
        """Hand over what is said in a stream."""
        asked = _query(request, SubscribeQuery)
        subscription = self._node.subscribe(
            asked.stream, asked.since, asked.name, asked.ordered, asked.live, asked.receipts
        )
        return await self._lines(subscription, asked.ack == "manual")

    async def history(self, request: Request) -> Response:
        """Hand over what is kept of a stream."""
        asked = _query(request, HistoryQuery)
        subscription = self._node.subscribe(asked.stream, asked.since, ordered=asked.ordered, live=False)
        return await self._lines(subscription, False)

    async def consumed(self, request: Request) -> Response:
        """Items of a subscription were handled."""
        asked = await self._body(request, ConsumedRequest)
        number = request.path_params["subscription"]
        subscription = self._manual.get(int(number)) if number.isascii() and number.isdigit() else None
        if subscription is None:
            raise ApiError(404, "not_found", "there is no open subscription of this number with ack=manual")
        if asked.items > subscription.unhandled:
            detail = f"only {subscription.unhandled} items were handed over and are not consumed yet"
            raise ApiError(409, "too_many", detail)
        await subscription.consume(asked.items)
        return _json(DoneReply())

    async def declare(self, request: Request) -> Response:
        """Decide about a stream of ours."""
        asked = await self._body(request, DeclareRequest)
        publishers = asked.publishers
        policy = Policy(
            None
            if publishers is None
            else tuple(AuthorId(from_text(Sort.PERSON, text)) for text in publishers),
            asked.degree,
            asked.near,
            tuple(map(parse_contact, asked.trackers)),
        )
        return _json(publish_view(asked.stream, await self._node.declare(asked.stream, policy)))

    async def block(self, request: Request) -> Response:
        """Block a device, or no longer."""
        asked = await self._body(request, BlockRequest)
        await self._node.block(PeerId(from_text(Sort.DEVICE, asked.device)), asked.blocked)
        return _json(DoneReply())

    async def connect(self, request: Request) -> Response:
        """Keep a link to a peer."""
        asked = await self._body(request, ConnectRequest)
        await self._node.connect(asked.contact)
        return _json(DoneReply())

    async def doctor(self, request: Request) -> Response:
        """What the node knows about its own health."""
        node = self._node
        lost = 0 if node.trace_file is None else node.trace_file.lost
        checks = node_checks(await node.status(), node.config, node.clock.offset, node.store.failed, lost)
        return _json(DoctorReply(tuple(checks)))

    async def graph(self, request: Request) -> Response:
        """The graph of a topic."""
        topic = TopicId(from_text(Sort.TOPIC, request.path_params["topic"]))
        status = await self._node.status()
        tracked = next((each for each in status.tracked if each.topic == topic), None)
        if tracked is None:
            raise ApiError(404, "not_found", "this node does not track that topic")
        return _json(graph_view(tracked))

    async def stop(self, request: Request) -> Response:
        """Stop the node."""
        self._stop()
        return _json(DoneReply(), 202)

    async def openapi(self, request: Request) -> Response:
        """The description of all this."""
        return Response(self._document, media_type=Form.JSON.value)

    def _endpoint(self, name: str) -> Endpoint:
        endpoint: Endpoint = getattr(self, name)

        async def answered(request: Request) -> Response:
            try:
                return await endpoint(request)
            except ClientDisconnect:
                raise
            except Exception as error:  # Every error is told as JSON; one that is not ours is a 500.
                return await _error(request, error)

        return answered

    async def _lines(self, subscription: Subscription, is_manual: bool) -> Response:
        if len(self._open) >= self._limits.max_subscriptions:
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
        return Lines(subscription, is_manual, self._closed)

    def _closed(self, subscription: Subscription) -> None:
        self._open.pop(subscription.number, None)
        self._manual.pop(subscription.number, None)

    async def _body(self, request: Request, kind: type[Q]) -> Q:
        """The body of a request, read no further than its limit."""
        form = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if form != Form.JSON:
            raise ApiError(415, "not_json", f"the content type is {form[:80]!r}", f"send {Form.JSON}")
        limit = self._limits.max_request_bytes
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > limit:
                raise ApiError(413, "too_large", f"a request has at most {limit} bytes", "send less at once")
        try:
            return msgspec.json.decode(content, type=kind)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise ApiError(400, "bad_request", str(error), "see /v1/openapi.json") from error


def _query(request: Request, kind: type[Q]) -> Q:
    given = dict(request.query_params)
    if len(given) != len(request.query_params.multi_items()):
        raise ApiError(400, "bad_request", "a parameter is given twice", "see /v1/openapi.json")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError(400, "bad_request", str(error), "see /v1/openapi.json") from error


def _json(reply: Struct, status: int = 200) -> Response:
    return Response(_encode(reply), status, media_type=Form.JSON.value)


async def _error(request: Request, error: Exception) -> Response:
    status, reply = told(error)
    return _json(reply, status)


async def _http_error(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "not_found", 405: "method_not_allowed"}
    detail = f"{request.method} {request.url.path[:200]}"
    response = _json(told(ApiError(status, words.get(status, "bad_request"), detail))[1], status)
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response
