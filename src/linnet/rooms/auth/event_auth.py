"""The authorisation rules, which decide whether a state allows an event: those of Matrix.

Rules 3 to 10 of room version 11, with the changes of version 12. Federation and third-party invitations are
left out: they need servers. Relays, device revocations, and joins by ticket in the place of restricted joins
are added (docs/adr/0010-room-authority.md). Signatures of tickets and revocations depend on no state;
`proven` checks them once for each event.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple, TypeVar, assert_never

from msgspec import Struct

from linnet.core.errors import BadText, RemoteError
from linnet.core.ids import AuthorId, DeviceId, EventId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.cards import CardCheck, check_card, check_revocation
from linnet.identity.text import Sort, from_text, short
from linnet.rooms.auth.room_state import (
    CREATE_KEY,
    JOIN_RULES_KEY,
    POWER_KEY,
    Fact,
    Levels,
    Rank,
    State,
    StateKey,
    StateView,
    Version,
    join_rule_in,
    levels_in,
    membership_in,
    person_of,
    revocation_key,
)
from linnet.rooms.event_types import (
    CONTROL_KINDS,
    CREATE,
    GROUP,
    MEMBER,
    REVOCATION,
    JoinRule,
    Member,
    Membership,
    Power,
    Relay,
    Revoked,
    member_key,
)
from linnet.rooms.invitations import Ticket, check_ticket, check_unexpired


class Refusal(Struct, frozen=True, gc=False):
    """The rule that refuses an event."""

    reason: Reason
    rule: str
    """The rule and its numbers in a few words, for people: "ban: level 0 is below 50"."""


def allowed(fact: Fact, view: StateView, version: Version = Version.V12) -> Refusal | None:
    """Return None if the state allows the event, else the rule that refuses it."""
    if fact.kind == CREATE:
        known = fact.id == view.create.id
        return None if known else Refusal(Reason.NOT_ALLOWED, "create: a room is founded once")
    if view.get((REVOCATION, revocation_key(fact.sender, fact.device))) is not None:
        return Refusal(Reason.CARD_REVOKED, "revocation: the sender has revoked this device")
    own = fact.kind == MEMBER and fact.key == member_key(fact.sender)
    if not own and view.is_relay_person(fact.sender):
        return Refusal(Reason.RELAY_ONLY, "relay_only: a relay says nothing but its own membership")
    levels = levels_in(view, version)
    if fact.kind == MEMBER:
        return membership_allowed(fact, view, levels)
    return sender_joined(fact, view) or _other_allowed(fact, view, levels)


def _other_allowed(fact: Fact, view: StateView, levels: Levels) -> Refusal | None:
    """Apply rules 7 to 10: to events of joined people that are no memberships."""
    if fact.kind == REVOCATION:
        return None  # Anyone may revoke their own device, at any level: `proven` has checked the owner.
    if fact.kind == GROUP:
        return None  # Every reader has to maintain keys, even one that may not send messages.
    level, required = levels.of(fact.sender), levels.required(fact.kind, fact.key is not None)
    if level < required:
        return Refusal(Reason.NO_POWER, f"{fact.kind}: level {level} is below {required}")
    if isinstance(fact.content, Power):
        return power_allowed(fact, fact.content, levels)
    if isinstance(fact.content, Relay):
        return _relay_allowed(fact, fact.content, levels)
    if fact.key and fact.kind not in CONTROL_KINDS and _is_of_another(fact.key, fact.sender):
        return Refusal(Reason.NOT_ALLOWED, f"{fact.kind}: its key is another person")
    return None


def _relay_allowed(fact: Fact, relay: Relay, levels: Levels) -> Refusal | None:
    """Require a level above the relay's person, as for a kick: to be named a relay silences a person."""
    if not relay.active:
        return None
    if relay.person == fact.sender:
        return Refusal(Reason.NOT_ALLOWED, "relay: nobody names themselves")
    level, theirs = levels.of(fact.sender), levels.of(relay.person)
    if theirs >= level:
        return Refusal(Reason.NO_POWER, f"relay: level {level} is not above {theirs}")
    return None


