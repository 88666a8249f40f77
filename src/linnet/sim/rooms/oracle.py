"""The oracle of a room, which works out slowly from all events what is true, and the judge of its members.

`Oracle` has every event at once and asks the room's rules, but nothing that a node remembers. Its causality
is a plain closure over all references. `Evidence` reads from the trace which node held what when; nodes are
asked only for what their applications saw, their state and their ledger.

The predicates of asynchronous delivery are those of Schichtholz 2024, section 3.1, over a merged log. The
formulas say "there are a sender and a receiver", and hold for all pairs for which the premise does not; so
here the pair is given, and the premise must hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from math import inf
from typing import NamedTuple

from msgspec import Struct

from linnet.core.errors import InvalidEvent
from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.delivery.receipts import Fate
from linnet.event.event import Event
from linnet.rooms.auth.control_graph import ControlDag
from linnet.rooms.auth.event_auth import allowed
from linnet.rooms.auth.room_state import State, fact_of
from linnet.rooms.commands import EventFates, MemberFate
from linnet.rooms.event_types import CONTROL_KINDS, CREATE, MEMBER, POWER, Member, Membership, member_key
from linnet.sim.clock import START
from linnet.sim.rooms.traffic import OFFLINE, ONLINE, RECEIVE, SEND, Entry, merge
from linnet.sim.rooms.world import RoomsWorld
from linnet.trace.records import Kind, Row

_REMOVED = (Membership.LEAVE, Membership.BAN)


class Oracle:
    """All events of one room."""

    def __init__(self, events: Iterable[Event]) -> None:
        ordered = sorted(events, key=lambda event: (event.tail.height or 0, event.id))
        self.events: dict[EventId, Event] = {event.id: event for event in ordered}
        """All events, causes first."""
        create = next(event for event in ordered if event.kind == CREATE)
        self.control = ControlDag(create)
        self._past: dict[EventId, frozenset[EventId]] = {}
        self._shown_before: dict[EventId, frozenset[EventId]] = {}
        """Like `_past`, but without control heads as such: these count before their own causes have
        arrived."""
        self._states: dict[frozenset[EventId], State] = {}
        for event in self.events.values():
            self._past[event.id] = _closure(references(event), self._past)
            self._shown_before[event.id] = _closure(causes(event), self._shown_before)
            if event.kind in CONTROL_KINDS and event.id != create.id and not self.missing(event):
                self.control.add(event)

    def missing(self, event: Event) -> list[EventId]:
        """Return the control heads of an event that no node has."""
        return [head for head in event.tail.control or () if head not in self.events]

    def is_before(self, event: EventId, other: EventId) -> bool:
        """Return whether the other event refers to this one, in however many steps."""
        return event in self._past[other]

    def past(self, event: EventId) -> frozenset[EventId]:
        """Return all events that an event refers to, in however many steps."""
        return self._past[event]

    def is_allowed(self, event: Event) -> bool:
        """Return whether the state at its own control heads allows an event."""
        return not self.missing(event) and self.control.judge(event) is None

    def joined_at(self, event: Event) -> tuple[AuthorId, ...]:
        """Return the members of the room at the control heads of an event."""
        return self.control.view(self.control.state_at(event.tail.control or ())).joined()

    def joined(self) -> tuple[AuthorId, ...]:
        """Return the members of the room when everybody knows everything."""
        return self.control.view().joined()

    def state(self) -> dict[tuple[str, str], EventId]:
        """Return the control state when everybody knows everything."""
        return dict(self.control.current)

    def is_endangered(self, event: Event) -> bool:
        """Return whether an event that the author did not know takes the right to this event away.

        That is a membership of the author or levels that neither come before the event nor follow it: the
        person that took the right away had not been shown the event, even if a control event that it names
        had.
        """
        fact, state = fact_of(event), self.control.state_at(event.tail.control or ())
        for other in self.events.values():
            if other.id == event.id or not self._takes_away(other, event.author):
                continue
            if self.is_before(other.id, event.id) or event.id in self._shown_before[other.id]:
                continue
            place = self.control.fact(other.id).place
            if allowed(fact, self.control.view(state.set(place, other.id))) is not None:
                return True
        return False

    def _takes_away(self, event: Event, person: AuthorId) -> bool:
        """Return whether a control event removes a person, or changes levels."""
        if not self.control.knows(event.id):
            return False
        if event.kind == POWER:
            return True
        if event.kind != MEMBER or event.tail.key != member_key(person):
            return False
        content = self.control.fact(event.id).content
        return isinstance(content, Member) and content.membership in _REMOVED

    def allows(self, held: frozenset[EventId], event: Event) -> bool:
        """Return whether a node that holds these control events may accept an event, as far as it can know.

        The node must also hold the events that the event names as its control heads.
        """
        known = held.union(event.tail.control or ())
        state = self._states.get(known)
        if state is None:
            named = {head for one in known for head in self.events[one].tail.control or ()}
            state = self._states[known] = self.control.state_at([one for one in known if one not in named])
        try:
            return allowed(fact_of(event), self.control.view(state)) is None
        except InvalidEvent:
            return False


def _closure(parents: Iterable[EventId], known: dict[EventId, frozenset[EventId]]) -> frozenset[EventId]:
    found: set[EventId] = set()
    for parent in parents:
        found |= {parent, *known.get(parent, ())}
    return frozenset(found)


def references(event: Event) -> tuple[EventId, ...]:
    """Return all events that an event names."""
    tail = event.tail
    prev = () if event.prev is None else (event.prev,)
    return (*(tail.deps or ()), *(tail.concurrent or ()), *(tail.control or ()), *prev)


def causes(event: Event) -> tuple[EventId, ...]:
    """Return the events that must be shown before an event."""
    prev = () if event.prev is None else (event.prev,)
    return (*(event.tail.deps or ()), *(event.tail.concurrent or ()), *prev)


_HELD = (Kind.PUBLISHED, Kind.STORED, Kind.DELIVERED)


class Pair(Struct, frozen=True):
    """An event and a member that should have it."""

    event: Event
    name: str
    said_at: float
    """Virtual seconds."""
    seen_at: float | None


class Evidence:
    """The trace's record of which node held which event when; positions are places in the whole trace."""

    def __init__(self, rows: list[Row], world: RoomsWorld) -> None:
        self.held: dict[str, dict[EventId, int]] = {name: {} for name in world.names.values()}
        """The position where a node first had an event, accepted or not."""
        self.held_at: dict[str, dict[EventId, float]] = {name: {} for name in world.names.values()}
        self.soft: dict[str, dict[EventId, None]] = {name: {} for name in world.names.values()}
        """Events that a node did not show because of what it knew."""
        self.refused: dict[EventId, dict[str, None]] = {}
        self.gone: dict[str, dict[EventId, None]] = {name: {} for name in world.names.values()}
        self.said_at: dict[EventId, float] = {}
        for position, row in enumerate(rows):
            name = world.names.get(PeerId(row.node))
            if name is not None and row.event is not None and row.topic == world.room:
                self._take(name, EventId(row.event), row, position)
        for name, seen in world.seen.items():
            # An event kept before its turn, and placed after a restart, is shown without a record.
            for event, time in seen.items():
                self.held_at[name][event] = min(time, self.held_at[name].get(event, time))

    def _take(self, name: str, event: EventId, row: Row, position: int) -> None:
        time = row.time - START
        if row.kind == Kind.PUBLISHED:
            self.said_at.setdefault(event, time)
        soft = row.kind == Kind.REJECTED and row.reason == Reason.SOFT_FAILED
        if row.kind in _HELD or soft:
            self.held[name].setdefault(event, position)
            self.held_at[name].setdefault(event, time)
        if soft:
            self.soft[name][event] = None
        elif row.kind == Kind.REJECTED:
            self.refused.setdefault(event, {})[name] = None
        elif row.kind in (Kind.EXPIRED, Kind.EVICTED):
            self.gone[name][event] = None


