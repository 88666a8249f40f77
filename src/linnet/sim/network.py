"""A simulated network: the driver that performs effects on a virtual clock.

It drives the machines that real nodes run. Equal seeds give equal histories, in any process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import heappush
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
from linnet.core.inputs import Asked
from linnet.core.reasons import Reason
from linnet.machine.commands import Declined
from linnet.peer.interface import AnyCommand, Effect, Input, NodeMachine, Promise
from linnet.sim.clock import START
from linnet.sim.engine import Engine
from linnet.sim.lans import Lans
from linnet.sim.links import LinkModel
from linnet.sim.seeded_random import named_luck
from linnet.sim.wires import DeliverTo, Durable, Host, HostSettings, Lane, Wires
from linnet.trace.records import Kind, Record, TraceSink


class Network(Engine[Host]):
    """Whole nodes, their links and a clock. Times that callers give are virtual seconds since the start."""

    endpoint = Host
    direction = Lane

    def __init__(
        self,
        seed: int,
        links: LinkModel,
        trace: TraceSink | None = None,
        *,
        commit_delay: float = 0.0,
        start: float = START,
    ) -> None:
        super().__init__(seed, links, trace, start)
        self._commit_delay = commit_delay
        self._wires = Wires(self._clock, links, self._hosts, self._inbox, self._write)
        self._lans = Lans(self._clock, links, self._hosts, self._wires)
        self._requests = 0
        self.answers: dict[int, object] = {}
        """Replies by the number that `ask` returned."""
        self.on_commit: Callable[[PeerId, tuple[Promise, ...], float], None] | None = None
        """Called with the promises of a node that are kept now; those of a failed commit never are."""
        self.delivered: dict[PeerId, int] = {}
        """Items delivered at nodes without a callback of their own."""

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
        prefix: str | None = None,
    ) -> None:
        """Add a node. Its region is one of the latency table, the first if none is given.

        If the machine's store is given, `AfterCommit` commits it, and a crash rolls back the rest. `prefix`
        is the network that its address is in (`LinkUp.network`).
        """
        luck = named_luck(self.seed, f"links/{peer.hex()}")
        settings = HostSettings(dialable, deliver, store, prefix)
        self._add(Host(peer, machine, self.table.regions[0] if region is None else region, luck, settings))

    def machine(self, peer: PeerId) -> NodeMachine:
        """Return the machine of a node, or its last one if it is down."""
        return self._hosts[peer].machine

    def crash(self, peer: PeerId, *, silent: bool = False) -> None:
        """Stop a node abruptly; its committed writes stay in its store.

        The other ends see its links close after the latency, or with `silent`, as in a power failure, not
        until they notice by themselves.
        """
        host = self._hosts[peer]
        if host.alive:
            self._wires.crash(host, silent)
            if host.store is not None:
                host.store.rollback()
            self._write(peer, Record(Kind.OFFLINE, reason=Reason.CRASHED), self.now)

    def restart(self, peer: PeerId, machine: NodeMachine) -> None:
        """Restart a crashed node with a new machine, at the same place."""
        old = self._hosts[peer]
        if old.alive:
            raise ValueError("the node is still up")
        settings = HostSettings(old.dialable, old.deliver, old.store, old.prefix)
        host = Host(peer, machine, old.region, old.luck, settings)
        host.side, host.address = old.side, old.address
        self._hosts[peer] = host

    def settle_at(self, peer: PeerId, address: str) -> None:
        """Let a node be dialled at this address alone: dials to others are refused."""
        self._hosts[peer].address = address

    def lose(self, share: float) -> None:
        """Lose this share of all messages from now on."""
        self._wires.lose(share)

    def hand(self, peer: PeerId, inputs: Iterable[Input]) -> None:
        """Hand these inputs to a node now, in this order, as after a pause."""
        host = self._hosts[peer]
        self._clock.push(self.now, lambda: self._inbox.extend((host, each) for each in inputs), ())

    def partition(self, groups: Sequence[Iterable[PeerId]], *, silent: bool = False) -> None:
        """Separate nodes of different groups; nodes in no group form one of their own.

        Links between groups are cut for good and close at both ends after the latency, or with `silent` not
        until an end hangs up.
        """
        self._part(groups)
        self._wires.cut(silent)

    def lan(self, name: str, peers: Iterable[PeerId], *, loss: float = 0.0) -> bytes:
        """Let exactly these nodes be on the local network of this name; return its id at the nodes.

        They receive each other's announcements, but for the share that is lost, and reach each other whatever
        else is cut.
        """
        return self._lans.set(name, peers, loss)

    def shout(self, name: str, source: str, datagram: bytes) -> None:
        """Send a datagram to all on a local network, as if from this address: an attacker may do that."""
        self._lans.shout(name, source, datagram)

    # The application's side.

    def ask(self, peer: PeerId, command: AnyCommand, at: float | None = None) -> int:
        """Give a node a command, now or at a time; its reply will be in `answers` under this number."""
        self._requests += 1
        self._clock.push(self._time(at), self._asked, (peer, self._requests, command))
        return self._requests

    def _asked(self, peer: PeerId, request: int, command: AnyCommand) -> None:
        host = self._hosts[peer]
        if host.alive:
            self._inbox.append((host, Asked(request, command)))
        else:
            self.answers[request] = Declined(Reason.CRASHED, "the node is down")

    # What machines ask for.

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
                if not host.alive:  # its disk was full: effects after the commit never happened
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
        """Commit a node's writes within the commit delay; commits of a node finish in order."""
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
    """Do nothing: no caller waits."""
