"""How a room stands, for those who ask."""

from __future__ import annotations

import hashlib

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.rooms.access.levels import Rank
from linnet.rooms.content import NAME
from linnet.rooms.results import RoomMember, RoomStatus, StateEntry, StateIs
from linnet.rooms.room import Room

CALLED = "room.called"
"""The cells of what invitations called rooms."""
_NAME_CHARS = 200


def state_of(room: Room) -> StateIs:
    """The resolved state: who is in it, what is allowed, what it is called."""
    view = room.view
    places = [(kind, key, event) for (kind, key), event in room.control.current.items()]
    places += room.parts.plain.entries()
    places.sort()
    known = [(kind, key, room.parts.memory.event(event)) for kind, key, event in places]
    return StateIs(
        room.id,
        tuple(StateEntry(kind, key, event) for kind, key, event in known if event is not None),
        members_of(room),
        view.power(),
        view.join_rule(),
        room.dag.heads,
        room.control.heads,
        digest_of(places),
    )


def digest_of(places: list[tuple[str, str, EventId]]) -> bytes:
    """Equal where rooms agree."""
    digest = hashlib.sha256()
    for kind, key, event in places:
        digest.update(f"{len(kind)}:{kind}{len(key)}:{key}".encode() + event)
    return digest.digest()


def members_of(room: Room) -> tuple[RoomMember, ...]:
    """Everyone who was ever heard of in the room."""
    view = room.view
    online: dict[AuthorId, dict[DeviceId, None]] = {}
    for guest in room.guests.by_peer.values():
        online.setdefault(guest.person, {})[guest.card.device] = None
    ours = room.context
    online.setdefault(ours.author, {})[ours.device] = None
    secrecy = room.parts.secrecy
    holders: dict[AuthorId, list[DeviceId]] = {}
    for device in () if secrecy is None else secrecy.members().values():
        holders.setdefault(device.author, []).append(device.device)
    return tuple(
        RoomMember(
            person,
            membership,
            _level(view.level_of(person)),
            person in online,
            tuple(online.get(person, ())),
            view.is_relay_person(person),
            tuple(sorted(set(holders.get(person, ())))),
        )
        for person, membership in view.members()
    )


def name_of(room: Room) -> str | None:
    """What the room calls itself; until that has come, what the invitation to it did.

    Relays keep no names: who joins while no member is there has only that.
    """
    winner = room.parts.plain.winner(NAME, "")
    event = None if winner is None else room.parts.memory.event(winner)
    body = room.context.store.cells.get(CALLED, room.id) if event is None else event.body
    return None if body is None else body.decode(errors="replace")[:_NAME_CHARS]


def status_of(room: Room) -> RoomStatus:
    """What there is to know about a room at this node."""
    view = room.view
    return RoomStatus(
        room.id,
        name_of(room),
        room.membership,
        False,
        len(view.joined()),
        room.guests.members,
        room.relays.status(),
        len(room.dag),
        len(room.control),
        len(room.dag.heads),
        len(room.intake.order),
        room.intake.order.missing,
        room.intake.soft_failed,
        room.intake.rejected,
        len(room.ledger.unsent()),
        view.is_encrypted,
    )


def _level(rank: Rank) -> int | None:
    return rank if isinstance(rank, int) else None
