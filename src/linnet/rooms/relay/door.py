"""Who may ask a relay for what: decided by the room's state at this moment, never by what it was.

A ban stops whoever is banned at once, also from what was cached before it.
"""

from __future__ import annotations

from typing import NamedTuple

from linnet.core.errors import RemoteError
from linnet.core.ids import AuthorId, DeviceId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.causal_messages import Want
from linnet.event.event import Event
from linnet.identity.cards import CardCheck
from linnet.identity.keys import device_id
from linnet.rooms.access.view import View
from linnet.rooms.access.visiting import visit_allowed
from linnet.rooms.content import MEMBER, REVOCATION, Member, Membership, content_of, member_key
from linnet.rooms.messages import ChunkWant
from linnet.rooms.ticket import Ticket, check_unexpired


class Caller(NamedTuple):
    """Who asks: the device that a link or a request is authenticated to, and whose it is."""

    peer: PeerId
    person: AuthorId
    linked: bool = True
    """Whether it can be told something later; the HTTP face cannot."""

    @property
    def device(self) -> DeviceId:
        """The short name of its device."""
        return device_id(self.peer)


def why_not_member(view: View, caller: Caller) -> Reason | None:
    """Why somebody is no member now; None: it is one."""
    standing = view.membership(caller.person)
    if standing is Membership.BAN:
        return Reason.BANNED
    if standing is not Membership.JOIN:
        return Reason.NOT_A_MEMBER
    return Reason.CARD_REVOKED if view.is_revoked(caller.person, caller.device) else None


def why_not_reader(view: View, caller: Caller | None, asked: Want | ChunkWant | None = None) -> Reason | None:
    """Why somebody is not given what is kept: events are for members and relays, pieces for members."""
    if caller is None:
        return Reason.UNKNOWN_DEVICE
    if view.is_relay(caller.peer) and not isinstance(asked, ChunkWant):
        return None
    return why_not_member(view, caller)


def relay_at(view: View, peer: PeerId) -> Caller | None:
    """The relay at the other end of a link: the room's state says whose it is."""
    named = dict(view.relays()).get(peer)
    return None if named is None else Caller(peer, named.person)


def why_not_visitor(
    room: TopicId, view: View, caller: Caller | None, ticket: Ticket | None, check: CardCheck, now: float
) -> Reason | None:
    """Why the control DAG is not shown to somebody: those may see it who could join by it."""
    if caller is None:
        return Reason.UNKNOWN_DEVICE
    if view.is_relay(caller.peer):
        return None
    refusal = visit_allowed(room, view, caller.person, caller.device, ticket, check, now)
    return None if refusal is None else refusal.reason


def why_not_sender(view: View, caller: Caller, event: Event) -> Reason | None:
    """Why somebody may not bring an event: members may bring any, others only their own membership.

    A device that was revoked may still contest that by a revocation of its own, which resolution judges.
    """
    reason = why_not_member(view, caller)
    if reason is Reason.CARD_REVOKED and event.kind == REVOCATION and event.author == caller.person:
        return None
    own = (
        event.kind == MEMBER and event.author == caller.person and event.tail.key == member_key(caller.person)
    )
    return None if reason is Reason.NOT_A_MEMBER and own else reason


def why_not_joiner(event: Event, caller: Caller, now: float) -> Reason | None:
    """Why a join is not taken from the joiner itself: its ticket has run out.

    Asked only of those who come themselves. Among those who have the join already it is the time in the
    event that counts, alike everywhere.
    """
    if event.kind != MEMBER or event.author != caller.person:
        return None
    content = content_of(event.kind, event.body)
    if not isinstance(content, Member) or content.ticket is None:
        return None
    try:
        check_unexpired(content.ticket, now)
    except RemoteError as error:
        return error.reason
    return None
