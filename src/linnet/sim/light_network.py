"""A light driver for thousands of nodes that gossip: links exist while an end holds them.

Clock, loop, sides and latencies are those of `linnet.sim.engine`. `linnet.sim.network` drives whole nodes;
here a node is any machine that takes links, messages and timers, and asks for `Hold` and `Release` itself,
such as parts of an overlay in a `PartMachine`. The driver does the work of `linnet.peer.links`: it dials what
is held, again and with back-off while that fails, and closes what neither end needs. Equal seeds give equal
histories, in any process.
"""

from __future__ import annotations

import hashlib
from array import array
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from heapq import heappush
from random import Random
from typing import Any

from linnet.core.effects import Blame, CancelTimer, Hold, Probe, Release, Send, SetTimer
from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.machine.outbox import Notice, Outbox
from linnet.machine.part import Part, on_notice
from linnet.machine.router import Router
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.gossip.topic_membership import TopicMemberships
from linnet.overlay.notices import JoinRefused, MembersKnown, NeighborDown, NeighborUp, StorageKnown
from linnet.overlay.tracker_client import TrackerClient
from linnet.sim.clock import START, Clock
from linnet.sim.engine import Direction, Endpoint, Engine, Machine
from linnet.sim.links import LinkModel
from linnet.sim.seeded_random import named_luck
from linnet.trace.records import Record, TraceSink

IDLE = 30.0
"""Seconds that a link which neither end needs is kept, as `linnet.peer.config` has it."""
_BACKOFF_FIRST, _BACKOFF_MOST = 0.5, 30.0
HELLO = Hello(WIRE_VERSION, WIRE_VERSION, {})
"""The greeting of every node."""
_HASHED = 8192
"""Numbers that are hashed together."""

Other = Callable[[PeerId, Any, float], None]
"""Called with node, effect and time for effects that the driver does not perform itself."""
Weigh = Callable[[Any], int]
"""Returns how many bytes a message takes on a link."""


class LightHost(Endpoint):
    """A node in the simulation, and the links that it needs."""

    __slots__ = ("blames", "bytes", "falling", "holds", "number", "sent")

    lanes: dict[PeerId, LightLane]

    def __init__(self, peer: PeerId, machine: Machine, region: str, number: int) -> None:
        super().__init__(peer, machine, region)
        self.number = number
        self.holds: dict[PeerId, dict[str, None]] = {}
        """Peers whose links are needed, with the purposes; `dialing` has the wait after the next failure."""
        self.falling: dict[PeerId, Reason] = {}
        """Closed links of which this end has not been told yet."""
        self.sent = 0
        self.bytes = 0
        self.blames = 0


class LightLane(Direction[LightHost]):
    """One direction of a link between light hosts."""

    __slots__ = ("back", "idle_since", "mark")

    def __init__(self, source: LightHost, target: LightHost, latency: float) -> None:
        super().__init__(source.peer, target, latency)
        self.mark = float((source.number << 20) + target.number)
        self.open = True
        self.back: LightLane
        self.idle_since = -1.0
        """When neither end needed the link any more; -1: it is needed, or was not checked."""


