"""The endpoints of the control API that have to do with rooms. Rooms are named by their ids here."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from linnet.core.ids import AuthorId, EventId, PeerId, TopicId
from linnet.delivery.items import Item
from linnet.identity.text import Sort, from_text
from linnet.node.addresses import parse_contact
from linnet.node.control_errors import ApiError
from linnet.node.control_types import DoneReply, WarningView
from linnet.node.control_views import room_view
from linnet.node.endpoints import Endpoints, json_response, query_of
from linnet.node.room import Room
from linnet.node.room_types import (
    AddRelayRequest,
    ChunkDataReply,
    ChunkQuery,
    ChunkReply,
    CreateRoomRequest,
    DropRelayRequest,
    InviteRequest,
    JoinRoomRequest,
    KeepChunkRequest,
    LedgerQuery,
    LevelRequest,
    MembershipRequest,
    MembersReply,
    ReadQuery,
    RedactRequest,
    RetentionRequest,
    RoomReply,
    RoomsReply,
    RuleRequest,
    SendRequest,
    ShareRequest,
    StateRequest,
)
from linnet.node.room_views import (
    event_text,
    invitation_view,
    label,
    ledger_view,
    member_view,
    relay_report_view,
    room_item_view,
    room_text,
    sent_view,
    state_view,
)
from linnet.node.security_views import warning_view
from linnet.rooms.content import Membership

DIGEST_BYTES = 32


class RoomControl(Endpoints):
    """The endpoints of rooms, over one node."""

    async def rooms(self, request: Request) -> Response:
        """Every room."""
        return json_response(RoomsReply(tuple(map(room_view, await self._node.rooms.statuses()))))

    async def create_room(self, request: Request) -> Response:
        """Found a room."""
        asked = await self._body(request, CreateRoomRequest)
        creators = tuple(map(person_of, asked.creators))
        room = await self._node.create_room(asked.name, asked.topic, asked.rule, creators, asked.newcomers)
        return json_response(RoomReply(room_text(room.id), event_text(room.joined)))

    async def join_room(self, request: Request) -> Response:
        """Join a room."""
        asked = await self._body(request, JoinRoomRequest)
        where = asked.invitation if asked.invitation is not None else asked.room
        if where is None or (asked.invitation is not None and asked.room is not None):
            raise ApiError(400, "bad_request", "give an invitation or a room, one of them")
        target = where if asked.invitation is not None else TopicId(from_text(Sort.TOPIC, where))
        contacts = tuple(map(parse_contact, asked.contacts))
        room = await self._node.join_room(target, contacts, asked.patience, asked.knock)
        return json_response(RoomReply(room_text(room.id), event_text(room.joined), room.refreshed))

    async def invite_to_room(self, request: Request) -> Response:
        """Make an invitation."""
        asked = await self._body(request, InviteRequest)
        person = None if asked.person is None else person_of(asked.person)
        if asked.announce and person is None:
            raise ApiError(400, "bad_request", "announce needs a person", "see /v1/openapi.json")
        room = self._room(request)
        if asked.announce and person is not None:
            await room.set_membership(person, Membership.INVITE)
        return json_response(invitation_view(await room.invite(person, asked.lifetime)))

    async def leave_room(self, request: Request) -> Response:
        """Leave a room."""
        await self._room(request).leave()
        return json_response(DoneReply())

    async def set_membership(self, request: Request) -> Response:
        """Invite, kick, ban, unban."""
        asked = await self._body(request, MembershipRequest)
        room, person = self._room(request), person_of(asked.person)
        return json_response(sent_view(await room.set_membership(person, asked.membership, asked.reason)))

    async def set_level(self, request: Request) -> Response:
        """Change one power level."""
        asked = await self._body(request, LevelRequest)
        if (asked.person is None) == (asked.kind is None):
            raise ApiError(400, "bad_request", "give a person or a kind, one of them")
        person = None if asked.person is None else person_of(asked.person)
        return json_response(sent_view(await self._room(request).set_level(asked.level, person, asked.kind)))

    async def set_rule(self, request: Request) -> Response:
        """Decide who may join."""
        asked = await self._body(request, RuleRequest)
        return json_response(sent_view(await self._room(request).set_rule(asked.rule)))

    async def set_state(self, request: Request) -> Response:
        """Set plain state."""
        asked = await self._body(request, StateRequest)
        if (asked.text is None) == (asked.body is None):
            raise ApiError(400, "bad_request", "give a text or a body, one of them")
        body = asked.body if asked.body is not None else (asked.text or "").encode()
        return json_response(sent_view(await self._room(request).set_state(asked.kind, body, asked.key)))

    async def set_retention(self, request: Request) -> Response:
        """Decide how long relays keep an event."""
        asked = await self._body(request, RetentionRequest)
        return json_response(sent_view(await self._room(request).set_retention(asked.seconds)))

    async def send_to_room(self, request: Request) -> Response:
        """Say something."""
        asked = await self._body(request, SendRequest)
        bodies = (*asked.bodies, *(text.encode() for text in asked.texts))
        return json_response(
            sent_view(await self._room(request).send(bodies, kind=asked.kind, deadline=asked.deadline))
        )

    async def share_history(self, request: Request) -> Response:
        """Show newcomers what was said before."""
        asked = await self._body(request, ShareRequest)
        return json_response(sent_view(await self._room(request).share_history(asked.newest)))

    async def redact(self, request: Request) -> Response:
        """Take an event back."""
        asked = await self._body(request, RedactRequest)
        event = EventId(from_text(Sort.EVENT, asked.event))
        return json_response(sent_view(await self._room(request).redact(event, asked.reason)))

    async def read_room(self, request: Request) -> Response:
        """Hand over what is said in a room."""
        asked = query_of(request, ReadQuery)
        room = self._room(request)
        reading = room.read(asked.since, asked.name, asked.live, asked.state)
        view = partial(room_item_view, label_of=self._node.label_of)
        watch = self._node.people.watch(room.id)

        async def beside(items: Sequence[Item]) -> list[WarningView]:
            return [*map(warning_view, await watch(items))]

        return await self._lines(reading, asked.ack == "manual", view, beside)

    async def room_state(self, request: Request) -> Response:
        """The resolved state."""
        return json_response(
            state_view(await self._room(request).state(), self._node.label_of, self._node.people.is_verified)
        )

    async def room_members(self, request: Request) -> Response:
        """Everyone who has to do with a room."""
        room = self._room(request)
        node = self._node
        views = partial(member_view, label_of=node.label_of, is_verified=node.people.is_verified)
        members = tuple(map(views, await room.members()))
        return json_response(MembersReply(room_text(room.id), members))

    async def room_ledger(self, request: Request) -> Response:
        """At whom our events have arrived."""
        asked = query_of(request, LedgerQuery)
        event = None if asked.event is None else EventId(from_text(Sort.EVENT, asked.event))
        room = self._room(request)
        ledger = await room.ledger(event, asked.limit)
        labels = {member.person: label(member, self._node.label_of) for member in await room.members()}
        return json_response(ledger_view(ledger, labels))

    async def add_relay(self, request: Request) -> Response:
        """Ask a relay to serve the room."""
        asked = await self._body(request, AddRelayRequest)
        room = self._room(request)
        return json_response(sent_view(await room.add_relay(asked.contact, asked.patience)))

    async def drop_relay(self, request: Request) -> Response:
        """Take a relay out of the room."""
        asked = await self._body(request, DropRelayRequest)
        relay = PeerId(from_text(Sort.DEVICE, asked.relay))
        return json_response(sent_view(await self._room(request).drop_relay(relay)))

    async def keep_chunk(self, request: Request) -> Response:
        """Keep a piece of an attachment."""
        asked = await self._body(request, KeepChunkRequest)
        return json_response(ChunkReply((await self._room(request).keep_piece(asked.data)).hex()))

    async def fetch_chunk(self, request: Request) -> Response:
        """A piece of an attachment."""
        asked = query_of(request, ChunkQuery)
        room = self._room(request)
        digest = _digest(request.path_params["digest"])
        return json_response(ChunkDataReply(await room.fetch_piece(digest, asked.patience)))

    async def relay_report(self, request: Request) -> Response:
        """All that this node knows as a relay."""
        return json_response(relay_report_view(await self._node.relay_report()))

    def _room(self, request: Request) -> Room:
        return self._node.rooms.by_id(TopicId(from_text(Sort.TOPIC, request.path_params["room"])))


def person_of(text: str) -> AuthorId:
    """The person of an id as people type it; `BadText` if it is none."""
    return AuthorId(from_text(Sort.PERSON, text))


def _digest(text: str) -> bytes:
    try:
        digest = bytes.fromhex(text)
    except ValueError:
        digest = b""
    if len(digest) != DIGEST_BYTES:
        raise ApiError(400, "bad_request", "a digest is 64 hexadecimal digits")
    return digest
