"""Judging a simulated room: what everybody should have, against what everybody was handed and says.

Nothing here is asked of the nodes but what their applications saw, their state and their ledger. What
should be is worked out from the events and the trace (`linnet.sim.oracle`).
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from linnet.core.ids import AuthorId, EventId, PeerId
from linnet.core.reasons import Reason
from linnet.event.event import Event
from linnet.rooms.content import CONTROL_KINDS, CREATE
from linnet.rooms.results import EventFates, Fate, MemberFate
from linnet.sim.clock import START
from linnet.sim.merged_log import merge
from linnet.sim.model import Interval, online_intervals
from linnet.sim.oracle import Oracle, causes
from linnet.sim.rooms_world import RoomsWorld
from linnet.trace.records import Kind, Row

_HELD = (Kind.PUBLISHED, Kind.STORED, Kind.DELIVERED)


class Pair(Struct, frozen=True):
    """An event and somebody who should have it."""

    event: Event
    name: str
    said_at: float
    """Virtual seconds."""
    seen_at: float | None


class Evidence:
    """What the trace says of who held which event when; positions are places in the whole trace."""

    def __init__(self, rows: list[Row], world: RoomsWorld) -> None:
        self.held: dict[str, dict[EventId, int]] = {name: {} for name in world.names.values()}
        """Where a node first had an event, accepted or not."""
        self.held_at: dict[str, dict[EventId, float]] = {name: {} for name in world.names.values()}
        self.soft: dict[str, dict[EventId, None]] = {name: {} for name in world.names.values()}
        """What a node did not show because of what it knew."""
        self.refused: dict[EventId, dict[str, None]] = {}
        self.gone: dict[str, dict[EventId, None]] = {name: {} for name in world.names.values()}
        self.said_at: dict[EventId, float] = {}
        for position, row in enumerate(rows):
            name = world.names.get(PeerId(row.node))
            if name is not None and row.event is not None and row.topic == world.room:
                self._take(name, EventId(row.event), row, position)
        for name, seen in world.seen.items():
            # What was kept before its turn, and has it after a restart, is shown without a record.
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
    """One room at the end of its scenario."""

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
        """All pairs that count."""
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
        """Whether it was delivered in the member's first time back; None if the member was there."""
        times = self._online[pair.name]
        if any(interval.holds(pair.said_at) for interval in times):
            return None
        back = next((each for each in times if each.start > pair.said_at), None)
        if back is None:
            return None
        return pair.seen_at is not None and Interval(back.start, back.end).holds(pair.seen_at)

    def unauthorised(self) -> int:
        """Deliveries that should not have been; at relays, what they keep for others."""
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
        """Whether a node let others have an event: its application, or whoever resynchronises."""
        if event.author == self._world.identities[name].author:
            return False
        if name in self._world.relays:
            return event.kind not in CONTROL_KINDS
        return event.id in self._world.seen.get(name, {})

    def causal_violations(self) -> int:
        """Events that an application saw before something that they depend on."""
        found = 0
        for seen in self._world.seen.values():
            places = {event: place for place, event in enumerate(seen)}
            for event, place in places.items():
                known = self._oracle.events.get(event)
                if known is not None and any(places.get(one, -1) > place for one in causes(known)):
                    found += 1
        return found

    def lies(self, name: str, line: EventFates, fate: MemberFate, now: float) -> str | None:
        """What is wrong with a line of somebody's ledger, in words."""
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
        """Whether a member has an event, and its sender does not know it."""
        member = self._person.get(fate.person)
        if member is None or fate.fate in (Fate.DELIVERED, Fate.UNKNOWN):
            return False
        return line.event in self._world.seen.get(member, {})