def _is_of_another(key: str, sender: bytes) -> bool:
    """Return whether a key is the id of a person other than the sender, in any spelling (rule 8)."""
    try:
        return from_text(Sort.PERSON, key) != sender
    except BadText:
        return False


def membership_allowed(fact: Fact, view: StateView, levels: Levels) -> Refusal | None:
    """Return None if the state allows this change of a membership, else the rule that refuses it."""
    if not isinstance(fact.content, Member) or fact.key is None:
        return Refusal(Reason.MALFORMED, "member: neither key nor membership")
    match fact.content.membership:
        case Membership.JOIN:
            return _join_allowed(fact, fact.content.ticket, view, levels)
        case Membership.INVITE:
            return _invite_allowed(fact, fact.key, view, levels)
        case Membership.LEAVE:
            return _leave_allowed(fact, fact.key, view, levels)
        case Membership.BAN:
            return _ban_allowed(fact, fact.key, view, levels)
        case Membership.KNOCK:
            return _knock_allowed(fact, view)
        case unknown:
            assert_never(unknown)


def sender_joined(fact: Fact, view: StateView) -> Refusal | None:
    """Apply rule 5, which asks that the sender has joined the room."""
    match membership_in(view, member_key(fact.sender)):
        case Membership.JOIN:
            return None
        case Membership.BAN:
            return Refusal(Reason.BANNED, f"{fact.kind}: the sender is banned")
        case other:
            return Refusal(Reason.NOT_A_MEMBER, f"{fact.kind}: the sender is not in the room ({other})")


def _join_allowed(fact: Fact, ticket: Ticket | None, view: StateView, levels: Levels) -> Refusal | None:
    if fact.key != member_key(fact.sender):
        return Refusal(Reason.NOT_ALLOWED, "join: nobody joins for another")
    if fact.sender == view.create.sender and fact.control == (view.create.id,):
        return None  # the founder's first step
    match membership_in(view, fact.key):
        case Membership.BAN:
            return Refusal(Reason.BANNED, "join: the sender is banned")
        case Membership.JOIN | Membership.INVITE:
            return None
        case Membership.LEAVE | Membership.KNOCK:
            pass
    rule = join_rule_in(view)
    if rule is JoinRule.PUBLIC:
        return None
    if ticket is None:
        return Refusal(Reason.NOT_INVITED, f"join: the rule is {rule}, and there is no invitation")
    return inviter_allowed(ticket, view, levels)


def inviter_allowed(ticket: Ticket, view: StateView, levels: Levels) -> Refusal | None:
    """Return None if the inviter of a ticket, whose signature was checked before, may invite."""
    inviter = ticket.inviter
    if membership_in(view, member_key(inviter)) is not Membership.JOIN:
        return Refusal(Reason.NOT_INVITED, "join: the inviter is not in the room")
    if view.get((REVOCATION, revocation_key(inviter, ticket.card.device))) is not None:
        return Refusal(Reason.NOT_INVITED, "join: the inviter has revoked the device of the ticket")
    if view.is_relay_person(inviter):
        return Refusal(Reason.NOT_INVITED, "join: a relay invites nobody")
    return _at_least(levels.of(inviter), levels.invite, "join: the inviter's", Reason.NOT_INVITED)


def _invite_allowed(fact: Fact, key: str, view: StateView, levels: Levels) -> Refusal | None:
    refusal = sender_joined(fact, view)
    if refusal is not None:
        return refusal
    match membership_in(view, key):
        case Membership.BAN:
            return Refusal(Reason.BANNED, "invite: the person is banned")
        case Membership.JOIN:
            return Refusal(Reason.NOT_ALLOWED, "invite: the person is in the room")
        case Membership.LEAVE | Membership.KNOCK | Membership.INVITE:
            return _at_least(levels.of(fact.sender), levels.invite, "invite:")


