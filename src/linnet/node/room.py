"""A room as an application holds it.

::

    room = await node.create_room("tea")
    print((await room.invite()).text)       # hand this over
    await room.send("Did it arrive?")
    async for event in room.read(since=0):
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from linnet.core.errors import Refused
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.commands import Done
from linnet.event.event import MESSAGE, Event
from linnet.identity.cards import Revocation
from linnet.identity.text import Sort, short, to_text
from linnet.node.addresses import parse_contact
from linnet.node.answers import expected
from linnet.node.attachment_files import IncomingFile, OutgoingFile
from linnet.node.batching import Ask
from linnet.node.subscription import Subscription
from linnet.peer.interface import Command
from linnet.rooms.attachments import Piece, attachment_body, attachment_of, piece_of
from linnet.rooms.commands import (
    AddRelay,
    DropRelay,
    ExamineLedger,
    ExamineRooms,
    ExamineSecurity,
    ExamineState,
    FetchChunk,
    ForgetRoom,
    KeepChunk,
    MakeTicket,
    ReadRoom,
    Redact,
    RevokeInRoom,
    SendToRoom,
    SetLevel,
    SetMembership,
    SetRetention,
    SetRule,
    SetState,
    ShareHistory,
)
from linnet.rooms.content import ATTACHMENT, NAME, TOPIC, JoinRule, Membership
from linnet.rooms.invitation import Invitation
from linnet.rooms.results import (
    ChunkFetched,
    LedgerIs,
    RoomMember,
    RoomsAre,
    SecurityIs,
    Sent,
    StateIs,
    TicketMade,
)

WEEK = 7 * 86_400.0
Bodies = bytes | str | Iterable[bytes | str]
Subscribing = Callable[[Callable[[int], ReadRoom]], Subscription]
"""Make a subscription from a command that is given its number."""

Progress = Callable[[int, int], None]
"""Called with the bytes that are done and the bytes of all."""

R = TypeVar("R")


class Room:
    """A room of this node; made by `Node.create_room`, `Node.join_room` and `Node.room`.

    Every method raises `Refused` with a reason if the room's rules, its members or a limit say no.
    """

    def __init__(
        self,
        id: TopicId,
        joined: EventId,
        ask: Ask,
        subscribing: Subscribing,
        clock: Callable[[], float],
        refreshed: int | None = None,
    ) -> None:
        self.id = id
        self.joined = joined
        """Our join, where we have just joined; otherwise the room's first event."""
        self.refreshed = refreshed
        """Where we were in it already when we joined: how many addresses of others were taken in."""
        self._ask = ask
        self._subscribing = subscribing
        self._clock = clock

    def __repr__(self) -> str:
        return f"Room({short(Sort.TOPIC, self.id)})"

    @property
    def text(self) -> str:
        """The room's id as people type it."""
        return to_text(Sort.TOPIC, self.id)

    async def send(self, bodies: Bodies, kind: str = MESSAGE, deadline: float | None = None) -> Sent:
        """Say a body or several, in this order. They are durable here when this returns.

        After `deadline` seconds whoever reads the room here is told at whom they have not arrived.
        """
        if isinstance(bodies, bytes | str):
            bodies = (bodies,)
        raw = tuple(body.encode() if isinstance(body, str) else bytes(body) for body in bodies)
        if not raw:
            raise Refused(Reason.MALFORMED, "nothing to say")
        return await self._told(SendToRoom(self.id, raw, kind, deadline))

    def read(
        self, since: float | None = None, name: str | None = None, live: bool = True, state: bool = True
    ) -> Subscription:
        """What is said in the room, to be read by ``async for``, ours included.

        `since` is a Unix time from which on history is wanted, 0 for all of it. A `name` makes it
        durable: it resumes after the last event that was handled. Without `live` it ends with the
        history, without `state` it hands over only what people say.
        """
        return self._subscribing(lambda number: ReadRoom(number, self.id, since, name, live, state))

    async def invite(self, person: AuthorId | None = None, lifetime: float = WEEK) -> Invitation:
        """An invitation, good for so many seconds, for one person or for whoever holds it.

        Its `text` is what is handed over; whoever has it needs nothing else to join.
        """
        expires_ms = int((self._clock() + lifetime) * 1000)
        made = expected(await self._ask(MakeTicket(self.id, expires_ms, person)), TicketMade)
        return Invitation(made.ticket, made.contacts, made.name)

    async def set_membership(
        self, person: AuthorId, membership: Membership, reason: str | None = None
    ) -> Sent:
        """How a person is to stand to the room."""
        return await self._told(SetMembership(self.id, person, membership, reason))

    async def kick(self, person: AuthorId, reason: str | None = None) -> Sent:
        """Put a person out; they may be invited again."""
        return await self.set_membership(person, Membership.LEAVE, reason)

    async def ban(self, person: AuthorId, reason: str | None = None) -> Sent:
        """Put a person out for good."""
        return await self.set_membership(person, Membership.BAN, reason)

    async def unban(self, person: AuthorId) -> Sent:
        """Take a ban back; the person may be invited again."""
        return await self.set_membership(person, Membership.LEAVE)

    async def set_level(
        self, level: int | None, person: AuthorId | None = None, kind: str | None = None
    ) -> Sent:
        """The level of a person, or the one that a kind of event, or an act such as ``ban``, asks for."""
        return await self._told(SetLevel(self.id, level, person, kind))

    async def set_rule(self, rule: JoinRule) -> Sent:
        """Who may join."""
        return await self._told(SetRule(self.id, rule))

    async def set_state(self, kind: str, body: bytes | str, key: str = "") -> Sent:
        """Set plain state."""
        raw = body.encode() if isinstance(body, str) else body
        return await self._told(SetState(self.id, kind, key, raw))

    async def set_name(self, name: str) -> Sent:
        """What the room is called."""
        return await self.set_state(NAME, name)

    async def set_topic(self, topic: str) -> Sent:
        """What the room is about."""
        return await self.set_state(TOPIC, topic)

    async def set_retention(self, seconds: float | None) -> Sent:
        """How long the room's relays keep an event; None: until capacity asks for it."""
        return await self._told(SetRetention(self.id, None if seconds is None else int(seconds * 1000)))

    async def state(self) -> StateIs:
        """The resolved state."""
        return expected(await self._ask(ExamineState(self.id)), StateIs)

    async def members(self) -> tuple[RoomMember, ...]:
        """Everyone who has to do with the room."""
        return (await self.state()).members

    async def security(self) -> SecurityIs:
        """Who holds the room's keys, what stands before our next message, what a thief could read."""
        return expected(await self._ask(ExamineSecurity(self.id)), SecurityIs)

    async def ledger(self, event: EventId | None = None, limit: int = 20) -> LedgerIs:
        """At whom an event of ours, or the newest of them, have arrived."""
        return expected(await self._ask(ExamineLedger(self.id, event, limit)), LedgerIs)

    async def redact(self, event: EventId, reason: str | None = None) -> Sent:
        """Take an event back."""
        return await self._told(Redact(self.id, event, reason))

    async def share_history(self, newest: int | None = None) -> Sent:
        """Show those who joined an encrypted room what was said before, where it was founded so."""
        return await self._told(ShareHistory(self.id, newest))

    async def revoke(self, revocation: Revocation) -> Sent:
        """Say here that a device of ours is ours no longer; `Node.devices` does it in all rooms."""
        return await self._told(RevokeInRoom(self.id, revocation))

    async def add_relay(self, contact: Contact | str, patience: float = 20.0) -> Sent:
        """Ask a relay, ``KEY@HOST:PORT``, to serve the room, and name it there."""
        given = parse_contact(contact) if isinstance(contact, str) else contact
        return await self._told(AddRelay(self.id, given, patience))

    async def drop_relay(self, relay: PeerId) -> Sent:
        """Take a relay out of the room."""
        return await self._told(DropRelay(self.id, relay))

    async def leave(self) -> None:
        """Leave the room and stop following it; what is kept of it here stays."""
        expected(await self._ask(ForgetRoom(self.id)), Done)

    async def attach(self, path: Path | str, progress: Progress | None = None) -> Sent:
        """Keep a file's pieces here, offer them to the relays, and say in the room that it is there.

        In an encrypted room they are sealed, and the key is in what is said.
        """
        with OutgoingFile(Path(path), await self._is_encrypted()) as file:
            done = 0
            while isinstance(step := await asyncio.to_thread(file.step), Piece):
                await self.keep_piece(step.data)
                # Lists of pieces come last and are more than the file has.
                done = min(file.size, done + len(step.data))
                if progress is not None:
                    progress(done, file.size)
            return await self.send(attachment_body(step), kind=ATTACHMENT)

    async def fetch(
        self, event: Event, directory: Path | str, progress: Progress | None = None, patience: float = 20.0
    ) -> Path:
        """Put the file of an attachment event into a directory; never overwrites one.

        Each piece is looked for here, at members and at relays for `patience` seconds.
        """
        if event.kind != ATTACHMENT:
            raise Refused(Reason.MALFORMED, f"the event is no attachment but a {event.kind}")
        attachment = attachment_of(event.body)
        with IncomingFile(attachment, Path(directory)) as file:
            while (digest := file.wanted) is not None:
                piece = await self.fetch_piece(digest, patience)
                await asyncio.to_thread(file.give, digest, piece)
                if progress is not None:
                    progress(file.done, attachment.size)
            return await asyncio.to_thread(file.finish)

    async def keep_piece(self, data: bytes) -> bytes:
        """Keep a piece of an attachment and offer it to the relays; the digest that it is fetched by."""
        piece = piece_of(data)
        expected(await self._ask(KeepChunk(self.id, piece.digest, data)), Done)
        return piece.digest

    async def fetch_piece(self, digest: bytes, patience: float = 20.0) -> bytes:
        """A piece of an attachment, whose digest was checked."""
        return expected(await self._ask(FetchChunk(self.id, digest, patience)), ChunkFetched).data

    async def _is_encrypted(self) -> bool:
        """Whether to seal; where nothing is known of the room, better so."""
        rooms = expected(await self._ask(ExamineRooms()), RoomsAre).rooms
        return all(each.encrypted for each in rooms if each.room == self.id)

    async def _told(self, command: Command) -> Sent:
        return expected(await self._ask(command), Sent)
