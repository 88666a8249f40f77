"""Relays that are added to a room, for a stamp if they ask one, or take the place of another."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.output import counted, progress_bar
from linnet.core.errors import Refused
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.identity.addresses import parse_contact
from linnet.identity.text import Sort, device_text, event_text, from_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.cli.running_node import Session
    from linnet.event.event import Event
    from linnet.node.client import ControlClient
    from linnet.rooms.commands import RelaysCompared, RoomStatus, Sent

_PAUSE = 0.5
"""Seconds between two questions how far it is."""
_LISTED = 5


def add_relay(node: ControlClient, room: TopicId, contact: Contact, patience: float, quiet: bool) -> Sent:
    """Ask a relay to serve a room; make the stamp that an open relay asks, in this process."""
    from linnet.rooms.commands import AddRelay, ExaminePrice
    from linnet.rooms.stamps import find_stamp

    try:
        return node.ask(AddRelay(room, contact, patience))
    except Refused as error:
        if error.reason is not Reason.UNPAID:
            raise
    asked = node.ask(ExaminePrice(room, contact.peer))
    with progress_bar(quiet) as progress:

        def tell(tried: int) -> bool:
            progress(1 - 0.5 ** (tried / 2**asked.price.bits), f"a stamp of {asked.price.bits} bits")
            return True

        stamp = find_stamp(asked.price, contact.peer, room, asked.device, tell)
    return node.ask(AddRelay(room, contact, patience, stamp))


def move_room(
    node: ControlClient, room: RoomStatus, old: str, new: str, patience: float, session: Session
) -> None:
    """Add a relay, wait until it holds what the old one holds and we know, then remove the old one."""
    from linnet.rooms.commands import DropRelay

    gone = PeerId(from_text(Sort.DEVICE, old.partition("@")[0]))
    contact = parse_contact(new) if "@" in new else Contact(PeerId(from_text(Sort.DEVICE, new)), ())
    named = _named(node, room)
    if device_text(gone) not in named:
        raise Failure(f"{device_text(gone)} is no relay of this room", ExitCode.USAGE)
    if device_text(contact.peer) not in named:
        if not contact.hints:
            raise Failure(f"say where {new} is: KEY@HOST:PORT", ExitCode.USAGE)
        add_relay(node, room.room, contact, patience, session.as_json)
    found = _compare(node, room, gone, contact.peer, patience, session)
    unaware = _unaware(node, room, contact.peer)
    node.ask(DropRelay(room.room, gone))
    session.say(_result(found, gone, contact.peer, unaware), _words(found, gone, contact.peer, unaware))


def _named(node: ControlClient, room: RoomStatus) -> dict[str, Event]:
    """Return the relays that the room's state names, joined or not, with the events that name them."""
    from linnet.rooms.commands import ExamineState
    from linnet.rooms.event_types import RELAY, Relay, content_of

    relays = [each for each in node.ask(ExamineState(room.room)).entries if each.kind == RELAY]
    contents = {each.key: content_of(RELAY, each.event.body) for each in relays}
    active = [key for key, content in contents.items() if isinstance(content, Relay) and content.active]
    return {each.key: each.event for each in relays if each.key in active}


def _unaware(node: ControlClient, room: RoomStatus, new: PeerId) -> tuple[str, ...]:
    """Return the members that are not known to have heard of the new relay, if this device named it."""
    from linnet.api.node_commands import ReportStatus
    from linnet.delivery.receipts import Fate
    from linnet.rooms.commands import ExamineLedger

    named = _named(node, room).get(device_text(new))
    if named is None or named.author != node.ask(ReportStatus()).person:
        return ()
    try:
        fates = node.ask(ExamineLedger(room.room, named.id, 1)).events
    except Refused:
        return ()  # Another device of ours named it, or that was long ago.
    members = (member for each in fates for member in each.members)
    return tuple(person_text(each.person) for each in members if each.fate is not Fate.DELIVERED)


def _compare(
    node: ControlClient, room: RoomStatus, old: PeerId, new: PeerId, patience: float, session: Session
) -> RelaysCompared:
    """Ask until the new relay holds everything; `Failure` if there is no progress for too long."""
    from linnet.rooms.commands import CompareRelays

    last: tuple[object, ...] = ()
    since = time.monotonic()
    with progress_bar(session.as_json) as progress:
        while True:
            found = node.ask(CompareRelays(room.room, old, new))
            share = found.held / found.wanted if found.wanted else 0.0
            progress(share, f"{found.held} of {found.wanted} events")
            if found.read and found.compared and not found.lacks:
                return found
            now = (found.held, found.wanted, found.compared, found.read)
            if now != last:
                last, since = now, time.monotonic()
            elif time.monotonic() - since > patience:
                if found.read and not found.lacks and not found.old_up:
                    return found  # What only the old relay holds cannot be had while it is away.
                raise Failure(_why_not(found, old, new))
            time.sleep(_PAUSE)


def _why_not(found: RelaysCompared, old: PeerId, new: PeerId) -> str:
    """Return why the move does not go on, and what to do."""
    kept = f"nothing was removed; to go on, give the command again (with {device_text(new)} alone)"
    if not found.new_up:
        return f"{device_text(new)} is not in reach: {kept}"
    if not found.new_signs:
        return f"{device_text(new)} does not sign what it holds: it needs a newer version of Linnet; {kept}"
    if not found.read:
        return f"{device_text(new)} has not shown all that it holds: {kept}"
    if not found.lacks:
        signs = "" if found.old_signs else "; it signs nothing, so it may need a newer version of Linnet"
        return f"{device_text(old)} is in reach and has not shown all that it holds{signs}: {kept}"
    shown = ", ".join(map(event_text, found.lacking[:_LISTED]))
    more = f" and {found.lacks - _LISTED} more" if found.lacks > _LISTED else ""
    reasons = ", ".join(f"{reason} {count}" for reason, count in found.reasons.items())
    why = f"; it refuses: {reasons}" if reasons else ""
    events = f"{found.lacks} of {found.wanted} events"
    return f"{device_text(new)} does not hold {events}: {shown}{more}{why}; {kept}"


def _result(found: RelaysCompared, old: PeerId, new: PeerId, unaware: tuple[str, ...]) -> dict[str, Any]:
    return {
        "room": topic_text(found.room),
        "old": device_text(old),
        "new": device_text(new),
        "held": found.held,
        "wanted": found.wanted,
        "compared": found.compared,
        "refused": found.reasons,
        "unaware": unaware,
    }


def _words(found: RelaysCompared, old: PeerId, new: PeerId, unaware: tuple[str, ...]) -> str:
    lines = [f"moved   {device_text(old)} is no relay any more"]
    lines.append(f"        {device_text(new)} has signed that it holds {counted(found.held, 'event')}")
    if found.compared:
        lines.append("        all that the old one held, and all that this device has")
    else:
        lines.append("        all that this device has; the old one was not in reach: what only it held is")
        lines.append("        not known")
    if found.reasons:
        reasons = ", ".join(f"{count} {reason}" for reason, count in found.reasons.items())
        lines.append(f"        refused by the room's rules, and not held by the old one: {reasons}")
    if unaware:
        many = counted(len(unaware), "member")
        lines.append(
            f"        {many} may not know the new relay yet: they hear of it from members who are online"
        )
    return "\n".join(lines)
