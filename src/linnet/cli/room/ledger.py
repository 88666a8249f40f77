"""The delivery of events in a room, as a mark, in a line and as tables."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from linnet.cli.moments import clock_text
from linnet.cli.options import with_examples
from linnet.cli.output import say, say_json, say_table
from linnet.cli.room.arguments import RoomArgument, event_id, find_room
from linnet.cli.room.words import Names
from linnet.cli.running_node import Session
from linnet.identity.text import device_text, event_text

if TYPE_CHECKING:
    from linnet.core.ids import AuthorId
    from linnet.rooms.commands import EventFates, LedgerIs, MemberFate

PENDING = "·"
AT_RELAY = "⌂"
SOME = "✓"
ALL = "✓✓"
LOST = "!"
KEY = (
    f"{PENDING} pending   {AT_RELAY} at a relay   {SOME} arrived at some   {ALL} arrived at all   {LOST} lost"
)
FATES = ("delivered", "at_relay", "pending", "expired", "refused", "unknown")
WORDS = {
    "delivered": "arrived",
    "at_relay": "at a relay",
    "pending": "pending",
    "expired": "expired",
    "refused": "refused",
    "unknown": "tells nobody",
}


_NAMED = 4
"""The most people who are named; the others are counted."""


def tick(fates: Sequence[MemberFate]) -> str:
    """Return one mark for an event's fates at all members; members that send no receipts do not count."""
    known = [fate.fate.value for fate in fates if fate.fate.value != "unknown"]
    if not known:
        return PENDING
    if all(fate == "delivered" for fate in known):
        return ALL
    if any(fate in ("expired", "refused") for fate in known):
        return LOST
    if "delivered" in known:
        return SOME
    return AT_RELAY if "at_relay" in known else PENDING


def is_settled(fates: Sequence[MemberFate]) -> bool:
    """Return whether every fate is final."""
    return bool(fates) and all(fate.fate.value not in ("pending", "at_relay") for fate in fates)


def summary(fates: Sequence[MemberFate], names: Names) -> str:
    """Say which people an event has reached."""
    if not fates:
        return "nobody else is in the room"
    told = []
    for fate in FATES:
        people = [names.of(each.person) for each in fates if each.fate.value == fate]
        if people:
            words = "arrived at" if fate == "delivered" else WORDS[fate] + ":"
            reasons = dict.fromkeys(
                each.reason.value for each in fates if each.fate.value == fate and each.reason
            )
            why = f" ({', '.join(reasons)})" if fate in ("expired", "refused") and reasons else ""
            told.append(f"{words} {'all ' if len(people) == len(fates) > 1 else ''}{_people(people)}{why}")
    return "; ".join(told)


def _people(people: list[str]) -> str:
    shown = ", ".join(people[:_NAMED])
    return shown if len(people) <= _NAMED else f"{shown} and {len(people) - _NAMED} more"


COUNT_COLUMNS = ("member", *(f"{WORDS[fate]} " for fate in FATES), "last arrival")


def count_rows(events: Sequence[EventFates], names: Names) -> list[tuple[object, ...]]:
    """Return a row for each member: how many of these events have each fate there."""
    counts: dict[AuthorId, Counter[str]] = {}
    last: dict[AuthorId, float] = {}
    for event in events:
        for fate in event.members:
            counts.setdefault(fate.person, Counter())[fate.fate.value] += 1
            if fate.fate.value == "delivered" and fate.at is not None:
                last[fate.person] = max(fate.at, last.get(fate.person, 0.0))
    return [
        (
            names.of(person),
            *(count[fate] or "" for fate in FATES),
            clock_text(last[person]) if person in last else None,
        )
        for person, count in counts.items()
    ]


FATE_COLUMNS = ("member", "fate", "known since", "relays", "reason")


def fate_rows(event: EventFates, names: Names) -> list[tuple[object, ...]]:
    """Return a row for each member: the fate of one event there."""
    return [
        (
            names.of(fate.person),
            WORDS[fate.fate.value],
            None if fate.at is None else clock_text(fate.at),
            [device_text(relay)[:12] + "…" for relay in fate.relays],
            None if fate.reason is None else fate.reason.value,
        )
        for fate in event.members
    ]


EVENT_COLUMNS = ("", "event", "kind", "said at", "where it is")


def event_rows(events: Sequence[EventFates], names: Names) -> list[tuple[object, ...]]:
    """Return a row for each event: whom it has reached."""
    return [
        (
            tick(event.members),
            event_text(event.event)[:14] + "…",
            event.kind,
            clock_text(event.time / 1000),
            summary(event.members, names),
        )
        for event in events
    ]


Event = Annotated[
    str | None, typer.Argument(metavar="[EVENT]", help="One event of yours: its id, or a beginning of it.")
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="The N newest events.")]
Watch = Annotated[
    bool, typer.Option("--watch", help="Print it again whenever it changes, until all has arrived or Ctrl-C.")
]
_CLEAR = "\x1b[2J\x1b[H"

PERIOD = 1.0
"""Seconds between checks while it is watched."""


@with_examples(
    "linnet room ledger tea",
    "linnet room ledger tea le1…",
    "linnet room ledger tea --watch",
    "linnet room ledger tea --limit 100 --json | jq '.events[].members[] | select(.fate != \"delivered\")'",
)
def ledger(
    room: RoomArgument, event: Event = None, limit: Limit = 20, watch: Watch = False, *, session: Session
) -> None:
    """Show whom your events have reached: a table of members by the fates of the events.

    With an EVENT, show the fate of that one, member by member. Nothing is guessed: an event has arrived if
    the member's device has said so.
    """
    from linnet.api.rooms import ListMembers
    from linnet.rooms.commands import ExamineLedger

    with session.open_node() as node:
        found = find_room(node, room).room
        wanted = None if event is None else event_id(node, found, event)
        names = Names(() if session.as_json else node.ask(ListMembers(found)).members)

        def show(reply: LedgerIs) -> None:
            if session.as_json:
                say_json(reply)
            else:
                show_ledger(reply, names, wanted is not None)

        if watch:
            watch_ledger(lambda: node.ask(ExamineLedger(found, wanted, limit)), show)
        else:
            show(node.ask(ExamineLedger(found, wanted, limit)))


def watch_ledger(
    look: Callable[[], LedgerIs], show: Callable[[LedgerIs], None], period: float = PERIOD
) -> None:
    """Show the ledger whenever it has changed, until nothing more can be learned."""

    pause = threading.Event()
    last = None
    while True:
        reply = look()
        if reply != last:
            if last is not None and sys.stdout.isatty():
                sys.stdout.write(_CLEAR)
            show(reply)
            last = reply
        if all(is_settled(each.members) for each in reply.events):
            return
        pause.wait(period)


def show_ledger(reply: LedgerIs, names: Names, is_one: bool) -> None:
    """Print the ledger for people."""
    if not reply.events:
        say("you have said nothing here yet")
        return
    if is_one:
        say_table(FATE_COLUMNS, fate_rows(reply.events[0], names))
        say(summary(reply.events[0].members, names))
        return
    say_table(COUNT_COLUMNS, count_rows(reply.events, names))
    say("")
    say_table(EVENT_COLUMNS, event_rows(reply.events, names))
    say("")
    say(KEY)
