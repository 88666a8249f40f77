"""The closed unions of the node machine: all its inputs and all its effects.

A driver handles every member of `Effect`; mypy reports one that it forgot.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct, field

from linnet.content.commands import ContentItem, InGroups
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
from linnet.core.hello import Hello
from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import (
    Asked,
    Congested,
    DialFailed,
    Drained,
    Heard,
    LinkDown,
    LinkUp,
    Met,
    NetworkIs,
    NotMet,
    Probed,
    Received,
    TimerFired,
)
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.delivery.items import Item
from linnet.machine.commands import Command, Done
from linnet.overlay.tracked_topic import Graph
from linnet.peer.whereabouts import Company
from linnet.places.items import PlaceItem
from linnet.rooms.commands import RoomStatus
from linnet.streams.commands import StreamStatus
from linnet.trace.records import Record


class Start(Command[Done], frozen=True, gc=False):
    """Start the node: link to trackers, join the streams to store."""


class Stop(Command[Done], frozen=True, gc=False):
    """Leave every topic and close every link in good order."""


class Connect(Command[Done], frozen=True, gc=False):
    """Keep a link to a peer until `Disconnect`; `ListPeers` shows whether it is open."""

    contact: Contact


class Disconnect(Command[Done], frozen=True, gc=False):
    """Stop keeping a link that was asked for with `Connect`."""

    peer: PeerId = field(name="device")


class Block(Command[Done], frozen=True, gc=False):
    """Block a device, or unblock it."""

    peer: PeerId = field(name="device")
    blocked: bool = True


class Examine(Command["NodeStatus"], frozen=True, gc=False):
    """Report the state of the node."""


class PeerStatus(Struct, frozen=True, gc=False):
    """The state of one link, open or wanted."""

    peer: PeerId = field(name="device")
    up: bool
    dialed: bool
    needed: tuple[str, ...]
    """The purposes for which we hold it."""
    wanted: bool
    """Whether the peer needs it."""
    rtt: float | None
    since: float | None
    agent: str
    roles: tuple[str, ...]
    last_failure: Reason | None
    failing_since: float | None = None
    """When it stopped answering; None: it answers, or was not dialled."""
    needed_for: tuple[str, ...] = ()
    """The same as `needed`, with names of streams, rooms and places instead of their topics."""


class Unanswered(Struct, frozen=True, gc=False):
    """A peer that does not answer and that no part wants at present; it is tried again now and then."""

    peer: PeerId
    since: float
    reason: Reason | None


class HashTableStatus(Struct, frozen=True, gc=False):
    """This node's part in the hash table over the network."""

    known: int
    """The nodes in its table."""
    kept: int
    """Records that it keeps for other nodes."""
    placed: int
    """Its own records that other nodes keep."""


class ContentStatus(Struct, frozen=True, gc=False):
    """This node's part in content."""

    subscriptions: int
    filters: int
    rendezvous: tuple[str, ...]
    """The attributes for which it is the rendezvous node, as far as it knows."""
    arrivals: int
    """Events that reached it as a rendezvous node."""


class NodeStatus(Struct, frozen=True, gc=False):
    """The state of this node."""

    peer: PeerId
    author: bytes
    started_at: float
    roles: tuple[str, ...]
    listens: tuple[str, ...]
    reachable: bool | None
    """Whether a tracker could dial us back; None: not known yet."""
    reachable_reason: Reason | None
    blocked: tuple[PeerId, ...]
    peers: tuple[PeerStatus, ...]
    streams: tuple[StreamStatus, ...]
    tracked: tuple[Graph, ...]
    """The graphs of the topics that it tracks."""
    rooms: tuple[RoomStatus, ...] = ()
    hash_table: HashTableStatus | None = None
    content: ContentStatus | None = None
    clocks: tuple[float, ...] = ()
    """Seconds by which the clocks of linked peers are ahead of ours, as far as they told the time."""
    company: tuple[Company, ...] = ()
    """For each room, place and stream, the known members."""
    unanswered: tuple[Unanswered, ...] = ()
    """Peers that do not answer and are not among `peers`."""


AnyCommand: TypeAlias = Command[object]
"""Any command of an application; its type tells the type of the answer."""

Input: TypeAlias = (
    LinkUp
    | LinkDown
    | DialFailed
    | Probed
    | Received[Message]
    | Congested
    | Drained
    | NetworkIs
    | Heard
    | Met
    | NotMet
    | TimerFired[Timer]
    | Asked[AnyCommand]
)
Handed: TypeAlias = Item | PlaceItem | ContentItem | InGroups
"""The items that subscriptions of all kinds are handed."""

Promise: TypeAlias = Send[Message] | Dial | Deliver[Handed] | Reply[object] | Record
Effect: TypeAlias = (
    Send[Message]
    | Dial
    | Probe
    | Announce
    | Meet
    | HangUp
    | SetTimer[Timer]
    | CancelTimer[Timer]
    | Deliver[Handed]
    | Reply[object]
    | Record
    | AfterCommit[Promise]
)


class NodeMachine(Protocol):
    """What a driver runs: `linnet.peer.Peer`, or a small machine in a test."""

    @property
    def hello(self) -> Hello:
        """The first message on each link."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply one input; the caller performs the effects, in order."""
