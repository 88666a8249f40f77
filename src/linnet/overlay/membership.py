"""One topic at one node: the trackers it may turn to, the one it follows, and how it follows it."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.limits import NEIGHBORS
from linnet.machine.outbox import Outbox
from linnet.overlay.adjacency import Adjacency
from linnet.overlay.config import Control, MemberConfig
from linnet.overlay.edges import Edges
from linnet.overlay.follower import Follower
from linnet.overlay.member_counter import CounterFollower
from linnet.overlay.member_naive import NaiveFollower
from linnet.overlay.messages import Instruction, Join, NeighborStatus, TopicStatus
from linnet.overlay.notices import StorageKnown


class Wish(Struct, frozen=True, gc=False):
    """What a node wants in a topic."""

    topic: TopicId
    trackers: tuple[Contact, ...]
    """In order of preference."""
    degree: int
    near: bool
    storage: bool


class Membership:
    """The state of one topic at a node."""

    def __init__(
        self,
        wish: Wish,
        config: MemberConfig,
        links: Mapping[PeerId, None],
        out: Outbox,
        adjacency: Adjacency,
    ) -> None:
        self._out = out
        self.wish = wish
        self.topic = wish.topic
        self.chosen = 0
        """Which of the trackers is followed; 0 is the one that comes first."""
        self.is_instructed = False
        """Whether the tracker that is followed has answered."""
        self.is_refused = False
        """Whether the machine above was told that no tracker takes us."""
        self.is_storage_told = False
        self.storage_nodes: tuple[Contact, ...] = ()
        edges = Edges(wish.topic, links, out, adjacency)
        self.follower: Follower = (
            CounterFollower(wish.topic, config, edges, out)
            if config.control is Control.COUNTER
            else NaiveFollower(wish.topic, config, edges, out)
        )

    @property
    def tracker(self) -> Contact:
        """The tracker that is followed."""
        return self.wish.trackers[self.chosen]

    @property
    def first(self) -> Contact:
        """The tracker that comes first."""
        return self.wish.trackers[0]

    @property
    def neighbors(self) -> tuple[PeerId, ...]:
        """The neighbours that are up."""
        return self.follower.edges.neighbors

    def turn_to(self, chosen: int) -> None:
        """Follow this tracker from now on."""
        self.chosen = chosen
        self.is_instructed = False
        self.follower.reset()

    def join_message(self, listens: tuple[str, ...]) -> Join:
        """What to tell the tracker; the neighbours that stand, so that it keeps them."""
        wish = self.wish
        return Join(wish.topic, self.neighbors[:NEIGHBORS], listens, wish.degree, wish.storage, wish.near)

    def instruct(self, instruction: Instruction, now: float) -> None:
        """The tracker that is followed says who the neighbours and the storage nodes are."""
        self.is_instructed = True
        self.is_refused = False
        self.follower.instruct(instruction, now)
        # That there is none is news too, the first time.
        is_news = not self.is_storage_told or instruction.storage != self.storage_nodes
        if instruction.counter == self.follower.counter and is_news:
            self.is_storage_told = True
            self.storage_nodes = instruction.storage
            self._out.notify(StorageKnown(self.topic, self.storage_nodes))

    def status(self, rtts: Mapping[PeerId, float]) -> TopicStatus:
        """The neighbours as they stand."""
        neighbors = [
            NeighborStatus(peer, round(rtts[peer] * 1e6) if peer in rtts else None)
            for peer in self.neighbors[:NEIGHBORS]
        ]
        return TopicStatus(self.topic, tuple(neighbors))
