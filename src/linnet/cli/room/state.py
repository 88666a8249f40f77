"""Commands about the state of a room, its relays, and how long these keep events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.exits import ExitCode, Failure
from linnet.cli.moments import claimed_text, duration_text, parse_duration
from linnet.cli.options import PatienceOption, with_examples
from linnet.cli.output import counted, fact_lines, plain, say_table, size_text
from linnet.cli.room.arguments import RoomArgument, find_room
from linnet.cli.room.messages import say_sent
from linnet.cli.room.rooms import JoinBy
from linnet.cli.running_node import Session
from linnet.identity.text import Sort, device_text, from_text, topic_text

if TYPE_CHECKING:
    from linnet.cli.room.words import Names
    from linnet.rooms.commands import RelayStatus, StateEntry, StateIs

Set = Annotated[
    str | None,
    typer.Option("--set", metavar="KIND[/KEY]=TEXT", help="Set plain state: name, topic, or any kind."),
]
NewRule = Annotated[JoinBy | None, typer.Option("--rule", help="Set who may join.")]


@with_examples(
    "linnet room state tea",
    "linnet room state tea --set name=coffee",
    "linnet room state tea --set color/wall=green",
    "linnet room state tea --rule public",
)
def state(room: RoomArgument, new: Set = None, rule: NewRule = None, *, session: Session) -> None:
    """Show the state of a room, on which all members with the same events agree, or set something in it.

    The digest is equal where two nodes agree.
    """
    from linnet.api.rooms import ListMembers
    from linnet.cli.room.words import Names
    from linnet.rooms.commands import ExamineState, SetRule, SetState
    from linnet.rooms.event_types import JoinRule

    if new is not None and rule is not None:
        raise Failure("give --set or --rule, one at a time", ExitCode.USAGE)
    with session.open_node() as node:
        found = find_room(node, room).room
        if rule is not None:
            say_sent(node.ask(SetRule(found, JoinRule(rule))), f"join by {rule.value}", session)
            return
        if new is not None:
            kind, key, text = setting(new)
            say_sent(node.ask(SetState(found, kind, key, text=text)), f"set     {new}", session)
            return
        reply = node.ask(ExamineState(found))
        names = Names(() if session.as_json else node.ask(ListMembers(found)).members)
    _say_state(reply, names, session)


def setting(text: str) -> tuple[str, str, str]:
    """Return the kind, key and value of the state to set."""
    what, equals, value = text.partition("=")
    kind, _, key = what.partition("/")
    if not equals or not kind:
        raise Failure(f"{text[:80]!r} sets nothing: write KIND=TEXT, such as name=tea", ExitCode.USAGE)
    return kind, key, value


def _say_state(reply: StateIs, names: Names, session: Session) -> None:
    facts = {"room": topic_text(reply.room), "join": reply.rule.value, "digest": reply.digest.hex()}
    session.say(reply, fact_lines(facts.items(), 8))
    if session.as_json:
        return
    rows = [
        (
            entry.kind,
            names.of(entry.key) if entry.kind == "member" else plain(entry.key),
            value_text(entry, names),
            names.of(entry.event.author),
            claimed_text(entry.event.time, entry.event.doubtful),
        )
        for entry in reply.entries
    ]
    say_table(("kind", "key", "value", "set by", "at"), rows)


def value_text(entry: StateEntry, names: Names) -> str:
    """Return the value of an entry of the state for a cell."""
    from linnet.api.items import text_of
    from linnet.api.rooms import content_view

    body = entry.event.body
    content = content_view(entry.kind, body)
    if content is None:
        text = text_of(body)
        return size_text(len(body)) if text is None else plain(text)
    match entry.kind:
        case "member":
            return str(content["membership"])
        case "join_rules":
            return str(content["rule"])
        case "power":
            people = counted(len(content["users"]), "person", "people")
            return f"{people}, {counted(len(content['events']), 'kind')}"
        case "relay":
            return f"{'active' if content['active'] else 'taken out'}, of {names.of(content['person'])}"
        case _:
            return ", ".join(f"{name} {value}" for name, value in content.items() if value not in (None, []))


FOREVER = "forever"
Time = Annotated[
    str | None, typer.Argument(metavar="[TIME]", help="2h, 7d, or forever; without it, show what is set.")
]


@with_examples(
    "linnet room retention tea", "linnet room retention tea 7d", "linnet room retention tea forever"
)
def retention(room: RoomArgument, time: Time = None, *, session: Session) -> None:
    """Show or set how long the room's relays keep an event. Members keep theirs as long as they like.

    An event that a member did not fetch in time is shown as expired in the sender's ledger.
    """
    from linnet.rooms.commands import ExamineState, SetRetention
    from linnet.rooms.event_types import RETENTION, Retention, content_of

    seconds = None if time in (None, FOREVER) else parse_duration(time or "")
    with session.open_node() as node:
        found = find_room(node, room).room
        if time is not None:
            told = f"relays keep events {kept_text(seconds)}"
            say_sent(node.ask(SetRetention(found, seconds)), told, session)
            return
        entries = [entry for entry in node.ask(ExamineState(found)).entries if entry.kind == RETENTION]
    decided = content_of(RETENTION, entries[0].event.body) if entries else None
    kept = decided.max_lifetime_ms if isinstance(decided, Retention) else None
    seconds = None if kept is None else kept / 1000
    words = "nothing is decided: each relay keeps events as long as its own configuration says"
    session.say(
        {"room": topic_text(found), "seconds": seconds, "decided": bool(entries)},
        f"relays keep events {kept_text(seconds)}" if entries else words,
    )


def kept_text(seconds: float | None) -> str:
    """Return a retention in words."""
    return "until they are full" if seconds is None else f"for {duration_text(seconds)}"


RELAY_COLUMNS = ("relay", "state", "in use", "round trip", "load", "signs", "caught", "addresses")
Add = Annotated[
    str | None, typer.Option("--add", metavar="KEY@HOST:PORT", help="Ask this relay to serve the room.")
]
Move = Annotated[
    tuple[str, str] | None,
    typer.Option(
        "--move",
        metavar="OLD NEW",
        help="Replace the relay OLD (ld1…) by NEW (KEY@HOST:PORT, or ld1… if it is one already), once NEW "
        "holds all that OLD holds.",
    ),
]
Drop = Annotated[str | None, typer.Option("--drop", metavar="KEY", help="Remove this relay, ld1….")]


@with_examples(
    "linnet room relays tea",
    "linnet room relays tea --add ld1…@relay.example.org:7700",
    "linnet room relays tea --drop ld1…",
    "linnet room relays tea --move ld1… ld1…@relay.example.org:7700",
)
def show_relays(
    room: RoomArgument,
    add: Add = None,
    drop: Drop = None,
    move: Move = None,
    patience: PatienceOption = 20.0,
    *,
    session: Session,
) -> None:
    """Show the relays of a room, add one, remove one, or move from one to another.

    A relay holds events for members who are away. It cannot send messages to the room. It signs what it takes
    in and what it shows; two statements that contradict each other prove that it withholds events, and every
    member is told. A move removes the old relay only when the new one has signed that it holds all events
    that the old one and this device hold; pieces of attachments are not compared.
    """
    from linnet.cli.room.relays import add_relay, move_room
    from linnet.core.ids import PeerId
    from linnet.identity.addresses import parse_contact
    from linnet.rooms.commands import DropRelay

    if sum(each is not None for each in (add, drop, move)) > 1:
        raise Failure("give --add, --drop or --move, one at a time", ExitCode.USAGE)
    added = None if add is None else parse_contact(add)
    dropped = None if drop is None else PeerId(from_text(Sort.DEVICE, drop.partition("@")[0]))
    with session.open_node() as node:
        found = find_room(node, room)
        if added is not None:
            sent = add_relay(node, found.room, added, patience, session.as_json)
            say_sent(sent, f"relay   {add}", session)
        elif move is not None:
            move_room(node, found, *move, patience, session)
        elif dropped is not None:
            told = f"no relay any more: {device_text(dropped)}"
            say_sent(node.ask(DropRelay(found.room, dropped)), told, session)
        else:
            result = {"room": topic_text(found.room), "relays": found.relays}
            rows = [relay_row(each) for each in found.relays]
            otherwise = "who is away gets events only from members who are online then; add one with --add"
            session.say_table(result, RELAY_COLUMNS, rows, f"no relay: {otherwise}")


def relay_row(relay: RelayStatus) -> tuple[object, ...]:
    """Return the row of a relay in a table."""
    if relay.up:
        state = "up"
    elif relay.failure:
        state = f"down: {relay.failure.value}"
    else:
        state = "linking" if relay.chosen else "idle: not linked now"
    trip = None if relay.rtt is None else f"{relay.rtt * 1000:.1f} ms"
    load = None if relay.load is None else f"{relay.load:.0%}"
    caught = "" if relay.fault is None else relay.fault.value
    if relay.anew:
        caught = ", ".join(filter(None, (caught, f"began anew {counted(relay.anew, 'time')}")))
    return (device_text(relay.relay), state, relay.chosen, trip, load, relay.signs, caught, relay.hints)
