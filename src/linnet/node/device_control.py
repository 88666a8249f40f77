"""The endpoints of the control API that have to do with our own devices."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from linnet.core.ids import DeviceId
from linnet.identity.cards import Revocation
from linnet.node.control_views import device_text
from linnet.node.device_types import DevicesReply, DeviceView, RevokeReply, RevokeRequest, RoomOutcomeView
from linnet.node.devices import OwnDevice, RoomOutcome
from linnet.node.endpoints import json_response
from linnet.node.room_control import RoomControl
from linnet.node.room_views import event_text, person_text, room_text
from linnet.rooms.content import Membership


class DeviceControl(RoomControl):
    """The endpoints of our own devices, over one node."""

    async def devices(self, request: Request) -> Response:
        """Every device of the person."""
        node = self._node
        joined = tuple(
            room_text(status.room)
            for status in await node.rooms.statuses()
            if status.membership is Membership.JOIN and not status.relay
        )
        devices = tuple(map(device_view, await node.devices.all()))
        return json_response(DevicesReply(person_text(node.author), joined, devices))

    async def revoke_device(self, request: Request) -> Response:
        """Take a device out of use."""
        asked = await self._body(request, RevokeRequest)
        node = self._node
        device = DeviceId(bytes.fromhex(asked.device))
        word = Revocation(node.author, device, asked.at, asked.signature)
        outcomes = await node.devices.revoke(word)
        return json_response(RevokeReply(asked.device, tuple(map(outcome_view, outcomes))))


def device_view(device: OwnDevice) -> DeviceView:
    """A device of ours."""
    card = device.card
    return DeviceView(
        device.id.hex(),
        None if card is None else device_text(card.device_key),
        "" if card is None else card.label,
        device.is_this,
        device.is_online,
        None if card is None else card.not_before,
        None if card is None else card.not_after,
        device.is_revoked,
        tuple(map(room_text, device.revoked_in)),
    )


def outcome_view(outcome: RoomOutcome) -> RoomOutcomeView:
    """What became of a revocation in one room."""
    sent = outcome.sent
    return RoomOutcomeView(
        room_text(outcome.room),
        outcome.name,
        outcome.outcome,
        None if sent is None else event_text(sent.ids[0]),
        0 if sent is None else sent.neighbors,
        () if sent is None else tuple(map(device_text, sent.relays)),
        None if outcome.reason is None else outcome.reason.value,
        outcome.detail,
    )
