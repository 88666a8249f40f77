"""``linnet relay report``: what this relay knows, in plain words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from linnet.cli.moments import clock_text
from linnet.cli.options import HomeOption, JsonOption, examples
from linnet.cli.output import counted, say, say_json, size_text

if TYPE_CHECKING:
    from linnet.node.room_types import RelayKnowledgeView, RelayReportReply, RelayRoomView

EPILOG = examples("linnet relay report", "linnet relay report --json | jq '.rooms[].people'")

MEMBERSHIPS = {
    "join": "is a member",
    "invite": "is invited",
    "knock": "has knocked",
    "leave": "has left",
    "ban": "is banned",
}


def report(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Say what this node knows as a relay, of each room and of each person.

    Beside this it holds what the kept events say, which it can read unless the room encrypts it.
    """
    from linnet.cli.running_node import control

    with control(home) as node:
        reply = node.relay_report()
    if as_json:
        say_json(reply)
        return
    for line in lines(reply):
        say(line)


def lines(reply: RelayReportReply) -> Iterator[str]:
    """The report, line by line."""
    if not reply.rooms:
        yield "This relay serves no room, and knows nothing of anyone."
        return
    yield f"This relay serves {counted(len(reply.rooms), 'room')}."
    for room in reply.rooms:
        yield ""
        yield from room_lines(room)


def room_lines(room: RelayRoomView) -> Iterator[str]:
    """What is known of one room."""
    yield f"Room {room.room}"
    yield (
        f"  It keeps {counted(room.kept_events, 'event')} ({size_text(room.kept_bytes)}) for those "
        f"who are away{'' if room.oldest is None else f', the oldest since {clock_text(room.oldest)}'}."
    )
    yield f"  It knows who may do what from {counted(room.control_events, 'control event')}, kept for good."
    if room.plain_state_events:
        yield f"  {counted(room.plain_state_events, 'event')} of those kept set names or other plain state."
    if room.group_events:
        size = size_text(room.group_bytes)
        yield f"  {counted(room.group_events, 'event')} ({size}) of those kept are about the room's keys."
    if room.chunk_bytes:
        yield f"  It keeps {size_text(room.chunk_bytes)} of attachments."
    if room.expired or room.evicted:
        yield f"  It let go of {room.expired:,} whose time was over and {room.evicted:,} for want of space."
    for person in room.people:
        yield from person_lines(person)


def person_lines(person: RelayKnowledgeView) -> Iterator[str]:
    """What is known of one person in one room."""
    yield f"  {person.person} {MEMBERSHIPS[person.membership.value]}"
    yield (
        f"    {counted(person.devices, 'device')}, {counted(person.control_events, 'control event')}, "
        f"{counted(person.kept_events, 'event')} kept ({size_text(person.kept_bytes)})"
    )
    if person.last_event_ms is not None:
        yield f"    the last event kept was said at {clock_text(person.last_event_ms / 1000)}"
    seen = (
        "never asked for anything"
        if person.last_seen is None
        else f"last asked {clock_text(person.last_seen)}"
    )
    told = counted(person.receipts, "receipt") if person.receipts else "no receipt"
    yield f"    {seen}; {told} of what has arrived there"
    if person.key_devices:
        yield f"    it keeps how far {counted(person.key_devices, 'device')} of theirs has read"