class LightLinks:
    """The links of a light network: dials, closes and cuts them."""

    def __init__(
        self,
        clock: Clock,
        model: LinkModel,
        hosts: dict[PeerId, LightHost],
        inbox: deque[tuple[LightHost, Any]],
        idle: float,
    ) -> None:
        self._clock = clock
        self._links = model
        self._nodes = hosts
        self._idle = idle
        self.inbox = inbox
        self.opened = 0

    def hold(self, node: LightHost, peer: PeerId, purpose: str) -> None:
        """Note that a node needs a link, and dial unless there is one."""
        purposes = node.holds.get(peer)
        if purposes is not None:
            purposes[purpose] = None
            return
        node.holds[peer] = {purpose: None}
        lane = node.lanes.get(peer)
        if lane is not None:
            lane.idle_since = lane.back.idle_since = -1.0
        elif peer not in node.dialing:
            node.dialing[peer] = _BACKOFF_FIRST
            self._dial(node, peer)

    def release(self, node: LightHost, peer: PeerId, purpose: str) -> None:
        """Note that a node needs a link no longer for this purpose."""
        purposes = node.holds.get(peer)
        if purposes is None or purposes.pop(purpose, self) is self or purposes:
            return
        del node.holds[peer]
        lane = node.lanes.get(peer)
        if lane is not None and node.peer not in lane.target.holds:
            self._idles(lane)

    def probe(self, node: LightHost, peer: PeerId) -> None:
        """Tell a node, after the time of a dial, whether a peer can be dialled."""
        target = self._nodes.get(peer)
        wait = self._links.dial_timeout if target is None else self._dial_time(node, target)
        self._clock.push(self._clock.now + wait, self._probed, (node, peer))

    def _probed(self, node: LightHost, peer: PeerId) -> None:
        target = self._nodes.get(peer)
        there = target is not None and target.alive and target.side == node.side
        self.inbox.append((node, Probed(peer, None if there else Reason.UNREACHABLE)))

    def _idles(self, lane: LightLane) -> None:
        """Close a link that neither end needs after a while, unless one of them needs it by then."""
        now = self._clock.now
        if lane.idle_since != now:
            lane.idle_since = lane.back.idle_since = now
            self._clock.push(now + self._idle, self._idle_over, (lane, now))

    def _idle_over(self, lane: LightLane, since: float) -> None:
        if lane.open and lane.idle_since == since:
            self.cut(lane, Reason.NOT_NEEDED, tell_source=True)

    def _dial(self, node: LightHost, peer: PeerId) -> None:
        target = self._nodes.get(peer)
        if target is None:
            self._clock.push(self._clock.now + self._links.dial_timeout, self._dialed, (node, peer))
            return
        self._clock.push(self._clock.now + self._dial_time(node, target), self._dialed, (node, peer))

    def _dial_time(self, node: LightHost, target: LightHost) -> float:
        between = self._links.latency.between
        return self._links.dial_time(between(node.region, target.region), between(target.region, node.region))

    def _dialed(self, node: LightHost, peer: PeerId) -> None:
        """End a dial: in a link, or in a failure after which it is tried again while the link is needed."""
        backoff = node.dialing.get(peer)
        if backoff is None or not node.alive:
            return
        if peer in node.lanes or peer not in node.holds:
            del node.dialing[peer]
            return
        target = self._nodes.get(peer)
        if target is not None and target.alive and target.side == node.side:
            del node.dialing[peer]
            self._open(node, target)
            return
        node.dialing[peer] = min(2 * backoff, _BACKOFF_MOST)
        self.inbox.append((node, DialFailed(peer, Reason.UNREACHABLE)))
        self._clock.push(self._clock.now + backoff, self._again, (node, peer))

    def _again(self, node: LightHost, peer: PeerId) -> None:
        if peer in node.dialing and peer in node.holds and peer not in node.lanes and node.alive:
            self._dial(node, peer)
        else:
            node.dialing.pop(peer, None)

    def _open(self, node: LightHost, target: LightHost) -> None:
        latency = self._links.latency
        there = LightLane(node, target, latency.between(node.region, target.region))
        back = LightLane(target, node, latency.between(target.region, node.region))
        there.back, back.back = back, there
        self._down(target, node.peer)
        self._down(node, target.peer)
        node.lanes[target.peer], target.lanes[node.peer] = there, back
        target.dialing.pop(node.peer, None)
        node.dialing.pop(target.peer, None)
        self.opened += 1
        self.inbox.append((target, LinkUp(node.peer, HELLO, dialed=False, network=None)))
        self.inbox.append((node, LinkUp(target.peer, HELLO, dialed=True, network=None)))

    def cut(self, lane: LightLane, reason: Reason, tell_source: bool) -> None:
        """Close a link at both ends; messages under way are lost."""
        if not lane.open:
            return
        back = lane.back
        lane.open = back.open = False
        source, target = back.target, lane.target
        source.lanes.pop(target.peer, None)
        target.lanes.pop(source.peer, None)
        del lane.back, back.back  # So that nothing is kept alive by a circle.
        if tell_source:
            self._fall(source, target.peer, reason, 0.0)
        self._fall(target, source.peer, reason, lane.latency)

    def _fall(self, node: LightHost, peer: PeerId, reason: Reason, delay: float) -> None:
        node.falling[peer] = reason
        self._clock.push(self._clock.now + delay, self._down, (node, peer))

    def _down(self, node: LightHost, peer: PeerId) -> None:
        """Tell one end that its link is closed, and dial again if the link is needed."""
        reason = node.falling.pop(peer, None)
        if reason is None or not node.alive:
            return
        self.inbox.append((node, LinkDown(peer, reason)))
        if peer in node.holds and peer not in node.dialing:
            node.dialing[peer] = _BACKOFF_FIRST
            self._clock.push(self._clock.now + _BACKOFF_FIRST, self._again, (node, peer))


