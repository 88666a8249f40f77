"""How a person stands to a room, changed: what ``ban``, ``kick`` and ``unban`` have in common."""

from __future__ import annotations

from pathlib import Path

from linnet.cli.room.finding import find_person, find_room
from linnet.cli.room.outcome import tell_sent
from linnet.cli.running_node import control
from linnet.rooms.content import Membership


def change(
    room: str,
    person: str,
    membership: Membership,
    done: str,
    reason: str | None,
    home: Path | None,
    as_json: bool,
) -> None:
    """Give a person of a room this membership, and tell what was done."""
    with control(home) as node:
        found = find_room(node, room).room
        whom = find_person(node, found, person)
        reply = node.set_membership(found, whom, membership, reason)
    tell_sent(reply, f"{done} {whom}", as_json)
