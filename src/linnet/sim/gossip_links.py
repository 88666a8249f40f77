"""The links of a light simulation: there while an end holds them, and dialled again with back-off."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any, Protocol

from linnet.core.hello import WIRE_VERSION, Hello
from linnet.core.ids import PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.sim.clock import Clock
from linnet.sim.links import LinkModel

IDLE = 30.0
"""Seconds that a link which neither end needs is kept, as `linnet.peer.config` has it."""
_BACKOFF_FIRST, _BACKOFF_MOST = 0.5, 30.0
HELLO = Hello(WIRE_VERSION, WIRE_VERSION, {})
"""What every node says first."""


class GossipMachine(Protocol):
    """A node: what happens to it, and what it asks for."""

    def handle(self, event: Any, now: float) -> Sequence[Any]:  # noqa: ANN401 - of whatever messages it has
        """Something happened."""


class GossipNode:
    """A node at its place."""

    __slots__ = (
        "alive",
        "blames",
        "bytes",
        "dialing",
        "falling",
        "handle",
        "holds",
        "lanes",
        "machine",
        "number",
        "peer",
        "region",
        "sent",
        "side",
        "ticks",
    )

    def __init__(self, peer: PeerId, machine: GossipMachine, region: str, number: int) -> None:
        self.peer = peer
        self.machine = machine
        self.handle = machine.handle
        self.region = region
        self.number = number
        self.alive = True
        self.side = 0
        self.lanes: dict[PeerId, Lane] = {}
        self.holds: dict[PeerId, dict[str, None]] = {}
        self.dialing: dict[PeerId, float] = {}
        """Peers that are held and not linked, with how long to wait after the next failure."""
        self.falling: dict[PeerId, Reason] = {}
        """Links that are gone, of which this end has not heard yet."""
        self.ticks: dict[Timer, int] = {}
        self.sent = 0
        self.bytes = 0
        self.blames = 0


class Lane:
    """One direction of a link."""

    __slots__ = ("back", "handle", "idle_since", "latency", "mark", "open", "source", "target")

    def __init__(self, source: GossipNode, target: GossipNode, latency: float) -> None:
        self.source = source.peer
        self.target = target
        self.handle = target.handle
        self.latency = latency
        self.mark = float((source.number << 20) + target.number)
        self.open = True
        self.back: Lane
        self.idle_since = -1.0
        """When neither end needed it any more; -1: it is needed, or nobody has looked."""


class GossipLinks:
    """All links of a simulation."""

    def __init__(self, clock: Clock, model: LinkModel, nodes: dict[PeerId, GossipNode], idle: float) -> None:
        self._clock = clock
        self._links = model
        self._nodes = nodes
        self._idle = idle
        self.inbox: deque[tuple[GossipNode, LinkUp | LinkDown | DialFailed | Probed]] = deque()
        """What nodes are to be told at once."""
        self.opened = 0

    def hold(self, node: GossipNode, peer: PeerId, purpose: str) -> None:
        """A node needs a link: it is dialled, if it is the first who does."""
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

    def release(self, node: GossipNode, peer: PeerId, purpose: str) -> None:
        """A node needs a link no longer."""
        purposes = node.holds.get(peer)
        if purposes is None or purposes.pop(purpose, self) is self or purposes:
            return
        del node.holds[peer]
        lane = node.lanes.get(peer)
        if lane is not None and node.peer not in lane.target.holds:
            self._idles(lane)

    def probe(self, node: GossipNode, peer: PeerId) -> None:
        """A node wants to know whether another can be dialled: it can while it is up."""
        target = self._nodes.get(peer)
        wait = self._links.dial_timeout if target is None else self._dial_time(node, target)
        self._clock.push(self._clock.now + wait, self._probed, (node, peer))

    def _probed(self, node: GossipNode, peer: PeerId) -> None:
        target = self._nodes.get(peer)
        there = target is not None and target.alive and target.side == node.side
        self.inbox.append((node, Probed(peer, None if there else Reason.UNREACHABLE)))

    def _idles(self, lane: Lane) -> None:
        """Neither end needs a link: it is closed in a while, unless one does by then."""
        now = self._clock.now
        if lane.idle_since != now:
            lane.idle_since = lane.back.idle_since = now
            self._clock.push(now + self._idle, self._idle_over, (lane, now))

    def _idle_over(self, lane: Lane, since: float) -> None:
        if lane.open and lane.idle_since == since:
            self.cut(lane, Reason.NOT_NEEDED, tell_source=True)

    def _dial(self, node: GossipNode, peer: PeerId) -> None:
        target = self._nodes.get(peer)
        if target is None:
            self._clock.push(self._clock.now + self._links.dial_timeout, self._dialed, (node, peer))
            return
        self._clock.push(self._clock.now + self._dial_time(node, target), self._dialed, (node, peer))

    def _dial_time(self, node: GossipNode, target: GossipNode) -> float:
        between = self._links.latency.between
        return self._links.dial_time(between(node.region, target.region), between(target.region, node.region))

    def _dialed(self, node: GossipNode, peer: PeerId) -> None:
        """A dial ends: in a link, or in a failure after which it is tried again while it is needed."""
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

    def _again(self, node: GossipNode, peer: PeerId) -> None:
        if peer in node.dialing and peer in node.holds and peer not in node.lanes and node.alive:
            self._dial(node, peer)
        else:
            node.dialing.pop(peer, None)

    def _open(self, node: GossipNode, target: GossipNode) -> None:
        latency = self._links.latency
        there = Lane(node, target, latency.between(node.region, target.region))
        back = Lane(target, node, latency.between(target.region, node.region))
        there.back, back.back = back, there
        self._down(target, node.peer)
        self._down(node, target.peer)
        node.lanes[target.peer], target.lanes[node.peer] = there, back
        target.dialing.pop(node.peer, None)
        node.dialing.pop(target.peer, None)
        self.opened += 1
        self.inbox.append((target, LinkUp(node.peer, HELLO, dialed=False)))
        self.inbox.append((node, LinkUp(target.peer, HELLO, dialed=True)))

    def cut(self, lane: Lane, reason: Reason, tell_source: bool) -> None:
        """Close a link at both ends; what is under way is lost."""
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

    def _fall(self, node: GossipNode, peer: PeerId, reason: Reason, delay: float) -> None:
        node.falling[peer] = reason
        self._clock.push(self._clock.now + delay, self._down, (node, peer))

    def _down(self, node: GossipNode, peer: PeerId) -> None:
        """An end learns that a link is gone, and dials again if it needs it."""
        reason = node.falling.pop(peer, None)
        if reason is None or not node.alive:
            return
        self.inbox.append((node, LinkDown(peer, reason)))
        if peer in node.holds and peer not in node.dialing:
            node.dialing[peer] = _BACKOFF_FIRST
            self._clock.push(self._clock.now + _BACKOFF_FIRST, self._again, (node, peer))
