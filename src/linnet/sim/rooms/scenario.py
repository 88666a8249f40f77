"""The scenario of ``linnet sim rooms``: absences, messages, removals, and their outcome."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct

from linnet.event.event import MESSAGE, Event
from linnet.machine.commands import Declined
from linnet.peer.interface import AnyCommand
from linnet.rooms.commands import (
    ExamineLedger,
    ExamineState,
    LedgerIs,
    SendToRoom,
    Sent,
    SetLevel,
    SetMembership,
    SetState,
    StateIs,
)
from linnet.rooms.event_types import CONTROL_KINDS, NAME, Membership
from linnet.rooms.room_store import RoomMemory
from linnet.sim.churn import drawn_churn
from linnet.sim.links import LinkModel, named_latency
from linnet.sim.report import Progress, RunReport, tell_nobody
from linnet.sim.rooms.oracle import Judge, Oracle
from linnet.sim.rooms.world import FOUNDER, RoomsWorld
from linnet.sim.seeded_random import named_luck
from linnet.trace.columns import ColumnTrace

MODERATOR = 50
"""The level from which on a member may ban."""

MUTED = -1
"""The level of a demoted member: too low to send anything."""

_SPOKEN_AT_ONCE = 0.4
"""Share of returns at which the member speaks before it can know what has happened."""

_LATER = 2.0
"""Seconds until a removal is tried again, if no moderator was online."""

_NAMINGS = 20
"""One of so many messages sets the room's name, too."""


class RoomScenario(Struct, frozen=True):
    """Peers in one room that come and go, and the problems of the network."""

    peers: int = 20
    relays: int = 3
    messages: int = 200
    """Messages in all, at random times, each from a peer that is online."""
    offline: float = 0.5
    """Share of the time that a peer is away."""
    bans: int = 3
    demotions: int = 2
    seed: int = 1
    loss: float = 0.0
    """Probability that a single message on a link is lost."""
    jitter: float = 0.0
    partition: float = 0.0
    """Seconds in the middle for which one half of all nodes cannot reach the other."""
    latency: str = "aws"
    gap: float = 1.0
    """Seconds between messages, on average."""
    cycle: float = 60.0
    """Mean seconds from one return of a peer to the next."""
    quiet: float = 120.0
    """Seconds at the end with all peers online and no messages, before the judgement."""

    @property
    def seconds(self) -> float:
        """The seconds for which people come, go and speak."""
        return max(30.0, self.messages * self.gap)


