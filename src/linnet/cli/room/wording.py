"""The events of a room in words."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from linnet.cli.output import paragraphs, plain, size_text

if TYPE_CHECKING:
    from linnet.cli.room.names import Names
    from linnet.node.control_types import EventView


UNREADABLE = {
    "before_joining": "said before you were let in: not for you to read",
    "key_missing": "cannot be read yet: its key is on the way",
    "unknown_member": "cannot be read yet: its author's keys are on the way",
    "wrong_epoch": "cannot be read yet: a change of keys before it is missing",
    "key_spent": "cannot be read: its key was used and deleted",
    "undecryptable": "cannot be read: it does not fit its key",
}
"""Why something that was said cannot be read, as people are told."""


def event_line(event: EventView, names: Names, mark: str = "") -> str:
    """One event as a line; a mark stands behind the time."""
    names.learn(event.author, event.label)
    clock = datetime.fromtimestamp(event.time / 1000).astimezone().strftime("%H:%M")
    before = f"{clock} {mark} " if mark else f"{clock} "
    said = spoken(event, names)
    if said is not None:
        # What follows a line break is indented, so that nobody can speak as another.
        return f"{before}{names.of(event.author)}: {said}".replace("\n", "\n" + " " * len(before))
    return f"{before}* {deed(event, names)}".replace("\n", " ")


def spoken(event: EventView, names: Names) -> str | None:
    """What somebody says; None if the event is a deed instead."""
    if event.redacted_by is not None:
        by = "its author" if event.redacted_by == event.author else names.of(event.redacted_by)
        return f"(redacted by {by})"
    if event.unreadable is not None:
        return f"({UNREADABLE.get(event.unreadable, 'cannot be read: ' + event.unreadable)})"
    if event.content is not None or event.key is not None:
        return None
    if event.kind == "message":
        return (
            f"({size_text(len(event.body))} that are no text)"
            if event.text is None
            else paragraphs(event.text)
        )
    return None


def deed(event: EventView, names: Names) -> str:
    """What an event does, told in the third person."""
    who = names.of(event.author)
    content = event.content or {}
    if "malformed" in content:
        return f"{who} said something that cannot be read ({event.kind})"
    match event.kind:
        case "create":
            return f"{who} founded the room"
        case "member":
            return _membership(event, content, who, names)
        case "name" | "topic":
            return f"{who} set the {event.kind} to {plain(event.text or '')!r}"
        case "power":
            return f"{who} changed the power levels"
        case "join_rules":
            return f"{who} decided who may join: {content['rule']}"
        case "relay":
            return f"{who} {'added' if content['active'] else 'took out'} the relay {(event.key or '')[:12]}…"
        case "retention":
            kept = content["max_lifetime_ms"]
            return f"{who} let relays keep events {'as long as they can' if kept is None else _days(kept)}"
        case "revocation":
            return f"{who} took the device {content['device']} out of use"
        case "redaction":
            return f"{who} took back {content['event'][:12]}…{_because(content)}"
        case "attachment":
            name, size = plain(content["name"]), size_text(content["size"])
            return f"{who} attached {name} ({size}), to be fetched by {event.id[:14]}"
        case _:
            what = f" {event.key!r}" if event.key else ""
            said = size_text(len(event.body)) if event.text is None else plain(event.text)
            return f"{who} {'set' if event.key is not None else 'sent'} {plain(event.kind)}{what}: {said}"


def _membership(event: EventView, content: dict[str, Any], who: str, names: Names) -> str:
    person = event.key or ""
    whom, own = names.of(person), person == event.author
    because = _because(content)
    match content["membership"]:
        case "join":
            by = content["invited_by"]
            return f"{who} joined" + (f", invited by {names.of(by)}" if by else "")
        case "knock":
            return f"{who} would like to join{because}"
        case "invite":
            return f"{who} invited {whom}{because}"
        case "ban":
            return f"{who} banned {whom}{because}"
        case _:
            return f"{who} left{because}" if own else f"{who} removed {whom}{because}"


def _because(content: dict[str, Any]) -> str:
    return f": {plain(content['reason'])}" if content.get("reason") else ""


def _days(milliseconds: int) -> str:
    from linnet.cli.moments import duration_text

    return f"for {duration_text(milliseconds / 1000)}"
