"""What the local application asks of rooms, and what it is answered."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.delivery.causal_messages import Want
from linnet.identity.cards import Revocation
from linnet.rooms.content import JoinRule, Membership, Newcomers, Power
from linnet.rooms.messages import (
    AskControl,
    RelayForward,
    RelayInfo,
    RelaySend,
    Resync,
)
from linnet.rooms.ticket import Ticket


class CreateRoom(Struct, frozen=True, gc=False):
    """Found a room. Answered by `RoomMade`."""

    name: str | None = None
    topic: str | None = None
    rule: JoinRule = JoinRule.INVITE
    creators: tuple[AuthorId, ...] = ()
    """People of infinite power beside ourselves, such as a second identity of the owner."""
    newcomers: Newcomers | None = None
    """Encrypts the room, and says what those may read who join; None: whoever carries it can read it."""


class JoinRoom(Struct, frozen=True, gc=False):
    """Join by a ticket, by an invitation that is in the room's state, or because the room is public.

    Answered by `RoomMade` when the join is in the room, or `Declined` with the reason after `patience`.
    """

    room: TopicId
    ticket: Ticket | None
    contacts: tuple[Contact, ...]
    """Members and relays to ask, all at once; the first that answers is taken."""
    patience: float = 20.0
    knock: bool = False
    """Knock instead of joining."""
    called: str | None = None
    """What an invitation calls the room: its name here until what the room itself says has come."""


class MakeTicket(Struct, frozen=True, gc=False):
    """An invitation to hand over. Answered by `TicketMade`."""

    room: TopicId
    expires_ms: int
    person: AuthorId | None = None
    """None: whoever holds it."""


class SetMembership(Struct, frozen=True, gc=False):
    """Invite, kick (leave), ban, unban (leave); ourselves: leave. Answered by `Sent`."""

    room: TopicId
    person: AuthorId
    membership: Membership
    reason: str | None = None


class SetPower(Struct, frozen=True, gc=False):
    """New power levels, whole. Answered by `Sent`."""

    room: TopicId
    power: Power


class SetLevel(Struct, frozen=True, gc=False):
    """Change one level: of a person, or of a kind of event (``ban``, ``kick``, ``invite``, ``redact`` too).

    Answered by `Sent`. None takes the entry out.
    """

    room: TopicId
    level: int | None
    person: AuthorId | None = None
    kind: str | None = None


class SetRule(Struct, frozen=True, gc=False):
    """Who may join. Answered by `Sent`."""

    room: TopicId
    rule: JoinRule


class SetState(Struct, frozen=True, gc=False):
    """Set plain state such as ``name``. Answered by `Sent`."""

    room: TopicId
    kind: str
    key: str
    body: bytes


class SetRetention(Struct, frozen=True, gc=False):
    """How long the room's relays keep an event. Answered by `Sent`."""

    room: TopicId
    max_lifetime_ms: int | None


class AddRelay(Struct, frozen=True, gc=False):
    """Ask a relay to serve the room and name it in the room's state. Answered by `Sent` or `Declined`."""

    room: TopicId
    contact: Contact
    patience: float = 20.0


class DropRelay(Struct, frozen=True, gc=False):
    """Take a relay out of the room's state, and its membership with it. Answered by `Sent`."""

    room: TopicId
    relay: PeerId


class SendToRoom(Struct, frozen=True, gc=False):
    """Say these, in this order. Answered by `Sent`."""

    room: TopicId
    bodies: tuple[bytes, ...]
    kind: str = "message"
    deadline: float | None = None
    """Seconds after which whoever reads the room here is told (`Overdue`) at whom they have not arrived."""


class Redact(Struct, frozen=True, gc=False):
    """Take an event back. Answered by `Sent`."""

    room: TopicId
    event: EventId
    reason: str | None = None


class ShareHistory(Struct, frozen=True, gc=False):
    """Show those who joined an encrypted room what was said before. Answered by `Sent`."""

    room: TopicId
    newest: int | None = None
    """So many of the newest messages; None: all that this device could read."""


class RevokeInRoom(Struct, frozen=True, gc=False):
    """Say in the room that a device of ours is ours no longer. Answered by `Sent`."""

    room: TopicId
    revocation: Revocation


class ReadRoom(Struct, frozen=True, gc=False):
    """Hand me what is said in a room. Answered by `Reading`. Ended by `Unsubscribe`, paced by `Consumed`."""

    subscription: int
    room: TopicId
    since: float | None = None
    """Unix time of storing from which on history is wanted, 0 for all of it; None for only what comes."""
    name: str | None = None
    """Makes it durable: it resumes after the last that was consumed."""
    live: bool = True
    state: bool = True
    """Whether membership and other state is handed over too, or only what people say."""


class ExamineRooms(Struct, frozen=True, gc=False):
    """How the rooms of this node stand. Answered by `RoomsAre`."""


class ExamineState(Struct, frozen=True, gc=False):
    """The resolved state of a room. Answered by `StateIs`."""

    room: TopicId


class ExamineSecurity(Struct, frozen=True, gc=False):
    """Who holds a room's keys, and what a thief of this device could read. Answered by `SecurityIs`."""

    room: TopicId


class NotePerson(Struct, frozen=True, gc=False):
    """Keep what the node has noted of a person (`noted_people`). Answered by `Done` when it is durable."""

    person: AuthorId
    note: bytes


class ExamineLedger(Struct, frozen=True, gc=False):
    """At whom our events arrived. Answered by `LedgerIs`."""

    room: TopicId
    event: EventId | None = None
    """None: the newest `limit` of our own."""
    limit: int = 20


class ExamineRelay(Struct, frozen=True, gc=False):
    """What this node knows as a relay, of each room and person. Answered by `RelayReport`."""


class ForgetRoom(Struct, frozen=True, gc=False):
    """Leave the room if we are in it, and stop following it; the log stays. Answered by `Done`."""

    room: TopicId


class KeepChunk(Struct, frozen=True, gc=False):
    """Keep a piece of an attachment and offer it to the relays. Answered by `Done` or `Declined`."""

    room: TopicId
    digest: bytes
    data: bytes


class FetchChunk(Struct, frozen=True, gc=False):
    """A piece of an attachment, from here, members or relays. Answered by `ChunkFetched` or `Declined`."""

    room: TopicId
    digest: bytes
    patience: float = 20.0


class AskRelay(Struct, frozen=True, gc=False):
    """A request of an authenticated device that came by another way than a link: the HTTP face.

    Answered by `RelayReplies`.
    """

    peer: PeerId
    person: AuthorId
    message: RelaySend | RelayForward | Resync | Want | AskControl | RelayInfo


RoomCommand: TypeAlias = (
    CreateRoom
    | JoinRoom
    | MakeTicket
    | SetMembership
    | SetPower
    | SetLevel
    | SetRule
    | SetState
    | SetRetention
    | AddRelay
    | DropRelay
    | SendToRoom
    | Redact
    | ShareHistory
    | RevokeInRoom
    | ReadRoom
    | ExamineRooms
    | ExamineState
    | ExamineSecurity
    | NotePerson
    | ExamineLedger
    | ExamineRelay
    | ForgetRoom
    | KeepChunk
    | FetchChunk
    | AskRelay
)
