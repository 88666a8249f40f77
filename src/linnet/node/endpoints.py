"""What all endpoints of the control API share: reading requests, writing answers, telling errors."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import msgspec
from msgspec import Struct
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from linnet.delivery.items import Item
from linnet.node.control_errors import ApiError, length_in_words, told
from linnet.node.control_types import ItemView
from linnet.node.control_views import item_view
from linnet.node.library import Node
from linnet.node.lines import Beside, Lines, Source
from linnet.node.operation import Form
from linnet.node.subscription import Subscription

Q = TypeVar("Q", bound=Struct)
T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
_encode = msgspec.json.Encoder().encode


class Endpoints:
    """Endpoints over one node, with the subscriptions that are open through them."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._limits = node.config.control
        self._manual: dict[int, Source[object]] = {}
        self._open: dict[int, Source[object]] = {}

    def _endpoint(self, name: str) -> Endpoint:
        endpoint: Endpoint = getattr(self, name)

        async def answered(request: Request) -> Response:
            try:
                return await endpoint(request)
            except ClientDisconnect:
                raise
            except Exception as error:  # Every error is told as JSON; one that is not ours is a 500.
                return await error_response(request, error)

        return answered

    async def _lines(
        self,
        subscription: Subscription,
        is_manual: bool,
        view: Callable[[Item], ItemView] = item_view,
        beside: Beside | None = None,
    ) -> Response:
        return await self._written(subscription, is_manual, view, beside)

    async def _written(
        self,
        subscription: Source[T],
        is_manual: bool,
        view: Callable[[T], Struct],
        beside: Callable[[Sequence[T]], Awaitable[Sequence[Struct]]] | None = None,
    ) -> Response:
        """Line by line what a subscription hands over."""
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
        return Lines(subscription, is_manual, self._closed, view, beside)

    def _closed(self, subscription: Source[object]) -> None:
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
            raise ApiError(400, "bad_request", length_in_words(str(error)), "see /v1/openapi.json") from error


def query_of(request: Request, kind: type[Q]) -> Q:
    """The query of a request."""
    given = dict(request.query_params)
    if len(given) != len(request.query_params.multi_items()):
        raise ApiError(400, "bad_request", "a parameter is given twice", "see /v1/openapi.json")
    try:
        return msgspec.convert(given, kind, strict=False)
    except msgspec.ValidationError as error:
        raise ApiError(400, "bad_request", length_in_words(str(error)), "see /v1/openapi.json") from error


def json_response(reply: Struct, status: int = 200) -> Response:
    """An answer."""
    return Response(_encode(reply), status, media_type=Form.JSON.value)


async def error_response(request: Request, error: Exception) -> Response:
    """An error, as the API tells it."""
    status, reply = told(error)
    return json_response(reply, status)


async def http_error_response(request: Request, error: Exception) -> Response:
    """A path that is not there, or a method that it does not have."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "not_found", 405: "method_not_allowed"}
    detail = f"{request.method} {request.url.path[:200]}"
    response = json_response(told(ApiError(status, words.get(status, "bad_request"), detail))[1], status)
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response
