"""The messages between nodes and trackers: joining, instructions, statuses (tags 10 to 29).

Samples of members have the tags 181 and 182.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta, Struct

from linnet.core.ids import Contact, Count, Hints, WirePeerId, WireTopicId
from linnet.core.limits import MEMBERS, NEIGHBORS, STORAGE_NODES
from linnet.core.messages import Message
from linnet.core.reasons import Reason

Neighbors = Annotated[tuple[WirePeerId, ...], Meta(max_length=NEIGHBORS)]
STATUS_TOPICS = 1024
"""Topics in one status of the naive protocol; a node that joined more sends several."""

Degree = Annotated[int, Meta(ge=2, le=NEIGHBORS)]


class NeighborStatus(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A neighbour that is connected, with the round-trip time of its link if it was measured."""

    peer: WirePeerId
    rtt_us: Count | None


class TopicStatus(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """The neighbours of a node in one topic."""

    topic: WireTopicId
    neighbors: Annotated[tuple[NeighborStatus, ...], Meta(max_length=NEIGHBORS)]


class Join(Message, frozen=True, tag=10):
    """Node to tracker: asks for neighbours in a topic."""

    topic: WireTopicId
    neighbors: Neighbors
    """The present neighbours: a standby that takes over adopts them instead of building anew."""
    listens: Hints
    """The addresses at which the node may be dialled; empty if it knows that it cannot be."""
    degree: Degree
    """The degree that the stream's owner set, or the default."""
    storage: bool
    """Whether the node keeps the topic's events and answers requests for them."""
    near: bool
    """Whether the topic's overlay is topology-aware: half of the links near, half random."""


class Leave(Message, frozen=True, tag=11):
    """Node to tracker: the node has left a topic, or has moved to another tracker with it."""

    topic: WireTopicId
    moved: bool
    """Whether the node has moved to another tracker: its links stay, so nothing needs repair."""


class Instruction(Message, frozen=True, tag=12):
    """Tracker to node: the complete list of its neighbours in a topic."""

    topic: WireTopicId
    counter: Count
    """Grows with each instruction to this node in this topic; a status echoes it."""
    neighbors: Annotated[tuple[Contact, ...], Meta(max_length=NEIGHBORS)]
    storage: Annotated[tuple[Contact, ...], Meta(max_length=STORAGE_NODES)]
    """Nodes that keep the topic's events."""


class Status(Message, frozen=True, tag=13):
    """Node to tracker, counter protocol: the outcome of the instruction with this counter."""

    counter: Count
    status: TopicStatus


class StatusAll(Message, frozen=True, tag=14):
    """Node to tracker, naive protocol: the state of every topic of this node."""

    topics: Annotated[tuple[TopicStatus, ...], Meta(max_length=STATUS_TOPICS)]


class Refusal(Message, frozen=True, tag=15):
    """Tracker to node: the reason why it does not serve the node in a topic."""

    topic: WireTopicId
    reason: Reason


class EdgeOpen(Message, frozen=True, tag=16):
    """Node to node: the sender counts the receiver as a neighbour in a topic."""

    topic: WireTopicId


class EdgeClose(Message, frozen=True, tag=17):
    """Node to node: the sender counts the receiver as a neighbour in a topic no longer."""

    topic: WireTopicId


class Reachability(Message, frozen=True, tag=18):
    """Tracker to node: the outcome of dialling the node at the addresses that it gave."""

    reason: Reason | None
    """None if the node could be reached."""


class AskMembers(Message, frozen=True, tag=181):
    """Node to tracker: asks for some members of a topic that are not neighbours of the node."""

    topic: WireTopicId

    @property
    def cost(self) -> int:
        """See `Message.cost`. The answer is longer than the question."""
        return 2


class Members(Message, frozen=True, tag=182):
    """Tracker to node: some members of a topic, drawn at random over networks and ages."""

    topic: WireTopicId
    contacts: Annotated[tuple[Contact, ...], Meta(max_length=MEMBERS)]


SampleMessage: TypeAlias = AskMembers | Members
"""The messages about members beside the neighbours."""
TrackerMessage: TypeAlias = Join | Leave | Status | StatusAll
"""The messages that a tracker receives."""
MemberMessage: TypeAlias = Instruction | Refusal | EdgeOpen | EdgeClose | Reachability
"""The messages that a node receives from its trackers and neighbours."""
OverlayMessage: TypeAlias = TrackerMessage | MemberMessage
