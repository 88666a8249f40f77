"""Judging a room whose nodes were killed: by their stores, their applications' files and their promises.

Authority is worked out again from all events at once (`linnet.sim.rooms.oracle`); of the nodes' own judgement
nothing is believed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from msgspec import Struct
from tests.node.crash_course import Claim, Course
from tests.node.crash_world import CrashWorld, Handed, Handled, Strange, event_id, handed_lines

from linnet.cli.play.nodes import LiveNode
from linnet.core.ids import AuthorId, EventId, TopicId
from linnet.delivery.receipts import Fate
from linnet.event.event import Event
from linnet.event.signing import decode_unit, recall_unit
from linnet.rooms.event_types import CONTROL_KINDS, CREATE, GROUP
from linnet.rooms.room_store import SOFT
from linnet.sim.rooms.oracle import Oracle, causes
from linnet.trace.records import Kind

UNITS = "SELECT raw FROM unit ORDER BY position"
CELLS = "SELECT key, value FROM cell WHERE space = ?"


class Kept(Struct, frozen=True):
    """What a node has of the room, by its store."""

    log: dict[EventId, Event]
    """In the order of the log."""
    hidden: dict[EventId, bytes]
    """Those that are not shown, and why."""
    early: dict[EventId, Event]

    def __contains__(self, event: bytes) -> bool:
        return event in self.log or event in self.early


def kept_by(node: LiveNode, room: TopicId) -> Kept:
    """Read the store of a node that does not run."""
    with closing(sqlite3.connect(node.home.store)) as db:
        log = [_event(raw) for (raw,) in db.execute(UNITS)]
        early = [_event(raw) for _, raw in db.execute(CELLS, (f"room.early/{room.hex()}",))]
        hidden = {EventId(key): bytes(flag) for key, flag in db.execute(CELLS, (f"room.flag/{room.hex()}",))}
    return Kept({event.id: event for event in log}, hidden, {event.id: event for event in early})


def _event(raw: bytes) -> Event:
    return recall_unit(decode_unit(raw)).events[0]


class Reading(Struct, frozen=True):
    """What one application was handed."""

    order: list[EventId]
    """Each event once, in the order in which it first came."""
    wrong: list[str]
    """Events that came twice where they must not, and whatever else is no event."""
    unread: dict[EventId, str]
    """Events that could not be read to the end, and why."""


def reading_of(node: LiveNode) -> Reading:
    """By the file that the application wrote."""
    lives: dict[int, list[EventId]] = {}
    handled: set[EventId] = set()
    order: dict[EventId, None] = {}
    wrong: list[str] = []
    unread: dict[EventId, str] = {}
    mended: set[EventId] = set()
    for line in handed_lines(node.home.path):
        life = lives.setdefault(line.life, [])
        match line:
            case Handed(event=text, unreadable=reason):
                event = EventId(event_id(text))
                if unread.pop(event, None) is not None and reason is None:
                    mended.add(event)  # Told once more, and again after a crash.
                repaired = event in mended
                if reason is not None:
                    unread[event] = reason
                if (event in life or event in handled) and not repaired:
                    wrong.append(f"{node.name}: {event.hex()[:8]} handed twice, in life {line.life}")
                life.append(event)
                order[event] = None
            case Handled(events=events):
                handled.update(life[:events])
            case Strange(what=what):
                wrong.append(f"{node.name}: {what}")
    return Reading(list(order), wrong, unread)


class Verdict:
    """All that is wrong with a run that is over, in words; its processes have ended."""

    def __init__(self, world: CrashWorld, course: Course) -> None:
        self._world = world
        self._course = course
        self.kept = {name: kept_by(node, world.room) for name, node in world.nodes.items()}
        self.readings = {name: reading_of(node) for name, node in world.peers.items()}
        events: dict[EventId, Event] = {}
        for kept in self.kept.values():
            events |= kept.log | kept.early
        self.oracle = Oracle(events.values())
        self._names: dict[AuthorId, str] = {node.author: name for name, node in world.peers.items()}
        self.pairs = 0
        """Events at members who must have them."""
        self.pending = 0
        """Lines of members' ledgers at the end that do not know yet that another member has an event."""
        self.endangered = 0

    def problems(self) -> list[str]:
        """Everything; empty if all is as it must be."""
        return [
            *self._course.failures,
            *self._world.last_words(),
            *(wrong for reading in self.readings.values() for wrong in reading.wrong),
            *self._forks(),
            *self._lost(),
            *self._undelivered(),
            *self._unread(),
            *self._unauthorised(),
            *self._disorder(),
            *self._states(),
            *self._lies(),
        ]

    def _forks(self) -> Iterator[str]:
        """Nobody forgot what it had said, and said something else in its place."""
        places: dict[tuple[bytes, bytes, int | None], EventId] = {}
        for event in self.oracle.events.values():
            if event.kind != CREATE:
                place = (event.author, event.device, event.seq)
                if places.setdefault(place, event.id) != event.id:
                    yield f"{self._name(event.author)} said two things as number {event.seq}"
            if not self.oracle.is_allowed(event):
                yield f"{self._words(event)} was said without the right to"

    def _lost(self) -> Iterator[str]:
        """What was acknowledged to the application is with its author, and was handed over there too."""
        for event, name in self._course.said.items():
            if event not in self.kept[name]:
                yield f"{name}: {event.hex()[:8]} was acknowledged and is lost"
            elif event not in self.readings[name].order:
                yield f"{name}: {event.hex()[:8]} was acknowledged and not handed to its own application"

    def _undelivered(self) -> Iterator[str]:
        """Whoever was in the room when something was said, and is in the end, was handed it."""
        oracle, final = self.oracle, frozenset(self.oracle.joined())
        handed = {name: frozenset(reading.order) for name, reading in self.readings.items()}
        for event in oracle.events.values():
            if event.kind in (CREATE, GROUP) or not oracle.is_allowed(event):
                continue
            if oracle.is_endangered(event):
                self.endangered += 1
                continue
            for person in oracle.joined_at(event):
                name = self._names.get(person)
                if name is None or person not in final:
                    continue
                self.pairs += 1
                if event.id not in handed[name]:
                    yield f"{name} was not handed {self._words(event)}{self._where(name, event.id)}"

    def _unread(self) -> Iterator[str]:
        """Whoever was in the room when something was said could read it in the end."""
        for name, reading in self.readings.items():
            for event, reason in reading.unread.items():
                known = self.oracle.events[event]
                present = {self._names.get(person) for person in self.oracle.joined_at(known)}
                if name in present and not self.oracle.is_endangered(known):
                    yield f"{name} could not read {self._words(known)}: {reason}"

    def _unauthorised(self) -> Iterator[str]:
        """Nobody showed or kept for others what it could know not to be allowed."""
        oracle = self.oracle
        for name, kept in self.kept.items():
            control: list[EventId] = []
            shown = frozenset(self.readings[name].order) if name in self.readings else None
            for event in kept.log.values():
                taken = event.id in shown if shown is not None else event.kind not in CONTROL_KINDS
                if taken and event.kind != CREATE and self._names.get(event.author) != name:
                    before = frozenset(one for one in control if not oracle.is_before(event.id, one))
                    soft = kept.hidden.get(event.id) == SOFT
                    if soft or not oracle.is_allowed(event) or not oracle.allows(before, event):
                        yield f"{name} took {self._words(event)}, which it must not"
                if event.kind in CONTROL_KINDS:
                    control.append(event.id)
        yield from self._traced()

    def _traced(self) -> Iterator[str]:
        """The trace tells of no delivery that the application's file does not have."""
        for name, node in self._world.peers.items():
            shown = frozenset(self.readings[name].order)
            for row in node.rows():
                if row.kind == Kind.DELIVERED and row.event not in shown:
                    yield f"{name}: {(row.event or b'').hex()[:8]} delivered by the trace, not by its file"

    def _disorder(self) -> Iterator[str]:
        """Applications were handed the log, in its order, causes first and nothing left out."""
        for name, reading in self.readings.items():
            kept = self.kept[name]
            log = [id for id, event in kept.log.items() if id not in kept.hidden and event.kind != GROUP]
            if reading.order != log:
                missing, more = set(log) - set(reading.order), set(reading.order) - set(log)
                yield f"{name}: not the log in its order; {len(missing)} left out, {len(more)} besides"
            places = {event: place for place, event in enumerate(reading.order)}
            for event, place in places.items():
                known = self.oracle.events.get(event)
                if known is None or any(places.get(one, -1) > place for one in causes(known)):
                    yield f"{name}: {event.hex()[:8]} came before something that it depends on"

    def _states(self) -> Iterator[str]:
        """All members end in the same state, and control is what the events say; at relays too."""
        expected = dict(self.oracle.state())
        digests: dict[bytes, list[str]] = {}
        for person in self.oracle.joined():
            name = self._names.get(person)
            if name is None:
                continue
            state = self._course.states[name]
            digests.setdefault(state.digest, []).append(name)
            found = {(e.kind, e.key): e.event.id for e in state.entries if e.kind in CONTROL_KINDS}
            if found != expected:
                yield f"{name}: its control state is not that of the events"
        if len(digests) != 1:
            yield f"{len(digests)} states: {digests}"
        for relay in self._world.relays:
            control = [each for each in self.kept[relay.name].log.values() if each.kind in CONTROL_KINDS]
            if Oracle(control).state() != self.oracle.state():
                yield f"{relay.name}: what it keeps does not add up to the control state"

    def _lies(self) -> Iterator[str]:
        """What any ledger ever said is so."""
        for claim in (*self._course.claims, *self._course.finals):
            lie = self._lie(claim)
            if lie is not None:
                yield f"the ledger of {claim.sender}: {claim.event.hex()[:8]} {lie}"
        joined = {self._names.get(person) for person in self.oracle.joined()}
        for claim in self._course.finals:
            member = self._names.get(claim.person, "")
            has = member in self.readings and claim.event in self.readings[member].order
            both = {member, claim.sender} <= joined
            self.pending += has and both and claim.fate is not Fate.DELIVERED
            if has and claim.fate is Fate.REFUSED:
                event = claim.event.hex()[:8]
                why = f"refused by {member} ({claim.reason}), which has it"
                yield f"the ledger of {claim.sender}: {event} {why}"

    def _lie(self, claim: Claim) -> str | None:
        member = self._names.get(claim.person)
        if member is None:
            return None
        match claim.fate:
            case Fate.DELIVERED if claim.event not in self.kept[member]:
                return f"delivered at {member}, which has it not"
            case Fate.EXPIRED:
                return f"expired for {member}, where nothing expires"
            case Fate.AT_RELAY:
                devices = {node.peer: node.name for node in self._world.relays}
                for relay in claim.relays:
                    if relay not in devices or claim.event not in self.kept[devices[relay]]:
                        return f"at {devices.get(relay, relay)}, which has it not"
                return None if claim.relays else "at no relay in particular"
            case _:
                return None

    def _words(self, event: Event) -> str:
        return f"{event.kind} {event.id.hex()[:8]} of {self._name(event.author)}"

    def _where(self, name: str, event: EventId) -> str:
        kept = self.kept[name]
        if event in kept.hidden:
            return f", hidden there: {kept.hidden[event]!r}"
        return ", kept early there" if event in kept.early else ", in its log" if event in kept.log else ""

    def _name(self, person: AuthorId) -> str:
        return self._names.get(person, f"{person.hex()[:8]}")
