"""One topic at its tracker: the graph, who is there, what each was told, what failed."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from msgspec import Struct

from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import STORAGE_NODES
from linnet.overlay.config import Control, TrackerConfig
from linnet.overlay.messages import Join, NeighborStatus
from linnet.overlay.near import NearLinks
from linnet.overlay.topology import Topology


class Graph(Struct, frozen=True, gc=False):
    """A topic as its tracker sees it."""

    topic: TopicId
    degree: int
    near: bool
    edges: tuple[tuple[PeerId, tuple[PeerId, ...]], ...]
    """Every node with its neighbours."""
    rtts: tuple[tuple[PeerId, PeerId, float], ...]
    """Reporter, neighbour, seconds: the latest of every link that was measured."""


class Place:
    """What the tracker knows of a node in one topic."""

    __slots__ = ("counter", "rtts", "told_at", "told_storage")

    def __init__(self) -> None:
        self.counter = 0
        """Of the latest instruction; 0: there was none."""
        self.told_at = 0.0
        self.told_storage: tuple[PeerId, ...] = ()
        self.rtts: dict[PeerId, float] = {}


class Tracked:
    """The state of one topic. Methods that change the graph return who has other neighbours now."""

    def __init__(self, topic: TopicId, first: Join, config: TrackerConfig, rng: Random, now: float) -> None:
        self.topic = topic
        self.near = first.near
        self.created_at = now
        self.places: dict[PeerId, Place] = {}
        self.storage: dict[PeerId, None] = {}
        self.awaited: dict[PeerId, float] = {}
        """Nodes that are not here, with the time until which their places are kept."""
        self.settling_until: float | None = None
        self._settled = False
        self._config = config
        self._rng = rng
        # Insertion order is the order in which the exclusions end.
        self._failed: dict[tuple[PeerId, PeerId], float] = {}
        self.topology: Topology[PeerId] = Topology(
            first.degree, rng, self._is_allowed, plain=config.control is Control.NAIVE
        )
        self.near_links = NearLinks(self.topology, rng)

    @property
    def settling(self) -> bool:
        """Whether the tracker still learns what stands, and builds nothing."""
        return self.settling_until is not None

    def graph(self) -> Graph:
        """The topic as it stands."""
        return Graph(
            self.topic,
            self.topology.degree,
            self.near,
            tuple((peer, self.topology.neighbors(peer)) for peer in self.topology),
            tuple(
                (peer, other, rtt) for peer, place in self.places.items() for other, rtt in place.rtts.items()
            ),
        )

    def must_settle(self, join: Join, now: float) -> bool:
        """Whether this join begins a take-over: it is the first with neighbours, and little is built yet."""
        if self._settled or not join.neighbors or self._config.settle <= 0:
            return False
        return not self.topology.edges() or now - self.created_at < self._config.settle

    def settle(self, until: float) -> None:
        """Begin to learn what stands."""
        self._settled = True
        self.settling_until = until

    def join(self, peer: PeerId, join: Join, dialable: bool, now: float) -> list[PeerId]:
        """A node is here, for the first time or again on a new link."""
        if peer not in self.places or peer in self.awaited:
            self._forgive(peer)
        self.places.setdefault(peer, Place())
        self.awaited.pop(peer, None)
        if join.storage:
            self.storage[peer] = None
        else:
            self.storage.pop(peer, None)
        self.topology.add(peer, dialable)
        if self.settling:
            self.topology.pause(peer)
            self._await_named(peer, join.neighbors, now)
            return self.topology.adopt(peer, join.neighbors)
        changed = dict.fromkeys(self.topology.adopt(peer, join.neighbors))
        changed.update(dict.fromkeys(self.topology.join(peer, dialable)))
        return list(changed)

    def _forgive(self, peer: PeerId) -> None:
        """A node that comes or comes back may be chosen for everyone: it may be another process."""
        for pair in [pair for pair in self._failed if peer in pair]:
            del self._failed[pair]

    def _await_named(self, peer: PeerId, neighbors: tuple[PeerId, ...], now: float) -> None:
        """Give neighbours that have not come yet a place, so that the links to them stand."""
        for other in neighbors[: self.topology.degree]:
            if other != peer and other not in self.topology and len(self.places) < self._config.max_nodes:
                self.places[other] = Place()
                self.topology.add(other)
                self.lose(other, now + self._config.expected)

    def build(self) -> list[PeerId]:
        """What stands is known: nodes that are here may get new neighbours. Returns those to instruct."""
        self.settling_until = None
        here = [peer for peer in self.places if peer not in self.awaited]
        for peer in here:
            self.topology.resume(peer)
        self.topology.repair()
        return here

    def lose(self, peer: PeerId, until: float) -> None:
        """Keep the place of a node that is not here, for a while."""
        self.awaited[peer] = until
        self.topology.pause(peer)

    def leave(self, peer: PeerId) -> list[PeerId]:
        """A node has gone for good."""
        del self.places[peer]
        self.awaited.pop(peer, None)
        self.storage.pop(peer, None)
        return self.topology.leave(peer)

    def fail(self, peer: PeerId, missing: Iterable[PeerId], now: float) -> list[PeerId]:
        """A node could not link to some of its neighbours, or lost them: they find others."""
        changed: dict[PeerId, None] = {}
        for other in missing:
            pair = _pair(peer, other)
            self._failed.pop(pair, None)
            self._failed[pair] = now + self._config.failed_pair_memory
            changed.update(dict.fromkeys(self.topology.sever(peer, other)))
        return list(changed)

    def forget_failures(self, now: float) -> list[PeerId]:
        """Let pairs whose link failed long ago be chosen again."""
        for pair, until in list(self._failed.items()):
            if until > now:
                break
            del self._failed[pair]
        return [] if self.settling else self.topology.repair()

    def next_forgetting(self) -> float | None:
        """When the oldest exclusion ends."""
        return next(iter(self._failed.values()), None)

    def note_rtts(self, peer: PeerId, statuses: Iterable[NeighborStatus]) -> list[tuple[PeerId, float]]:
        """Keep the round-trip times that a node reports; returns those of nodes that are here too."""
        place = self.places[peer]
        known = [
            (status.peer, status.rtt_us / 1e6)
            for status in statuses
            if status.rtt_us is not None and status.peer in self.places
        ]
        place.rtts = dict(known)
        return known

    def storage_for(self, peer: PeerId) -> tuple[PeerId, ...]:
        """Storage nodes to name to a node: those named before that are still here, then random ones."""
        if not self.storage:
            return ()
        kept = [other for other in self.places[peer].told_storage if other in self.storage]
        others = [other for other in self.storage if other != peer and other not in kept]
        return tuple(kept + self._rng.sample(others, min(STORAGE_NODES - len(kept), len(others))))

    def with_old_storage(self) -> list[PeerId]:
        """Nodes that know of a storage node that has gone, or of fewer than there are."""
        found: list[PeerId] = []
        for peer, place in self.places.items():
            others = len(self.storage) - (peer in self.storage)
            told = [other for other in place.told_storage if other in self.storage]
            if len(told) < min(others, STORAGE_NODES) or len(told) < len(place.told_storage):
                found.append(peer)
        return found

    def _is_allowed(self, a: PeerId, b: PeerId) -> bool:
        return not self._failed or _pair(a, b) not in self._failed


def _pair(a: PeerId, b: PeerId) -> tuple[PeerId, PeerId]:
    return (a, b) if a < b else (b, a)
