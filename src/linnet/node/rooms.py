"""The rooms of a node as an application holds them: create, join and find them.

::

    room = await node.create_room("tea")
    print((await room.invite()).text)       # hand this over
    await room.send("Did it arrive?")
    async for event in room.read(since=0):
        ...
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from linnet.api.rooms import WEEK, AskToJoin, InviteToRoom
from linnet.core.errors import BadText, Refused
from linnet.core.ids import AuthorId, Contact, EventId, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.event.event import MESSAGE, Event
from linnet.identity.addresses import parse_contact
from linnet.identity.cards import Revocation
from linnet.identity.lookup import Candidate, find_meant, is_whole, list_candidates
from linnet.identity.text import Sort, from_text, short, to_text, topic_text
from linnet.machine.commands import Ask
from linnet.node.file_transfer import IncomingFile, OutgoingFile
from linnet.node.subscription import Subscription
from linnet.rooms.attachments import Piece, attachment_body, attachment_of, piece_of
from linnet.rooms.commands import (
    AddRelay,
    CompareRelays,
    CreateRoom,
    Departure,
    DropRelay,
    ExamineLedger,
    ExaminePrice,
    ExamineRelay,
    ExamineRooms,
    ExamineSecurity,
    ExamineState,
    FetchChunk,
    KeepChunk,
    LeaveRoom,
    LedgerIs,
    ReadRoom,
    Redact,
    RelayReport,
    RelaysCompared,
    RevokeInRoom,
    RoomLeft,
    RoomMade,
    RoomMember,
    RoomStatus,
    SecurityIs,
    SendToRoom,
    Sent,
    SetLevel,
    SetMembership,
    SetRetention,
    SetRule,
    SetState,
    ShareHistory,
    StateIs,
)
from linnet.rooms.event_types import ATTACHMENT, NAME, TOPIC, JoinRule, Membership, Newcomers
from linnet.rooms.invitations import Invitation
from linnet.rooms.stamps import find_stamp

Bodies = bytes | str | Iterable[bytes | str]
Subscribing = Callable[[Callable[[int], ReadRoom]], Subscription]
"""Makes a subscription from a command that is given its number."""

Progress = Callable[[int, int], None]
"""Called with the bytes done so far and the total."""


def as_bodies(bodies: Bodies) -> tuple[bytes, ...]:
    """Return one body or several as bytes."""
    if isinstance(bodies, bytes | str):
        bodies = (bodies,)
    return tuple(body.encode() if isinstance(body, str) else bytes(body) for body in bodies)


class Room:
    """A room of this node; made by `Node.create_room`, `Node.join_room` and `Node.room`.

    Every method raises `Refused` with a reason if the room's rules, its members or a limit forbid it.
    """

    def __init__(
        self,
        id: TopicId,
        joined: EventId,
        ask: Ask,
        subscribing: Subscribing,
        refreshed: int | None = None,
    ) -> None:
        self.id = id
        self.joined = joined
        """Our join, if we have just joined; otherwise the room's first event."""
        self.refreshed = refreshed
        """If we were a member already when we joined: how many addresses of other members were taken in."""
        self._ask = ask
        self._subscribing = subscribing

    def __repr__(self) -> str:
        return f"Room({short(Sort.TOPIC, self.id)})"

    @property
    def text(self) -> str:
        """The room's id as users type it."""
        return to_text(Sort.TOPIC, self.id)

    async def send(self, bodies: Bodies, kind: str = MESSAGE, deadline: float | None = None) -> Sent:
        """Send a body or several, in this order. They are durable here when this returns.

        After `deadline` seconds, readers of the room here are told which people they have not reached.
        """
        return await self._ask(SendToRoom(self.id, as_bodies(bodies), kind, deadline))

    def read(
        self, since: float | None = None, name: str | None = None, live: bool = True, state: bool = True
    ) -> Subscription:
        """Subscribe to the room's events, ours included; read them by ``async for``.

        `since` is a Unix time from which on history is wanted, 0 for all of it. A `name` makes it durable: it
        resumes after the last event that was handled. Without `live` it ends with the history, without
        `state` it hands over only what people say.
        """
        return self._subscribing(lambda number: ReadRoom(number, self.id, since, name, live, state))

    async def invite(self, person: AuthorId | None = None, lifetime: float = WEEK) -> Invitation:
        """Make an invitation, valid for `lifetime` seconds, for one person or for any holder.

        Hand over its `text`; a person who has it needs nothing else to join.
        """
        return await self._ask(InviteToRoom(self.id, lifetime, person))

    async def set_membership(
        self, person: AuthorId, membership: Membership, reason: str | None = None
    ) -> Sent:
        """Set a person's membership of the room."""
        return await self._ask(SetMembership(self.id, person, membership, reason))

    async def kick(self, person: AuthorId, reason: str | None = None) -> Sent:
        """Remove a person; they may be invited again."""
        return await self.set_membership(person, Membership.LEAVE, reason)

    async def ban(self, person: AuthorId, reason: str | None = None) -> Sent:
        """Remove a person for good."""
        return await self.set_membership(person, Membership.BAN, reason)

    async def unban(self, person: AuthorId) -> Sent:
        """Lift a ban; the person may be invited again."""
        return await self.set_membership(person, Membership.LEAVE)

    async def set_level(
        self, level: int | None, person: AuthorId | None = None, kind: str | None = None
    ) -> Sent:
        """Set a person's level, or the level needed for a kind of event or for an act such as ``ban``."""
        return await self._ask(SetLevel(self.id, level, person, kind))

    async def set_rule(self, rule: JoinRule) -> Sent:
        """Set who may join."""
        return await self._ask(SetRule(self.id, rule))

    async def set_state(self, kind: str, body: bytes | str, key: str = "") -> Sent:
        """Set a state event without rules of its own."""
        raw = body.encode() if isinstance(body, str) else body
        return await self._ask(SetState(self.id, kind, key, raw))

    async def set_name(self, name: str) -> Sent:
        """Set the name of the room."""
        return await self.set_state(NAME, name)

    async def set_topic(self, topic: str) -> Sent:
        """Set the topic of the room."""
        return await self.set_state(TOPIC, topic)

    async def set_retention(self, seconds: float | None) -> Sent:
        """Set how long the room's relays keep an event; None: until they need the room."""
        return await self._ask(SetRetention(self.id, seconds))

    async def state(self) -> StateIs:
        """Return the resolved state."""
        return await self._ask(ExamineState(self.id))

    async def members(self) -> tuple[RoomMember, ...]:
        """Return everyone who has to do with the room."""
        return (await self.state()).members

    async def security(self) -> SecurityIs:
        """Report who holds the room's keys, what our next message waits for, and what a thief could read."""
        return await self._ask(ExamineSecurity(self.id))

    async def ledger(self, event: EventId | None = None, limit: int = 20) -> LedgerIs:
        """Return whom an event of ours, or the newest of them, has reached."""
        return await self._ask(ExamineLedger(self.id, event, limit))

    async def redact(self, event: EventId, reason: str | None = None) -> Sent:
        """Redact an event."""
        return await self._ask(Redact(self.id, event, reason))

    async def share_history(self, newest: int | None = None) -> Sent:
        """Show later members of an encrypted room what was said before, if it was created with that rule."""
        return await self._ask(ShareHistory(self.id, newest))

    async def revoke(self, revocation: Revocation) -> Sent:
        """Revoke a device of ours in this room; `Node.devices` does it in all rooms."""
        return await self._ask(RevokeInRoom(self.id, revocation))

    async def add_relay(self, contact: Contact | str, patience: float = 20.0) -> Sent:
        """Ask a relay, ``KEY@HOST:PORT``, to serve the room, and name it in the room.

        An open relay may ask a stamp, which is made in a thread, and takes some seconds of one core. One that
        asks more than `rooms.stamp_bits` is refused: `Refused` with ``too_expensive``.
        """
        given = parse_contact(contact) if isinstance(contact, str) else contact
        try:
            return await self._ask(AddRelay(self.id, given, patience))
        except Refused as error:
            if error.reason is not Reason.UNPAID:
                raise
        asked = await self._ask(ExaminePrice(self.id, given.peer))
        stamp = await asyncio.to_thread(find_stamp, asked.price, given.peer, self.id, asked.device)
        return await self._ask(AddRelay(self.id, given, patience, stamp))

    async def drop_relay(self, relay: PeerId) -> Sent:
        """Remove a relay from the room."""
        return await self._ask(DropRelay(self.id, relay))

    async def compare_relays(self, old: PeerId, new: PeerId) -> RelaysCompared:
        """Compare two relays, and give the new one what it lacks; ask again until nothing is lacking."""
        return await self._ask(CompareRelays(self.id, old, new))

    async def leave(self) -> RoomLeft:
        """Leave the room and stop following it; what is kept of it here stays.

        Others are told as soon as one of them, or a relay, can be reached, also after restarts; the answer
        says who can be reached at once, and until when the node tries.
        """
        return await self._ask(LeaveRoom(self.id))

    async def attach(self, path: Path | str, progress: Progress | None = None) -> Sent:
        """Keep a file's pieces here, offer them to the relays, and announce the file in the room.

        In an encrypted room the pieces are sealed, and the message holds the key.
        """
        with OutgoingFile(Path(path), await self._is_encrypted()) as file:
            done = 0
            while isinstance(step := await asyncio.to_thread(file.step), Piece):
                await self.keep_piece(step.data)
                # Lists of pieces come last, in addition to the bytes of the file.
                done = min(file.size, done + len(step.data))
                if progress is not None:
                    progress(done, file.size)
            return await self.send(attachment_body(step), kind=ATTACHMENT)

    async def fetch(
        self, event: Event, directory: Path | str, progress: Progress | None = None, patience: float = 20.0
    ) -> Path:
        """Save the file of an attachment event in a directory; never overwrites a file.

        Looks for each piece here, at members and at relays for `patience` seconds.
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
        """Keep a piece of an attachment and offer it to the relays; return the digest to fetch it by."""
        piece = piece_of(data)
        await self._ask(KeepChunk(self.id, piece.digest, data))
        return piece.digest

    async def fetch_piece(self, digest: bytes, patience: float = 20.0) -> bytes:
        """Return a piece of an attachment, with its digest checked."""
        return (await self._ask(FetchChunk(self.id, digest, patience))).data

    async def _is_encrypted(self) -> bool:
        """Return whether to seal; true if nothing is known of the room."""
        rooms = (await self._ask(ExamineRooms())).rooms
        return all(each.encrypted for each in rooms if each.room == self.id)


class Rooms:
    """All rooms of one node."""

    def __init__(self, ask: Ask, subscribing: Subscribing) -> None:
        self._ask = ask
        self._subscribing = subscribing

    async def create(
        self,
        name: str | None = None,
        topic: str | None = None,
        rule: JoinRule = JoinRule.INVITE,
        creators: tuple[AuthorId, ...] = (),
        newcomers: Newcomers = Newcomers.FROM_NOW,
    ) -> Room:
        """Create a room: encrypted, unless everyone may join."""
        return self._made(await self._ask(CreateRoom(name, topic, rule, creators, newcomers)))

    async def join(
        self,
        where: str | TopicId,
        contacts: tuple[Contact | str, ...] = (),
        patience: float = 20.0,
        knock: bool = False,
    ) -> Room:
        """Join by the text of an invitation, or by a room's id with contacts to ask.

        If we are a member already, the present addresses of others are taken in. Raises `BadText` if the
        invitation is wrong, `Refused` if the room does not let us in.
        """
        asked = tuple(parse_contact(each) if isinstance(each, str) else each for each in contacts)
        invitation, room = (where, None) if isinstance(where, str) else (None, where)
        return self._made(await self._ask(AskToJoin(invitation, room, asked, patience, knock)))

    async def find(self, which: str | TopicId) -> Room:
        """Find a room by its id, an unambiguous beginning of it, or its name; `BadText` lists candidates."""
        if isinstance(which, bytes):
            return self.by_id(TopicId(which))
        return self.by_id(choose_room(which, await self.statuses()).room)

    def by_id(self, room: TopicId) -> Room:
        """Return a room without checking that it exists."""
        return self._room(room, EventId(room))

    async def statuses(self) -> tuple[RoomStatus, ...]:
        """Return the state of every room."""
        return (await self._ask(ExamineRooms())).rooms

    async def departures(self) -> tuple[Departure, ...]:
        """Return the rooms that we left and whose members have not been told yet, as far as is known."""
        return (await self._ask(ExamineRooms())).departures

    async def relay_report(self) -> RelayReport:
        """Return all that this node knows as a relay."""
        return await self._ask(ExamineRelay())

    def _made(self, made: RoomMade) -> Room:
        joined = made.event if made.refreshed is None else EventId(made.room)
        return self._room(made.room, joined, made.refreshed)

    def _room(self, room: TopicId, joined: EventId, refreshed: int | None = None) -> Room:
        return Room(room, joined, self._ask, self._subscribing, refreshed)


class Named(Protocol):
    """A room in a list."""

    @property
    def room(self) -> TopicId:
        """The room's id."""

    @property
    def name(self) -> str | None:
        """The room's name."""


R = TypeVar("R", bound=Named)


def choose_room(text: str, rooms: Sequence[R]) -> R:
    """Return the only room that a text can mean; `BadText` lists candidates if it means none or several.

    A name takes precedence over a beginning of an id: a room named ``lt1`` is found by that.
    """
    wanted = text.strip()
    candidates = [Candidate(room, topic_text(room.room), room.name) for room in rooms]
    found = find_meant(wanted, Sort.TOPIC, candidates)
    if len(found) == 1:
        return found[0].thing
    if found:
        listed = list_candidates(found)
        raise BadText(f"{_shown(wanted)} can be {len(found)} rooms; say which by its id: {listed}")
    if is_whole(Sort.TOPIC, wanted):
        from_text(Sort.TOPIC, wanted)  # Says what is wrong with it, if something is.
    if not rooms:
        raise BadText(f"there is no room {_shown(wanted)} here, nor any other; join one: linnet room join")
    raise BadText(f"there is no room {_shown(wanted)} here; there are {list_candidates(candidates)}")


def _shown(text: str) -> str:
    return repr(text if len(text) <= 80 else text[:80] + "…")
