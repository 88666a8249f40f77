"""Nodes of Kademlia as they are shipped, on simulated links: time and luck are given, and nodes die at will.

A link is dialled, comes up after a round trip, and goes when neither end holds it. A node that is dead does
not answer: a dial to it fails after a while, as one to a machine that is switched off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from hashlib import sha256
from heapq import heappop, heappush
from random import Random
from typing import NamedTuple, TypeAlias, TypeVar

from linnet.core.effects import AfterCommit, Blame, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Effect, Outbox
from linnet.machine.part import Part, on_notice
from linnet.machine.router import Router
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.part import PROTOCOL, Kademlia
from linnet.overlay.kademlia.routing_table import NodeId, distance
from linnet.overlay.kademlia.value_records import (
    NodesFound,
    Placed,
    RecordsFound,
    SeekNodes,
    SeekRecords,
    Stored,
)
from linnet.sim.clock import START
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

SOONEST, LATEST = 0.010, 0.150
"""Seconds that a message takes."""
IDLE = 5.0
"""Seconds that a link which neither end holds is kept."""
DIAL_LIMIT = 1.0
"""Seconds after which a dial to a node that is dead has failed."""

AT_ONCE = 50
"""Nodes that are there for each that joins at the same time as others."""


class _Arrival(NamedTuple):
    sender: PeerId
    receiver: PeerId
    message: Message


class _Opened(NamedTuple):
    dialer: PeerId
    other: PeerId


class _Idle(NamedTuple):
    one: PeerId
    other: PeerId


class _Ringing(NamedTuple):
    peer: PeerId
    timer: Timer
    setting: int


_Event: TypeAlias = _Arrival | _Opened | _Idle | _Ringing
Key = TypeVar("Key")
Ending = TypeVar("Ending", NodesFound, RecordsFound, Placed)


class Host(Part):
    """One node. Its parts are Kademlia, and itself, who hears how lookups and placings end."""

    def __init__(self, contact: Contact, config: KademliaConfig, seed: str) -> None:
        self.contact = contact
        self._config = config
        self._seed = seed
        self._store = MemoryStore()
        self.restart()
        self.alive = True
        self.links: dict[PeerId, None] = {}
        self.held: dict[PeerId, None] = {}
        self.timers: dict[Timer, int] = {}
        self.nodes_found: dict[NodeId, NodesFound] = {}
        self.records_found: dict[int, RecordsFound] = {}
        self.placed: dict[int, Placed] = {}
        self.blamed: list[Blame] = []

    def restart(self) -> None:
        """A new machine with the same store."""
        self.out = Outbox()
        luck = Random(self._seed)
        self.machine = Kademlia(self.contact, self._config, self._store.cells, luck, self.out)
        self.router = Router(self.out, (self.machine, self))

    @on_notice(NodesFound)
    def hear_nodes(self, notice: NodesFound, now: float) -> None:
        """A lookup has ended."""
        self.nodes_found[notice.key] = notice

    @on_notice(RecordsFound)
    def hear_records(self, notice: RecordsFound, now: float) -> None:
        """A search for records has ended."""
        self.records_found[notice.number] = notice

    @on_notice(Placed)
    def hear_keepers(self, notice: Placed, now: float) -> None:
        """A record has been placed."""
        self.placed[notice.number] = notice


class KademliaWorld:
    """All nodes, and what is under way between them."""

    def __init__(self, seed: int, config: KademliaConfig | None = None) -> None:
        self.now = START
        self.hosts: dict[PeerId, Host] = {}
        self.messages = 0
        self.reasons: Counter[tuple[Kind, Reason | None]] = Counter()
        """What was recorded, by kind and reason."""
        self._seed = seed
        self._config = config or KademliaConfig()
        self._rng = Random(f"kademlia/{seed}")
        self._queue: list[tuple[float, int, _Event]] = []
        self._counter = 0

    def add(self, hints: tuple[str, ...] | None = None) -> Host:
        """One more node, each in a network of its own unless it is said where."""
        number = len(self.hosts)
        peer = PeerId(sha256(f"kademlia/{self._seed}/{number}".encode()).digest())
        where = (f"tls://11.{number >> 8 & 255}.{number & 255}.1:7700",) if hints is None else hints
        host = Host(Contact(peer, where), self._config, f"{self._seed}/{number}")
        self.hosts[peer] = host
        return host

    def join(self, host: Host, bootstrap: Iterable[Host]) -> None:
        """Let a node begin with these."""
        host.machine.bootstrap = tuple(each.contact for each in bootstrap)
        host.machine.start(self.now)
        self._perform_all(host)

    def grow(self, count: int, settle: float = 3.0) -> list[Host]:
        """So many nodes, each by way of two that are there already: a few at once where there are many."""
        made: list[Host] = []
        there = [host for host in self.hosts.values() if host.alive]
        while len(made) < count:
            come = [self.add() for _ in range(min(count - len(made), 1 + len(there) // AT_ONCE))]
            for host in come:
                self.join(host, self._rng.sample(there, min(2, len(there))))
            self.run(settle)
            there += come
            made += come
        return made

    def kill(self, hosts: Iterable[Host]) -> None:
        """These are gone at once, without a word."""
        for host in hosts:
            host.alive = False
            for peer in list(host.links):
                self._close(host.contact.peer, peer, Reason.CRASHED)

    def find(self, host: Host, target: NodeId) -> NodesFound:
        """Who is nearest, as this node finds."""
        host.out.notify(SeekNodes(target))
        return self._await_outcome(host, host.nodes_found, target)

    def gather(self, host: Host, key: NodeId) -> RecordsFound:
        """What is kept under a key, as this node finds."""
        self._counter += 1
        number = self._counter
        host.out.notify(SeekRecords(number, key))
        return self._await_outcome(host, host.records_found, number)

    def place(self, host: Host, record: Stored) -> Placed:
        """Who keeps a record of this node."""
        number = host.machine.place_record(record, self.now)
        return self._await_outcome(host, host.placed, number)

    def nearest(self, target: NodeId, besides: Host) -> PeerId:
        """Who is nearest in truth, of those who live."""
        living = [host for host in self.hosts.values() if host.alive and host is not besides]
        return min(living, key=lambda host: distance(host.machine.table.id, target)).contact.peer

    def run(self, seconds: float) -> None:
        """Let everything happen until then."""
        until = self.now + seconds
        while self._queue and self._queue[0][0] <= until:
            self._step()
        self.now = until

    def _await_outcome(self, host: Host, outcomes: dict[Key, Ending], key: Key) -> Ending:
        """Let everything happen until a host has heard how a lookup or a placement ended."""
        self._perform_all(host)
        while key not in outcomes:
            self._step()
        return outcomes.pop(key)

    def _step(self) -> None:
        self.now, _, event = heappop(self._queue)
        match event:
            case _Arrival(sender, receiver, message):
                host = self.hosts[receiver]
                if host.alive and sender in host.links:
                    host.router.message(sender, message, self.now)
                    self._perform_all(host)
            case _Opened(dialer, other):
                self._opened(self.hosts[dialer], self.hosts.get(other), other)
            case _Idle(one, other):
                if other not in self.hosts[one].held and one not in self.hosts[other].held:
                    self._close(one, other, Reason.NOT_NEEDED)
            case _Ringing(peer, timer, setting):
                host = self.hosts[peer]
                if host.alive and host.timers.get(timer) == setting:
                    del host.timers[timer]
                    host.router.timer(timer, self.now)
                    self._perform_all(host)

    def _opened(self, dialer: Host, other: Host | None, peer: PeerId) -> None:
        if not dialer.alive or peer not in dialer.held or peer in dialer.links:
            return
        if other is None or not other.alive:
            self._tell_link(dialer, DialFailed(peer, Reason.UNREACHABLE))
            return
        dialer.links[peer] = None
        other.links[dialer.contact.peer] = None
        for host, met, dialed in ((dialer, other, True), (other, dialer, False)):
            hello = Hello(1, 1, {"link": 1, PROTOCOL: 1}, listens=met.contact.hints)
            self._tell_link(host, LinkUp(met.contact.peer, hello, dialed, None))

    def _close(self, one: PeerId, other: PeerId, reason: Reason) -> None:
        for here, there in ((one, other), (other, one)):
            host = self.hosts[here]
            if there not in host.links:
                continue
            del host.links[there]
            if host.alive:
                self._tell_link(host, LinkDown(there, reason))

    def _tell_link(self, host: Host, event: LinkUp | LinkDown | DialFailed) -> None:
        host.router.input(event, self.now)
        self._perform_all(host)

    def _perform_all(self, host: Host) -> None:
        host.router.pass_on_notices(self.now)
        self._perform(host, host.out.take())

    def _perform(self, host: Host, effects: Iterable[Effect]) -> None:
        own = host.contact.peer
        for effect in effects:
            match effect:
                case Send(peer, message):
                    self.messages += 1
                    self._later(self._rng.uniform(SOONEST, LATEST), _Arrival(own, peer, message))
                case Hold(peer):
                    self._hold(host, peer)
                case Release(peer):
                    self._release(host, peer)
                case SetTimer(delay, timer):
                    self._counter += 1
                    host.timers[timer] = self._counter
                    self._later(delay, _Ringing(own, timer, host.timers[timer]))
                case CancelTimer(timer):
                    host.timers.pop(timer, None)
                case AfterCommit(later):
                    self._perform(host, later)
                case Blame():
                    host.blamed.append(effect)
                case Record():
                    self.reasons[effect.kind, effect.reason] += 1
                case _:
                    raise TypeError(f"Kademlia asks for no {type(effect).__name__}")

    def _hold(self, host: Host, peer: PeerId) -> None:
        host.held[peer] = None
        if peer not in host.links:
            there = self.hosts.get(peer)
            is_up = there is not None and there.alive
            wait = 2 * self._rng.uniform(SOONEST, LATEST) if is_up else DIAL_LIMIT
            self._later(wait, _Opened(host.contact.peer, peer))

    def _release(self, host: Host, peer: PeerId) -> None:
        host.held.pop(peer, None)
        if peer in host.links and host.contact.peer not in self.hosts[peer].held:
            self._later(IDLE, _Idle(host.contact.peer, peer))

    def _later(self, delay: float, event: _Event) -> None:
        self._counter += 1
        heappush(self._queue, (self.now + delay, self._counter, event))