class LightNetwork(Engine[LightHost]):
    """Light nodes, their links and a clock. Times that callers give are virtual seconds since the start."""

    endpoint = LightHost
    direction = LightLane

    def __init__(
        self,
        seed: int,
        links: LinkModel,
        trace: TraceSink | None = None,
        *,
        other: Other | None = None,
        weigh: Weigh | None = None,
        idle: float = IDLE,
    ) -> None:
        super().__init__(seed, links, trace, START)
        self._luck: Random = named_luck(seed, "gossip/loss")
        self._other = other
        self._weigh = weigh
        self._wires = LightLinks(self._clock, links, self._hosts, self._inbox, idle)
        self._digest = hashlib.sha256()
        self._marks = array("d")
        self.lost = 0
        """Messages that were lost, or had no link."""
        self.kinds: dict[type, list[int]] = {}
        """Messages and bytes sent by type, if they are weighed."""

    @property
    def links_opened(self) -> int:
        """Links that were opened since the start."""
        return self._wires.opened

    # Nodes.

    def add(self, peer: PeerId, machine: Machine, region: str | None = None) -> None:
        """Add a node at a region of the latency table, the first if none is given."""
        self._add(LightHost(peer, machine, region or self.table.regions[0], len(self._hosts)))

    def held(self, peer: PeerId) -> tuple[PeerId, ...]:
        """Return the peers whose links a node needs itself, open or not."""
        return tuple(self._hosts[peer].holds)

    def sent(self, peer: PeerId) -> tuple[int, int]:
        """Return the messages and bytes that a node sent, the latter if they are weighed."""
        node = self._hosts[peer]
        return node.sent, node.bytes

    def blamed(self, peer: PeerId) -> int:
        """Return how often a node blamed a peer."""
        return self._hosts[peer].blames

    def crash(self, peer: PeerId) -> None:
        """Stop a node abruptly: the other ends see its links close after the latency."""
        node = self._hosts[peer]
        if not node.alive:
            return
        node.alive = False
        node.ticks, node.holds, node.dialing, node.falling = {}, {}, {}, {}
        for lane in list(node.lanes.values()):
            self._wires.cut(lane, Reason.REMOTE_CLOSED, tell_source=False)

    def restart(self, peer: PeerId, machine: Machine) -> None:
        """Bring a crashed node back with a new machine, at the same place."""
        node = self._hosts[peer]
        if node.alive:
            raise ValueError("the node is still up")
        node.handle, node.alive = machine.handle, True

    def partition(self, groups: Sequence[Iterable[PeerId]]) -> None:
        """Separate nodes of different groups; nodes in no group form one of their own."""
        self._part(groups)
        for node in self._hosts.values():
            for lane in list(node.lanes.values()):
                if lane.target.side != node.side:
                    self._wires.cut(lane, Reason.PING_TIMEOUT, tell_source=True)

    # What happens.

    def perform(self, peer: PeerId, effects: Iterable[Any]) -> None:
        """Perform a machine's effects outside of `run`: those of its start, or of application commands."""
        node = self._hosts[peer]
        if node.alive:
            self._perform(node, effects, self._clock.now)

    def sha256(self) -> str:
        """Return a hash over the sender, receiver and time of each message handed over so far."""
        self._digest.update(self._marks.tobytes())
        del self._marks[:]
        return self._digest.copy().hexdigest()

    def _note_arrival(self) -> Callable[[LightLane, float], None]:
        return self._hash

    def _hash(self, lane: LightLane, now: float) -> None:
        marks = self._marks
        marks.append(now)
        marks.append(lane.mark)
        if len(marks) >= _HASHED:
            self._digest.update(marks.tobytes())
            del marks[:]

    def _perform(self, host: LightHost, effects: Iterable[Any], now: float) -> None:
        clock, loss = self._clock, self._links.loss
        for effect in effects:
            kind = type(effect)
            if kind is Send:
                lane = host.lanes.get(effect.peer)
                if lane is None or (loss and self._luck.random() < loss):
                    self.lost += 1
                    continue
                host.sent += 1
                if self._weigh is not None:
                    self._weighed(host, effect.message, self._weigh(effect.message))
                heappush(clock.heap, (now + lane.latency, clock.next_number(), lane, effect.message))
            elif kind is SetTimer:
                clock.set_timer(now + max(0.0, effect.delay), host, effect.timer)
            elif kind is Record:
                self._write(host.peer, effect, now)
            elif kind is CancelTimer:
                host.ticks.pop(effect.timer, None)
            else:
                self._perform_rare(host, effect, now)

    def _perform_rare(self, node: LightHost, effect: Any, now: float) -> None:  # noqa: ANN401 - any
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

    def _weighed(self, node: LightHost, message: Any, size: int) -> None:  # noqa: ANN401 - see Machine
        node.bytes += size
        counts = self.kinds.get(type(message))
        if counts is None:
            counts = self.kinds[type(message)] = [0, 0]
        counts[0] += 1
        counts[1] += size


