"""The closed unions of the node machine: all that can happen to it, all that it can ask.

A driver handles every member of `Effect`; mypy tells it which one it forgot.
"""

from __future__ import annotations

from typing import Protocol, TypeAlias

from msgspec import Struct

from linnet.content.commands import ContentCommand, ContentItem, ContentResult, InGroups
from linnet.content.fast.commands import FastCommand, FastResult
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
from linnet.delivery.commands import Declined, Done
from linnet.delivery.items import Item
from linnet.edge.commands import LanCommand, LanStatus
from linnet.edge.proxy_commands import EdgeStatus, ProxyCommand
from linnet.names.commands import NamesCommand, NamesResult
from linnet.overlay.tracked import Graph
from linnet.overlay.trackerless.commands import TrackerlessCommand, TrackerlessResult
from linnet.peer.whereabouts import Company
from linnet.places.commands import PlaceCommand, PlaceResult
from linnet.places.items import PlaceItem
from linnet.rooms.commands import RoomCommand
from linnet.rooms.results import RoomResult, RoomStatus
from linnet.streams.commands import StreamCommand, StreamResult, StreamStatus
from linnet.trace.records import Record


class Start(Struct, frozen=True, gc=False):
    """Begin: link to trackers, join what is to be stored. Answered by `Done`."""


class Stop(Struct, frozen=True, gc=False):
    """Leave every topic and close every link in good order. Answered by `Done`."""


class Connect(Struct, frozen=True, gc=False):
    """Keep a link to this peer until `Disconnect`. Answered by `Done`."""

    contact: Contact


class Disconnect(Struct, frozen=True, gc=False):
    """Let go of a link that was asked for. Answered by `Done`."""

    peer: PeerId


class Block(Struct, frozen=True, gc=False):
    """Have nothing to do with this device any more, or again. Answered by `Done`."""

    peer: PeerId
    blocked: bool


class Examine(Struct, frozen=True, gc=False):
    """Tell how things stand. Answered by `NodeStatus`."""


class PeerStatus(Struct, frozen=True, gc=False):
    """One link, open or wanted."""

    peer: PeerId
    up: bool
    dialed: bool
    needed: tuple[str, ...]
    """Purposes for which we hold it."""
    wanted: bool
    """Whether the other end needs it."""
    rtt: float | None
    since: float | None
    agent: str
    roles: tuple[str, ...]
    last_failure: Reason | None
    failing_since: float | None = None
    """Since when it does not answer; None: it does, or was not dialled."""


class Unanswered(Struct, frozen=True, gc=False):
    """A peer that does not answer and that no part wants at the moment: it is tried again now and then."""

    peer: PeerId
    since: float
    reason: Reason | None


class HashTableStatus(Struct, frozen=True, gc=False):
    """This node's part in the hash table over the network."""

    known: int
    """Nodes in its table."""
    kept: int
    """Records that it keeps for others."""
    placed: int
    """Records of its own that it has others keep."""


class ContentStatus(Struct, frozen=True, gc=False):
    """This node's part in content."""

    subscriptions: int
    filters: int
    rendezvous: tuple[str, ...]
    """Attributes of which it is the rendezvous, as far as it knows."""
    arrivals: int
    """Events that came to it as that."""


class NodeStatus(Struct, frozen=True, gc=False):
    """How things stand at this node."""

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
    """Seconds by which the clocks of linked peers are ahead of ours, as far as they said the time."""
    company: tuple[Company, ...] = ()
    """Of each room, place and stream, who takes part as far as is known here."""
    unanswered: tuple[Unanswered, ...] = ()
    """Who was dialled in vain and is not among `peers`."""


Command: TypeAlias = (
    StreamCommand
    | RoomCommand
    | LanCommand
    | ProxyCommand
    | TrackerlessCommand
    | PlaceCommand
    | NamesCommand
    | ContentCommand
    | FastCommand
    | Start
    | Stop
    | Connect
    | Disconnect
    | Block
    | Examine
)
Result: TypeAlias = (
    StreamResult
    | RoomResult
    | LanStatus
    | EdgeStatus
    | TrackerlessResult
    | PlaceResult
    | NamesResult
    | ContentResult
    | FastResult
    | NodeStatus
    | Done
    | Declined
)

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
    | Asked[Command]
)
Handed: TypeAlias = Item | PlaceItem | ContentItem | InGroups
"""What subscriptions of all sorts are handed."""

Promise: TypeAlias = Send[Message] | Dial | Deliver[Handed] | Reply[Result] | Record
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
    | Reply[Result]
    | Record
    | AfterCommit[Promise]
)


class NodeMachine(Protocol):
    """What a driver drives: `linnet.peer.Peer`, or a small machine of a test."""

    @property
    def hello(self) -> Hello:
        """What to say first on each link."""

    def handle(self, event: Input, now: float) -> list[Effect]:
        """Apply one input; the caller performs the effects, in order."""
