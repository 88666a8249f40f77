"""Commands about the members of a room: list, invite, join, remove, and their powers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import clock_text, parse_duration, wall_clock
from linnet.cli.options import Options, PatienceOption, with_examples
from linnet.cli.output import counted, plain, say_raw, say_table, warn
from linnet.cli.room.arguments import PersonArgument, ReasonOption, RoomArgument, find_person, find_room
from linnet.cli.room.messages import say_sent
from linnet.cli.running_node import Session
from linnet.identity.text import Sort, from_text, person_text, topic_text

if TYPE_CHECKING:
    from linnet.api.rooms import KnownMember
    from linnet.cli.room.words import Names
    from linnet.rooms.commands import Sent
    from linnet.rooms.event_types import Power

COLUMNS = ("name", "membership", "level", "online", "devices ", "with keys ", "verified", "person")
AllOption = Annotated[bool, typer.Option("--all", help="Include those who left or are banned.")]


@with_examples("linnet room members tea", "linnet room members tea --all --json")
def members(room: RoomArgument, everyone: AllOption = False, *, session: Session) -> None:
    """List who is in a room, who was invited or knocks, with what power, and who is online.

    For an encrypted room the table also says how many devices of each member hold its keys. A verified member
    has compared safety numbers with you: linnet room security ROOM --person WHO.
    """
    from linnet.api.rooms import ListMembers
    from linnet.cli.room.words import Names

    with session.open_node() as node:
        found = find_room(node, room)
        reply = node.ask(ListMembers(found.room))
    rows = member_rows(reply.members, Names(reply.members), everyone, found.encrypted)
    session.say_table(reply, COLUMNS, rows)


def member_rows(
    members: tuple[KnownMember, ...], names: Names, everyone: bool, encrypted: bool
) -> list[tuple[object, ...]]:
    """Return a row for each member; those who left or are banned only with `everyone`."""
    return [
        (
            names.of(member.person),
            "relay" if member.relay else member.membership.value,
            "all (creator)" if member.level is None else member.level,
            member.online,
            len(member.devices),
            len(member.key_devices) if encrypted else None,
            member.verified,
            person_text(member.person),
        )
        for member in members
        if everyone or member.membership not in ("leave", "ban")
    ]


@with_examples("linnet room kick tea bea", "linnet room kick tea lp1… --reason spam")
def kick(
    room: RoomArgument, person: PersonArgument, reason: ReasonOption = None, *, session: Session
) -> None:
    """Remove a person from a room; they may come back if they are invited again."""
    reply, whom = _set_membership(room, person, "leave", reason, session)
    say_sent(reply, f"removed {whom}", session)


@with_examples("linnet room ban tea bea", "linnet room ban tea lp1… --reason spam")
def ban(room: RoomArgument, person: PersonArgument, reason: ReasonOption = None, *, session: Session) -> None:
    """Remove a person from a room for good, or keep them from ever joining."""
    reply, whom = _set_membership(room, person, "ban", reason, session)
    say_sent(reply, f"banned {whom}", session)


@with_examples("linnet room unban tea bea", "linnet room unban tea lp1…")
def unban(
    room: RoomArgument, person: PersonArgument, reason: ReasonOption = None, *, session: Session
) -> None:
    """Lift a ban: the person may be invited again."""
    reply, whom = _set_membership(room, person, "leave", reason, session)
    say_sent(reply, f"unbanned {whom}", session)


def _set_membership(
    room: str, person: str, membership: str, reason: str | None, session: Session
) -> tuple[Sent, str]:
    """Set a person's membership; return what was sent, and the person's id as text."""
    from linnet.rooms.commands import SetMembership
    from linnet.rooms.event_types import Membership

    with session.open_node() as node:
        found = find_room(node, room).room
        whom = find_person(node, found, person)
        return node.ask(SetMembership(found, whom, Membership(membership), reason)), person_text(whom)


@dataclass(frozen=True)
class LevelOptions(Options):
    """The power level that is meant, and its new value."""

    level: Annotated[
        int | None, typer.Argument(metavar="[LEVEL]", help="The new level; 100 may do anything.")
    ] = None
    person: Annotated[
        str | None, typer.Option("--person", metavar="PERSON", help="Whose level: lp1…, or a device's name.")
    ] = None
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            metavar="KIND",
            help="The action whose level to set: a kind of event, or ban, kick, invite, redact.",
        ),
    ] = None
    default: Annotated[
        bool, typer.Option("--default", help="Remove the entry, so that the default applies again.")
    ] = False


@with_examples(
    "linnet room power tea",
    "linnet room power tea 50 --person bea",
    "linnet room power tea 0 --kind name",
    "linnet room power tea --kind ban 60",
    "linnet room power tea --person bea --default",
)
def power(room: RoomArgument, wanted: LevelOptions, session: Session) -> None:
    """Show the power levels of a room, or set one: that of a person, or the one that an action requires.

    Whoever has at least the level that an action requires may perform it. Creators may do everything.
    """
    from linnet.api.rooms import ListMembers
    from linnet.cli.room.words import Names
    from linnet.rooms.commands import ExamineState, SetLevel

    person, kind = wanted.person, wanted.kind
    changes = person is not None or kind is not None
    is_given = wanted.default or wanted.level is not None
    if (person is not None and kind is not None) or changes != is_given:
        raise Failure("give a LEVEL (or --default) with --person or --kind, or neither", ExitCode.USAGE)
    with session.open_node() as node:
        found = find_room(node, room).room
        if not changes:
            members = node.ask(ListMembers(found)).members
            _say_levels(node.ask(ExamineState(found)).power, members, Names(members), session)
            return
        whom = None if person is None else find_person(node, found, person)
        level = None if wanted.default else wanted.level
        reply = node.ask(SetLevel(found, level, whom, kind))
    words = "the default" if wanted.default else str(wanted.level)
    say_sent(reply, f"level of {kind if whom is None else person_text(whom)} is {words}", session)


def _say_levels(power: Power, members: tuple[KnownMember, ...], names: Names, session: Session) -> None:
    from linnet.api.rooms import power_view

    told = power_view(power)
    people = [
        (
            names.of(member.person),
            "all (creator)" if member.level is None else member.level,
            person_text(member.person),
        )
        for member in members
        if member.membership == "join"
    ]
    session.say_table(told, ("person", "level", "id"), people)
    if session.as_json:
        return
    asked = {name: level for name, level in told.items() if name not in ("users", "events")}
    say_table(("act or kind", "needs level "), [*asked.items(), *told["events"].items()])


QUIET = 2
"""Blank squares around a QR code: four are the rule; two keep an invitation within 80 columns."""

_BLOCKS = {(False, False): " ", (True, False): "▀", (False, True): "▄", (True, True): "█"}
_COLOURS = "\x1b[30;107m"
_RESET = "\x1b[0m"


def qr_text(text: str, colours: bool) -> str:
    """Return the QR code of a text in capitals. With `colours` it is black on white everywhere."""
    import segno

    # Capitals and digits cost 5.5 bits each, small letters 8. A screen is undamaged: the least correction
    # does.
    code = segno.make_qr(text.upper(), error="l", boost_error=False)
    rows = [[bool(square) for square in row] for row in code.matrix_iter(border=QUIET)]
    if len(rows) % 2:
        rows.append([False] * len(rows[0]))
    if not colours:
        # Most terminals are dark: draw the light squares there.
        rows = [[not square for square in row] for row in rows]
    lines = (
        "".join(_BLOCKS[pair] for pair in zip(upper, lower, strict=True))
        for upper, lower in zip(rows[::2], rows[1::2], strict=True)
    )
    return "\n".join(f"{_COLOURS}{line}{_RESET}" if colours else line for line in lines)


@dataclass(frozen=True)
class InvitationOptions(Options):
    """The options of an invitation."""

    person: Annotated[
        str | None, typer.Option("--for", metavar="PERSON", help="Only this person, lp1…, can use it.")
    ] = None
    lasts: Annotated[
        str, typer.Option("--lasts", metavar="TIME", help="How long it is good: 30m, 2h, 7d.")
    ] = "7d"
    announce: Annotated[
        bool,
        typer.Option("--announce", help="With --for: invite them in the room too, which answers a knock."),
    ] = False
    qr: Annotated[
        bool | None, typer.Option("--qr/--no-qr", help="A QR code as well.", show_default="on a terminal")
    ] = None


@with_examples(
    "linnet room invite tea",
    "linnet room invite tea --for lp1… --lasts 2h",
    "linnet room invite tea --no-qr | mail -s tea bea@example.org",
)
def invite(room: RoomArgument, options: InvitationOptions, session: Session) -> None:
    """Print an invitation: one line, which is all that somebody needs to join.

    Whoever holds it can use it until it ends, as often as they like, unless it is --for one person.
    """
    from linnet.api.rooms import InviteToRoom
    from linnet.core.ids import AuthorId

    whom = None if options.person is None else AuthorId(from_text(Sort.PERSON, options.person))
    if whom is None and options.announce:
        raise Failure("--announce needs --for PERSON", ExitCode.USAGE)
    lifetime = parse_duration(options.lasts)
    with session.open_node() as node:
        reply = node.ask(InviteToRoom(find_room(node, room).room, lifetime, whom, options.announce))
    session.say(reply, reply.text)
    if session.as_json:
        return
    if options.qr or (options.qr is None and sys.stdout.isatty()):
        say_raw(qr_text(reply.text, colours=sys.stdout.isatty()))
    who = "whoever holds it" if options.person is None else options.person
    warn(f"good for {who} until {clock_text(reply.ticket.expires_ms / 1000)}")
    if not reply.contacts:
        warn("but it names nobody who can be dialled: this node does not listen, and no relay is known")


Where = Annotated[
    str,
    typer.Argument(
        metavar="INVITATION", help="The text li1…, or a room's id lt1… with --at; - reads standard input."
    ),
]
At = Annotated[
    list[str] | None,
    typer.Option("--at", metavar="KEY@HOST:PORT", help="A member or relay to ask; once for each."),
]
Knock = Annotated[bool, typer.Option("--knock", help="Only ask to be admitted.")]


@with_examples(
    "linnet room join li1…",
    "linnet room join - < invitation.txt",
    "linnet room join lt1… --at ld1…@192.0.2.7:7700",
    "linnet room join lt1… --at ld1…@192.0.2.7:7700 --knock",
)
def join(
    where: Where, at: At = None, knock: Knock = False, patience: PatienceOption = 20.0, *, session: Session
) -> None:
    """Join a room by the text of an invitation, which is all that it takes.

    A public room, or one that has invited you by name, is joined by its id and the address of a member or
    relay. For a room that you are in already, the addresses are noted, so that you find others who have
    moved.
    """
    from linnet.api.rooms import AskToJoin
    from linnet.core.ids import TopicId
    from linnet.identity.addresses import parse_contact
    from linnet.rooms.invitations import parse_invitation

    text = "".join((sys.stdin.read() if where == "-" else where).split())
    contacts = tuple(map(parse_contact, at or ()))
    if text.lower().startswith(Sort.TOPIC):
        wanted = TopicId(from_text(Sort.TOPIC, text))
        request = AskToJoin(None, wanted, contacts, patience, knock)
        name = None
    else:
        invitation = parse_invitation(text, wall_clock())
        if not invitation.contacts and not contacts:
            raise Failure("this invitation names nobody to ask; add --at KEY@HOST:PORT", ExitCode.USAGE)
        request = AskToJoin(text, None, contacts, patience, knock)
        name = invitation.name
    reply = session.ask(request)
    room = topic_text(reply.room)
    if reply.refreshed is not None:
        tried = f"tried   {counted(reply.refreshed, 'device')} at the addresses named; look at: linnet peers"
        session.say(reply, (f"already in {plain(name or '')} {room}".replace("  ", " "), tried))
        return
    done = f"{'knocked' if knock else 'joined'}  {plain(name or '')} {room}".replace("   ", "  ")
    session.say(reply, (done, *([] if knock else [f"next    linnet chat {room[:14]}"])))
