"""The endpoints of the control API that have to do with keys and with who is who."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.node.endpoints import json_response
from linnet.node.room_control import RoomControl, person_of
from linnet.node.security_types import VerifiedRequest
from linnet.node.security_views import person_view, security_view


class SecurityControl(RoomControl):
    """The endpoints of keys and people, over one node."""

    async def room_security(self, request: Request) -> Response:
        """Who holds a room's keys, and what a thief could read."""
        node, room = self._node, self._room(request)
        security = await room.security()
        warnings = await node.people.look(room.id)
        return json_response(security_view(security, warnings, node.label_of, node.people.is_verified))

    async def person(self, request: Request) -> Response:
        """What is known of a person."""
        node, person = self._node, person_of(request.path_params["person"])
        return json_response(person_view(node.author, person, node.people.find(person)))

    async def verify_person(self, request: Request) -> Response:
        """Safety numbers were compared, or that is taken back."""
        node, person = self._node, person_of(request.path_params["person"])
        asked = await self._body(request, VerifiedRequest)
        known = await node.people.verify(person, asked.verified)
        return json_response(person_view(node.author, person, known))
