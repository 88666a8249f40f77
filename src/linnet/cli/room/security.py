"""Commands about the security of a room: its key holders, its people, and what a thief could read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import clock_text, duration_text
from linnet.cli.options import with_examples
from linnet.cli.output import counted, plain, say, say_table
from linnet.cli.room.arguments import find_person, find_room
from linnet.cli.room.rooms import NO_ROOMS
from linnet.cli.room.words import UNREADABLE, Names, alarm_text
from linnet.cli.running_node import Session
from linnet.core.errors import BadText
from linnet.identity.lookup import is_whole
from linnet.identity.text import Sort, from_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.api.rooms import PersonReport, SecurityReport
    from linnet.node.client import ControlClient
    from linnet.rooms.commands import RoomStatus

Room = Annotated[
    str | None,
    typer.Argument(metavar="[ROOM]", help="The room's name, its id lt1…, or a beginning of it; else all."),
]
Person = Annotated[
    str | None,
    typer.Option("--person", metavar="WHO", help="The safety number to compare with this person."),
]
Verify = Annotated[
    bool | None,
    typer.Option(
        "--verify/--unverify", help="Note that you have compared it and it is equal, or take it back."
    ),
]


@with_examples(
    "linnet room security tea",
    "linnet room security",
    "linnet room security tea --person ada",
    "linnet room security tea --person ada --verify",
    "linnet room security tea --json | jq .theft",
)
def security(room: Room = None, person: Person = None, verify: Verify = None, *, session: Session) -> None:
    """Show who holds the keys of a room, what your next message waits for, and what a thief could read.

    With --person, show the safety number of you and that person: if you both see the same number, by voice or
    side by side, nobody stands between you. Without a ROOM, show a summary of all rooms.
    """
    if verify is not None and person is None:
        raise BadText("say who was compared: --person WHO")
    with session.open_node() as node:
        found = None if room is None else find_room(node, room)
        if person is not None:
            _say_person(node, found, person, verify, session)
        elif found is not None:
            _say_room(node, found, session)
        else:
            _say_overview(node, session)


def _say_room(node: ControlClient, room: RoomStatus, session: Session) -> None:
    from linnet.api.rooms import ReportSecurity, warning_view

    reply = node.ask(ReportSecurity(room.room))
    session.say(reply, protection_text(reply, plain(room.name or topic_text(room.room))))
    if session.as_json:
        return
    if reply.encrypted:
        say("")
        say_table(DEVICE_COLUMNS, device_rows(reply, _names(node, room)))
        say("")
        for line in (*sending_lines(reply), *unread_lines(reply), "", *theft_lines(reply)):
            say(line)
    for warning in reply.warnings:
        say(alarm_text(warning_view(warning)))


def _names(node: ControlClient, room: RoomStatus) -> Names:
    from linnet.api.node_commands import ReportStatus
    from linnet.api.rooms import ListMembers

    return Names(node.ask(ListMembers(room.room)).members, node.ask(ReportStatus()).person)


def _say_overview(node: ControlClient, session: Session) -> None:
    from linnet.api.rooms import ReportSecurity
    from linnet.rooms.commands import ExamineRooms

    rooms = [room for room in node.ask(ExamineRooms()).rooms if not room.relay]
    replies = [node.ask(ReportSecurity(room.room)) for room in rooms]
    rows = [overview_row(*each) for each in zip(rooms, replies, strict=True)]
    session.say_table({"rooms": replies}, OVERVIEW_COLUMNS, rows, NO_ROOMS)


def _say_person(
    node: ControlClient, room: RoomStatus | None, text: str, verify: bool | None, session: Session
) -> None:
    from linnet.api.rooms import LookUpPerson, VerifyPerson
    from linnet.core.ids import AuthorId

    if room is not None:
        who = find_person(node, room.room, text)
    elif is_whole(Sort.PERSON, text):
        who = AuthorId(from_text(Sort.PERSON, text))
    else:
        raise BadText("say in which room this person is, or give the whole id lp1…")
    reply = node.ask(LookUpPerson(who) if verify is None else VerifyPerson(who, verify))
    session.say(reply, person_lines(reply))


DEVICE_COLUMNS = ("name", "device", "keys", "age of keys", "to acknowledge ", "verified")
OVERVIEW_COLUMNS = (
    "name",
    "room",
    "encrypted",
    "you hold keys",
    "devices ",
    "unread ",
    "next message",
    "warnings ",
)
STANDING = {
    "holds": "holds them",
    "surplus": "holds them and should not: is removed before the next message",
    "to_be_added": "none yet: is let in next",
    "no_prekeys": "none yet: it has not told how to reach it",
    "used_prekeys": "none: it has to be online to come in anew",
    "expired_prekeys": "none: it was away too long, and has to be online",
    "unknown": "not known while this device has none",
}
WAITING = {
    "not_let_in": "no member that is online has let this device in yet",
    "out_of_step": "the keys of this device fit those of the others no more: it has to be let in anew",
    "newcomers": "somebody just joined and has not told yet how to reach them",
}
FIRST = {
    "acks": "acknowledge the others' changes of keys",
    "surplus": "remove devices that should hold no keys any more",
    "heal": "renew its keys, since somebody who was removed might follow them",
    "missing": "let in devices that joined",
}
_PER_LINE = 6


def protection_text(reply: SecurityReport, name: str) -> str:
    """Say whether a room is encrypted, and for whom."""
    if not reply.encrypted:
        return f"{name} is not encrypted: whoever carries it, relays and anyone who joins, can read all of it"
    is_shared = reply.newcomers is not None and reply.newcomers.value == "shared"
    newcomers = "may be shown what was said before" if is_shared else "read from then on"
    return (
        f"{name} is encrypted: its members' devices can read it, and nobody who only carries it; "
        f"those who join {newcomers}"
    )


def device_rows(reply: SecurityReport, names: Names) -> list[tuple[object, ...]]:
    """Return a row for each device that holds keys, or should."""
    return [
        (
            names.of(device.person),
            device.device.hex()
            + (f" ({plain(device.label)})" if device.label else "")
            + ", this one" * device.is_this,
            STANDING[device.standing.value],
            None if device.key_age is None else duration_text(max(0.0, device.key_age)),
            device.pending,
            None if names.of(device.person) == "you" else device.is_verified,
        )
        for device in reply.devices
    ]


def sending_lines(reply: SecurityReport) -> list[str]:
    """Say what the next message waits for, and when this device renews its keys."""
    found = [hindrance.value for hindrance in reply.hindrances]
    lines = [f"your next message waits: {WAITING[each]}" for each in found if each in WAITING]
    first = [FIRST[each] for each in found if each in FIRST]
    if first:
        lines.append(f"before your next message this device will {', '.join(first)}")
    if not found:
        lines.append("nothing stands before your next message")
    if reply.renewal_in is not None:
        lines.append(f"the keys of this device are renewed in {duration_text(reply.renewal_in)}")
    return lines


def unread_lines(reply: SecurityReport) -> list[str]:
    """Count the messages that cannot be read, by reason."""
    return [
        f"{counted(count, 'message')}: {UNREADABLE.get(reason, 'cannot be read: ' + reason)}"
        for reason, count in reply.unread.items()
    ]


def theft_lines(reply: SecurityReport) -> list[str]:
    """Say what a thief of this device could read now."""
    found = reply.theft
    if found is None:
        return []
    lines = [f"{counted(found.messages, 'message')} that this device keeps for you to read, in the clear"]
    if found.shared_keys:
        lines.append(f"{counted(found.shared_keys, 'key')} of messages, kept to be shown to newcomers")
    if found.late_keys:
        lines.append(f"{counted(found.late_keys, 'message')} that were sent and have not come here yet")
    if found.member_secrets:
        secrets = counted(found.member_secrets, "secret")
        lines.append(f"the next keys of others, by {secrets} kept until these have acknowledged them")
    if reply.holds_keys:
        when = "" if reply.renewal_in is None else f" (in {duration_text(reply.renewal_in)})"
        who = counted(found.follows, "other device")
        lines.append(f"everything said by this device and {who} until its next update{when} or its removal")
    return [
        "a thief of this device could read now:",
        *(f"  {line}" for line in lines),
        "and could speak as this device until it is taken out of use: linnet id revoke",
    ]


def overview_row(room: RoomStatus, reply: SecurityReport) -> tuple[object, ...]:
    """Return the row of a room in a table of all rooms."""
    holding = sum(device.standing.value == "holds" for device in reply.devices)
    return (
        None if room.name is None else plain(room.name),
        topic_text(room.room),
        reply.encrypted,
        reply.holds_keys if reply.encrypted else None,
        holding if reply.encrypted else None,
        sum(reply.unread.values()),
        "waits" if reply.would_wait else "goes out",
        len(reply.warnings),
    )


def person_lines(reply: PersonReport) -> list[str]:
    """Describe a person, with the safety number to compare."""
    names = ", ".join(repr(plain(label)) for label in reply.labels) or "no name"
    seen = "never seen here" if reply.first_seen is None else f"first seen {clock_text(reply.first_seen)}"
    lines = [person_text(reply.person), f"known as {names}; {counted(len(reply.devices), 'device')}; {seen}"]
    if reply.safety_number is None or reply.safety_words is None:
        return [*lines, "this is you; --verify says that all devices that were seen here are yours"]
    if reply.verified_at is None:
        lines.append("not verified: compare this by voice or side by side, and use --verify if it is equal")
    else:
        lines.append(f"verified {clock_text(reply.verified_at)}")
    groups = reply.safety_number.split()
    rows = [" ".join(groups[at : at + _PER_LINE]) for at in range(0, len(groups), _PER_LINE)]
    return [*lines, "", *(f"  {row}" for row in rows), "", f"  {reply.safety_words}"]
