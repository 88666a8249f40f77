"""The answers to commands that examine a room: its status, state, members and keys."""

from __future__ import annotations

import hashlib

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.groups import agreement
from linnet.groups.labels import Device, MemberId
from linnet.groups.state import GroupState
from linnet.identity.keys import device_id
from linnet.rooms.auth.room_state import Rank
from linnet.rooms.commands import (
    DeviceKeys,
    Hindrance,
    KeyStanding,
    RoomMember,
    RoomStatus,
    SecurityIs,
    StateEntry,
    StateIs,
    Theft,
)
from linnet.rooms.encryption.room_group import RoomGroup
from linnet.rooms.event_types import NAME
from linnet.rooms.room import Room

CALLED = "room.called"
"""The cells of the names that invitations gave to rooms."""
_NAME_CHARS = 200


def state_of(room: Room) -> StateIs:
    """Return the resolved state of a room: its members, power levels, and plain state."""
    view = room.view
    places = [(kind, key, event) for (kind, key), event in room.control.current.items()]
    places += room.plain.entries()
    places.sort()
    known = [(kind, key, room.memory.event(event)) for kind, key, event in places]
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
    """Return a digest of the state that is equal at nodes that agree."""
    digest = hashlib.sha256()
    for kind, key, event in places:
        digest.update(f"{len(kind)}:{kind}{len(key)}:{key}".encode() + event)
    return digest.digest()


def members_of(room: Room) -> tuple[RoomMember, ...]:
    """Return everyone with a membership in the room, past ones included."""
    view = room.view
    online: dict[AuthorId, dict[DeviceId, None]] = {}
    for guest in room.guests.by_peer.values():
        online.setdefault(guest.person, {})[guest.card.device] = None
    ours = room.context
    online.setdefault(ours.author, {})[ours.device] = None
    group = room.group
    holders: dict[AuthorId, list[DeviceId]] = {}
    for device in () if group is None else group.members().values():
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
    """Return the name of a room by its state, or else the name in the invitation to it.

    Relays keep no names: a person who joins while no member is online has only the latter.
    """
    winner = room.plain.winner(NAME, "")
    event = None if winner is None else room.memory.event(winner)
    body = room.context.store.cells.get(CALLED, room.id) if event is None else event.body
    return None if body is None else body.decode(errors="replace")[:_NAME_CHARS]


def status_of(room: Room) -> RoomStatus:
    """Return the status of a room at this node."""
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
        room.is_revoked,
    )


def _level(rank: Rank) -> int | None:
    return rank if isinstance(rank, int) else None


def security_of(room: Room, now: float) -> SecurityIs:
    """Return the state of a room's keys, without changing anything."""
    group = room.group
    if group is None:
        return SecurityIs(room.id, None)
    state = group.known_state
    texts, unread = group.texts.tally()
    renewal = None
    if state is not None and group.is_member:
        renewal = max(0.0, (state.healed or now) + room.config.key_update - now)
    return SecurityIs(
        room.id,
        group.newcomers,
        group.is_member,
        (*_holding(group, now), *_lacking(room, group, now)),
        _hindrances(room, group, now),
        renewal,
        tuple(unread.items()),
        theft_of(state, texts, sum(1 for _ in group.texts.shared())),
    )


def theft_of(state: GroupState | None, texts: int, shared: int) -> Theft:
    """Count what a thief could read with this state and the stored texts and keys."""
    if state is None:
        return Theft(texts, 0, 0, shared, 0)
    secrets = sum(1 for op in state.ops.values() for secret in op.awaiting.values() if secret)
    secrets += sum(1 for owed in state.owed if owed.secret)
    others = [member for member in agreement.key_ages(state, 0.0) if member != state.me]
    return Theft(texts, agreement.late_messages(state), secrets, shared, len(others))


def _holding(group: RoomGroup, now: float) -> list[DeviceKeys]:
    """Return the devices that hold keys, ours first."""
    state = group.known_state
    if state is None:
        return []
    ages, pending = agreement.key_ages(state, now), agreement.pending_by_member(state)
    surplus = set(group.surplus())

    def of(member: MemberId, device: Device) -> DeviceKeys:
        standing = KeyStanding.SURPLUS if member in surplus else KeyStanding.HOLDS
        age, is_ours = ages.get(member), member == state.me
        return DeviceKeys(*device, standing, age, pending.get(member, 0), is_ours)

    held = [of(member, device) for member, device in group.members().items()]
    return sorted(held, key=lambda each: (not each.ours, each.person, each.device))


def _lacking(room: Room, group: RoomGroup, now: float) -> list[DeviceKeys]:
    """Return the known devices of the room's members that hold no keys."""
    heads = room.context.store.log.heads(room.id)
    known = {Device(head.author, head.device) for head in heads} | {group.ours, *group.keyring.bundles}
    known |= {Device(guest.person, device_id(peer)) for peer, guest in room.guests.by_peer.items()}
    known -= set(group.members().values())
    return [
        DeviceKeys(*device, why_not(group, device, now), None, 0, device == group.ours)
        for device in sorted(known)
        if group.may_hold(device)
    ]


def why_not(group: RoomGroup, device: Device, now: float) -> KeyStanding:
    """Return why a device of the room holds no keys, as far as this device can know."""
    if not group.is_member and device != group.ours:
        return KeyStanding.UNKNOWN
    bundle = group.bundle(device)
    if bundle is None:
        return KeyStanding.NO_PREKEYS
    if group.keyring.is_used(bundle.identity):
        return KeyStanding.USED_PREKEYS
    return KeyStanding.TO_BE_ADDED if now <= bundle.not_after else KeyStanding.EXPIRED_PREKEYS


def _hindrances(room: Room, group: RoomGroup, now: float) -> tuple[Hindrance, ...]:
    state, maintenance = group.known_state, room.maintenance
    if state is None or not group.is_member:
        return (Hindrance.NOT_LET_IN,)
    found = {
        Hindrance.OUT_OF_STEP: agreement.is_desynced(state),
        Hindrance.NEWCOMERS: maintenance is not None and maintenance.must_wait(now),
        Hindrance.ACKS: agreement.owes_acks(state),
        Hindrance.SURPLUS: bool(group.surplus()),
        Hindrance.HEAL: agreement.needs_heal(state),
        Hindrance.MISSING: bool(group.missing()),
    }
    return tuple(hindrance for hindrance, holds in found.items() if holds)