def _shown(kind: type[Notice]) -> Callable[[_Above, Any, float], None]:
    """Show notices of a type among the effects."""

    @on_notice(kind)
    def show(above: _Above, notice: Any, now: float) -> None:  # noqa: ANN401 - no effect, and shown as one
        above.out.add(notice)

    return show


class _Above(Part):
    """Stands in for the topics above: shows their notices to the driver, as if they were effects."""

    def __init__(self, out: Outbox) -> None:
        self.out = out

    show_neighbor = _shown(NeighborUp)
    show_loss = _shown(NeighborDown)
    show_storage = _shown(StorageKnown)
    show_members = _shown(MembersKnown)
    show_refusal = _shown(JoinRefused)


class PartMachine:
    """Parts of an overlay by themselves, as one machine. Messages that no part handles are ignored."""

    def __init__(self, out: Outbox, *parts: Part) -> None:
        self._out = out
        self._router = Router(out, (*parts, _Above(out)))
        clients = [part for part in parts if isinstance(part, TrackerClient)]
        gossips = [part.topics for part in parts if isinstance(part, GossipOverlay)]
        self._finders: list[TrackerClient | TopicMemberships] = [*clients, *gossips]

    def handle(self, event: Any, now: float) -> list[Any]:  # noqa: ANN401 - messages of any overlay
        """Apply one input; the caller performs the returned effects, in order."""
        match event:
            case Received(peer, message):
                if type(message) in self._router.table.messages:
                    self._router.message(peer, message, now)
            case TimerFired(timer):
                self._router.timer(timer, now)
            case LinkUp() | LinkDown() | DialFailed() | Probed():
                self._router.input(event, now)
            case _:
                raise TypeError(f"no input of an overlay: {type(event).__name__}")
        return self._out.take()

    def neighbors(self, topic: TopicId) -> tuple[PeerId, ...]:
        """Return the neighbours of a topic whose links are open."""
        return tuple(peer for part in self._finders for peer in part.neighbors(topic))

    def perform(self, act: Callable[[], None], now: float) -> list[Any]:
        """Do something that an application wants, and return its effects."""
        act()
        self._router.pass_on_notices(now)
        return self._out.take()
