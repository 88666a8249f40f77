"""Matrix's own events as facts, so that worked examples of others can be resolved.

An event is a dict as in Matrix's JSON: ``event_id``, ``type``, ``state_key``, ``sender``, ``content``,
``origin_server_ts``, ``auth_events``, ``prev_events``. Users become people by the hash of their id.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import immutables
from tests.rooms.auth.specified import Seen, Specified

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.rooms.auth.room_state import Fact, State, StateKey, Version
from linnet.rooms.auth.state_resolution import Resolver
from linnet.rooms.event_types import (
    PLAIN,
    Content,
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    member_key,
)

Pdu = Mapping[str, Any]
KINDS = {
    "m.room.create": "create",
    "m.room.member": "member",
    "m.room.power_levels": "power",
    "m.room.join_rules": "join_rules",
}
SCALARS = ("users_default", "events_default", "state_default", "ban", "kick", "redact", "invite")


def user(name: str) -> AuthorId:
    """The person of a Matrix user id."""
    return AuthorId(hashlib.sha256(name.encode()).digest())


def fact_of_pdu(pdu: Pdu) -> Fact:
    """A Matrix event as the rules see it."""
    kind: str = KINDS.get(pdu["type"]) or pdu["type"]
    key = member_key(user(pdu["state_key"])) if kind == "member" else pdu["state_key"]
    previous = tuple(event_id(one) for one in pdu.get("prev_events", ()))
    content = _content(kind, pdu["content"])
    time, sender = pdu["origin_server_ts"], user(pdu["sender"])
    return Fact(event_id(pdu["event_id"]), kind, key, sender, DeviceId(bytes(8)), time, content, previous)


def event_id(text: str) -> EventId:
    """The id of a Matrix event: compared as bytes, which is as code points."""
    return EventId(text.encode())


def _content(kind: str, said: Mapping[str, Any]) -> Content:
    match kind:
        case "create":
            return Create(1, tuple(map(user, said.get("additional_creators", ()))), bytes(16))
        case "member":
            return Member(Membership(said["membership"]))
        case "join_rules":
            return JoinRules(JoinRule(said["join_rule"]))
        case "power":
            users = {user(name): level for name, level in said.get("users", {}).items()}
            named = {name: said[name] for name in SCALARS if name in said}
            return Power(users=users, events=dict(said.get("events", {})), **named)
        case _:
            return PLAIN


class ForeignRoom:
    """A room of Matrix events."""

    def __init__(self, pdus: Sequence[Pdu], version: Version) -> None:
        self.version = version
        self.facts = {fact.id: fact for fact in map(fact_of_pdu, pdus)}
        self.auth = {
            event_id(pdu["event_id"]): tuple(map(event_id, pdu.get("auth_events", ()))) for pdu in pdus
        }
        self.create = next(fact for fact in self.facts.values() if fact.kind == "create")

    def state(self, *ids: str) -> State:
        """The state of these events."""
        found: dict[StateKey, EventId] = {}
        for one in ids:
            fact = self.facts[event_id(one)]
            found[fact.place] = fact.id
        return immutables.Map(found)

    def seen(self, state: State) -> Seen:
        """A state for the rules."""
        events = dict(state)
        return Seen(Specified(self.facts, self.auth, self.create, self.version), events, events)

    def resolve(self, *sets: State) -> list[str]:
        """The ids of the resolved state, sorted, the create event left out."""
        auth_of = self.auth.get
        lookup = self.facts.get
        resolver = Resolver(self.create, lookup, lambda event: auth_of(event, ()), self.version)
        resolved = resolver.resolve(sets)
        return self._ids(resolved.values())

    def as_specified(self, *sets: State, inclusive: bool = True) -> list[str]:
        """The same by the specification's own steps."""
        room = Specified(self.facts, self.auth, self.create, self.version, inclusive)
        return self._ids(room.resolve([dict(state) for state in sets]).values())

    def _ids(self, events: Iterable[EventId]) -> list[str]:
        return sorted(event.decode() for event in events if event != self.create.id)
