"""The endpoints of the control API that have to do with overlays without trackers, trust and privacy."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.core.errors import Refused
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, from_text
from linnet.node.endpoints import Endpoints, json_response
from linnet.node.overlay_types import SwitchRequest, TrustRequest
from linnet.node.overlay_views import names_of, overlay_view, privacy_view, switch_view, trust_view
from linnet.overlay.trackerless.status import TrackerlessStatus


class OverlayControl(Endpoints):
    """The endpoints of overlays without trackers, over one node."""

    async def _ring(self) -> TrackerlessStatus | None:
        """How the node stands without trackers; None if it takes no part in that."""
        try:
            return await self._node.overlay.status()
        except Refused as error:
            if error.reason is not Reason.UNSUPPORTED:
                raise
            return None

    async def overlay(self, request: Request) -> Response:
        """How it stands."""
        told = await self._node.overlay.status()
        return json_response(overlay_view(told, names_of(await self._node.status())))

    async def privacy(self, request: Request) -> Response:
        """What was told to others of our interests."""
        return json_response(privacy_view(await self._node.overlay.privacy()))

    async def trust(self, request: Request) -> Response:
        """Whom the user trusts."""
        return json_response(trust_view(await self._node.overlay.trusted()))

    async def set_trust(self, request: Request) -> Response:
        """Trust a device, or no longer."""
        asked = await self._body(request, TrustRequest)
        device = PeerId(from_text(Sort.DEVICE, asked.device))
        overlay = self._node.overlay
        if asked.value is None:
            return json_response(trust_view(await overlay.distrust(device)))
        return json_response(trust_view(await overlay.trust(device, asked.value)))

    async def switch_overlay(self, request: Request) -> Response:
        """Give a stream another overlay."""
        asked = await self._body(request, SwitchRequest)
        return json_response(
            switch_view(asked.stream, await self._node.overlay.switch(asked.stream, asked.overlay))
        )
