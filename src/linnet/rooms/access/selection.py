"""Which events of a state authorise an event (Matrix's auth event selection)."""

from __future__ import annotations

from linnet.core.ids import EventId
from linnet.rooms.access.facts import (
    CREATE_KEY,
    JOIN_RULES_KEY,
    POWER_KEY,
    Fact,
    State,
    StateKey,
    revocation_key,
)
from linnet.rooms.access.levels import Version
from linnet.rooms.content import CREATE, MEMBER, REVOCATION, Member, Membership, member_key

_ASK_THE_RULE = frozenset({Membership.JOIN, Membership.INVITE, Membership.KNOCK})


def auth_keys(fact: Fact, version: Version = Version.V12) -> tuple[StateKey, ...]:
    """The places of a state that decide about an event, each once."""
    if fact.kind == CREATE:
        return ()
    keys: dict[StateKey, None] = {} if version is Version.V12 else {CREATE_KEY: None}
    keys[POWER_KEY] = None
    keys[MEMBER, member_key(fact.sender)] = None
    keys[REVOCATION, revocation_key(fact.sender, fact.device)] = None
    if isinstance(fact.content, Member) and fact.key is not None:
        keys[MEMBER, fact.key] = None
        if fact.content.membership in _ASK_THE_RULE:
            keys[JOIN_RULES_KEY] = None
        ticket = fact.content.ticket
        if ticket is not None:
            keys[MEMBER, member_key(ticket.inviter)] = None
            keys[REVOCATION, revocation_key(ticket.inviter, ticket.card.device)] = None
    return tuple(keys)


def select(fact: Fact, state: State, version: Version = Version.V12) -> tuple[EventId, ...]:
    """The events of a state that authorise an event; what the state lacks is left out."""
    found = (state.get(key) for key in auth_keys(fact, version))
    return tuple(event for event in found if event is not None)


def select_in_room(fact: Fact, state: State) -> tuple[EventId, ...]:
    """The same in our rooms, with the event that it replaces.

    Matrix leaves that one out where no rule asks for it, so that its auth graph cannot tell which of two
    join rules came later; ours can.
    """
    selected = select(fact, state)
    replaced = None if fact.key is None else state.get(fact.place)
    return selected if replaced is None or replaced in selected else (*selected, replaced)
