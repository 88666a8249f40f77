"""The knowledge of relays about a room, compared with a homeserver's (Schichtholz 2024, requirement "Metadata
Privacy").

A homeserver with a member in a room keeps the whole event graph for ever: author and time of every event, all
state, every membership. A relay keeps control events for ever, everything else as long as the room's
retention says, and of presence only the devices that contacted it. Both see the same run.
"""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import EventId, PeerId
from linnet.rooms.commands import ExamineRelay, RelayReport, Sent, SetRetention
from linnet.rooms.event_types import CONTROL_KINDS
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.report import Progress, tell_nobody
from linnet.sim.rooms.scenario import Course, RoomScenario, all_events
from linnet.sim.rooms.world import FOUNDER, RoomsWorld
from linnet.trace.columns import ColumnTrace
from linnet.trace.records import Kind

_HOUR = 3600.0


class Knowledge(Struct, frozen=True):
    """The knowledge of one kind of node, on average."""

    who: str
    people: float
    """People that it knows to be members."""
    control_events: float
    events_held: float
    """Events other than control of which it holds author, time and size at the end."""
    events_seen: float
    """Events other than control that it ever held."""
    event_hours: float
    """Hours for which it held them, added up."""
    plain_state: float
    """Names and other plain state that it holds at the end."""
    people_seen: float
    """People whose devices contacted it, so that it learned their addresses and when they were online."""


class MetadataReport(Struct, frozen=True):
    """Relays and homeservers over the same run."""

    peers: int
    relays: int
    events: int
    retention_seconds: float | None
    virtual_seconds: float
    relay: Knowledge
    homeserver: Knowledge
    held_share: float
    """Events held by a relay at the end, as a share of those that a homeserver holds."""
    hours_share: float
    """Event-hours of a relay, as a share of a homeserver's."""


def run_metadata(
    scenario: RoomScenario, retention: float | None, progress: Progress = tell_nobody
) -> MetadataReport:
    """Run a scenario and compare; each homeserver is assumed to serve an equal share of the peers."""
    if not scenario.relays:
        raise ValueError("there is nothing to compare without relays")
    trace = ColumnTrace()
    links = LinkModel(named_latency(scenario.latency), scenario.jitter, scenario.loss)
    world = RoomsWorld(scenario.seed, scenario.peers, scenario.relays, links, trace)
    progress(0.0, "the room is set up")
    world.set_up()
    world.obtain(FOUNDER, SetRetention(world.room, retention), Sent)
    course = Course(scenario, world)
    course.appoint()
    course.run(progress)
    events = {event.id: event for event in all_events(world)}
    other = {event.id: event.time / 1000 for event in events.values() if event.kind not in CONTROL_KINDS}
    relay = _relays(world, trace, other)
    server = _homeserver(world, events.keys() - other.keys(), other, scenario.peers / scenario.relays)
    return MetadataReport(
        scenario.peers,
        scenario.relays,
        len(events),
        retention,
        world.network.elapsed,
        relay,
        server,
        _share(relay.events_held, server.events_held),
        _share(relay.event_hours, server.event_hours),
    )


def _relays(world: RoomsWorld, trace: ColumnTrace, other: dict[EventId, float]) -> Knowledge:
    reports = {world.peer(name): world.obtain(name, ExamineRelay(), RelayReport) for name in world.relays}
    rooms = [room for report in reports.values() for room in report.rooms]
    held = _held(trace, other, world.network.now)
    count = len(reports)
    return Knowledge(
        "a relay",
        sum(len(room.people) for room in rooms) / count,
        sum(room.control_events for room in rooms) / count,
        sum(room.kept_events for room in rooms) / count,
        sum(len(held.get(peer, {})) for peer in reports) / count,
        sum(sum(held.get(peer, {}).values()) for peer in reports) / _HOUR / count,
        sum(room.plain_state_events for room in rooms) / count,
        sum(person.last_seen is not None for room in rooms for person in room.people) / count,
    )


def _held(trace: ColumnTrace, other: dict[EventId, float], now: float) -> dict[PeerId, dict[EventId, float]]:
    """Return the seconds for which each node held each event for others, by the trace."""
    since: dict[tuple[PeerId, EventId], float] = {}
    held: dict[PeerId, dict[EventId, float]] = {}
    ends = (Kind.EXPIRED.value, Kind.EVICTED.value)
    for row in trace.rows():
        if row.event is None or EventId(row.event) not in other:
            continue
        key = PeerId(row.node), EventId(row.event)
        if row.kind == Kind.STORED.value:
            since.setdefault(key, row.time)
        elif row.kind in ends and key in since:
            held.setdefault(key[0], {})[key[1]] = row.time - since.pop(key)
    for (node, event), began in since.items():
        held.setdefault(node, {})[event] = now - began
    return held


def _homeserver(
    world: RoomsWorld, control: set[EventId], other: dict[EventId, float], users: float
) -> Knowledge:
    plain = sum(event.tail.key is not None for event in all_events(world) if event.id in other)
    hours = sum(world.network.now - said for said in other.values()) / _HOUR
    people = float(len(world.peers))
    return Knowledge(
        "a homeserver",
        people,
        float(len(control)),
        float(len(other)),
        float(len(other)),
        hours,
        float(plain),
        users,
    )


def _share(part: float, whole: float) -> float:
    return part / whole if whole else 0.0
