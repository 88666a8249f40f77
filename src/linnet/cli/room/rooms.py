"""Commands about the rooms of a node: create, list, leave."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import clock_text
from linnet.cli.options import Options, with_examples
from linnet.cli.output import counted, plain, say
from linnet.cli.room.arguments import RoomArgument, find_room
from linnet.cli.running_node import Session
from linnet.identity.text import Sort, device_text, from_text, topic_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from linnet.rooms.commands import Departure, RoomLeft, RoomStatus


class JoinBy(StrEnum):
    """The rules of who may join."""

    INVITE = "invite"
    KNOCK = "knock"
    PUBLIC = "public"


class History(StrEnum):
    """The rules of what newcomers may read."""

    FROM_NOW = "from-now"
    SHARED = "shared"


@dataclass(frozen=True)
class RoomOptions(Options):
    """The properties of a new room."""

    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="What it is called.")] = None
    topic: Annotated[str | None, typer.Option("--topic", metavar="TEXT", help="What it is about.")] = None
    rule: Annotated[
        JoinBy,
        typer.Option("--rule", help="Who may join: who was invited, who knocks and is let in, everyone."),
    ] = JoinBy.INVITE
    creator: Annotated[
        list[str] | None,
        typer.Option(
            "--creator", metavar="PERSON", help="Has all power besides you, for ever; once for each."
        ),
    ] = None
    public: Annotated[
        bool,
        typer.Option(
            "--public", help="Everyone may join, and whoever carries it can read it: not encrypted."
        ),
    ] = False
    history: Annotated[
        History,
        typer.Option("--history", help="What newcomers may read: from now on, or what members share."),
    ] = History.FROM_NOW


@with_examples(
    "linnet room create tea",
    'linnet room create tea --topic "Who brings the cake?"',
    "linnet room create square --public",
    "linnet room create archive --history shared",
)
def create(options: RoomOptions, session: Session) -> None:
    """Create a room. You are its creator: nobody can ever take your power in it.

    Only its members can read what is sent in it, unless it is public. That is decided here, for ever.
    """
    from linnet.core.ids import AuthorId
    from linnet.rooms.commands import CreateRoom
    from linnet.rooms.event_types import JoinRule, Newcomers

    creators = tuple(AuthorId(from_text(Sort.PERSON, person)) for person in options.creator or ())
    rule = JoinRule.PUBLIC if options.public else JoinRule(options.rule)
    newcomers = Newcomers(options.history.replace("-", "_"))
    reply = session.ask(CreateRoom(options.name, options.topic, rule, creators, newcomers))
    room = topic_text(reply.room)
    after = f"next    linnet room invite {shlex.quote(options.name or room)}"
    session.say(reply, (f"room    {room}", after))


ROOM_COLUMNS = (
    "name",
    "room",
    "you",
    "encrypted",
    "members ",
    "online ",
    "relays ",
    "events ",
    "waiting ",
    "unsent ",
)


NO_ROOMS = "no rooms: found one with linnet room create, or join one with linnet room join"


@with_examples("linnet room list", "linnet room list --json | jq '.rooms[].name'")
def list_rooms(session: Session) -> None:
    """List the rooms of this node: whether each is encrypted, who is online, and what was not sent yet."""
    from linnet.rooms.commands import ExamineRooms

    reply = session.ask(ExamineRooms())
    session.say_table(reply, ROOM_COLUMNS, [room_row(each) for each in reply.rooms], NO_ROOMS)
    if not session.as_json:
        say_departures(reply.departures)


def room_row(room: RoomStatus) -> tuple[object, ...]:
    """Return the row of a room in a table."""
    return (
        None if room.name is None else plain(room.name),
        topic_text(room.room),
        "relay" if room.relay else "revoked" if room.revoked else room.membership.value,
        room.encrypted,
        room.members,
        len(room.online),
        f"{sum(relay.up for relay in room.relays)} of {len(room.relays)}",
        room.events,
        room.waiting,
        room.unsent,
    )


@with_examples("linnet room leave tea", "linnet room leave lt1…")
def leave(room: RoomArgument, session: Session) -> None:
    """Leave a room and stop following it. What is kept of it here stays.

    Members are told at once, or when one of them, or a relay, can be reached: the node keeps trying.
    """
    from linnet.rooms.commands import LeaveRoom

    with session.open_node() as node:
        left = node.ask(LeaveRoom(find_room(node, room).room))
    result = {
        "room": topic_text(left.room),
        "left": True,
        "members": left.members,
        "neighbors": left.neighbors,
        "relays": tuple(map(device_text, left.relays)),
        "until": left.until,
        "reason": left.reason,
    }
    session.say(result, filter(None, (f"left    {topic_text(left.room)}", _unheard(left))))


def say_departures(departures: Iterable[Departure]) -> None:
    """Print the rooms that were left and whose members have not been told yet."""
    for each in departures:
        name = topic_text(each.room) if each.name is None else plain(each.name)
        say(f"left {name}; {_promise(each.members, each.until)}")


def _unheard(left: RoomLeft) -> str | None:
    """Say why no member has heard of a departure; None if one has."""
    if left.reason is not None:
        return f"the others are not told: {left.reason}"
    if left.until is None or left.neighbors or left.relays:
        return None
    return f"nobody is in reach; {_promise(left.members, left.until)}"


def _promise(members: int, until: float) -> str:
    others = counted(members, "member")
    return f"{others} will hear of it when one of them, or a relay, is in reach (until {clock_text(until)})"
