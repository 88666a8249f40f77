"""Who may join, invite, leave, put out, ban and knock (rule 4 of Matrix's authorisation rules)."""

from __future__ import annotations

from typing import assert_never

from linnet.core.reasons import Reason
from linnet.rooms.access.facts import JOIN_RULES_KEY, Fact, StateView, person_of, revocation_key
from linnet.rooms.access.levels import Levels, Rank
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.content import (
    MEMBER,
    REVOCATION,
    JoinRule,
    JoinRules,
    Member,
    Membership,
    member_key,
)
from linnet.rooms.ticket import Ticket


def membership_allowed(fact: Fact, view: StateView, levels: Levels) -> Refusal | None:
    """None if the state allows this change of a membership."""
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


def membership_in(view: StateView, key: str) -> Membership:
    """How the person of this key stands to the room; whoever was never heard of has left."""
    fact = view.get((MEMBER, key))
    return fact.content.membership if fact and isinstance(fact.content, Member) else Membership.LEAVE


def join_rule_in(view: StateView) -> JoinRule:
    """Who may join; by invitation, if nothing was said."""
    fact = view.get(JOIN_RULES_KEY)
    return fact.content.rule if fact and isinstance(fact.content, JoinRules) else JoinRule.INVITE


def sender_joined(fact: Fact, view: StateView) -> Refusal | None:
    """Rule 5: whoever says anything is in the room."""
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
    """A ticket is worth as much as its inviter's word is in this state; whose word it is was seen before."""
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
