"""States and events in a few words, without keys or signatures: for the rules alone."""

from __future__ import annotations

import hashlib
from itertools import count

from linnet.core.ids import AuthorId, DeviceId, EventId
from linnet.event.event import MESSAGE
from linnet.identity.cards import Revocation
from linnet.identity.text import Sort, to_text
from linnet.rooms.auth.room_state import (
    CREATE_KEY,
    JOIN_RULES_KEY,
    POWER_KEY,
    Fact,
    StateKey,
    revocation_key,
)
from linnet.rooms.event_types import (
    CREATE,
    JOIN_RULES,
    MEMBER,
    PLAIN,
    POWER,
    RELAY,
    REVOCATION,
    Content,
    Create,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    Power,
    Relay,
    Revoked,
    member_key,
)

_numbers = count()


def who(name: str) -> AuthorId:
    """A person."""
    return AuthorId(hashlib.sha256(name.encode()).digest())


def key(name: str) -> str:
    """The key of a person's membership."""
    return member_key(who(name))


def device(name: str) -> DeviceId:
    """The one device of a person."""
    return DeviceId(hashlib.sha256(b"device" + name.encode()).digest()[:8])


def relay_text(name: str) -> str:
    """The key of a relay."""
    return to_text(Sort.DEVICE, hashlib.sha256(b"relay" + name.encode()).digest())


def fact(
    sender: str,
    kind: str = MESSAGE,
    place: str | None = None,
    content: Content = PLAIN,
    *,
    control: tuple[EventId, ...] = (),
    name: str | None = None,
    time: int = 0,
) -> Fact:
    """An event of somebody; its id follows from its name."""
    made = hashlib.sha256(f"{next(_numbers) if name is None else name}".encode()).digest()
    return Fact(EventId(made), kind, place, who(sender), device(sender), time, content, control)


def member(sender: str, of: str, membership: Membership) -> Fact:
    """A change of membership."""
    return fact(sender, MEMBER, key(of), Member(membership))


CREATE_FACT = fact("creator", CREATE, "", Create(1, (who("second"),), bytes(16)), name="create")


class Here:
    """A state: "creator" founded the room; "second" is a creator too; both are in it."""

    def __init__(
        self,
        *,
        power: Power | None = None,
        rule: JoinRule | None = None,
        relays: tuple[str, ...] = (),
        revoked: tuple[str, ...] = (),
        joined: tuple[str, ...] = (),
        **members: Membership,
    ) -> None:
        self.create = CREATE_FACT
        everyone = {**dict.fromkeys(("creator", "second", *joined), Membership.JOIN), **members}
        self.places: dict[StateKey, Fact] = {CREATE_KEY: CREATE_FACT}
        for name, membership in everyone.items():
            self.places[MEMBER, key(name)] = member(name, name, membership)
        if power is not None:
            self.places[POWER_KEY] = fact("creator", POWER, "", power)
        if rule is not None:
            self.places[JOIN_RULES_KEY] = fact("creator", JOIN_RULES, "", JoinRules(rule))
        for name in relays:
            place = relay_text(name)
            self.places[RELAY, place] = fact("creator", RELAY, place, Relay(True, who(name)))
        for name in revoked:
            place = revocation_key(who(name), device(name))
            content = Revoked(Revocation(who(name), device(name), 0, bytes(64)))
            self.places[REVOCATION, place] = fact(name, REVOCATION, place, content)

    def get(self, place: StateKey) -> Fact | None:
        return self.places.get(place)

    def is_relay_person(self, person: AuthorId) -> bool:
        return any(
            isinstance(one.content, Relay) and one.content.person == person for one in self.places.values()
        )
