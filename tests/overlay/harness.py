"""A network in memory: trackers and members on a virtual clock, with links that take their time."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable
from functools import partial
from hashlib import sha256
from random import Random
from typing import Any, Generic, ParamSpec, TypeVar

from linnet.core.effects import CancelTimer, Hold, Probe, Release, Send, SetTimer
from linnet.core.fair_shares import Origins
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Probed, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Effect, Notice, Outbox
from linnet.overlay.config import MemberConfig, TrackerConfig
from linnet.overlay.control_counter import CounterFollower
from linnet.overlay.control_naive import NaiveFollower
from linnet.overlay.edges import Edges
from linnet.overlay.messages import Instruction, NeighborStatus, OverlayMessage, Status, TopicStatus
from linnet.overlay.notices import Adjacency, JoinRefused, NeighborDown, NeighborUp, StorageKnown
from linnet.overlay.part import Overlays
from linnet.overlay.tracker import Tracker
from linnet.overlay.tracker_client import TopicOptions, TrackerClient
from linnet.sim.light_network import PartMachine
from linnet.trace.records import Record

HELLO = Hello(1, 1, {"overlay": 1})
TOPIC = TopicId(sha256(b"a topic").digest())
REDIAL = 1.0
HANDSHAKE = 6.0
"""One-way delays that it takes until a link is up: TCP, TLS, Hello."""


P = ParamSpec("P")
F = TypeVar("F", CounterFollower, NaiveFollower)
OverlayInput = LinkUp | LinkDown | DialFailed | Probed | Received[OverlayMessage] | TimerFired[Timer]


def said(out: Outbox, act: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> list[Effect | Notice]:
    """What comes of a call, in one order."""
    out.clear()
    act(*args, **kwargs)
    return out.take_said()


def overlays_without_rings(out: Outbox) -> Overlays:
    """The overlays of a node that follows trackers alone, by themselves."""
    adjacency = Adjacency(out)
    return Overlays(TrackerClient(MemberConfig(), out, adjacency), adjacency, out)


def peer_id(number: int | str) -> PeerId:
    return PeerId(sha256(str(number).encode()).digest())


def hints(peer: PeerId) -> tuple[str, ...]:
    return (f"tls://{peer[:4].hex()}:1",)


def instruction(counter: int, *peers: PeerId, topic: TopicId = TOPIC) -> Instruction:
    return Instruction(topic, counter, tuple(Contact(peer, hints(peer)) for peer in peers), ())


def status(counter: int, *peers: PeerId) -> Status:
    return Status(counter, TopicStatus(TOPIC, tuple(NeighborStatus(peer, None) for peer in peers)))


class Following(Generic[F]):
    """A follower of instructions, and the links of its node."""

    def __init__(self, follow: Callable[[TopicId, MemberConfig, Edges, Outbox], F]) -> None:
        self.links: dict[PeerId, None] = {}
        self.out = Outbox()
        edges = Edges(TOPIC, self.links, self.out, Adjacency(self.out))
        self.follower: F = follow(TOPIC, MemberConfig(), edges, self.out)

    def said(self, act: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> list[Effect | Notice]:
        return said(self.out, act, *args, **kwargs)

    def is_due(self) -> bool:
        due, self.follower.status_due = self.follower.status_due, False
        return due

    def bring_up(self, *peers: PeerId) -> None:
        for peer in peers:
            self.links[peer] = None
            self.follower.handle_link_up(peer)
            self.follower.handle_open(peer)


class Network:
    """Runs machines; `delay` gives the one-way delay between two nodes in seconds."""

    def __init__(
        self,
        seed: int = 1,
        delay: Callable[[PeerId, PeerId], float] = lambda a, b: 0.05,
        member: MemberConfig | None = None,
        tracker: TrackerConfig | None = None,
        loss: float = 0.0,
    ) -> None:
        self.now = 0.0
        self.rng = Random(seed)
        self.member_config = member or MemberConfig()
        self.tracker_config = tracker or TrackerConfig()
        self.delay = delay
        self.loss = loss
        self.members: dict[PeerId, TrackerClient] = {}
        self.trackers: dict[PeerId, Tracker] = {}
        self.machines: dict[PeerId, PartMachine] = {}
        self.undialable: dict[PeerId, None] = {}
        self.links: dict[tuple[PeerId, PeerId], int] = {}
        self.holds: dict[PeerId, dict[PeerId, dict[str, tuple[str, ...]]]] = {}
        self.sent: Counter[tuple[str, PeerId]] = Counter()
        self.log: list[tuple[float, PeerId, OverlayMessage, PeerId]] = []
        self.records: list[tuple[float, PeerId, Record]] = []
        self.notices: list[tuple[float, PeerId, NeighborUp | NeighborDown | StorageKnown | JoinRefused]] = []
        self._dialing: dict[tuple[PeerId, PeerId], None] = {}
        self._timers: dict[tuple[PeerId, Timer], int] = {}
        self._queue: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0

    def count(self, message: str) -> int:
        """How many messages of a kind were sent."""
        return sum(count for (name, _), count in self.sent.items() if name == message)

    def add_tracker(self, name: int | str) -> Contact:
        peer = peer_id(name)
        out = Outbox()
        self.trackers[peer] = Tracker(self.tracker_config, Random(self.rng.random()), out, Origins())
        self.machines[peer] = PartMachine(out, self.trackers[peer])
        return Contact(peer, hints(peer))

    def add_member(self, name: int | str, dialable: bool = True, listens: bool = True) -> PeerId:
        peer = peer_id(name)
        out = Outbox()
        addresses = hints(peer) if listens else ()
        self.members[peer] = TrackerClient(self.member_config, out, Adjacency(out), addresses)
        self.machines[peer] = PartMachine(out, self.members[peer])
        if not dialable:
            self.undialable[peer] = None
        return peer

    def join(
        self,
        peer: PeerId,
        *trackers: Contact,
        topic: TopicId = TOPIC,
        degree: int = 4,
        near: bool = False,
        storage: bool = False,
    ) -> None:
        options = TopicOptions(topic, trackers, degree, near, storage)
        self._do(peer, lambda: self.members[peer].join(options, self.now))

    def leave(self, peer: PeerId, topic: TopicId = TOPIC) -> None:
        self._do(peer, lambda: self.members[peer].leave(topic, self.now))

    def kill(self, peer: PeerId) -> None:
        """A process dies; the others see their links go down."""
        self.members.pop(peer, None)
        self.trackers.pop(peer, None)
        self.machines.pop(peer, None)
        self.holds.pop(peer, None)
        for key in [key for key in self._timers if key[0] == peer]:
            del self._timers[key]
        for a, b in [pair for pair in self.links if peer in pair]:
            self._close(a, b, Reason.CRASHED)

    def cut(self, a: PeerId, b: PeerId, reason: Reason = Reason.PING_TIMEOUT) -> None:
        """A link breaks; who holds it dials again."""
        self._close(a, b, reason)

    def run(self, seconds: float) -> None:
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            self.now, _, action = heapq.heappop(self._queue)
            action()
        self.now = until

    def run_until(self, is_done: Callable[[], bool], limit: float, step: float = 0.25) -> float | None:
        """Run until something holds; returns when, None if it does not within the limit."""
        until = self.now + limit
        while self.now < until:
            self.run(step)
            if is_done():
                return self.now
        return None

    def edges(self, topic: TopicId = TOPIC) -> dict[PeerId, tuple[PeerId, ...]]:
        """The neighbours of every member, as the members see them."""
        return {
            peer: member.neighbors(topic) for peer, member in self.members.items() if topic in member.topics
        }

    def is_regular(self, degree: int = 4, topic: TopicId = TOPIC) -> bool:
        edges = self.edges(topic)
        wanted = min(degree, len(edges) - 1)
        return all(
            len(near) == wanted and all(peer in edges.get(other, ()) for other in near)
            for peer, near in edges.items()
        )

    def is_connected(self, topic: TopicId = TOPIC) -> bool:
        edges = self.edges(topic)
        seen = dict.fromkeys(list(edges)[:1])
        front = list(seen)
        while front:
            front = list(dict.fromkeys(w for v in front for w in edges[v] if w in edges and w not in seen))
            seen.update(dict.fromkeys(front))
        return len(seen) == len(edges)

    def mean_edge_delay(self, topic: TopicId = TOPIC) -> float:
        delays = [self.delay(a, b) for a, near in self.edges(topic).items() for b in near]
        return sum(delays) / len(delays)

    def tell(self, peer: PeerId, event: OverlayInput) -> None:
        """Give an input to a node, whatever it is."""
        if peer in self.machines:
            self._perform(peer, self.machines[peer].handle(event, self.now))

    def _do(self, peer: PeerId, act: Callable[[], None]) -> None:
        self._perform(peer, self.machines[peer].perform(act, self.now))

    def _at(self, delay: float, action: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._queue, (self.now + delay, self._number, action))

    def _perform(self, peer: PeerId, effects: list[Any]) -> None:
        for effect in effects:
            match effect:
                case Send(to, message):
                    self._send(peer, to, message)
                case Hold(to, where, purpose):
                    self.holds.setdefault(peer, {}).setdefault(to, {})[purpose] = where
                    self._dial(peer, to)
                case Release(to, purpose):
                    del self.holds[peer][to][purpose]
                    if not self.holds[peer][to]:
                        del self.holds[peer][to]
                    self._close_if_idle(peer, to)
                case SetTimer(delay, timer):
                    self._set_timer(peer, delay, timer)
                case CancelTimer(timer):
                    self._timers.pop((peer, timer), None)
                case Probe(to, _):
                    self._at(4 * self.delay(peer, to), partial(self._probed, peer, to))
                case Record():
                    self.records.append((self.now, peer, effect))
                case NeighborUp() | NeighborDown() | StorageKnown() | JoinRefused():
                    self.notices.append((self.now, peer, effect))
                case _:
                    raise TypeError(f"no effect of an overlay: {effect}")

    def _probed(self, peer: PeerId, to: PeerId) -> None:
        self.tell(peer, Probed(to, Reason.CONNECTION_REFUSED if to in self.undialable else None))

    def _measure(self, peer: PeerId, other: PeerId) -> None:
        if peer in self.members and _pair(peer, other) in self.links:
            rtt = 2 * self.delay(peer, other)
            self._do(peer, lambda: self.members[peer].note_rtt(other, rtt))

    def _set_timer(self, peer: PeerId, delay: float, timer: Timer) -> None:
        self._number += 1
        number = self._timers[peer, timer] = self._number

        def fire() -> None:
            if self._timers.get((peer, timer)) == number:
                del self._timers[peer, timer]
                self.tell(peer, TimerFired(timer))

        self._at(delay, fire)

    def _send(self, peer: PeerId, to: PeerId, message: OverlayMessage) -> None:
        link = self.links.get(_pair(peer, to))
        assert link is not None, f"{message} without a link"
        self.sent[type(message).__name__, peer] += 1
        self.log.append((self.now, peer, message, to))
        if self.loss and self.rng.random() < self.loss:
            return

        def arrive() -> None:
            if self.links.get(_pair(peer, to)) == link:
                self.tell(to, Received(peer, message))

        self._at(self.delay(peer, to), arrive)

    def _dial(self, peer: PeerId, to: PeerId) -> None:
        where = any(self.holds.get(peer, {}).get(to, {}).values())
        if _pair(peer, to) in self.links or (peer, to) in self._dialing or not where:
            return
        self._dialing[peer, to] = None
        self._at(HANDSHAKE * self.delay(peer, to), lambda: self._dialed(peer, to))

    def _dialed(self, peer: PeerId, to: PeerId) -> None:
        del self._dialing[peer, to]
        if _pair(peer, to) in self.links or peer not in self.members:
            return
        if to not in self.holds.get(peer, {}):
            return
        if (to in self.members or to in self.trackers) and to not in self.undialable:
            self._number += 1
            self.links[_pair(peer, to)] = self._number
            self.tell(peer, LinkUp(to, HELLO, True, None))
            self.tell(to, LinkUp(peer, HELLO, False, None))
            for one, other in ((peer, to), (to, peer)):
                self._at(2 * self.delay(one, other), partial(self._measure, one, other))
        else:
            self.tell(peer, DialFailed(to, Reason.CONNECTION_REFUSED))
            self._at(REDIAL, lambda: self._dial(peer, to))

    def _close_if_idle(self, a: PeerId, b: PeerId) -> None:
        if b not in self.holds.get(a, {}) and a not in self.holds.get(b, {}) and _pair(a, b) in self.links:
            link = self.links[_pair(a, b)]

            def close() -> None:
                held = b in self.holds.get(a, {}) or a in self.holds.get(b, {})
                if self.links.get(_pair(a, b)) == link and not held:
                    self._close(a, b, Reason.NOT_NEEDED)

            self._at(1.0, close)

    def _close(self, a: PeerId, b: PeerId, reason: Reason) -> None:
        if self.links.pop(_pair(a, b), None) is None:
            return
        for peer, other in ((a, b), (b, a)):
            self.tell(peer, LinkDown(other, reason))
            self._at(REDIAL, partial(self._dial, peer, other))


def _pair(a: PeerId, b: PeerId) -> tuple[PeerId, PeerId]:
    return (a, b) if a < b else (b, a)