def _leave_allowed(fact: Fact, key: str, view: StateView, levels: Levels) -> Refusal | None:
    theirs = membership_in(view, key)
    if key == member_key(fact.sender):
        if theirs is Membership.BAN:
            return Refusal(Reason.BANNED, "leave: the sender is banned")
        if theirs is Membership.LEAVE:
            return Refusal(Reason.NOT_A_MEMBER, "leave: the sender is not in the room")
        return None
    refusal = sender_joined(fact, view)
    if refusal is not None:
        return refusal
    level = levels.of(fact.sender)
    if theirs is Membership.BAN:
        refusal = _at_least(level, levels.ban, "unban:")
    return (
        refusal or _at_least(level, levels.kick, "kick:") or _above(level, levels.of(person_of(key)), "kick:")
    )


def _ban_allowed(fact: Fact, key: str, view: StateView, levels: Levels) -> Refusal | None:
    level = levels.of(fact.sender)
    return (
        sender_joined(fact, view)
        or _at_least(level, levels.ban, "ban:")
        or _above(level, levels.of(person_of(key)), "ban:")
    )


def _knock_allowed(fact: Fact, view: StateView) -> Refusal | None:
    if fact.key != member_key(fact.sender):
        return Refusal(Reason.NOT_ALLOWED, "knock: nobody knocks for another")
    match membership_in(view, fact.key):
        case Membership.BAN:
            return Refusal(Reason.BANNED, "knock: the sender is banned")
        case Membership.JOIN | Membership.INVITE:
            return Refusal(Reason.NOT_ALLOWED, "knock: the sender is in the room or invited")
        case Membership.LEAVE | Membership.KNOCK:
            pass
    rule = join_rule_in(view)
    if rule is not JoinRule.KNOCK:
        return Refusal(Reason.NOT_ALLOWED, f"knock: the rule is {rule}")
    return None


def _at_least(level: Rank, required: int, what: str, reason: Reason = Reason.NO_POWER) -> Refusal | None:
    return None if level >= required else Refusal(reason, f"{what} level {level} is below {required}")


def _above(level: Rank, theirs: Rank, what: str) -> Refusal | None:
    return None if level > theirs else Refusal(Reason.NO_POWER, f"{what} level {level} is not above {theirs}")


class Visitor(NamedTuple):
    """A device that asks to see the control DAG without being a member, and the ticket that it shows."""

    person: AuthorId
    device: DeviceId
    ticket: Ticket | None


def visit_allowed(visitor: Visitor, view: StateView, card_check: CardCheck, now: float) -> Refusal | None:
    """Return None if a visitor may see the control DAG, else the refusal: only people who could join may.

    A visitor has to identify itself. Otherwise a banned person could evade the ban by staying anonymous, and
    a ticket for one person would do for all.
    """
    person, device, ticket = visitor
    standing, rule = membership_in(view, member_key(person)), join_rule_in(view)
    if standing is Membership.BAN:
        return Refusal(Reason.BANNED, "banned from this room")
    if view.get((REVOCATION, revocation_key(person, device))) is not None:
        return Refusal(Reason.CARD_REVOKED, "the device was revoked in this room")
    if standing in (Membership.INVITE, Membership.JOIN) or rule is not JoinRule.INVITE:
        return None
    if ticket is None:
        return Refusal(Reason.NOT_INVITED, "neither a ticket nor an invitation")
    if bytes(ticket.room) != view.create.id:
        return Refusal(Reason.NOT_INVITED, "the ticket is for another room")
    if ticket.person not in (None, person):
        return Refusal(Reason.NOT_INVITED, "the ticket is for another person")
    try:
        check_ticket(ticket, card_check)
        check_unexpired(ticket, now)
    except RemoteError as error:
        return Refusal(error.reason, error.detail)
    return inviter_allowed(ticket, view, levels_in(view))


_SCALARS = ("users_default", "events_default", "state_default", "ban", "redact", "kick", "invite")
K = TypeVar("K")


