"""The arguments of commands about rooms: the room, person or event that one means."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from linnet.core.errors import BadText
from linnet.identity.lookup import SHOWN, Candidate, find_meant, is_whole, list_candidates
from linnet.identity.text import Sort, from_text, person_text, to_text

if TYPE_CHECKING:
    from linnet.api.items import EventView
    from linnet.api.rooms import KnownMember
    from linnet.core.ids import AuthorId, EventId, TopicId
    from linnet.node.client import ControlClient
    from linnet.rooms.commands import RoomStatus

RoomArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="ROOM", help="The room's name, its id lt1…, or a beginning of it.")
]
PersonArgument: TypeAlias = Annotated[
    str,
    typer.Argument(
        metavar="PERSON", help="A person's id lp1…, a beginning of it, or the name of their device."
    ),
]
EventArgument: TypeAlias = Annotated[
    str, typer.Argument(metavar="EVENT", help="The event's id le1…, or a beginning of it.")
]
ReasonOption: TypeAlias = Annotated[
    str | None, typer.Option("--reason", metavar="TEXT", help="Why; everyone in the room can read it.")
]
StateOption: TypeAlias = Annotated[
    bool,
    typer.Option("--state/--no-state", help="Whether to print joins, leaves and other changes of state."),
]


def find_room(node: ControlClient, text: str) -> RoomStatus:
    """Return the room that is meant; `BadText` lists the candidates."""
    from linnet.node.rooms import choose_room
    from linnet.rooms.commands import ExamineRooms

    return choose_room(text, node.ask(ExamineRooms()).rooms)


def find_person(node: ControlClient, room: TopicId, text: str) -> AuthorId:
    """Return the person that is meant: any whole id, or one of the people in the room."""
    from linnet.api.rooms import ListMembers
    from linnet.core.ids import AuthorId

    if is_whole(Sort.PERSON, text):
        return AuthorId(from_text(Sort.PERSON, text))
    return choose_person(text, node.ask(ListMembers(room)).members)


def choose_person(text: str, members: Sequence[KnownMember]) -> AuthorId:
    """Return the only member that is meant; `BadText` lists the candidates."""
    wanted = text.strip()
    candidates = [Candidate(each.person, person_text(each.person), each.label) for each in members]
    found = find_meant(wanted, Sort.PERSON, candidates)
    if len(found) == 1:
        return found[0].thing
    listed = list_candidates(found or candidates)
    if found:
        raise BadText(f"{wanted!r} can be {len(found)} people; say who by the id: {listed}")
    raise BadText(f"there is nobody called {wanted!r} in the room; there are {listed or 'none'}")


def find_event(node: ControlClient, room: TopicId, text: str) -> EventView:
    """Return the event that is meant, from what is kept of the room here."""
    from linnet.api.items import EventView
    from linnet.rooms.commands import ReadRoom

    whole = is_whole(Sort.EVENT, text)
    wanted = to_text(Sort.EVENT, from_text(Sort.EVENT, text)) if whole else text.strip().lower()
    if not wanted.startswith(Sort.EVENT) or len(wanted) == len(Sort.EVENT):
        raise BadText(f"{text[:80]!r} is no event id: it should begin with {Sort.EVENT!s}")
    found = [
        item
        for item in node.lines(ReadRoom(0, room, since=0.0, live=False))
        if isinstance(item, EventView) and item.id.startswith(wanted)
    ]
    if len(found) == 1:
        return found[0]
    if found:
        listed = ", ".join(item.id[:16] + "…" for item in found[:SHOWN])
        raise BadText(f"{text[:80]!r} can be {len(found)} events: {listed}")
    raise BadText(
        f"there is no event {text[:80]!r} in what is kept of the room; look at: linnet room history"
    )


def event_id(node: ControlClient, room: TopicId, text: str) -> EventId:
    """Return the id of the event that is meant; a whole id is taken as it is."""
    from linnet.core.ids import EventId

    found = text if is_whole(Sort.EVENT, text) else find_event(node, room, text).id
    return EventId(from_text(Sort.EVENT, found))