class Course:
    """Plays a scenario over a world that is set up."""

    def __init__(self, scenario: RoomScenario, world: RoomsWorld) -> None:
        self._scenario = scenario
        self._world = world
        self._luck = named_luck(scenario.seed, "course")
        self.requests: list[int] = []
        """The requests of all commands given."""
        self.banned: dict[str, None] = {}
        self.demoted: dict[str, None] = {}
        self._moderators = [FOUNDER, *world.peers[1 : 1 + scenario.peers // 8]]
        self.began = self.ended = world.network.elapsed

    def appoint(self) -> None:
        """Give some peers the level of a moderator, so that more than one person decides."""
        for name in self._moderators[1:]:
            person = self._world.identities[name].author
            self._world.obtain(FOUNDER, SetLevel(self._world.room, MODERATOR, person=person), Sent)

    def run(self, progress: Progress) -> None:
        """Run everything up to the end of the quiet time."""
        scenario, world = self._scenario, self._world
        self.began = world.network.elapsed + 10.0
        self.ended = self.began + scenario.seconds
        self._come_and_go()
        spread = named_luck(scenario.seed, "times")
        for number in range(scenario.messages):
            at = spread.uniform(self.began, self.ended)
            world.network.at(at, partial(self._speak, number))
        for removals, act in ((scenario.bans, self._ban), (scenario.demotions, self._demote)):
            for _ in range(removals):
                at = self.began + spread.uniform(0.15, 0.85) * scenario.seconds
                world.network.at(at, act)
        self._split()
        steps = 20
        for step in range(1, steps + 1):
            world.network.run(self.began + scenario.seconds * step / steps)
            progress(0.1 + 0.7 * step / steps, "people come, go and speak")
        for name in world.peers:
            world.online(name)
        world.network.run(self.ended + scenario.quiet)

    def _come_and_go(self) -> None:
        scenario, world = self._scenario, self._world
        if not scenario.offline:
            return
        up, down = scenario.cycle * (1 - scenario.offline), scenario.cycle * scenario.offline
        peers = [world.peer(name) for name in world.peers]
        for change in drawn_churn(scenario.seed, peers, (self.began, self.ended), up, down):
            name = world.names[change.peer]
            act = self._return if change.up else world.offline
            world.network.at(change.at, partial(act, name))

    def _return(self, name: str) -> None:
        self._world.online(name)
        if self._luck.random() < _SPOKEN_AT_ONCE:
            self._ask(name, SendToRoom(self._world.room, (f"{name} is back".encode(),)))

    def _speak(self, number: int) -> None:
        name = self._someone(self._world.peers)
        if name is None:
            return
        room, namer = self._world.room, self._someone(self._moderators)
        if number % _NAMINGS == 0 and namer is not None:
            self._ask(namer, SetState(room, NAME, "", f"name {number}".encode()))
        self._ask(name, SendToRoom(room, (f"message {number} of {name}".encode(),)))

    def _ban(self) -> None:
        actor, target = self._pair()
        if actor is None:
            self._later(self._ban)
        elif target is not None:
            self.banned[target] = None
            person = self._world.identities[target].author
            self._ask(actor, SetMembership(self._world.room, person, Membership.BAN))

    def _demote(self) -> None:
        actor, target = self._pair()
        if actor is None:
            self._later(self._demote)
        elif target is not None:
            self.demoted[target] = None
            person = self._world.identities[target].author
            self._ask(actor, SetLevel(self._world.room, MUTED, person=person))

    def _later(self, act: Callable[[], None]) -> None:
        """Try again later, as no moderator is online, while people still come and go."""
        at = self._world.network.elapsed + _LATER
        if at < self.ended:
            self._world.network.at(at, act)

    def _pair(self) -> tuple[str | None, str | None]:
        """Draw a moderator that is online, and a peer to be removed, online or not."""
        actor = self._someone(self._moderators)
        left = [n for n in self._world.peers[1:] if n != actor and n not in self.banned]
        return actor, self._luck.choice(left) if left else None

    def _someone(self, names: list[str]) -> str | None:
        there = [name for name in names if self._world.is_online(name)]
        return self._luck.choice(there) if there else None

    def _ask(self, name: str, command: AnyCommand) -> None:
        self.requests.append(self._world.ask(name, command))

    def _split(self) -> None:
        scenario, world = self._scenario, self._world
        if not scenario.partition:
            return
        names = [*world.relays, *world.peers]
        named_luck(scenario.seed, "halves").shuffle(names)
        half = [world.peer(name) for name in names[: len(names) // 2]]
        at = self.began + 0.4 * scenario.seconds
        world.network.at(at, lambda: world.network.partition([half]))
        world.network.at(min(self.ended, at + scenario.partition), world.network.heal)


_SHOWN = 5
_LEDGER_LINES = 100_000


def run_rooms(
    scenario: RoomScenario, trace: ColumnTrace | None = None, progress: Progress = tell_nobody
) -> RoomsReport:
    """Run a scenario to its end and judge it. Equal scenarios give equal reports and traces."""
    began = time.perf_counter()
    kept = ColumnTrace() if trace is None else trace
    links = LinkModel(named_latency(scenario.latency), scenario.jitter, scenario.loss)
    world = RoomsWorld(scenario.seed, scenario.peers, scenario.relays, links, kept)
    progress(0.0, "the room is set up")
    world.set_up()
    course = Course(scenario, world)
    course.appoint()
    course.run(progress)
    progress(0.85, "judging")
    oracle = Oracle(all_events(world))
    judge = Judge(world, oracle, list(kept.rows()))
    return RoomsReport(
        peers=scenario.peers,
        relays=scenario.relays,
        **_course(world, oracle, course),
        **_deliveries(judge),
        **_states(world, oracle),
        **_ledgers(world, judge),
        unauthorised_delivered=judge.unauthorised(),
        endangered=len(judge.endangered),
        soft_failed=len({event for soft in judge.evidence.soft.values() for event in soft}),
        duplicate_deliveries=world.repeated,
        causal_violations=judge.causal_violations(),
        virtual_seconds=world.network.elapsed,
        trace_sha256=kept.sha256(),
        wall_seconds=time.perf_counter() - began,
    )


def all_events(world: RoomsWorld) -> list[Event]:
    """Return every event that some peer has; its author has it in any case."""
    found: dict[bytes, Event] = {}
    for name in world.peers:
        memory = RoomMemory(world.room, world.stores[name], rejected=1)
        for verified in (*memory.events(), *memory.early()):
            found.setdefault(verified.head, verified.events[0])
    return list(found.values())


def _course(world: RoomsWorld, oracle: Oracle, course: Course) -> dict[str, Any]:
    answers = world.network.answers
    events = oracle.events.values()
    said = [event for event in events if event.kind == MESSAGE]
    return {
        "events": len(events),
        "messages": len(said),
        "declined": sum(isinstance(answers.get(request), Declined) for request in course.requests),
        "banned": len(course.banned),
        "demoted": len(course.demoted),
        "offline_share": world.away / (course.ended - course.began) / len(world.peers),
    }


def _deliveries(judge: Judge) -> dict[str, Any]:
    pairs = list(judge.pairs())
    missing = [pair for pair in pairs if pair.seen_at is None]
    returns = [back for pair in pairs if (back := judge.first_return(pair)) is not None]
    return {
        "pairs": len(pairs),
        "delivered_share": 1 - len(missing) / len(pairs) if pairs else 1.0,
        "undelivered": tuple(
            f"{pair.event.kind} {pair.event.id.hex()[:8]} of {pair.said_at:.2f} s at {pair.name}"
            for pair in missing[:_SHOWN]
        ),
        "return_pairs": len(returns),
        "first_return_share": sum(returns) / len(returns) if returns else 1.0,
    }


def _states(world: RoomsWorld, oracle: Oracle) -> dict[str, Any]:
    """Ask the members at the end for their state."""
    wrong, digests, expected = 0, set(), oracle.state()
    joined = oracle.joined()
    for name in world.peers:
        if world.identities[name].author not in joined:
            continue
        state = world.obtain(name, ExamineState(world.room), StateIs)
        digests.add(state.digest)
        found = {(e.kind, e.key): e.event.id for e in state.entries if e.kind in CONTROL_KINDS}
        wrong += found != expected
    return {"distinct_states": len(digests), "states_wrong": wrong}


def _ledgers(world: RoomsWorld, judge: Judge) -> dict[str, Any]:
    lines = pending = 0
    lies: list[str] = []
    for name in world.peers:
        ledger = world.obtain(name, ExamineLedger(world.room, None, _LEDGER_LINES), LedgerIs)
        for event in ledger.events:
            for fate in event.members:
                lines += 1
                pending += judge.is_pending(event, fate)
                lie = judge.lies(name, event, fate, world.network.elapsed)
                lies += [] if lie is None else [lie]
    return {
        "ledger_lines": lines,
        "ledger_wrong": len(lies),
        "ledger_wrong_lines": tuple(lies[:_SHOWN]),
        "ledger_pending": pending,
    }


class RoomsReport(RunReport, frozen=True, eq=False, kw_only=True):
    """The outcome of one room scenario."""

    peers: int
    relays: int
    events: int
    """All events of the room, its set-up included."""
    messages: int
    """Messages that were sent."""
    declined: int
    """Commands that nodes declined because they knew that these were not allowed, or because they were
    down."""
    banned: int
    demoted: int
    offline_share: float
    """Share of the time that peers were away, on average."""
    pairs: int
    """Pairs of an event and a member that count: see `delivered_share`."""
    delivered_share: float
    """Share of pairs delivered by the end. A pair counts if its event is allowed at its own control heads,
    the member is in the room there and at the end, and no event that the author did not know takes away the
    right to the event."""
    undelivered: tuple[str, ...]
    """The first missing pairs, in words."""
    first_return_share: float
    """Of pairs whose member was away when the event was sent: share delivered in the first time back."""
    return_pairs: int
    """The number of such pairs."""
    unauthorised_delivered: int
    """Deliveries of events that are not allowed, or that the node could know to be allowed no longer."""
    endangered: int
    """Events that crossed their author's removal or demotion: each node may accept them or not."""
    soft_failed: int
    """Events that at least one node did not show because of that."""
    distinct_states: int
    """Different states that members have at the end."""
    states_wrong: int
    """Members whose state is not the one that follows from all events."""
    causal_violations: int
    """Events that were shown before an event that they depend on."""
    duplicate_deliveries: int
    """Events that an application was handed again, without a restart in between."""
    ledger_lines: int
    ledger_wrong: int
    """Lines that claim what did not happen, or not by then."""
    ledger_wrong_lines: tuple[str, ...]
    """The first wrong lines, in words."""
    ledger_pending: int
    """Lines of delivered pairs whose sender has not learned of the delivery."""
    virtual_seconds: float
    trace_sha256: str
    wall_seconds: float

    @property
    def ok(self) -> bool:
        """Whether everything that has to hold does."""
        return (
            self.delivered_share == 1.0
            and self.distinct_states == 1
            and not any(
                (
                    self.unauthorised_delivered,
                    self.states_wrong,
                    self.causal_violations,
                    self.duplicate_deliveries,
                    self.ledger_wrong,
                )
            )
        )
