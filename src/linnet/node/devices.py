"""The devices of the person who uses this node: lists them, and revokes one.

A revocation is signed by the person's key, which the node does not hold: the caller brings it. It goes as an
event into every room that the node is in, and to the neighbours in every stream.
"""

from __future__ import annotations

from collections.abc import Iterable

from linnet.api.node_commands import (
    DeviceRevoked,
    DevicesAre,
    ListDevices,
    Outcome,
    OwnDevice,
    RevokeDevice,
    RoomOutcome,
)
from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.context import kept_cards, kept_revocations
from linnet.identity.cards import Card, Revocation
from linnet.machine.commands import Ask
from linnet.node.answers import answers
from linnet.node.rooms import Rooms
from linnet.rooms.auth.room_state import revocation_key
from linnet.rooms.commands import RoomStatus, StateIs
from linnet.rooms.event_types import REVOCATION, Membership
from linnet.streams.commands import Revoke


class Devices:
    """The devices of one node's person."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    async def all(self) -> tuple[OwnDevice, ...]:
        """Return all known devices of ours, this one first."""
        return (await self._ask(ListDevices())).devices

    async def revoke(self, revocation: Revocation) -> tuple[RoomOutcome, ...]:
        """Revoke a device of ours in every stream and in every room that we are in.

        A room that refuses is reported with its reason, and the others go on. Raises `Refused` if we did not
        sign it, or if it is about this very device, which could not tell anybody afterwards.
        """
        command = RevokeDevice(revocation.device, revocation.at, revocation.sig)
        return (await self._ask(command)).rooms


class DeviceAnswers:
    """The node's own answers about its person's devices: it looks into every room."""

    def __init__(self, card: Card, cells: Cells, ask: Ask, rooms: Rooms) -> None:
        self._card = card
        self._cells = cells
        self._ask = ask
        self._rooms = rooms

    @answers(ListDevices)
    async def list_devices(self, command: ListDevices) -> DevicesAre:
        """Return all known devices of ours, this one first."""
        person, this = self._card.person, self._card.device
        cards = {card.device: card for card in kept_cards(self._cells, person)} | {this: self._card}
        revoked = {word.device for word in kept_revocations(self._cells, person)}
        online: set[DeviceId] = set()
        places: dict[DeviceId, list[TopicId]] = {}
        statuses = await self._rooms.statuses()
        for status in statuses:
            state = await self._rooms.by_id(status.room).state()
            online |= _online(state, person)
            for device in _revoked(state, person):
                places.setdefault(device, []).append(status.room)
        others = sorted({*cards, *revoked, *online, *places} - {this})
        joined = tuple(
            status.room for status in statuses if status.membership is Membership.JOIN and not status.relay
        )
        known = []
        for device in (this, *others):
            card = cards.get(device)
            known.append(
                OwnDevice(
                    device,
                    None if card is None else card.device_key,
                    "" if card is None else card.label,
                    device == this,
                    device in online or device == this,
                    None if card is None else card.not_before,
                    None if card is None else card.not_after,
                    device in revoked,
                    tuple(places.get(device, ())),
                )
            )
        return DevicesAre(person, joined, tuple(known))

    @answers(RevokeDevice)
    async def revoke_device(self, command: RevokeDevice) -> DeviceRevoked:
        """Revoke a device; a room that refuses does not stop the others."""
        revocation = Revocation(self._card.person, command.device, command.at, command.signature)
        if revocation.device == self._card.device:
            raise Refused(Reason.NOT_ALLOWED, "this is the device that asks; revoke it from another")
        await self._ask(Revoke(revocation))
        outcomes = [await self._revoke_in(status, revocation) for status in await self._rooms.statuses()]
        return DeviceRevoked(command.device, tuple(outcomes))

    async def _revoke_in(self, status: RoomStatus, revocation: Revocation) -> RoomOutcome:
        room = self._rooms.by_id(status.room)
        if status.relay or status.membership is not Membership.JOIN:
            role = "a relay" if status.relay else f"no member ({status.membership.value})"
            detail = f"this node is {role} there"
            return RoomOutcome(status.room, status.name, Outcome.SKIPPED, detail=detail)
        try:
            if revocation.device in _revoked(await room.state(), revocation.person):
                return RoomOutcome(status.room, status.name, Outcome.ALREADY)
            sent = await room.revoke(revocation)
            return RoomOutcome(
                status.room, status.name, Outcome.REVOKED, sent.ids[0], sent.neighbors, sent.relays
            )
        except Refused as error:
            return RoomOutcome(
                status.room, status.name, Outcome.REFUSED, reason=error.reason, detail=error.detail
            )


def _online(state: StateIs, person: AuthorId) -> set[DeviceId]:
    return {device for member in state.members if member.person == person for device in member.devices}


def _revoked(state: StateIs, person: AuthorId) -> Iterable[DeviceId]:
    for entry in state.entries:
        device = DeviceId(bytes.fromhex(entry.key.partition(":")[0])) if entry.kind == REVOCATION else None
        if device is not None and entry.key == revocation_key(person, device):
            yield device