class Judge:
    """Judges one room at the end of its scenario."""

    def __init__(self, world: RoomsWorld, oracle: Oracle, rows: list[Row]) -> None:
        self._world = world
        self._oracle = oracle
        self.evidence = Evidence(rows, world)
        self._person: dict[AuthorId, str] = {world.identities[n].author: n for n in world.peers}
        log = merge(rows, world.names, begin=START)
        self._online = {name: online_intervals(log.entries, name) for name in world.peers}
        self.endangered = [
            event.id
            for event in oracle.events.values()
            if event.kind != CREATE and oracle.is_allowed(event) and oracle.is_endangered(event)
        ]

    def pairs(self) -> Iterator[Pair]:
        """Yield all pairs that count."""
        exempt = frozenset(self.endangered)
        final = frozenset(self._oracle.joined())
        for event in self._oracle.events.values():
            said_at = self.evidence.said_at.get(event.id)
            if event.kind == CREATE or event.id in exempt or said_at is None:
                continue
            if not self._oracle.is_allowed(event):
                continue
            for person in self._oracle.joined_at(event):
                name = self._person.get(person)
                if name is not None and person in final and person != event.author:
                    seen = self._world.seen.get(name, {}).get(event.id)
                    yield Pair(event, name, said_at, seen)

    def first_return(self, pair: Pair) -> bool | None:
        """Return whether an event was delivered in the member's first time back; None if it was online when
        it was sent."""
        times = self._online[pair.name]
        if any(interval.holds(pair.said_at) for interval in times):
            return None
        back = next((each for each in times if each.start > pair.said_at), None)
        if back is None:
            return None
        return pair.seen_at is not None and Interval(back.start, back.end).holds(pair.seen_at)

    def unauthorised(self) -> int:
        """Count unauthorised deliveries; at relays, unauthorised events kept for others."""
        oracle, found = self._oracle, 0
        for name, held in self.evidence.held.items():
            control = [
                (position, event)
                for event, position in held.items()
                if event in oracle.events and oracle.events[event].kind in CONTROL_KINDS
            ]
            for event, position in held.items():
                known = oracle.events.get(event)
                if known is None or known.kind == CREATE or not self._was_taken(name, known):
                    continue
                before = frozenset(
                    one for place, one in control if place < position and not oracle.is_before(event, one)
                )
                soft = event in self.evidence.soft[name]
                if soft or not oracle.is_allowed(known) or not oracle.allows(before, known):
                    found += 1
        return found

    def _was_taken(self, name: str, event: Event) -> bool:
        """Return whether a node passed an event on, to its application or to peers that resynchronise."""
        if event.author == self._world.identities[name].author:
            return False
        if name in self._world.relays:
            return event.kind not in CONTROL_KINDS
        return event.id in self._world.seen.get(name, {})

    def causal_violations(self) -> int:
        """Count events that an application saw before an event that they depend on."""
        found = 0
        for seen in self._world.seen.values():
            places = {event: place for place, event in enumerate(seen)}
            for event, place in places.items():
                known = self._oracle.events.get(event)
                if known is not None and any(places.get(one, -1) > place for one in causes(known)):
                    found += 1
        return found

    def lies(self, name: str, line: EventFates, fate: MemberFate, now: float) -> str | None:
        """Return the error in a line of a member's ledger, in words; None if the line is right."""
        member = self._person.get(fate.person)
        if member is None:
            return None
        at = now if fate.at is None else fate.at - START
        match fate.fate:
            case Fate.DELIVERED:
                held = self.evidence.held_at[member].get(line.event)
                if held is None or held > at:
                    return f"{name}: {line.event.hex()[:8]} delivered at {member} by {at:.2f}: {held}"
            case Fate.AT_RELAY:
                return self._not_at_relays(name, line, fate)
            case Fate.EXPIRED:
                gone = (relay for relay in self._world.relays if line.event in self.evidence.gone[relay])
                if not any(gone):
                    return f"{name}: {line.event.hex()[:8]} expired for {member}, and no relay let it go"
            case Fate.REFUSED:
                soft = any(line.event in events for events in self.evidence.soft.values())
                if line.event not in self.evidence.refused and not soft:
                    return f"{name}: {line.event.hex()[:8]} refused by {member}, and nobody did"
            case _:
                pass
        return None

    def _not_at_relays(self, name: str, line: EventFates, fate: MemberFate) -> str | None:
        for relay in fate.relays:
            where = self._world.names.get(relay, "")
            if where not in self._world.relays or line.event not in self.evidence.held[where]:
                return f"{name}: {line.event.hex()[:8]} at relay {where or relay.hex()[:8]}, which has it not"
        return None if fate.relays else f"{name}: {line.event.hex()[:8]} at no relay in particular"

    def is_pending(self, line: EventFates, fate: MemberFate) -> bool:
        """Return whether a member has an event without its sender's knowing it."""
        member = self._person.get(fate.person)
        if member is None or fate.fate in (Fate.DELIVERED, Fate.UNKNOWN):
            return False
        return line.event in self._world.seen.get(member, {})


