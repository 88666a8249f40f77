"""The devices of the person who uses this node: which there are, and taking one out of use.

A revocation is signed by the person's key, which the node does not hold: whoever asks brings it. It goes
into every room that the node is in, as an event, and to the neighbours in every stream.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, DeviceId, TopicId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.delivery.cards import kept_cards, kept_revocations
from linnet.delivery.commands import Done
from linnet.identity.cards import Card, Revocation
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.node.device_types import Outcome
from linnet.node.rooms import Rooms
from linnet.rooms.access.facts import revocation_key
from linnet.rooms.content import REVOCATION, Membership
from linnet.rooms.results import RoomStatus, Sent, StateIs
from linnet.streams.commands import Revoke


class OwnDevice(Struct, frozen=True):
    """A device of ours, as far as this node has met it or was told of it."""

    id: DeviceId
    card: Card | None
    """None: nothing that it said is kept here."""
    is_this: bool
    is_online: bool
    """Whether it is linked to this node in a room."""
    is_revoked: bool
    """Whether this node, as a reader of streams, was told that it is ours no longer."""
    revoked_in: tuple[TopicId, ...]


class RoomOutcome(Struct, frozen=True):
    """What became of a revocation in one room, and to whom it went."""

    room: TopicId
    name: str | None
    outcome: Outcome
    sent: Sent | None = None
    reason: Reason | None = None
    detail: str = ""


class Devices:
    """The devices of one node's person."""

    def __init__(self, card: Card, cells: Cells, ask: Ask, rooms: Rooms) -> None:
        self._card = card
        self._cells = cells
        self._ask = ask
        self._rooms = rooms

    async def all(self) -> tuple[OwnDevice, ...]:
        """Every device of ours that is known here, this one first."""
        person, this = self._card.person, self._card.device
        cards = {card.device: card for card in kept_cards(self._cells, person)} | {this: self._card}
        revoked = {word.device for word in kept_revocations(self._cells, person)}
        online: set[DeviceId] = set()
        places: dict[DeviceId, list[TopicId]] = {}
        for status in await self._rooms.statuses():
            state = await self._rooms.by_id(status.room).state()
            online |= _online(state, person)
            for device in _revoked(state, person):
                places.setdefault(device, []).append(status.room)
        others = sorted({*cards, *revoked, *online, *places} - {this})
        return tuple(
            OwnDevice(
                device,
                cards.get(device),
                device == this,
                device in online or device == this,
                device in revoked,
                tuple(places.get(device, ())),
            )
            for device in (this, *others)
        )

    async def revoke(self, revocation: Revocation) -> tuple[RoomOutcome, ...]:
        """Take a device of ours out of use in every stream and in every room that we are in.

        What a room says no to is told with its reason, and the others go on. Raises `Refused` if it is
        not our word or about this very device, which could not tell anybody afterwards.
        """
        if revocation.person != self._card.person:
            raise Refused(Reason.NOT_ALLOWED, "this is the word of another person")
        if revocation.device == self._card.device:
            raise Refused(Reason.NOT_ALLOWED, "this is the device that asks; revoke it from another")
        expected(await self._ask(Revoke(revocation)), Done)
        return tuple([await self._revoke_in(status, revocation) for status in await self._rooms.statuses()])

    async def _revoke_in(self, status: RoomStatus, revocation: Revocation) -> RoomOutcome:
        room = self._rooms.by_id(status.room)
        if status.relay or status.membership is not Membership.JOIN:
            role = "a relay" if status.relay else f"no member ({status.membership.value})"
            detail = f"this node is {role} there"
            return RoomOutcome(status.room, status.name, Outcome.SKIPPED, detail=detail)
        try:
            if revocation.device in _revoked(await room.state(), revocation.person):
                return RoomOutcome(status.room, status.name, Outcome.ALREADY)
            return RoomOutcome(status.room, status.name, Outcome.REVOKED, await room.revoke(revocation))
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
