"""The control API: what programs of this machine may ask a running node, over HTTP.

One application, served at a Unix socket in the home and, if configured, at a loopback port behind
a token (`linnet.node.control_server`). See docs/adr/0007-control-api.md.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from linnet.core.ids import AuthorId, PeerId, TopicId
from linnet.identity.text import Sort, from_text
from linnet.node.addresses import parse_contact
from linnet.node.content_control import ContentControl
from linnet.node.control_errors import ApiError
from linnet.node.control_types import (
    BlockRequest,
    ConnectRequest,
    ConsumedRequest,
    DeclareRequest,
    DoctorReply,
    DoneReply,
    HistoryQuery,
    PublishRequest,
    SubscribeQuery,
)
from linnet.node.control_views import graph_view, peer_views, publish_view, status_view, topic_names
from linnet.node.device_control import DeviceControl
from linnet.node.doctor import node_checks
from linnet.node.edge_control import EdgeControl
from linnet.node.endpoints import error_response, http_error_response, json_response, query_of
from linnet.node.lan_control import LanControl
from linnet.node.library import Node
from linnet.node.name_control import NameControl
from linnet.node.openapi import document
from linnet.node.operation import Form
from linnet.node.operations import OPERATIONS
from linnet.node.overlay_control import OverlayControl
from linnet.node.place_control import PlaceControl
from linnet.node.reach_checks import reach_checks
from linnet.node.sealed_control import SealedControl
from linnet.node.security_control import SecurityControl
from linnet.node.status_types import PeersReply
from linnet.streams.commands import Policy

_encode = msgspec.json.Encoder().encode


class Control(
    DeviceControl,
    SecurityControl,
    PlaceControl,
    ContentControl,
    SealedControl,
    OverlayControl,
    LanControl,
    EdgeControl,
    NameControl,
):
    """The endpoints, over one node."""

    def __init__(self, node: Node, stop: Callable[[], None]) -> None:
        super().__init__(node)
        self._stop = stop
        self._document = _encode(document())

    def app(self) -> Starlette:
        """The application, to be served."""
        routes = [
            Route(operation.path, self._endpoint(operation.name), methods=[operation.method])
            for operation in OPERATIONS
        ]
        errors = {HTTPException: http_error_response, Exception: error_response}
        return Starlette(routes=routes, exception_handlers=errors)

    async def status(self, request: Request) -> Response:
        """How things stand."""
        node = self._node
        status = await node.status()
        label, now = node.identity.card.label, node.clock.now()
        overlay = node.config.node.overlay
        return json_response(status_view(status, label, node.address, version("linnet"), now, overlay))

    async def peers(self, request: Request) -> Response:
        """Every link."""
        status = await self._node.status()
        names = topic_names(status) | _known(await self._node.places.names())
        return json_response(PeersReply(peer_views(status, names)))

    async def publish(self, request: Request) -> Response:
        """Publish events."""
        asked = await self._body(request, PublishRequest)
        bodies = (*asked.bodies, *(text.encode() for text in asked.texts))
        published = await self._node.publish(asked.stream, bodies, asked.confirm)
        return json_response(publish_view(asked.stream, published))

    async def subscribe(self, request: Request) -> Response:
        """Hand over what is said in a stream."""
        asked = query_of(request, SubscribeQuery)
        subscription = self._node.subscribe(
            asked.stream, asked.since, asked.name, asked.ordered, asked.live, asked.receipts
        )
        return await self._lines(subscription, asked.ack == "manual")

    async def history(self, request: Request) -> Response:
        """Hand over what is kept of a stream."""
        asked = query_of(request, HistoryQuery)
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
        return json_response(DoneReply())

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
        declared = await self._node.declare(asked.stream, policy, asked.sealed)
        return json_response(publish_view(asked.stream, declared))

    async def block(self, request: Request) -> Response:
        """Block a device, or no longer."""
        asked = await self._body(request, BlockRequest)
        await self._node.block(PeerId(from_text(Sort.DEVICE, asked.device)), asked.blocked)
        return json_response(DoneReply())

    async def connect(self, request: Request) -> Response:
        """Keep a link to a peer."""
        asked = await self._body(request, ConnectRequest)
        await self._node.connect(asked.contact)
        return json_response(DoneReply())

    async def doctor(self, request: Request) -> Response:
        """What the node knows about its own health."""
        node = self._node
        lost = 0 if node.trace_file is None else node.trace_file.lost
        told = await node.status()
        ring = await self._ring()
        checks = node_checks(
            told, node.config, node.clock.offset, node.store.failed, lost, ring, node.store.damaged
        )
        places, names = await node.places.statuses(), await node.places.names()
        reached = reach_checks(told, node.config, places, names, ring, node.clock.now())
        return json_response(DoctorReply((*checks, *reached)))

    async def graph(self, request: Request) -> Response:
        """The graph of a topic."""
        topic = TopicId(from_text(Sort.TOPIC, request.path_params["topic"]))
        status = await self._node.status()
        tracked = next((each for each in status.tracked if each.topic == topic), None)
        if tracked is None:
            raise ApiError(404, "not_found", "this node does not track that topic")
        return json_response(graph_view(tracked))

    async def stop(self, request: Request) -> Response:
        """Stop the node."""
        self._stop()
        return json_response(DoneReply(), 202)

    async def openapi(self, request: Request) -> Response:
        """The description of all this."""
        return Response(self._document, media_type=Form.JSON.value)


def _known(names: dict[TopicId, str | None]) -> dict[TopicId, str]:
    return {topic: name for topic, name in names.items() if name}
