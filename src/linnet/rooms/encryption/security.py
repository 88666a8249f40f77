"""Who holds the keys of a room, what stands before the next message, and what a thief could read."""

from __future__ import annotations

from linnet.groups import agreement
from linnet.groups.ids import Device, MemberId
from linnet.groups.state import GroupState
from linnet.identity.keys import device_id
from linnet.rooms.encryption.secrecy import Secrecy
from linnet.rooms.results import DeviceKeys, Hindrance, KeyStanding, SecurityIs, Theft
from linnet.rooms.room import Room


def security_of(room: Room, now: float) -> SecurityIs:
    """How a room stands; nothing is changed by looking."""
    secrecy = room.parts.secrecy
    if secrecy is None:
        return SecurityIs(room.id, None)
    state = secrecy.known_state
    texts, unread = secrecy.keyring.tally()
    renewal = None
    if state is not None and secrecy.is_member:
        renewal = max(0.0, (state.healed or now) + room.config.key_update - now)
    return SecurityIs(
        room.id,
        secrecy.newcomers,
        secrecy.is_member,
        (*_holding(secrecy, now), *_lacking(room, secrecy, now)),
        _hindrances(room, secrecy, now),
        renewal,
        tuple(unread.items()),
        theft_of(state, texts, sum(1 for _ in secrecy.keyring.shared())),
    )


def theft_of(state: GroupState | None, texts: int, shared: int) -> Theft:
    """What a thief could read who has this state and what is kept beside it."""
    if state is None:
        return Theft(texts, 0, 0, shared, 0)
    secrets = sum(1 for op in state.ops.values() for secret in op.awaiting.values() if secret)
    secrets += sum(1 for owed in state.owed if owed.secret)
    others = [member for member in agreement.key_ages(state, 0.0) if member != state.me]
    return Theft(texts, agreement.late_messages(state), secrets, shared, len(others))


def _holding(secrecy: Secrecy, now: float) -> list[DeviceKeys]:
    """The devices that hold keys, ours first."""
    state = secrecy.known_state
    if state is None:
        return []
    ages, pending = agreement.key_ages(state, now), agreement.pending_by_member(state)
    surplus = set(secrecy.surplus())

    def of(member: MemberId, device: Device) -> DeviceKeys:
        standing = KeyStanding.SURPLUS if member in surplus else KeyStanding.HOLDS
        age, is_ours = ages.get(member), member == state.me
        return DeviceKeys(*device, standing, age, pending.get(member, 0), is_ours)

    held = [of(member, device) for member, device in secrecy.members().items()]
    return sorted(held, key=lambda each: (not each.ours, each.person, each.device))


def _lacking(room: Room, secrecy: Secrecy, now: float) -> list[DeviceKeys]:
    """Devices of the room's members that hold no keys, as far as they were ever heard of here."""
    heads = room.context.store.log.heads(room.id)
    known = {Device(head.author, head.device) for head in heads} | {secrecy.ours, *secrecy.keyring.bundles}
    known |= {Device(guest.person, device_id(peer)) for peer, guest in room.guests.by_peer.items()}
    known -= set(secrecy.members().values())
    return [
        DeviceKeys(*device, why_not(secrecy, device, now), None, 0, device == secrecy.ours)
        for device in sorted(known)
        if secrecy.may_hold(device)
    ]


def why_not(secrecy: Secrecy, device: Device, now: float) -> KeyStanding:
    """Why a device of the room holds no keys, as far as it can be known here."""
    if not secrecy.is_member and device != secrecy.ours:
        return KeyStanding.UNKNOWN
    bundle = secrecy.bundle(device)
    if bundle is None:
        return KeyStanding.NO_PREKEYS
    if secrecy.keyring.is_used(bundle.identity):
        return KeyStanding.USED_PREKEYS
    return KeyStanding.TO_BE_ADDED if now <= bundle.not_after else KeyStanding.EXPIRED_PREKEYS


def _hindrances(room: Room, secrecy: Secrecy, now: float) -> tuple[Hindrance, ...]:
    state, guarding = secrecy.known_state, room.guarding
    if state is None or not secrecy.is_member:
        return (Hindrance.NOT_LET_IN,)
    found = {
        Hindrance.OUT_OF_STEP: agreement.is_desynced(state),
        Hindrance.NEWCOMERS: guarding is not None and guarding.must_wait(now),
        Hindrance.ACKS: agreement.owes_acks(state),
        Hindrance.SURPLUS: bool(secrecy.surplus()),
        Hindrance.HEAL: agreement.needs_heal(state),
        Hindrance.MISSING: bool(secrecy.missing()),
    }
    return tuple(hindrance for hindrance, holds in found.items() if holds)
