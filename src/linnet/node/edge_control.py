"""The endpoints of the control API that have to do with the edge."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.edge.proxy_commands import ClientStatus, EdgeStatus, ProxyStatus
from linnet.node.control_types import DoneReply
from linnet.node.control_views import device_text
from linnet.node.edge_types import EdgeClientView, EdgeProxyView, EdgeReply, RefusalView
from linnet.node.endpoints import Endpoints, json_response


class EdgeControl(Endpoints):
    """The endpoints of the edge, over one node."""

    async def edge(self, request: Request) -> Response:
        """Our proxies and clients."""
        return json_response(edge_view(await self._node.edge.status()))

    async def sleep(self, request: Request) -> Response:
        """Let go of all links."""
        await self._node.edge.sleep()
        return json_response(DoneReply())

    async def wake(self, request: Request) -> Response:
        """Turn to the proxies again."""
        await self._node.edge.wake()
        return json_response(DoneReply())


def edge_view(status: EdgeStatus) -> EdgeReply:
    """How the edge stands."""
    return EdgeReply(
        status.is_edge,
        status.is_proxy,
        status.asleep,
        tuple(map(_proxy, status.proxies)),
        tuple(map(_client, status.clients)),
    )


def _proxy(status: ProxyStatus) -> EdgeProxyView:
    return EdgeProxyView(
        device_text(status.peer),
        status.hints,
        status.used,
        status.up,
        status.served,
        tuple(RefusalView(stream, str(reason)) for stream, reason in status.refusals),
        status.kept_bytes,
        status.most_bytes,
        None if status.last_failure is None else str(status.last_failure),
    )


def _client(status: ClientStatus) -> EdgeClientView:
    return EdgeClientView(
        device_text(status.peer),
        status.up,
        status.streams,
        status.kept_bytes,
        status.most_bytes,
        status.last_here,
    )