def power_allowed(fact: Fact, new: Power, levels: Levels) -> Refusal | None:
    """Return None if the sender may replace the present power levels by these, else the refusal."""
    if levels.version is Version.V12 and any(map(levels.is_creator, new.users)):
        return Refusal(Reason.NOT_ALLOWED, "power: a creator has no level in the list")
    old = levels.power
    if old is None:
        return None
    level = levels.of(fact.sender)
    return _named_allowed(old, new, level) or _users_allowed(fact, old, new, level)


def _named_allowed(old: Power, new: Power, level: Rank) -> Refusal | None:
    """Require that a changed level of an act or a kind was not above the sender, and is not now."""
    named = [(name, getattr(old, name), getattr(new, name)) for name in _SCALARS]
    for name, before, after in (*named, *_pairs(old.events, new.events)):
        if before == after:
            continue
        for value in (before, after):
            if value is not None and value > level:
                return Refusal(Reason.NO_POWER, f"power: level {level} is below {value} of {name}")
    return None


def _users_allowed(fact: Fact, old: Power, new: Power, level: Rank) -> Refusal | None:
    for person, before, after in _pairs(old.users, new.users):
        if before == after:
            continue
        name = short(Sort.PERSON, person)
        if before is not None and person != fact.sender and before >= level:
            return Refusal(Reason.NO_POWER, f"power: level {level} is not above {before} of {name}")
        if after is not None and after > level:
            return Refusal(Reason.NO_POWER, f"power: level {level} is below {after} for {name}")
    return None


def _pairs(old: Mapping[K, int], new: Mapping[K, int]) -> Iterator[tuple[K, int | None, int | None]]:
    for name in {**old, **new}:
        yield name, old.get(name), new.get(name)


def proven(fact: Fact, room: TopicId, card_check: CardCheck = check_card) -> Refusal | None:
    """Return None if the signatures inside an event hold; checked once for each event."""
    content = fact.content
    if isinstance(content, Revoked):
        return _revocation_proven(fact, content)
    if isinstance(content, Member) and content.ticket is not None:
        if content.membership is not Membership.JOIN:
            return Refusal(Reason.MALFORMED, "member: a ticket is for a join")
        return _ticket_proven(fact, content.ticket, room, card_check)
    return None


def _revocation_proven(fact: Fact, content: Revoked) -> Refusal | None:
    if content.revocation.person != fact.sender:
        return Refusal(Reason.NOT_ALLOWED, "revocation: of another person's device")
    try:
        check_revocation(content.revocation)
    except RemoteError as error:
        return Refusal(error.reason, f"revocation: {error.detail}")
    return None


def _ticket_proven(fact: Fact, ticket: Ticket, room: TopicId, card_check: CardCheck) -> Refusal | None:
    if ticket.room != room:
        return Refusal(Reason.NOT_INVITED, "join: the ticket is for another room")
    if ticket.person is not None and ticket.person != fact.sender:
        return Refusal(Reason.NOT_INVITED, "join: the ticket is for another person")
    if fact.time > ticket.expires_ms:
        return Refusal(Reason.INVITATION_EXPIRED, f"join: at {fact.time}, after {ticket.expires_ms}")
    try:
        check_ticket(ticket, card_check)
    except RemoteError as error:
        return Refusal(error.reason, f"join: the ticket: {error.detail}")
    return None


_ASK_THE_RULE = frozenset({Membership.JOIN, Membership.INVITE, Membership.KNOCK})


def auth_keys(fact: Fact, version: Version = Version.V12) -> tuple[StateKey, ...]:
    """Return the places of a state that decide about an event, each once."""
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
    """Return the events of a state that authorise an event, without places that the state lacks."""
    found = (state.get(key) for key in auth_keys(fact, version))
    return tuple(event for event in found if event is not None)


def select_in_room(fact: Fact, state: State) -> tuple[EventId, ...]:
    """Return the events that authorise an event in our rooms: also the event that it replaces.

    Matrix leaves the replaced event out where no rule asks for it, so its auth graph cannot tell which of
    two join rules came later; ours can.
    """
    selected = select(fact, state)
    replaced = None if fact.key is None else state.get(fact.place)
    return selected if replaced is None or replaced in selected else (*selected, replaced)
