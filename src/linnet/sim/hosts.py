"""The moving parts of a simulated network: nodes at their places, and the lanes between them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from random import Random
from typing import Protocol

from linnet.core.effects import Deliver
from linnet.core.ids import PeerId
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.peer.interface import Handed, NodeMachine

DeliverTo = Callable[[PeerId, Deliver[Handed], float], None]
"""What a simulated application does with deliveries: node, what came, when."""


class Durable(Protocol):
    """The driver's side of a store: what a crash takes back, and what it does not."""

    def commit(self, done: Callable[[], None]) -> None:
        """Make what was written so far durable, then call `done`."""

    def rollback(self) -> None:
        """Take back what was written since the last commit."""


class Host:
    """A node at its place: the machine, and what the driver keeps for it until it crashes."""

    __slots__ = (
        "address",
        "alive",
        "committed_at",
        "deliver",
        "dialable",
        "dialing",
        "handle",
        "lanes",
        "luck",
        "machine",
        "peer",
        "region",
        "side",
        "store",
        "ticks",
    )

    def __init__(
        self,
        peer: PeerId,
        machine: NodeMachine,
        region: str,
        dialable: bool,
        deliver: DeliverTo | None,
        store: Durable | None,
        luck: Random,
    ) -> None:
        self.peer = peer
        self.machine = machine
        self.handle = machine.handle
        self.region = region
        self.dialable = dialable
        self.deliver = deliver
        self.store = store
        self.luck = luck
        """For jitter, loss and commits of this node alone."""
        self.alive = True
        self.address: str | None = None
        """Where alone it can be dialled; None: wherever the other one believes."""
        self.side = 0
        """The group of a partition that it is in."""
        self.lanes: dict[PeerId, Lane] = {}
        """Open links, as the lanes away from here."""
        self.dialing: dict[PeerId, float] = {}
        """Dials under way, with when they began."""
        self.ticks: dict[Timer, int] = {}
        """Timers that are set, with their number on the clock."""
        self.committed_at = 0.0
        """When the last commit that was begun is durable."""


class Outbox:
    """What waits on a lane of limited bandwidth: control goes before bulk."""

    __slots__ = ("bulk", "bytes", "closing", "congested", "control", "sending")

    def __init__(self) -> None:
        self.control: deque[tuple[int, float, Message]] = deque()
        self.bulk: deque[tuple[int, float, Message]] = deque()
        self.bytes = 0
        self.sending = False
        self.congested = False
        self.closing: Reason | None = None
        """Set by a hang-up: the link closes when all has gone."""

    def clear(self) -> int:
        """Forget all that waits; returns how many messages that were."""
        unsent = len(self.control) + len(self.bulk) + self.sending
        self.control.clear()
        self.bulk.clear()
        return unsent

    def take(self) -> tuple[int, float, Message] | None:
        """The next to go: its size, since when it waited, and itself."""
        if self.control:
            return self.control.popleft()
        return self.bulk.popleft() if self.bulk else None


class Lane:
    """One direction of a link. An entry of the clock with a lane is a message that arrives."""

    __slots__ = (
        "back",
        "cut",
        "gone",
        "host",
        "lan",
        "last",
        "latency",
        "open",
        "origin",
        "outbox",
        "plain",
        "source",
    )

    back: Lane
    """The other direction."""

    def __init__(self, origin: Host, host: Host, latency: float, shaped: bool, outbox: Outbox | None) -> None:
        self.origin = origin
        """Who sends."""
        self.source = origin.peer
        self.host = host
        """Who receives."""
        self.latency = latency
        self.plain = not shaped
        """Whether messages simply take the latency: no jitter, no loss, no outbox, no cut."""
        self.outbox = outbox
        self.last = 0.0
        """When the latest message arrives: none that is sent after it may come before."""
        self.open = False
        """Whether the receiving end still listens."""
        self.gone = False
        """Whether the sending end has let go."""
        self.lan = False
        """Whether it runs over a local network, so that no partition of the internet cuts it."""
        self.cut = False
        """Whether a partition has cut it: nothing passes any more."""
