"""A light driver for thousands of nodes that gossip: links that exist while an end holds them, and a clock.

`linnet.sim.network` drives whole nodes; here a node is any machine that takes links, messages and timers, and
asks for `Hold` and `Release` itself. What `linnet.peer.links` does for a real node is done by the driver: it
dials what is held, again and with back-off while that fails, and closes what neither end needs. Equal seeds
give equal histories, in any process.
"""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Any

from linnet.core.effects import Blame, CancelTimer, Hold, Probe, Release, Send, SetTimer
from linnet.core.ids import PeerId
from linnet.core.inputs import Received, TimerFired
from linnet.core.reasons import Reason
from linnet.sim.clock import START, Clock
from linnet.sim.gossip_links import IDLE, GossipLinks, GossipMachine, GossipNode, Lane
from linnet.sim.links import LinkModel
from linnet.sim.luck import named_luck
from linnet.trace.records import Record
from linnet.trace.sink import NullTrace, TraceSink

_HASHED = 8192
"""Numbers that are hashed together."""

Other = Callable[[PeerId, Any, float], None]
"""What is done with an effect that is no business of the driver: node, effect, when."""
Weigh = Callable[[Any], int]
"""How many bytes a message takes on a link."""


class GossipWorld:
    """Nodes, links and a clock. Times that callers give are virtual seconds since the start."""

    def __init__(
        self,
        seed: int,
        links: LinkModel,
        trace: TraceSink | None = None,
        *,
        other: Other | None = None,
        weigh: Weigh | None = None,
        idle: float = IDLE,
        start: float = START,
    ) -> None:
        self.seed = seed
        self._links = links
        self._loss = links.loss
        self._luck: Random = named_luck(seed, "gossip/loss")
        self._write = (NullTrace() if trace is None else trace).write
        self._other = other
        self._weigh = weigh
        self._clock = Clock(start)
        self._nodes: dict[PeerId, GossipNode] = {}
        self._wires = GossipLinks(self._clock, links, self._nodes, idle)
        self._digest = hashlib.sha256()
        self._marks = array("d")
        self.messages = 0
        """That machines were handed."""
        self.lost = 0
        """That vanished, or had no link to go by."""
        self.kinds: dict[type, list[int]] = {}
        """Messages and bytes sent by type, if they are weighed."""

    @property
    def now(self) -> float:
        """The time that machines see, in Unix seconds."""
        return self._clock.now

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the start."""
        return self._clock.now - self._clock.start

    @property
    def links_opened(self) -> int:
        """Since the start."""
        return self._wires.opened

    @property
    def regions(self) -> tuple[str, ...]:
        """Where nodes can be."""
        return self._links.latency.regions

    # Nodes.

    def add(self, peer: PeerId, machine: GossipMachine, region: str | None = None) -> None:
        """A new node, at a region of the latency table."""
        if peer in self._nodes:
            raise ValueError("a node of this key is here already")
        self._nodes[peer] = GossipNode(peer, machine, region or self.regions[0], len(self._nodes))

    def is_up(self, peer: PeerId) -> bool:
        """Whether a node is there and has not crashed."""
        node = self._nodes.get(peer)
        return node is not None and node.alive

    def linked(self, peer: PeerId) -> tuple[PeerId, ...]:
        """The peers to which a node has an open link."""
        return tuple(self._nodes[peer].lanes)

    def held(self, peer: PeerId) -> tuple[PeerId, ...]:
        """Peers whose links a node needs itself, open or not."""
        return tuple(self._nodes[peer].holds)

    def sent(self, peer: PeerId) -> tuple[int, int]:
        """Messages and bytes that a node sent, the latter if they are weighed."""
        node = self._nodes[peer]
        return node.sent, node.bytes

    def blamed(self, peer: PeerId) -> int:
        """How often a node blamed somebody."""
        return self._nodes[peer].blames

    def region(self, peer: PeerId) -> str:
        """Where a node is."""
        return self._nodes[peer].region

    def crash(self, peer: PeerId) -> None:
        """Stop a node without a word: its links go down at the others after the latency."""
        node = self._nodes[peer]
        if not node.alive:
            return
        node.alive = False
        node.ticks, node.holds, node.dialing, node.falling = {}, {}, {}, {}
        for lane in list(node.lanes.values()):
            self._wires.cut(lane, Reason.REMOTE_CLOSED, tell_source=False)

    def restart(self, peer: PeerId, machine: GossipMachine) -> None:
        """Bring a crashed node back with a new machine, at the same place."""
        node = self._nodes[peer]
        if node.alive:
            raise ValueError("the node is still up")
        node.machine, node.handle, node.alive = machine, machine.handle, True

    def partition(self, groups: Sequence[Iterable[PeerId]]) -> None:
        """Let nodes of different groups not reach each other; those in none are a group of their own."""
        sides = {peer: number for number, group in enumerate(groups, 1) for peer in group}
        for peer, node in self._nodes.items():
            node.side = sides.get(peer, 0)
        for node in self._nodes.values():
            for lane in list(node.lanes.values()):
                if lane.target.side != node.side:
                    self._wires.cut(lane, Reason.PING_TIMEOUT, tell_source=True)

    def heal(self) -> None:
        """Let everyone reach everyone again; what is held is dialled when its back-off ends."""
        for node in self._nodes.values():
            node.side = 0

    # What happens.

    def perform(self, peer: PeerId, effects: Iterable[Any]) -> None:
        """Do what a machine asks for outside of `run`: its start, or what its application wants."""
        node = self._nodes[peer]
        if node.alive:
            self._perform(node, effects, self._clock.now)

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Do something at a virtual time."""
        self._clock.push(max(self._clock.now, self._clock.start + time), act, ())

    def run(self, until: float) -> None:
        """Let virtual time pass until so many seconds since the start."""
        end = self._clock.start + until
        try:
            self._loop(end)
        except Exception as error:
            error.add_note(f"in the simulation of seed {self.seed}, {self.elapsed:.6f} s after its start")
            raise
        self._clock.now = max(self._clock.now, end)

    def sha256(self) -> str:
        """A hash over who was handed a message of whom, and when, so far."""
        self._digest.update(self._marks.tobytes())
        del self._marks[:]
        return self._digest.copy().hexdigest()

    def _loop(self, end: float) -> None:
        clock, inbox, perform, marks = self._clock, self._wires.inbox, self._perform, self._marks
        heap = clock.heap
        while heap and heap[0][0] <= end:
            now, number, what, argument = heappop(heap)
            clock.now = now
            kind = type(what)
            if kind is Lane:
                if what.open:
                    self.messages += 1
                    marks.append(now)
                    marks.append(what.mark)
                    if len(marks) >= _HASHED:
                        self._digest.update(marks.tobytes())
                        del marks[:]
                    effects = what.handle(Received(what.source, argument), now)
                    if effects:
                        perform(what.target, effects, now)
            elif kind is GossipNode:
                clock.waiting -= 1
                if what.ticks.get(argument) == number:
                    del what.ticks[argument]
                    perform(what, what.handle(TimerFired(argument), now), now)
            else:
                what(*argument)
            while inbox:
                node, event = inbox.popleft()
                if node.alive:
                    perform(node, node.handle(event, now), now)

    def _perform(self, node: GossipNode, effects: Iterable[Any], now: float) -> None:
        clock = self._clock
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                lane = node.lanes.get(effect.peer)
                if lane is None or (self._loss and self._luck.random() < self._loss):
                    self.lost += 1
                    continue
                node.sent += 1
                if self._weigh is not None:
                    self._weighed(node, effect.message, self._weigh(effect.message))
                heappush(clock.heap, (now + lane.latency, clock.next_number(), lane, effect.message))
            elif kind is SetTimer:
                clock.set_timer(now + max(0.0, effect.delay), node, effect.timer)
            elif kind is Record:
                self._write(node.peer, effect, now)
            elif kind is CancelTimer:
                node.ticks.pop(effect.timer, None)
            else:
                self._perform_rare(node, effect, now)

    def _perform_rare(self, node: GossipNode, effect: Any, now: float) -> None:  # noqa: ANN401 - any
        if isinstance(effect, Hold):
            self._wires.hold(node, effect.peer, effect.purpose)
        elif isinstance(effect, Release):
            self._wires.release(node, effect.peer, effect.purpose)
        elif isinstance(effect, Blame):
            node.blames += 1
        elif isinstance(effect, Probe):
            self._wires.probe(node, effect.peer)
        elif self._other is not None:
            self._other(node.peer, effect, now)

    def _weighed(self, node: GossipNode, message: Any, size: int) -> None:  # noqa: ANN401 - see GossipMachine
        node.bytes += size
        counts = self.kinds.get(type(message))
        if counts is None:
            counts = self.kinds[type(message)] = [0, 0]
        counts[0] += 1
        counts[1] += size
