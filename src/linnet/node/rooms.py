"""The rooms of a node: founding them, joining them, finding them again."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from linnet.core.errors import BadText
from linnet.core.ids import AuthorId, Contact, EventId, TopicId
from linnet.node.addresses import parse_contact
from linnet.node.answers import expected
from linnet.node.batching import Ask
from linnet.node.room import Room, Subscribing
from linnet.node.room_names import choose_room
from linnet.node.room_views import room_text
from linnet.rooms.commands import CreateRoom, ExamineRelay, ExamineRooms, JoinRoom
from linnet.rooms.content import JoinRule, Newcomers
from linnet.rooms.invitation import parse_invitation
from linnet.rooms.results import RelayReport, RoomMade, RoomsAre, RoomStatus
from linnet.rooms.ticket import Ticket


class _Listed(Struct, frozen=True):
    room: str
    name: str | None
    id: TopicId


class Rooms:
    """Every room of one node."""

    def __init__(
        self, person: AuthorId, ask: Ask, subscribing: Subscribing, clock: Callable[[], float]
    ) -> None:
        self._person = person
        self._ask = ask
        self._subscribing = subscribing
        self._clock = clock

    async def create(
        self,
        name: str | None = None,
        topic: str | None = None,
        rule: JoinRule = JoinRule.INVITE,
        creators: tuple[AuthorId, ...] = (),
        newcomers: Newcomers = Newcomers.FROM_NOW,
    ) -> Room:
        """Found a room: encrypted, unless everyone may join."""
        secret = None if rule is JoinRule.PUBLIC else newcomers
        return self._made(await self._ask(CreateRoom(name, topic, rule, creators, secret)))

    async def join(
        self,
        where: str | TopicId,
        contacts: tuple[Contact | str, ...] = (),
        patience: float = 20.0,
        knock: bool = False,
    ) -> Room:
        """Join by the text of an invitation, or by a room's id with somebody to ask.

        A room that we are in already takes in where others are now. `BadText` says what is wrong with an
        invitation, `Refused` why the room does not let us in.
        """
        asked = tuple(parse_contact(each) if isinstance(each, str) else each for each in contacts)
        ticket: Ticket | None = None
        room = TopicId(where) if isinstance(where, bytes) else None
        called: str | None = None
        if isinstance(where, str):
            invitation = parse_invitation(where, self._clock())
            ticket, room, called = invitation.ticket, invitation.room, invitation.name
            if ticket.person is not None and ticket.person != self._person:
                raise BadText("this invitation is for another person; ask its sender for one of your own")
            asked = (*invitation.contacts, *asked)
        if room is None:
            raise BadText("a room is joined by an invitation or by its id")
        return self._made(await self._ask(JoinRoom(room, ticket, asked, patience, knock, called)))

    async def find(self, which: str | TopicId) -> Room:
        """A room by its id, an unambiguous beginning of it, or its name; `BadText` lists the candidates."""
        if isinstance(which, bytes):
            return self.by_id(TopicId(which))
        listed = [_Listed(room_text(each.room), each.name, each.room) for each in await self.statuses()]
        return self.by_id(choose_room(which, listed).id)

    def by_id(self, room: TopicId) -> Room:
        """A room, without a look whether it is there."""
        return self._room(room, EventId(room))

    async def statuses(self) -> tuple[RoomStatus, ...]:
        """How every room stands."""
        return expected(await self._ask(ExamineRooms()), RoomsAre).rooms

    async def relay_report(self) -> RelayReport:
        """All that this node knows as a relay."""
        return expected(await self._ask(ExamineRelay()), RelayReport)

    def _made(self, result: object) -> Room:
        made = expected(result, RoomMade)
        joined = made.event if made.refreshed is None else EventId(made.room)
        return self._room(made.room, joined, made.refreshed)

    def _room(self, room: TopicId, joined: EventId, refreshed: int | None = None) -> Room:
        return Room(room, joined, self._ask, self._subscribing, self._clock, refreshed)
