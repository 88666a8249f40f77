"""The endpoints of the control API that have to do with local networks."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.core.ids import TopicId
from linnet.edge.commands import LanStatus, NetworkStatus
from linnet.identity.text import Sort, from_text
from linnet.node.control_views import device_text, topic_text
from linnet.node.endpoints import Endpoints, json_response
from linnet.node.lan_types import AllowOnLanRequest, LanNetworkView, LanPeerView, LanReply


class LanControl(Endpoints):
    """The endpoints of local networks, over one node."""

    async def lan(self, request: Request) -> Response:
        """Where we are, and who else is there."""
        return json_response(lan_view(await self._node.lan.status()))

    async def allow_on_lan(self, request: Request) -> Response:
        """Set a switch."""
        asked = await self._body(request, AllowOnLanRequest)
        network = None if asked.network is None else bytes.fromhex(asked.network)
        topic = TopicId(from_text(Sort.TOPIC, asked.topic))
        return json_response(network_view(await self._node.lan.allow(topic, network, asked.allowed)))


def lan_view(status: LanStatus) -> LanReply:
    """How things stand on local networks."""
    return LanReply(status.is_enabled, tuple(map(network_view, status.networks)))


def network_view(status: NetworkStatus) -> LanNetworkView:
    """One network."""
    return LanNetworkView(
        status.network.hex(),
        status.name,
        status.is_here,
        status.is_announced,
        tuple(map(topic_text, status.topics)),
        status.heard,
        tuple(LanPeerView(device_text(contact.peer), contact.hints) for contact in status.peers),
    )
