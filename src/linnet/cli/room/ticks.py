"""At whom an event has arrived, as a mark, in a line and as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from linnet.cli.moments import clock_text

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.room_types import EventFatesView, MemberFateView

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


def tick(fates: Sequence[MemberFateView]) -> str:
    """One mark for all members. Those who tell nobody are not waited for."""
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


def is_settled(fates: Sequence[MemberFateView]) -> bool:
    """Whether nothing more can be learned about it."""
    return bool(fates) and all(fate.fate.value not in ("pending", "at_relay") for fate in fates)


def summary(fates: Sequence[MemberFateView], names: Names) -> str:
    """Where an event is, in words."""
    if not fates:
        return "nobody else is in the room"
    told = []
    for fate in FATES:
        people = [names.of(each.person) for each in fates if each.fate.value == fate]
        if people:
            words = "arrived at" if fate == "delivered" else WORDS[fate] + ":"
            told.append(f"{words} {'all ' if len(people) == len(fates) > 1 else ''}{_people(people)}")
    return "; ".join(told)


def _people(people: list[str], most: int = 4) -> str:
    shown = ", ".join(people[:most])
    return shown if len(people) <= most else f"{shown} and {len(people) - most} more"


COUNT_COLUMNS = ("member", *(f"{WORDS[fate]} " for fate in FATES), "last arrival")


def count_rows(events: Sequence[EventFatesView], names: Names) -> list[tuple[object, ...]]:
    """Member by fate: of how many of these events it is the fate there."""
    counts: dict[str, Counter[str]] = {}
    last: dict[str, float] = {}
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


def fate_rows(event: EventFatesView, names: Names) -> list[tuple[object, ...]]:
    """Member by member, what became of one event."""
    return [
        (
            names.of(fate.person),
            WORDS[fate.fate.value],
            None if fate.at is None else clock_text(fate.at),
            [relay[:12] + "…" for relay in fate.relays],
            fate.reason,
        )
        for fate in event.members
    ]


EVENT_COLUMNS = ("", "event", "kind", "said at", "where it is")


def event_rows(events: Sequence[EventFatesView], names: Names) -> list[tuple[object, ...]]:
    """Event by event, where it is."""
    return [
        (
            tick(event.members),
            event.event[:14] + "…",
            event.kind,
            clock_text(event.time / 1000),
            summary(event.members, names),
        )
        for event in events
    ]
