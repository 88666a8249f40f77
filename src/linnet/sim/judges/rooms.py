"""The judge of a room: what members must have in common, worked out from acknowledged commands.

Only one device changes power and membership here, in an order that the judge knows, so that their
consequences need no rules for conflicts; only a member that leaves does so itself. Actions of a revoked
device have no effect.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from linnet.core.ids import AuthorId, EventId
from linnet.sim.judges.verdict import Complaint, Rule

NOTHING = "nothing"
"""The value of a state that nobody set."""


class Message(Struct, frozen=True):
    """A message in the room that was acknowledged to the sender."""

    id: EventId
    text: str
    sender: str
    asked: float
    after: frozenset[EventId]
    """The events that the sender's application had been handed before."""
    is_owed: bool
    """Whether the sender lives, and stayed in the room."""
    is_forbidden: bool = False
    """Whether the sender's device had been revoked."""


class Ruling(Struct, frozen=True):
    """A decision of the founder, or a join or leave of a member; rulings are ordered by time."""

    place: str
    """The state that it sets: a person's level or membership, the join rule, the name."""
    value: str
    at: float
    is_sure: bool = True
    """Whether it was acknowledged; otherwise it may have taken effect, or not."""


class Seen(Struct, frozen=True):
    """One life of a reader: ids in the order in which it was handed them."""

    handed: tuple[EventId, ...]
    unreadable: frozenset[EventId]
    consumed: frozenset[EventId] = frozenset()
    """Events that it acknowledged to have handled before its node ended."""


class Member(Struct, frozen=True):
    """A device that is in the room in the end."""

    name: str
    person: AuthorId
    lives: tuple[Seen, ...]
    state: tuple[tuple[str, str], ...]
    """Its values of the states that rulings set."""
    unwarned: frozenset[EventId] = frozenset()
    """Events that it was handed before word of a revocation could have reached it: these cannot be taken
    back."""


class Outcast(Struct, frozen=True):
    """Somebody who was banned, and since when the founder knows."""

    name: str
    since: float
    handed: frozenset[EventId]


class Leaver(Struct, frozen=True):
    """Somebody who left the room, and since when its node has told the application so."""

    name: str
    since: float
    handed: frozenset[EventId]


def judge_room(
    messages: Iterable[Message],
    rulings: Iterable[Ruling],
    members: Iterable[Member],
    outcasts: Iterable[Outcast],
    founder: str,
    leavers: Iterable[Leaver] = (),
) -> list[Complaint]:
    """Return all broken promises."""
    said = {message.id: message for message in messages}
    expected: dict[str, list[str]] = {}
    for ruling in sorted(rulings, key=lambda each: each.at):
        if ruling.is_sure:
            expected[ruling.place] = [ruling.value]
        else:
            expected.setdefault(ruling.place, [NOTHING]).append(ruling.value)
    complaints: list[Complaint] = []
    for member in members:
        complaints += _judge_member(said, member)
        complaints += _judge_state(expected, member)
    for outcast in outcasts:
        late = [said[each] for each in outcast.handed if each in said]
        complaints += [
            Complaint(Rule.FORBIDDEN, f"{outcast.name} has {message.text!r}, said after it was banned")
            for message in late
            if message.sender == founder and message.asked > outcast.since
        ]
    for leaver in leavers:
        complaints += [
            Complaint(Rule.FORBIDDEN, f"{leaver.name} has {said[each].text!r}, said after it left")
            for each in leaver.handed
            if each in said and said[each].asked > leaver.since
        ]
    return complaints


def _judge_member(said: dict[EventId, Message], member: Member) -> Iterator[Complaint]:
    ever: dict[EventId, None] = {}
    told: dict[EventId, None] = {}
    consumed: dict[EventId, None] = {}
    for life in member.lives:
        seen: dict[EventId, None] = {}
        told.update(dict.fromkeys(life.unreadable))
        for event in life.handed:
            message = said.get(event)
            if message is None:
                yield Complaint(Rule.INVENTED, f"{member.name} has {event.hex()[:8]}, which nobody said")
                continue
            if event in seen or event in consumed:
                yield Complaint(Rule.DOUBLED, f"{member.name} was handed {message.text!r} twice")
            if message.is_forbidden and event not in member.unwarned:
                yield Complaint(Rule.FORBIDDEN, f"{member.name} has {message.text!r} of a revoked device")
            before = message.after & life_ids(life) - frozenset(seen)
            if before and not before <= frozenset(ever):
                wrong = next(iter(said[each].text for each in before if each in said), "something")
                yield Complaint(Rule.REORDERED, f"{member.name} has {message.text!r} before {wrong!r}")
            seen[event] = None
        ever.update(seen)
        consumed.update(dict.fromkeys(life.consumed))
    for message in said.values():
        if message.is_owed and message.id not in ever and message.id not in told:
            yield Complaint(Rule.MISSING, f"{member.name} lacks {message.text!r}")


def life_ids(life: Seen) -> frozenset[EventId]:
    """Return all events that were handed over in one life."""
    return frozenset(life.handed)


def _judge_state(expected: dict[str, list[str]], member: Member) -> Iterator[Complaint]:
    seen = dict(member.state)
    for place, values in expected.items():
        found = seen.get(place, NOTHING)
        if found not in values:
            follows = " or ".join(values)
            text = f"{member.name} sees {place} as {found}, but {follows} follows from what was decided"
            yield Complaint(Rule.STATE, text)
    for place, value in seen.items():
        if place not in expected:
            yield Complaint(Rule.STATE, f"{member.name} sees {place} as {value}, which nobody decided")
