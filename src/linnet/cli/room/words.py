"""The people, events and warnings of a room in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from linnet.api.items import RelayFaultyView
from linnet.cli.moments import DOUBTFUL, local_time
from linnet.cli.output import paragraphs, plain, size_text
from linnet.identity.text import person_text

if TYPE_CHECKING:
    from linnet.api.items import EventView, WarningView
    from linnet.api.rooms import KnownMember
    from linnet.core.ids import AuthorId

_SHOWN_LETTERS = 9


class Names:
    """The names of a room's people, by person id."""

    def __init__(self, members: Iterable[KnownMember] = (), own: AuthorId | None = None) -> None:
        """`own` is the person who reads."""
        self._own = None if own is None else person_text(own)
        self._labels: dict[str, str] = {}
        self.update(members)

    def update(self, members: Iterable[KnownMember]) -> None:
        """Learn the names of members."""
        self._labels |= {
            person_text(member.person): plain(member.label) for member in members if member.label
        }
        self._counts = Counter(self._labels.values())

    def learn(self, person: str, label: str | None) -> None:
        """Learn the label on the card of a person who says something."""
        if label and self._labels.get(person) != plain(label):
            self._labels[person] = plain(label)
            self._counts = Counter(self._labels.values())

    def of(self, person: str | AuthorId) -> str:
        """Return the name of a person, by the id or by its text."""
        text = person if isinstance(person, str) else person_text(person)
        if text == self._own:
            return "you"
        label = self._labels.get(text, "")
        letters = text[:_SHOWN_LETTERS] + "…"
        if not label:
            return letters
        # No other person is shown as "you", or by the same name as somebody else.
        return f"{label} ({letters})" if self._counts[label] > 1 or label == "you" else label


UNREADABLE = {
    "before_joining": "said before you were let in: not for you to read",
    "damaged": "cannot be read: the disk of this node has damaged it",
    "key_missing": "cannot be read yet: its key is on the way",
    "unknown_member": "cannot be read yet: its author's keys are on the way",
    "wrong_epoch": "cannot be read yet: a change of keys before it is missing",
    "key_spent": "cannot be read: its key was used and deleted",
    "undecryptable": "cannot be read: it does not fit its key",
}
"""Why a message cannot be read, in words for users."""


def event_line(event: EventView, names: Names, mark: str = "") -> str:
    """Return an event as a line, with a mark after its time, and a question mark if that is doubtful."""
    names.learn(event.author, event.label)
    moment = local_time(event.time / 1000)
    clock = "--:--" if moment is None else moment.strftime("%H:%M")
    if event.doubtful:
        clock += DOUBTFUL
    before = f"{clock} {mark} " if mark else f"{clock} "
    said = spoken(event, names)
    if said is not None:
        # Lines after the first are indented, so that nobody can write in another's name.
        return f"{before}{names.of(event.author)}: {said}".replace("\n", "\n" + " " * len(before))
    return f"{before}* {deed(event, names)}".replace("\n", " ")


def spoken(event: EventView, names: Names) -> str | None:
    """Return the text of an event; None for an event that does something."""
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
    """Describe what an event does, in the third person."""
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


_ID_LETTERS = 19
"""Letters of an id that are shown: so many that nobody finds another key whose id begins with them."""


def alarm_text(warning: WarningView) -> str:
    """Return a warning as a line; three marks stand before a grave one."""
    name = repr(plain(warning.label))
    who = warning.person[:_ID_LETTERS] + "…"
    other = "" if warning.other is None else warning.other[:_ID_LETTERS] + "…"
    match warning.alarm.value:
        case "verified_name":
            words = f"!!! THIS {name} ({who}) IS NOT the {name} whom you verified ({other})"
            return f"{words}. Trust nothing that they say before you have compared safety numbers with them"
        case "own_name":
            return f"!!! somebody else ({who}) calls themselves as you do: {name}"
        case "same_name":
            words = f"! another person ({who}) is called {name}, as one whom you know ({other})"
            return f"{words}. Compare safety numbers: linnet room security ROOM --person {who[:-1]}"
        case "own_device":
            words = f"!!! there is a new device of yours: {warning.device}"
            return f"{words}. If it is not yours, your key was stolen: look at linnet id devices"
        case _:
            words = f"! a new device of {name} ({who}), whom you verified: {warning.device}"
            return f"{words}. Ask them whether it is theirs, then verify them again"


def warning_text(warning: WarningView | RelayFaultyView) -> str:
    """Return a warning about a person or a relay as a line."""
    return relay_fault_text(warning) if isinstance(warning, RelayFaultyView) else alarm_text(warning)


def relay_fault_text(told: RelayFaultyView) -> str:
    """Return what is proved against a relay as a line."""
    who = f"relay {told.relay[:_ID_LETTERS]}…"
    match told.reason:
        case "withheld":
            what = "an event" if told.event is None else told.event[:_ID_LETTERS] + "…"
            return f"{who} withholds {what}, which it signed to have taken: take another relay"
        case "equivocation":
            return f"{who} signed two histories of this room: take another relay"
        case "stale":
            return f"{who} shows an older state than it has signed: take another relay"
        case _:
            return f"{who} lost events that it had signed to have taken, as a restored copy of its store does"
