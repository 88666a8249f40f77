"""A simulated network: the driver that performs effects on a virtual clock.

The machines are the ones that real nodes run. Equal seeds give equal histories, in any process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappop, heappush
from math import inf
from typing import Any, assert_never

from linnet.core.effects import (
    AfterCommit,
    Announce,
    CancelTimer,
    Deliver,
    Dial,
    HangUp,
    Meet,
    Probe,
    Reply,
    Send,
    SetTimer,
)
from linnet.core.ids import PeerId
from linnet.core.inputs import Asked, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.delivery.commands import Declined
from linnet.peer.interface import Command, Effect, Input, NodeMachine, Promise, Result
from linnet.sim.clock import START, Clock
from linnet.sim.hosts import DeliverTo, Durable, Host, Lane
from linnet.sim.lans import Lans
from linnet.sim.links import LatencyTable, LinkModel
from linnet.sim.luck import named_luck
from linnet.sim.wires import Wires
from linnet.trace.records import Kind, Record
from linnet.trace.sink import NullTrace, TraceSink


class Network:
    """Nodes, links and a clock. Times that callers give are virtual seconds since the start."""

    def __init__(
        self,
        seed: int,
        links: LinkModel,
        trace: TraceSink | None = None,
        *,
        commit_delay: float = 0.0,
        start: float = START,
    ) -> None:
        self.seed = seed
        self._links = links
        self._commit_delay = commit_delay
        self._clock = Clock(start)
        self._hosts: dict[PeerId, Host] = {}
        self._write = (NullTrace() if trace is None else trace).write
        self._wires = Wires(self._clock, links, self._hosts, self._write)
        self._lans = Lans(self._clock, links, self._hosts, self._wires)
        self._requests = 0
        self.answers: dict[int, Result] = {}
        """Replies by the number that `ask` returned."""
        self.handled = 0
        """Messages that machines were handed."""
        self.on_commit: Callable[[PeerId, tuple[Promise, ...], float], None] | None = None
        """Told which promises of a node are kept now; those of a commit that failed never are."""
        self.delivered: dict[PeerId, int] = {}
        """Items delivered at nodes that have no callback of their own."""

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
        """How far regions are apart."""
        return self._links.latency

    # Nodes.

    def add(
        self,
        peer: PeerId,
        machine: NodeMachine,
        *,
        region: str | None = None,
        dialable: bool = True,
        deliver: DeliverTo | None = None,
        store: Durable | None = None,
    ) -> None:
        """A new node. Its region is one of the latency table, the first if none is given.

        If the machine's store is given, `AfterCommit` commits it, and a crash takes back the rest.
        """
        if peer in self._hosts:
            raise ValueError("a node of this key is here already")
        regions = self.table.regions
        if region is not None and region not in regions:
            raise ValueError(f"{region} is no region of the latency table")
        luck = named_luck(self.seed, f"links/{peer.hex()}")
        self._hosts[peer] = Host(peer, machine, region or regions[0], dialable, deliver, store, luck)

    def machine(self, peer: PeerId) -> NodeMachine:
        """The machine of a node, or its last one if it is down."""
        return self._hosts[peer].machine

    def is_up(self, peer: PeerId) -> bool:
        """Whether a node is there and has not crashed."""
        host = self._hosts.get(peer)
        return host is not None and host.alive

    def linked(self, peer: PeerId) -> list[PeerId]:
        """The peers to which a node has an open link, in the order in which they came up."""
        return list(self._hosts[peer].lanes)

    def latency(self, origin: PeerId, target: PeerId) -> float:
        """Seconds that a message takes from one node to another if nothing delays it."""
        return self.table.between(self._hosts[origin].region, self._hosts[target].region)

    def region(self, peer: PeerId) -> str:
        """Where a node is."""
        return self._hosts[peer].region

    def crash(self, peer: PeerId, *, silent: bool = False) -> None:
        """Stop a node without a word; what it committed stays with whoever holds its store.

        Its links go down at the others after the latency, or with `silent`, as when power fails,
        not until they notice by themselves.
        """
        host = self._hosts[peer]
        if host.alive:
            self._wires.crash(host, silent)
            if host.store is not None:
                host.store.rollback()
            self._write(peer, Record(Kind.OFFLINE, reason=Reason.CRASHED), self.now)

    def restart(self, peer: PeerId, machine: NodeMachine) -> None:
        """Bring a crashed node back with a new machine, at the same place."""
        old = self._hosts[peer]
        if old.alive:
            raise ValueError("the node is still up")
        host = Host(peer, machine, old.region, old.dialable, old.deliver, old.store, old.luck)
        host.side, host.address = old.side, old.address
        self._hosts[peer] = host

    def settle_at(self, peer: PeerId, address: str) -> None:
        """Let a node be dialled at this address alone: who knows only another one is refused."""
        self._hosts[peer].address = address

    def lose(self, share: float) -> None:
        """Let this share of all messages vanish from now on."""
        self._wires.lose(share)

    def hand(self, peer: PeerId, inputs: Iterable[Input]) -> None:
        """Let a node have these now, in this order: what waited while it did not run."""
        host = self._hosts[peer]
        self._clock.push(self.now, lambda: self._wires.inbox.extend((host, each) for each in inputs), ())

    def partition(self, groups: Sequence[Iterable[PeerId]], *, silent: bool = False) -> None:
        """Let nodes of different groups not reach each other; those in none are a group of their own.

        Links between groups are cut for good and go down at both ends after the latency, or with
        `silent` not until an end hangs up.
        """
        sides = {peer: number for number, group in enumerate(groups, 1) for peer in group}
        for peer, host in self._hosts.items():
            host.side = sides.get(peer, 0)
        self._wires.cut(silent)

    def heal(self) -> None:
        """Let everyone reach everyone again; what was cut has to be dialled anew."""
        for host in self._hosts.values():
            host.side = 0

    def lan(self, name: str, peers: Iterable[PeerId], *, loss: float = 0.0) -> bytes:
        """Let exactly these nodes be on the local network of this name; returns what they call it.

        They hear each other's announcements, but for the share that is lost, and reach each other
        whatever else is cut.
        """
        return self._lans.set(name, peers, loss)

    def shout(self, name: str, source: str, datagram: bytes) -> None:
        """Let all on a local network hear this, as if from this address: what an attacker may do."""
        self._lans.shout(name, source, datagram)

    # The application's side.

    def ask(self, peer: PeerId, command: Command, at: float | None = None) -> int:
        """Give a node a command, now or at a time; its reply will be in `answers` under this number."""
        self._requests += 1
        self._clock.push(self._time(at), self._asked, (peer, self._requests, command))
        return self._requests

    def at(self, time: float, act: Callable[[], None]) -> None:
        """Do something at a virtual time."""
        self._clock.push(self._time(time), act, ())

    def _time(self, at: float | None) -> float:
        return self._clock.now if at is None else max(self._clock.now, self._clock.start + at)

    def _asked(self, peer: PeerId, request: int, command: Command) -> None:
        host = self._hosts[peer]
        if host.alive:
            self._wires.inbox.append((host, Asked(request, command)))
        else:
            self.answers[request] = Declined(Reason.CRASHED, "the node is down")

    # Running.

    def run(self, until: float) -> None:
        """Let virtual time pass until so many seconds since the start."""
        end = self._clock.start + until
        self._loop(end, quiet=False)
        self._clock.now = max(self._clock.now, end)

    def run_until_quiet(self, limit: float = inf) -> bool:
        """Run until nothing is under way but timers; False if the limit, in seconds, came first."""
        self._loop(self._clock.start + limit, quiet=True)
        return len(self._clock.heap) <= self._clock.waiting

    def _loop(self, end: float, quiet: bool) -> None:
        clock, inbox, perform = self._clock, self._wires.inbox, self._perform
        heap = clock.heap
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
                if kind is Lane:
                    if what.open:
                        handled += 1
                        host = what.host
                        perform(host, host.handle(Received(what.source, argument), now), now)
                elif kind is Host:
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

    def _perform(self, host: Host, effects: Sequence[Effect], now: float) -> None:
        # The three frequent effects first, the rest by `match`: measured in bench/sim_speed.py.
        set_timer = self._clock.set_timer
        for effect in effects:
            if isinstance(effect, Send):
                lane = host.lanes.get(effect.peer)
                if lane is not None and lane.plain:
                    clock = self._clock
                    heappush(clock.heap, (now + lane.latency, clock.next_number(), lane, effect.message))
                else:
                    self._wires.send(host, effect.peer, effect.message)
            elif isinstance(effect, Record):
                self._write(host.peer, effect, now)
            elif isinstance(effect, SetTimer):
                delay = effect.delay
                set_timer(now + delay if delay > 0.0 else now, host, effect.timer)
            else:
                self._perform_rare(host, effect, now)
                if not host.alive:  # its disk was full: what is behind the commit never happened
                    return

    def _perform_rare(self, host: Host, effect: Effect, now: float) -> None:
        wires = self._wires
        match effect:
            case Send(peer, message):
                wires.send(host, peer, message)
            case Dial(peer, hints):
                wires.dial(host, peer, hints)
            case Probe(peer, hints):
                wires.probe(host, peer, hints)
            case HangUp(peer, reason):
                wires.hang_up(host, peer, reason)
            case Announce() | Meet():
                self._lans.perform(host, effect)
            case SetTimer(delay, timer):
                self._clock.set_timer(now + max(0.0, delay), host, timer)
            case CancelTimer(timer):
                host.ticks.pop(timer, None)
            case Deliver():
                self._deliver(host, effect, now)
            case Reply(request, result):
                self.answers[request] = result
            case Record():
                self._write(host.peer, effect, now)
            case AfterCommit(effects):
                self._commit(host, effects, now)
            case _:
                assert_never(effect)

    def _deliver(self, host: Host, effect: Deliver[Any], now: float) -> None:
        if host.deliver is not None:
            host.deliver(host.peer, effect, now)
        else:
            self.delivered[host.peer] = self.delivered.get(host.peer, 0) + len(effect.items)

    def _commit(self, host: Host, effects: tuple[Promise, ...], now: float) -> None:
        """A commit takes up to the commit delay; commits of a node finish in their order."""
        if not self._commit_delay:
            self._committed(host, effects)
            return
        host.committed_at = max(host.committed_at, now + host.luck.random() * self._commit_delay)
        self._clock.push(host.committed_at, self._committed, (host, effects))

    def _committed(self, host: Host, effects: tuple[Promise, ...]) -> None:
        if not host.alive:
            return
        if host.store is not None:
            host.store.commit(_nothing)
        if host.alive:  # a full disk has ended it otherwise
            if self.on_commit is not None:
                self.on_commit(host.peer, effects, self._clock.now)
            self._perform(host, effects, self._clock.now)


def _nothing() -> None:
    """Nobody waits."""
