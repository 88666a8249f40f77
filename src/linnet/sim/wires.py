"""Links in simulation: how they open, carry messages, congest, are cut and close.

This module calls no machine: inputs are appended to the inbox, and `Network` hands them over after the effect
or event that caused them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from linnet.core.effects import Deliver
from linnet.core.ids import PeerId
from linnet.core.inputs import Congested, DialFailed, Drained, LinkDown, LinkUp, Probed
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.delivery.messages import Data
from linnet.edge.announcement import is_lan_hint
from linnet.peer.interface import Handed, Input, NodeMachine
from linnet.peer.messages import STANDARD
from linnet.sim.clock import Clock
from linnet.sim.engine import Direction, Endpoint
from linnet.sim.links import LinkModel
from linnet.trace.records import Kind, Record

DeliverTo = Callable[[PeerId, Deliver[Handed], float], None]
"""Handles deliveries at a simulated application: called with node, items and time."""


class Durable(Protocol):
    """The driver's side of a store: it commits writes, and after a crash undoes the others."""

    def commit(self, done: Callable[[], None]) -> None:
        """Make all writes so far durable, then call `done`."""

    def rollback(self) -> None:
        """Undo the writes since the last commit."""


class HostSettings(NamedTuple):
    """The settings that a host keeps over its crashes, beside its region."""

    dialable: bool
    deliver: DeliverTo | None
    store: Durable | None
    prefix: str | None = None
    """The network that its address is in, as others see it; None: it counts for nobody but itself."""


class Host(Endpoint):
    """A whole node in the simulation."""

    __slots__ = ("address", "committed_at", "deliver", "dialable", "luck", "machine", "prefix", "store")

    lanes: dict[PeerId, Lane]

    def __init__(
        self, peer: PeerId, machine: NodeMachine, region: str, luck: Random, settings: HostSettings
    ) -> None:
        super().__init__(peer, machine, region)
        self.machine = machine
        self.dialable, self.deliver, self.store, self.prefix = settings
        self.luck = luck
        """The generator for jitter, loss and commits of this node alone."""
        self.address: str | None = None
        """The only address at which it can be dialled; None: any address that a dialler has."""
        self.committed_at = 0.0
        """When the last commit that was begun is durable."""


class Outbox:
    """The messages that wait on a lane of limited bandwidth: control goes before bulk."""

    __slots__ = ("bulk", "bytes", "closing", "congested", "control", "sending")

    def __init__(self) -> None:
        self.control: deque[tuple[int, float, Message]] = deque()
        self.bulk: deque[tuple[int, float, Message]] = deque()
        self.bytes = 0
        self.sending = False
        self.congested = False
        self.closing: Reason | None = None
        """Set by a hang-up: the link closes when all messages are sent."""

    def clear(self) -> int:
        """Drop all waiting messages; return how many there were."""
        unsent = len(self.control) + len(self.bulk) + self.sending
        self.control.clear()
        self.bulk.clear()
        return unsent

    def take(self) -> tuple[int, float, Message] | None:
        """Return the next message, with its size and the time since when it waited."""
        if self.control:
            return self.control.popleft()
        return self.bulk.popleft() if self.bulk else None


class Lane(Direction[Host]):
    """One direction of a link between hosts."""

    __slots__ = ("back", "cut", "gone", "lan", "last", "origin", "outbox", "plain")

    back: Lane
    """The other direction."""

    def __init__(
        self, origin: Host, target: Host, latency: float, shaped: bool, outbox: Outbox | None
    ) -> None:
        super().__init__(origin.peer, target, latency)
        self.origin = origin
        """The sender."""
        self.plain = not shaped
        """Whether messages simply take the latency: no jitter, no loss, no outbox, no cut."""
        self.outbox = outbox
        self.last = 0.0
        """When the latest message arrives: no later one may arrive before it."""
        self.gone = False
        """Whether the sending end has closed."""
        self.lan = False
        """Whether it runs over a local network, so that no partition of the internet cuts it."""
        self.cut = False
        """Whether a partition has cut it: nothing passes any more."""


WriteRecord = Callable[[PeerId, Record, float], None]


