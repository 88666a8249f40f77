"""Which room, person or event somebody means who types a name or the beginning of an id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from linnet.core.errors import BadText
from linnet.identity.text import Sort, from_text, to_text

if TYPE_CHECKING:
    from linnet.node.client import ControlClient
    from linnet.node.control_types import EventView, RoomView
    from linnet.node.room_types import MemberView

SHOWN = 8
"""Candidates that an error lists."""

_WHOLE = 59
"""Letters of a whole id."""


def find_room(node: ControlClient, text: str) -> RoomView:
    """The room that is meant; `BadText` lists the candidates."""
    from linnet.node.room_names import choose_room

    return choose_room(text, node.rooms().rooms)


def find_person(node: ControlClient, room: str, text: str) -> str:
    """The id of the person that is meant: any whole id, or one of those who have to do with the room."""
    if is_whole(Sort.PERSON, text):
        return to_text(Sort.PERSON, from_text(Sort.PERSON, text))
    return choose_person(text, node.room_members(room).members)


def choose_person(text: str, members: Sequence[MemberView]) -> str:
    """The one member that is meant; `BadText` lists the candidates."""
    wanted = text.strip()
    found = [member for member in members if member.label == wanted]
    found = found or [member for member in members if member.label.casefold() == wanted.casefold() != ""]
    if not found and wanted.lower().startswith(Sort.PERSON) and len(wanted) > len(Sort.PERSON):
        found = [member for member in members if member.person.startswith(wanted.lower())]
    if len(found) == 1:
        return found[0].person
    listed = ", ".join(
        f"{member.person[:12]}…" + (f" ({member.label!r})" if member.label else "")
        for member in (found or members)[:SHOWN]
    )
    if found:
        raise BadText(f"{wanted!r} can be {len(found)} people; say who by the id: {listed}")
    raise BadText(f"there is nobody called {wanted!r} in the room; there are {listed or 'none'}")


def find_event(node: ControlClient, room: str, text: str) -> EventView:
    """The event that is meant, from what is kept of the room here."""
    from linnet.node.control_types import EventView

    whole = is_whole(Sort.EVENT, text)
    wanted = to_text(Sort.EVENT, from_text(Sort.EVENT, text)) if whole else text.strip().lower()
    if not wanted.startswith(Sort.EVENT) or len(wanted) == len(Sort.EVENT):
        raise BadText(f"{text[:80]!r} is no event id: it should begin with {Sort.EVENT!s}")
    found = [
        item
        for item in node.read_room(room, since=0, live=False)
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


def event_id(node: ControlClient, room: str, text: str) -> str:
    """The id of the event that is meant; a whole one is taken as it is."""
    if is_whole(Sort.EVENT, text):
        return to_text(Sort.EVENT, from_text(Sort.EVENT, text))
    return find_event(node, room, text).id


def is_whole(sort: Sort, text: str) -> bool:
    """Whether this has the length of an id: then it is one, or a mistyped one."""
    return len(text.strip()) >= _WHOLE and text.strip().lower().startswith(sort)
