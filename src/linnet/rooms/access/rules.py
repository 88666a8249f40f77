"""What a state allows: the authorisation rules of Matrix that depend on a state.

Rules 3 to 10 of room version 11, with what version 12 changed. Left out are federation and third-party
invitations, which need servers. Added are relays, device revocations, and joins by ticket in the place
of restricted joins (docs/adr/0010-room-authority.md). Signatures are checked before, once (`proofs`).
"""

from __future__ import annotations

from linnet.core.errors import BadText
from linnet.core.reasons import Reason
from linnet.identity.text import Sort, from_text
from linnet.rooms.access.facts import Fact, StateView, revocation_key
from linnet.rooms.access.levels import Levels, Version, levels_in
from linnet.rooms.access.membership_rules import membership_allowed, sender_joined
from linnet.rooms.access.power_rules import power_allowed
from linnet.rooms.access.verdict import Refusal
from linnet.rooms.content import CONTROL_KINDS, CREATE, GROUP, MEMBER, REVOCATION, Power, Relay, member_key


def allowed(fact: Fact, view: StateView, version: Version = Version.V12) -> Refusal | None:
    """None if the state allows the event, else the rule that stands against it."""
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
    """Rules 7 to 10: anything but a membership, of somebody who is in the room."""
    if fact.kind == REVOCATION:
        return None  # of one's own device, whatever one's level: `proofs` has seen whose it is
    if fact.kind == GROUP:
        return None  # Whoever reads has to keep keys, whoever may speak.
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
    """Naming a relay silences its person, so it takes what putting that person out takes."""
    if not relay.active:
        return None
    if relay.person == fact.sender:
        return Refusal(Reason.NOT_ALLOWED, "relay: nobody names themselves")
    level, theirs = levels.of(fact.sender), levels.of(relay.person)
    if theirs >= level:
        return Refusal(Reason.NO_POWER, f"relay: level {level} is not above {theirs}")
    return None


def _is_of_another(key: str, sender: bytes) -> bool:
    """Rule 8: whether a key is the id of a person who is not the sender, however it is spelt."""
    try:
        return from_text(Sort.PERSON, key) != sender
    except BadText:
        return False
