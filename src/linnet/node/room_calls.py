"""What the control API can be asked about rooms, by a program. Rooms are named by their ids here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from linnet.event.event import MESSAGE
from linnet.node.caller import ANSWER_SECONDS, Caller
from linnet.node.control_types import DoneReply, ItemView
from linnet.node.room_types import (
    WEEK,
    AddRelayRequest,
    ChunkDataReply,
    ChunkQuery,
    ChunkReply,
    CreateRoomRequest,
    DropRelayRequest,
    InvitationReply,
    InviteRequest,
    JoinRoomRequest,
    KeepChunkRequest,
    LedgerQuery,
    LedgerReply,
    LevelRequest,
    MembershipRequest,
    MembersReply,
    ReadQuery,
    RedactRequest,
    RelayReportReply,
    RetentionRequest,
    RoomReply,
    RoomsReply,
    RuleRequest,
    SendRequest,
    SentReply,
    ShareRequest,
    StateReply,
    StateRequest,
)
from linnet.node.security_types import PersonReply, SecurityReply, VerifiedRequest
from linnet.rooms.content import JoinRule, Membership


class RoomCalls(Caller):
    """The calls about rooms."""

    def rooms(self) -> RoomsReply:
        """Every room of the node."""
        return self._get("/v1/rooms", RoomsReply)

    def create_room(self, request: CreateRoomRequest) -> RoomReply:
        """Found a room."""
        return self._post("/v1/rooms", request, RoomReply)

    def join_room(self, request: JoinRoomRequest) -> RoomReply:
        """Join a room, or knock."""
        return self._post("/v1/rooms/join", request, RoomReply, ANSWER_SECONDS + request.patience)

    def invite_to_room(
        self, room: str, person: str | None = None, lifetime: float = WEEK, announce: bool = False
    ) -> InvitationReply:
        """Make an invitation."""
        return self._post(_path(room, "invite"), InviteRequest(lifetime, person, announce), InvitationReply)

    def leave_room(self, room: str) -> None:
        """Leave a room and stop following it."""
        self._post(_path(room, "leave"), None, DoneReply)

    def set_membership(
        self, room: str, person: str, membership: Membership, reason: str | None = None
    ) -> SentReply:
        """Invite, kick, ban, unban."""
        return self._post(_path(room, "membership"), MembershipRequest(person, membership, reason), SentReply)

    def set_level(
        self, room: str, level: int | None, person: str | None = None, kind: str | None = None
    ) -> SentReply:
        """Change one power level."""
        return self._post(_path(room, "level"), LevelRequest(level, person, kind), SentReply)

    def set_rule(self, room: str, rule: JoinRule) -> SentReply:
        """Decide who may join."""
        return self._post(_path(room, "rule"), RuleRequest(rule), SentReply)

    def set_state(self, room: str, kind: str, text: str, key: str = "") -> SentReply:
        """Set plain state, such as the name."""
        return self._post(_path(room, "state"), StateRequest(kind, key, text), SentReply)

    def set_retention(self, room: str, seconds: float | None) -> SentReply:
        """Decide how long relays keep an event."""
        return self._post(_path(room, "retention"), RetentionRequest(seconds), SentReply)

    def send_to_room(
        self, room: str, bodies: Sequence[bytes], kind: str = MESSAGE, deadline: float | None = None
    ) -> SentReply:
        """Say bodies, in this order."""
        request = SendRequest(tuple(bodies), kind=kind, deadline=deadline)
        return self._post(_path(room, "send"), request, SentReply)

    def share_history(self, room: str, newest: int | None = None) -> SentReply:
        """Show newcomers what was said before."""
        return self._post(_path(room, "share"), ShareRequest(newest), SentReply)

    def redact(self, room: str, event: str, reason: str | None = None) -> SentReply:
        """Take an event back."""
        return self._post(_path(room, "redact"), RedactRequest(event, reason), SentReply)

    def read_room(
        self,
        room: str,
        since: float | None = None,
        name: str | None = None,
        live: bool = True,
        state: bool = True,
        manual: bool = False,
    ) -> Iterator[ItemView]:
        """What is said in a room, item by item; the first is `SubscribedView`. Closing it ends it.

        With `manual`, call `consumed` with the number in the first item; that needs a client of its own.
        """
        query = ReadQuery(since, name, live, state, "manual" if manual else "auto")
        return self._lines(_path(room, "read"), query)

    def room_state(self, room: str) -> StateReply:
        """The resolved state of a room."""
        return self._get(_path(room, "state"), StateReply)

    def room_members(self, room: str) -> MembersReply:
        """Everyone who has to do with a room."""
        return self._get(_path(room, "members"), MembersReply)

    def room_ledger(self, room: str, event: str | None = None, limit: int = 20) -> LedgerReply:
        """At whom our events have arrived."""
        return self._get(_path(room, "ledger"), LedgerReply, LedgerQuery(event, limit))

    def room_security(self, room: str) -> SecurityReply:
        """Who holds a room's keys, and what a thief of the node could read."""
        return self._get(_path(room, "security"), SecurityReply)

    def person(self, person: str) -> PersonReply:
        """What the node knows of a person, and the safety number to compare with them."""
        return self._get(f"/v1/people/{person}", PersonReply)

    def verify_person(self, person: str, verified: bool = True) -> PersonReply:
        """Note that the user has compared safety numbers with a person, or takes that back."""
        return self._post(f"/v1/people/{person}/verified", VerifiedRequest(verified), PersonReply)

    def add_relay(self, room: str, contact: str, patience: float = 20.0) -> SentReply:
        """Ask a relay to serve the room, and name it there."""
        request = AddRelayRequest(contact, patience)
        return self._post(_path(room, "relays"), request, SentReply, ANSWER_SECONDS + patience)

    def drop_relay(self, room: str, relay: str) -> SentReply:
        """Take a relay out of the room."""
        return self._post(_path(room, "relays/drop"), DropRelayRequest(relay), SentReply)

    def keep_chunk(self, room: str, data: bytes) -> str:
        """Keep a piece of an attachment; the digest that it is fetched by."""
        return self._post(_path(room, "chunks"), KeepChunkRequest(data), ChunkReply).digest

    def fetch_chunk(self, room: str, digest: str, patience: float = 20.0) -> bytes:
        """A piece of an attachment, whose digest was checked."""
        path = _path(room, f"chunks/{digest}")
        return self._get(path, ChunkDataReply, ChunkQuery(patience), ANSWER_SECONDS + patience).data

    def relay_report(self) -> RelayReportReply:
        """All that the node knows as a relay, of each room and person."""
        return self._get("/v1/relay", RelayReportReply)


def _path(room: str, what: str) -> str:
    return f"/v1/rooms/{room}/{what}"