class Interval(NamedTuple):
    """A half-open interval: the start is in it, the end is not."""

    start: float
    end: float

    def holds(self, time: float) -> bool:
        """Return whether a time lies in the interval."""
        return self.start <= time < self.end


class Delivery(StrEnum):
    """How an event reached one receiver."""

    ASAP = "asap"
    """In the first period in which the receiver was online and the sender was not."""
    ASYNCHRONOUS = "asynchronous"
    """In such a period, but not in the first."""
    SYNCHRONOUS = "synchronous"
    """While both were online."""
    NONE = "none"


def online_intervals(log: Sequence[Entry], user: str) -> list[Interval]:
    """Return when a user was online, by the lines of the log.

    A user whose first line is to go offline was online from the start, and so is one without such lines; the
    last interval is open if no line ends it.
    """
    changes = [entry for entry in log if entry.user == user and entry.action in (ONLINE, OFFLINE)]
    since: float | None = -inf if not changes or changes[0].action == OFFLINE else None
    found: list[Interval] = []
    for change in changes:
        if change.action == ONLINE:
            since = change.time if since is None else since
        elif since is not None:
            found.append(Interval(since, change.time))
            since = None
    return found if since is None else [*found, Interval(since, inf)]


def apart(log: Sequence[Entry], sender: str, receiver: str, after: float) -> list[Interval]:
    """Return the longest periods after a time in which the receiver is online and the sender is not."""
    away = _complement(online_intervals(log, sender))
    found = [
        Interval(max(here.start, gone.start, after), min(here.end, gone.end))
        for here in online_intervals(log, receiver)
        for gone in away
    ]
    return sorted(interval for interval in found if interval.start < interval.end)


