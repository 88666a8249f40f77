"""Commands that govern a room, as the events that say them."""

from __future__ import annotations

from typing import NamedTuple, assert_never

from msgspec.structs import replace

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, to_text
from linnet.rooms.access.view import View
from linnet.rooms.commands import (
    CreateRoom,
    DropRelay,
    Redact,
    RevokeInRoom,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetPower,
    SetRetention,
    SetRule,
    SetState,
    ShareHistory,
)
from linnet.rooms.content import (
    CONTROL_KINDS,
    GROUP,
    HISTORY,
    JOIN_RULES,
    MEMBER,
    NAME,
    POWER,
    REDACTION,
    RELAY,
    RETENTION,
    REVOCATION,
    TOPIC,
    JoinRules,
    Member,
    Membership,
    Power,
    Redaction,
    Relay,
    Retention,
    Revoked,
    body_of,
    member_key,
)

Governing = (
    SetMembership
    | SetPower
    | SetLevel
    | SetRule
    | SetState
    | SetRetention
    | DropRelay
    | SendToRoom
    | Redact
    | ShareHistory
    | RevokeInRoom
)

FIRST_POWER = Power(
    users_default=0,
    events={NAME: 50, TOPIC: 50, POWER: 100, RELAY: 100, RETENTION: 100, JOIN_RULES: 100},
    events_default=0,
    state_default=50,
    ban=50,
    kick=50,
    redact=50,
    invite=0,
)
"""What a new room asks for; Matrix's own preset, with the kinds that we add."""

_NAMED = ("ban", "kick", "redact", "invite", "users_default", "events_default", "state_default")


class Draft(NamedTuple):
    """An event to be made."""

    kind: str
    key: str | None
    body: bytes


def founding(command: CreateRoom, founder: AuthorId) -> list[Draft]:
    """What follows the create event of a new room."""
    drafts = [
        Draft(MEMBER, member_key(founder), body_of(Member(Membership.JOIN))),
        Draft(POWER, "", body_of(FIRST_POWER)),
        Draft(JOIN_RULES, "", body_of(JoinRules(command.rule))),
    ]
    if command.name is not None:
        drafts.append(Draft(NAME, "", command.name.encode()))
    if command.topic is not None:
        drafts.append(Draft(TOPIC, "", command.topic.encode()))
    return drafts


def drafts_of(command: Governing, view: View) -> list[Draft]:
    """The events that carry a command out, in order; `Refused` if it makes no sense."""
    match command:
        case SetMembership(_, person, membership, reason):
            return [Draft(MEMBER, member_key(person), body_of(Member(membership, reason)))]
        case SetPower(_, power):
            return [Draft(POWER, "", body_of(power))]
        case SetLevel():
            return [Draft(POWER, "", body_of(_with_level(view.power(), command)))]
        case SetRule(_, rule):
            return [Draft(JOIN_RULES, "", body_of(JoinRules(rule)))]
        case SetState(_, kind, key, body):
            return [Draft(_plain(kind), key, body)]
        case SetRetention(_, max_lifetime_ms):
            return [Draft(RETENTION, "", body_of(Retention(max_lifetime_ms)))]
        case DropRelay(_, relay):
            return _dropped(command, view, to_text(Sort.DEVICE, relay))
        case SendToRoom(_, bodies, kind):
            return [Draft(_plain(kind), None, body) for body in bodies]
        case Redact(_, event, reason):
            return [Draft(REDACTION, None, body_of(Redaction(event, reason)))]
        case ShareHistory():
            raise Refused(Reason.NOT_ALLOWED, "what is shared depends on what can be read here")
        case RevokeInRoom(_, revocation):
            return [Draft(REVOCATION, revocation.device.hex(), body_of(Revoked(revocation)))]
        case _:
            assert_never(command)


def _plain(kind: str) -> str:
    """A kind that means nothing to nodes; `Refused` if it does."""
    if kind in CONTROL_KINDS or kind in (REDACTION, GROUP, HISTORY):
        raise Refused(Reason.NOT_ALLOWED, f"{kind} has a command of its own")
    return kind


def _dropped(command: DropRelay, view: View, key: str) -> list[Draft]:
    named = dict(view.relays()).get(command.relay)
    if named is None:
        raise Refused(Reason.NOT_A_RELAY, f"{key} is no relay of this room")
    gone = Draft(RELAY, key, body_of(Relay(False, named.person, ())))
    others = [peer for peer, relay in view.relays() if relay.person == named.person and peer != command.relay]
    if others or view.membership(named.person) is not Membership.JOIN:
        return [gone]
    return [gone, Draft(MEMBER, member_key(named.person), body_of(Member(Membership.LEAVE)))]


def _with_level(power: Power, command: SetLevel) -> Power:
    if (command.person is None) == (command.kind is None):
        raise Refused(Reason.MALFORMED, "a level is of a person or of a kind, one of both")
    if command.person is not None:
        users = {person: level for person, level in power.users.items() if person != command.person}
        if command.level is not None:
            users[command.person] = command.level
        return replace(power, users=users)
    kind = command.kind or ""
    if kind in _NAMED:
        return replace(power, **{kind: command.level})
    events = {name: level for name, level in power.events.items() if name != kind}
    if command.level is not None:
        events[kind] = command.level
    return replace(power, events=events)
