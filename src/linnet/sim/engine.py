"""The engine under both drivers: nodes with regions, a clock, and the loop that hands out inputs.

`linnet.sim.network` drives whole nodes over links that are dialled, shaped and cut.
`linnet.sim.light_network` drives parts of thousands of nodes. They differ in how links come and go, and in
the effects that they perform.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from linnet.core.ids import PeerId
from linnet.core.inputs import Received, TimerFired
from linnet.core.timers import Timer
from linnet.sim.clock import Clock
from linnet.sim.links import LatencyTable, LinkModel
from linnet.trace.records import NullTrace, TraceSink


class Machine(Protocol):
    """A node as a machine: it takes inputs and returns effects."""

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - of whatever messages it has
        """Take an input, and return its effects, in order."""


class Endpoint:
    """A node in the simulation: the machine, and the driver's state for it until it crashes."""

    __slots__ = ("alive", "dialing", "handle", "lanes", "peer", "region", "side", "ticks")

    lanes: dict[PeerId, Any]
    """The open links, as lanes that lead away from this node."""

    def __init__(self, peer: PeerId, machine: Machine, region: str) -> None:
        self.peer = peer
        self.handle = machine.handle
        self.region = region
        self.alive = True
        self.side = 0
        """The group of a partition that the node is in."""
        self.lanes = {}
        self.dialing: dict[PeerId, float] = {}
        """Dials in progress; each driver keeps a time with them."""
        self.ticks: dict[Timer, int] = {}
        """Timers that are set, with their number on the clock."""


E = TypeVar("E", bound=Endpoint)


class Direction(Generic[E]):
    """One direction of a link. A clock entry that names one is a message that arrives."""

    __slots__ = ("latency", "open", "source", "target")

    def __init__(self, source: PeerId, target: E, latency: float) -> None:
        self.source = source
        """The sender."""
        self.target = target
        """The receiver."""
        self.latency = latency
        self.open = False
        """Whether the receiving end still listens."""


class Engine(ABC, Generic[E]):
    """Nodes and a clock. Times that callers give are virtual seconds since the start."""

    endpoint: ClassVar[type[Endpoint]]
    """The endpoint class of a driver."""
    direction: ClassVar[type[Direction[Any]]]
    """The link class of a driver."""

    def __init__(self, seed: int, links: LinkModel, trace: TraceSink | None, start: float) -> None:
        self.seed = seed
        self._links = links
        self._clock = Clock(start)
        self._hosts: dict[PeerId, E] = {}
        self._inbox: deque[tuple[E, Any]] = deque()
        """Inputs for nodes, to be handled before time goes on."""
        self._write = (NullTrace() if trace is None else trace).write
        self.handled = 0
        """Messages that machines were handed."""

    @abstractmethod
    def _perform(self, host: E, effects: Sequence[Any], now: float) -> None:
        """Perform the effects of a machine."""

    def _note_arrival(self) -> Callable[[Any, float], None] | None:
        """Return a function to call with the lane and time of each message that arrives; None: nothing is
        noted."""
        return None

    @property
    def now(self) -> float:
        """The time that machines see, in Unix seconds."""
        return self._clock.now

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the start."""
        return self._clock.now - self._clock.start

    @property
    def table(self) -> LatencyTable:
        """The latencies between regions."""
        return self._links.latency

    # Nodes.

    def _add(self, host: E) -> None:
        if host.peer in self._hosts:
            raise ValueError("a node of this key is here already")
        if host.region not in self.table.regions:
            raise ValueError(f"{host.region} is no region of the latency table")
        self._hosts[host.peer] = host

    def is_up(self, peer: PeerId) -> bool:
        """Return whether a node exists and is up."""
        host = self._hosts.get(peer)
        return host is not None and host.alive

    def linked(self, peer: PeerId) -> list[PeerId]:
        """Return the peers to which a node has an open link, in the order in which the links opened."""
        return list(self._hosts[peer].lanes)

    def region(self, peer: PeerId) -> str:
        """Return the region of a node."""
        return self._hosts[peer].region

    def latency(self, origin: PeerId, target: PeerId) -> float:
        """Return the seconds that a message takes from one node to another if nothing delays it."""
        return self.table.between(self.region(origin), self.region(target))

    def _part(self, groups: Sequence[Iterable[PeerId]]) -> None:
        """Put nodes on sides by their groups; nodes in no group form one of their own."""
        sides = {peer: number for number, group in enumerate(groups, 1) for peer in group}
        for peer, host in self._hosts.items():
            host.side = sides.get(peer, 0)

    def heal(self) -> None:
        """End partitions; links that were cut have to be dialled anew."""
        self._part(())

    # Running.

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Schedule a call at a virtual time."""
        self._clock.push(self._time(time), act, ())

    def _time(self, at: float | None) -> float:
        return self._clock.now if at is None else max(self._clock.now, self._clock.start + at)

    def run(self, until: float) -> None:
        """Let virtual time pass until so many seconds since the start."""
        end = self._clock.start + until
        self._loop(end, quiet=False)
        self._clock.now = max(self._clock.now, end)

    def run_until_quiet(self, limit: float = inf) -> bool:
        """Run until only timers are left; False if the limit, in seconds, came first."""
        self._loop(self._clock.start + limit, quiet=True)
        return len(self._clock.heap) <= self._clock.waiting

    def _loop(self, end: float, quiet: bool) -> None:
        clock, inbox, perform, note = self._clock, self._inbox, self._perform, self._note_arrival()
        heap, endpoint_kind, direction_kind = clock.heap, self.endpoint, self.direction
        handled = 0
        try:
            while len(heap) > (quiet and clock.waiting):
                entry = heappop(heap)
                now, number, what, argument = entry
                if now > end:
                    heappush(heap, entry)
                    break
                clock.now = now
                kind = type(what)
                if kind is direction_kind:
                    if what.open:
                        handled += 1
                        if note is not None:
                            note(what, now)
                        host = what.target
                        perform(host, host.handle(Received(what.source, argument), now), now)
                elif kind is endpoint_kind:
                    clock.waiting -= 1
                    if what.ticks.get(argument) == number:
                        del what.ticks[argument]
                        perform(what, what.handle(TimerFired(argument), now), now)
                else:
                    what(*argument)
                while inbox:
                    host, event = inbox.popleft()
                    if host.alive:
                        perform(host, host.handle(event, now), now)
        except Exception as error:
            error.add_note(f"in the simulation of seed {self.seed}, {self.elapsed:.6f} s after its start")
            raise
        finally:
            self.handled += handled
