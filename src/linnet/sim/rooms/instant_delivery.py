"""A chat through the shipped rooms and relays, instant by instant, as if links took no time.

A model of delivery knows instants only: people go, come and speak at some millisecond, and whatever can
arrive then has arrived. The machines have links to dial and messages to exchange, so they are paced: all
actions of one instant are done, then the simulation runs until nothing is under way, and only then the next
instant begins. An event that arrives in between arrived at that instant; one that should have arrived and did
not shows as an arrival at a later one. Retries and other timers are not waited for: delivery on time must not
depend on them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from copy import deepcopy
from functools import lru_cache
from itertools import groupby
from typing import NamedTuple

from msgspec import Struct

from linnet.core.errors import LocalError
from linnet.core.ids import EventId, PeerId, TopicId
from linnet.core.limits import BODY_BYTES
from linnet.event.event import MESSAGE
from linnet.peer.config import LinkConfig
from linnet.peer.interface import Start
from linnet.rooms.commands import ExamineState, SendToRoom, StateIs
from linnet.sim.links import LinkModel, constant_latency
from linnet.sim.rooms.world import RoomsWorld
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, NullTrace, Record, TraceSink

LATENCY_MS = 1.0
"""One-way latency of every link; short, so that little virtual time passes in a long chat."""

REST = 60.0
"""Virtual seconds in which the network must come to rest after an instant: a thousand times what it needs."""

SETTLE = 2.0
"""Virtual seconds for the set-up to reach all nodes, by timers where need be."""


class PacedFailed(LocalError):
    """A chat could not be played: a message was declined, or the network did not come to rest."""


class Sending(NamedTuple):
    """A message of a member."""

    event: int
    """Its number in the chat."""
    member: int
    chars: int


class Stay(NamedTuple):
    """A member is online in [start, end), in milliseconds."""

    member: int
    start: int
    end: int


class Instant(Struct, frozen=True):
    """The actions of one millisecond, in this order."""

    time: int
    offline: tuple[int, ...] = ()
    online: tuple[int, ...] = ()
    sends: tuple[Sending, ...] = ()


class Arrival(NamedTuple):
    """The first arrival of an event at a member."""

    event: int
    receiver: int
    time: int
    """The instant, in milliseconds."""


class Replay(Struct, frozen=True):
    """The outcome of a chat."""

    arrivals: tuple[Arrival, ...]
    """The first arrival of each event at each member but its author, by event and receiver."""
    held: int
    """Events that were not handed to the application at the instant of their arrival."""
    instants: int
    messages: int
    """Messages between machines, without the set-up."""
    longest: float
    """The most virtual seconds that the network took to come to rest."""


def instants(sends: Iterable[tuple[int, Sending]], stays: Iterable[Stay]) -> list[Instant]:
    """Return the actions by instant, in order; stays that touch or overlap are merged.

    `ValueError` if a member speaks who is not online.
    """
    merged = list(_merged(stays))
    going: dict[int, list[int]] = {}
    coming: dict[int, list[int]] = {}
    said: dict[int, list[Sending]] = {}
    for stay in merged:
        coming.setdefault(stay.start, []).append(stay.member)
        going.setdefault(stay.end, []).append(stay.member)
    for time, sending in sends:
        said.setdefault(time, []).append(sending)
    online: set[int] = set()
    plan: list[Instant] = []
    for time in sorted({*going, *coming, *said}):
        away, back, spoken = going.get(time, []), coming.get(time, []), said.get(time, [])
        online = (online - set(away)) | set(back)
        for sending in spoken:
            if sending.member not in online:
                raise ValueError(f"member {sending.member} speaks at {time} ms and is not online then")
        plan.append(Instant(time, tuple(away), tuple(back), tuple(spoken)))
    return plan


def _merged(stays: Iterable[Stay]) -> Iterator[Stay]:
    for member, its in groupby(sorted(stay for stay in stays if stay.end > stay.start), lambda each: each[0]):
        open_: Stay | None = None
        for stay in its:
            if open_ is not None and stay.start <= open_.end:
                open_ = Stay(member, open_.start, max(open_.end, stay.end))
                continue
            if open_ is not None:
                yield open_
            open_ = stay
        if open_ is not None:
            yield open_


class _Arrivals:
    """A trace that keeps only which node had which message when."""

    def __init__(self) -> None:
        self.time: int | None = None
        """The present instant; None while the room is set up."""
        self.unsaid: dict[PeerId, deque[int]] = {}
        """Events that each member was asked to send and has not sent."""
        self.received: dict[tuple[int, PeerId], int] = {}
        self.handed: dict[tuple[int, PeerId], int] = {}
        self._numbers: dict[EventId, int] = {}

    def write(self, node: PeerId, record: Record, now: float) -> None:
        """Note a record if it is about a message of the chat."""
        if record.event is None or self.time is None:
            return
        if record.kind is Kind.PUBLISHED and record.note == MESSAGE:
            self._numbers[record.event] = self.unsaid[node].popleft()
            return
        kept = {Kind.RECEIVED: self.received, Kind.DELIVERED: self.handed}.get(record.kind)
        number = self._numbers.get(record.event)
        if kept is not None and number is not None:
            kept.setdefault((number, node), self.time)

    def close(self) -> None:
        """Do nothing: the arrivals stay readable."""


_KEEP = LinkConfig(dials=1_000_000)
"""People come and go many times a minute here, each time at once: no node waits before dialling them
again."""


class _Founded(NamedTuple):
    """A room after its set-up, with all nodes gone: their stores, and the time."""

    room: TopicId
    stores: dict[str, MemoryStore]
    elapsed: float


def _world(members: int, relays: int, seed: int, trace: TraceSink, founded: _Founded | None) -> RoomsWorld:
    links = LinkModel(constant_latency(LATENCY_MS))
    stores = None if founded is None else deepcopy(founded.stores)
    return RoomsWorld(seed, members, relays, links, trace, stores=stores, keep=_KEEP)


@lru_cache(maxsize=64)
def _found(members: int, relays: int, seed: int) -> _Founded:
    """Found a room with all members online, check that all agree on it, and take all nodes down.

    It is the same for all chats of this size, so it is done once, and each chat begins from it.
    """
    world = _world(members, relays, seed, NullTrace(), None)
    world.set_up()
    world.network.run(world.network.elapsed + SETTLE)
    states = {world.obtain(name, ExamineState(world.room), StateIs).digest for name in world.peers}
    if len(states) > 1:
        raise PacedFailed(f"members differ about the room after its set-up, seed {seed}")
    for name in (*world.peers, *world.relays):
        world.offline(name)
    return _Founded(world.room, world.stores, world.network.elapsed)


class _Pacer:
    """Plays one chat over a room of its own."""

    def __init__(self, members: int, relays: int, seed: int) -> None:
        founded = _found(members, relays, seed)
        self._trace = _Arrivals()
        self._world = world = _world(members, relays, seed, self._trace, founded)
        self.longest = 0.0
        world.room = founded.room
        for name in world.peers:
            world.offline(name)
        world.network.run(founded.elapsed)
        for name in world.relays:
            world.ask(name, Start())
        self._rest("the start of relays")

    def play(self, plan: Sequence[Instant], pause: float) -> Replay:
        """Play instant after instant."""
        network, trace = self._world.network, self._trace
        trace.unsaid = {self._world.peer(name): deque() for name in self._world.peers}
        before = network.handled
        for instant in plan:
            trace.time = instant.time
            self._do(instant)
            self._rest(f"the instant {instant.time} ms")
            if pause:
                network.run(network.elapsed + pause)
        received, handed = trace.received, trace.handed
        number = {self._world.peer(name): at for at, name in enumerate(self._world.peers)}
        arrivals = [
            Arrival(event, number[node], time) for (event, node), time in received.items() if node in number
        ]
        held = sum(handed.get(key) != time for key, time in received.items() if key[1] in number)
        messages = network.handled - before
        return Replay(tuple(sorted(arrivals)), held, len(plan), messages, self.longest)

    def _do(self, instant: Instant) -> None:
        world = self._world
        for member in instant.offline:
            world.offline(world.peers[member])
        for member in instant.online:
            world.online(world.peers[member])
        for sending in instant.sends:
            name = world.peers[sending.member]
            self._trace.unsaid[world.peer(name)].append(sending.event)
            # Texts longer than an event may carry are cut: the length changes no instant.
            world.ask(name, SendToRoom(world.room, (b"." * min(sending.chars, BODY_BYTES),)))

    def _rest(self, what: str) -> None:
        network = self._world.network
        began = network.elapsed
        if not network.run_until_quiet(began + REST):
            raise PacedFailed(f"no rest within {REST:.0f} s after {what}, seed {self._world.seed}")
        self.longest = max(self.longest, network.elapsed - began)
        left = [event for events in self._trace.unsaid.values() for event in events]
        if left:
            raise PacedFailed(f"event {left[0]} was not said at {what}, seed {self._world.seed}")


def replay(plan: Sequence[Instant], members: int, relays: int, seed: int = 1, pause: float = 0.0) -> Replay:
    """Play a chat among so many members and relays. Equal arguments give equal replays.

    With a `pause` so many virtual seconds pass after each instant, once all is at rest: timers fire in them.
    """
    return _Pacer(members, relays, seed).play(plan, pause)