class Wires:
    """All links of a network. Two nodes have at most one."""

    def __init__(
        self,
        clock: Clock,
        model: LinkModel,
        hosts: dict[PeerId, Host],
        inbox: deque[tuple[Host, Input]],
        write: WriteRecord,
    ) -> None:
        self._clock = clock
        self._model = model
        self._hosts = hosts
        self._write = write
        self._shaped = bool(model.jitter or model.loss or model.bandwidth is not None)
        self.inbox = inbox
        self.share_lan: Callable[[PeerId, PeerId], bool] = lambda one, other: False
        """Returns whether two nodes are on one local network."""

    def lose(self, share: float) -> None:
        """Lose this share of all messages from now on."""
        self._model = replace(self._model, loss=share)
        self._shaped = True
        for host in self._hosts.values():
            for lane in host.lanes.values():
                lane.plain = False

    # Coming up.

    def dial(self, host: Host, peer: PeerId, hints: tuple[str, ...]) -> None:
        """Begin a dial; does nothing if there is a link or another dial."""
        if peer in host.lanes or peer in host.dialing:
            return
        clock = self._clock
        host.dialing[peer] = clock.now
        target = self._hosts.get(peer)
        if not hints:
            self._fail_dial(host, peer, Reason.NO_ADDRESS, clock.now)
        elif target is None:
            self._fail_dial(host, peer, Reason.DIAL_TIMEOUT, clock.now + self._model.dial_timeout)
        else:
            there, back = self._latencies(host, target)
            arrival = clock.now + self._model.dial_time(there, back)
            clock.push(arrival, self._accept, (host, peer, hints))

    def probe(self, host: Host, peer: PeerId, hints: tuple[str, ...]) -> None:
        """Test whether a dial would succeed."""
        clock = self._clock
        target = self._hosts.get(peer)
        if not hints or target is None:
            reason = Reason.NO_ADDRESS if not hints else Reason.DIAL_TIMEOUT
            wait = 0.0 if not hints else self._model.dial_timeout
            clock.push(clock.now + wait, self._tell, (host, Probed(peer, reason)))
        else:
            there, back = self._latencies(host, target)
            arrival = clock.now + self._model.dial_time(there, back) + back
            clock.push(arrival, self._probed, (host, peer, hints))

    def link_locally(self, host: Host, peer: PeerId) -> None:
        """Turn the connection that was opened to meet a local node into a link, unless there is one."""
        if peer not in host.lanes and peer not in host.dialing:
            host.dialing[peer] = self._clock.now
            self._accept(host, peer, None)

    def _probed(self, host: Host, peer: PeerId, hints: tuple[str, ...]) -> None:
        reason = self._refusal(host, self._hosts[peer], hints)
        wait = self._model.dial_timeout if reason is Reason.DIAL_TIMEOUT else 0.0
        self._clock.push(self._clock.now + wait, self._tell, (host, Probed(peer, reason)))

    def _accept(self, host: Host, peer: PeerId, hints: tuple[str, ...] | None) -> None:
        """Deliver our greeting to the dialled node: its link is up, ours when its greeting is here.

        Without hints it was met on a local network.
        """
        if not host.alive:
            return
        if peer in host.lanes:
            # It dialled us at the same time and was first: that one link serves both.
            del host.dialing[peer]
            return
        clock = self._clock
        target = self._hosts[peer]
        there, back = self._latencies(host, target)
        reason = self._refusal(host, target, hints)
        if reason is not None:
            given_up = host.dialing[peer] + self._model.dial_timeout
            late = reason is Reason.DIAL_TIMEOUT
            self._fail_dial(host, peer, reason, max(clock.now + back, given_up) if late else clock.now + back)
            return
        stale = target.lanes.get(host.peer)
        if stale is not None:
            # That end has not noticed yet that its link is dead.
            self._detach(target, stale, Reason.DUPLICATE_LINK)
        fore, lane = self._pair(host, target, there, back)
        fore.lan = lane.lan = _is_local(hints) and self.share_lan(host.peer, peer)
        fore.open = True
        lane.last = clock.now + back
        target.lanes[host.peer] = lane
        self._up(target, host, dialed=False)
        clock.push(clock.now + back, self._established, (fore,))

    def _established(self, fore: Lane) -> None:
        host, target = fore.origin, fore.target
        if not host.alive:
            self._clock.push(self._clock.now + fore.latency, self._far_down, (fore, Reason.CRASHED))
        elif fore.cut:
            self._fail_dial(host, target.peer, Reason.DIAL_TIMEOUT, self._clock.now)
        elif target.peer not in host.lanes:
            host.dialing.pop(target.peer, None)
            host.lanes[target.peer] = fore
            fore.back.open = True
            self._up(host, target, dialed=True)

    def _pair(self, host: Host, target: Host, there: float, back: float) -> tuple[Lane, Lane]:
        paced = self._model.bandwidth is not None
        fore = Lane(host, target, there, self._shaped, Outbox() if paced else None)
        lane = Lane(target, host, back, self._shaped, Outbox() if paced else None)
        fore.back, lane.back = lane, fore
        return fore, lane

    def _up(self, host: Host, other: Host, dialed: bool) -> None:
        self._write(host.peer, Record(Kind.LINK_UP, peer=other.peer), self._clock.now)
        self.inbox.append((host, LinkUp(other.peer, other.machine.hello, dialed, other.prefix)))

    def _refusal(self, host: Host, target: Host, hints: tuple[str, ...] | None) -> Reason | None:
        is_local = _is_local(hints) and self.share_lan(host.peer, target.peer)
        if (host.side != target.side or not target.dialable) and not is_local:
            return Reason.DIAL_TIMEOUT
        is_elsewhere = target.address is not None and hints is not None and target.address not in hints
        if not target.alive or (is_elsewhere and not is_local):
            return Reason.CONNECTION_REFUSED
        return None if host.machine.hello.speaks(target.machine.hello) else Reason.VERSION_MISMATCH

    def _fail_dial(self, host: Host, peer: PeerId, reason: Reason, time: float) -> None:
        self._clock.push(time, self._dial_failed, (host, peer, reason))

    def _dial_failed(self, host: Host, peer: PeerId, reason: Reason) -> None:
        if host.dialing.pop(peer, None) is not None and peer not in host.lanes:
            self.inbox.append((host, DialFailed(peer, reason)))

    def _tell(self, host: Host, event: Input) -> None:
        self.inbox.append((host, event))

    def _latencies(self, host: Host, target: Host) -> tuple[float, float]:
        between = self._model.latency.between
        return between(host.region, target.region), between(target.region, host.region)

    # Carrying. The plain case, a latency and nothing else, is done by `Network` itself.

    def send(self, host: Host, peer: PeerId, message: Message) -> None:
        """Put a message on the lane to a peer, with jitter, loss, outbox and cuts."""
        lane = host.lanes.get(peer)
        if lane is None:
            self._drop(host, peer, message, Reason.UNREACHABLE)
        elif lane.cut:
            self._drop(host, peer, message, Reason.PARTITIONED)
        elif lane.outbox is None:
            self._launch(lane, message)
        elif lane.outbox.closing is not None:
            self._drop(host, peer, message, Reason.UNREACHABLE)
        else:
            self._enqueue(lane, lane.outbox, message)

    def _launch(self, lane: Lane, message: Message) -> None:
        model, luck, clock = self._model, lane.origin.luck, self._clock
        if model.loss and luck.random() < model.loss:
            self._drop(lane.origin, lane.target.peer, message, Reason.LOST)
            return
        arrival = clock.now + lane.latency
        if model.jitter:
            arrival += luck.random() * model.jitter
        lane.last = max(arrival, lane.last)
        clock.push(lane.last, lane, message)

    def _enqueue(self, lane: Lane, outbox: Outbox, message: Message) -> None:
        size = len(STANDARD.encode(message))
        outbox.bytes += size
        queue = outbox.bulk if isinstance(message, STANDARD.bulk) else outbox.control
        queue.append((size, self._clock.now, message))
        if outbox.bytes > self._model.outbox_bytes:
            self._give_up(lane)
            return
        if outbox.bytes > self._model.outbox_high and not outbox.congested:
            outbox.congested = True
            self.inbox.append((lane.origin, Congested(lane.target.peer)))
        if not outbox.sending:
            self._send_next(lane, outbox)

    def _send_next(self, lane: Lane, outbox: Outbox) -> None:
        head = outbox.take()
        outbox.sending = head is not None
        if head is not None and self._model.bandwidth is not None:
            size, since, message = head
            leaves = self._clock.now + size / self._model.bandwidth
            if leaves - since > self._model.outbox_age:
                self._give_up(lane)
            else:
                self._clock.push(leaves, self._departed, (lane, outbox, size, message))
        elif outbox.closing is not None:
            self._close(lane, outbox.closing)

    def _departed(self, lane: Lane, outbox: Outbox, size: int, message: Message) -> None:
        if lane.gone:
            return
        outbox.bytes -= size
        if lane.cut:
            self._drop(lane.origin, lane.target.peer, message, Reason.PARTITIONED)
        else:
            self._launch(lane, message)
        if outbox.congested and outbox.bytes <= self._model.outbox_low:
            outbox.congested = False
            self.inbox.append((lane.origin, Drained(lane.target.peer)))
        self._send_next(lane, outbox)

    def _give_up(self, lane: Lane) -> None:
        """Close a link whose other end does not keep up, without waiting for queued messages."""
        self._detach(lane.origin, lane, Reason.SLOW_PEER)
        self._reset(lane, Reason.SLOW_PEER, self._clock.now + lane.latency)

    def _drop(self, host: Host, peer: PeerId, message: Message, reason: Reason) -> None:
        match message:
            case Data(unit=unit):
                record = Record(
                    Kind.DROPPED,
                    topic=unit.topic,
                    device=unit.device,
                    seq=unit.seq,
                    events=len(unit.tails),
                    peer=peer,
                    reason=reason,
                )
            case _:
                record = Record(Kind.DROPPED, peer=peer, reason=reason, note=type(message).__name__)
        self._write(host.peer, record, self._clock.now)

    # Going down.

    def hang_up(self, host: Host, peer: PeerId, reason: Reason) -> None:
        """Close a link after sending the queued messages."""
        lane = host.lanes.get(peer)
        if lane is None:
            return
        if lane.outbox is not None and lane.outbox.sending:
            lane.outbox.closing = lane.outbox.closing or reason
        else:
            self._close(lane, reason)

    def _close(self, lane: Lane, reason: Reason) -> None:
        self._detach(lane.origin, lane, reason)
        self._reset(lane, reason, max(self._clock.now + lane.latency, lane.last))

    def crash(self, host: Host, silent: bool) -> None:
        """Take a node down; unless silent, the others see its links close after the latency."""
        host.alive = False
        for lane in host.lanes.values():
            lane.gone = True
            lane.back.open = False
            if not silent:
                self._reset(lane, Reason.CRASHED, max(self._clock.now + lane.latency, lane.last))
        host.lanes.clear()
        host.dialing.clear()
        host.ticks.clear()

    def cut(self, silent: bool) -> None:
        """Cut every link between different sides; unless silent, both ends see it after the latency.

        A link over a local network is cut when its ends no longer share one.
        """
        for host in self._hosts.values():
            for lane in host.lanes.values():
                if self.share_lan(host.peer, lane.target.peer) if lane.lan else lane.target.side == host.side:
                    continue
                for direction in (lane, lane.back):
                    direction.cut = True
                    direction.plain = direction.open = False
                if not silent:
                    self._clock.push(self._clock.now + lane.latency, self._near_down, (lane,))

    def _reset(self, lane: Lane, reason: Reason, time: float) -> None:
        if not lane.cut:
            self._clock.push(time, self._far_down, (lane, reason))

    def _far_down(self, lane: Lane, reason: Reason) -> None:
        if lane.target.lanes.get(lane.source) is lane.back:
            self._detach(lane.target, lane.back, reason)

    def _near_down(self, lane: Lane) -> None:
        if lane.origin.lanes.get(lane.target.peer) is lane:
            self._detach(lane.origin, lane, Reason.PARTITIONED)

    def _detach(self, host: Host, lane: Lane, reason: Reason) -> None:
        """Close one end of a link: it neither accepts nor sends messages any more."""
        peer = lane.target.peer
        del host.lanes[peer]
        lane.gone = True
        lane.back.open = False
        if lane.outbox is not None and lane.outbox.bytes:
            unsent, size = lane.outbox.clear(), lane.outbox.bytes
            lost = Record(Kind.DROPPED, events=unsent, peer=peer, bytes=size, reason=reason, note="unsent")
            self._write(host.peer, lost, self._clock.now)
        self._write(host.peer, Record(Kind.LINK_DOWN, peer=peer, reason=reason), self._clock.now)
        self.inbox.append((host, LinkDown(peer, reason)))


def _is_local(hints: tuple[str, ...] | None) -> bool:
    return hints is None or any(map(is_lan_hint, hints))