def delivery(log: Sequence[Entry], event: int, sender: str, receiver: str) -> Delivery:
    """Return how an event reached a receiver, judged by its first arrival."""
    sent = _first(log, SEND, sender, event)
    received = None if sent is None else _first(log, RECEIVE, receiver, event, sent)
    if sent is None or received is None:
        return Delivery.NONE
    times = apart(log, sender, receiver, sent)
    if _is_online(log, receiver, sent) or not any(each.holds(received) for each in times):
        return Delivery.SYNCHRONOUS
    return Delivery.ASAP if times[0].holds(received) else Delivery.ASYNCHRONOUS


def async_delivered(log: Sequence[Entry], event: int, sender: str, receiver: str) -> bool:
    """Return whether delivery was asynchronous: the receiver was offline at the sending, and got it while the
    sender was offline."""
    return delivery(log, event, sender, receiver) in (Delivery.ASAP, Delivery.ASYNCHRONOUS)


def asap_delivered(log: Sequence[Entry], event: int, sender: str, receiver: str, within: float = inf) -> bool:
    """Return whether delivery was asynchronous in the first possible period, and at most so many seconds into
    it."""
    if delivery(log, event, sender, receiver) is not Delivery.ASAP:
        return False
    sent = _first(log, SEND, sender, event) or 0.0
    received = _first(log, RECEIVE, receiver, event, sent) or 0.0
    return received - apart(log, sender, receiver, sent)[0].start <= within


def _first(log: Sequence[Entry], action: str, user: str, event: int, after: float = -inf) -> float | None:
    times = (e.time for e in log if (e.action, e.user, e.event) == (action, user, event) and e.time >= after)
    return min(times, default=None)


def _is_online(log: Sequence[Entry], user: str, time: float) -> bool:
    return any(interval.holds(time) for interval in online_intervals(log, user))


def _complement(intervals: Sequence[Interval]) -> list[Interval]:
    """Return the times between intervals that are in order."""
    ends = [-inf, *(interval.end for interval in intervals)]
    starts = [*(interval.start for interval in intervals), inf]
    return [Interval(end, start) for end, start in zip(ends, starts, strict=True) if end < start]
