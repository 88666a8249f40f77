"""One topic at its tracker: the graph, the nodes with their latest instructions, and the failed links."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from random import Random

from msgspec import Struct

from linnet.core.fair_shares import FairShares, Origins
from linnet.core.ids import PeerId, TopicId
from linnet.core.limits import MEMBERS, STORAGE_NODES
from linnet.overlay.config import Control, TrackerConfig
from linnet.overlay.crowd import Crowd
from linnet.overlay.locality import NearLinks
from linnet.overlay.messages import Join, NeighborStatus
from linnet.overlay.regular_graph import RegularGraph

MOST_FAILED = 32
"""The most failed links that a node may have reported at a time: eight times the default degree."""


class Graph(Struct, frozen=True, gc=False):
    """A topic as its tracker sees it."""

    topic: TopicId
    degree: int
    near: bool
    edges: tuple[tuple[PeerId, tuple[PeerId, ...]], ...]
    """Every node with its neighbours."""
    rtts: tuple[tuple[PeerId, PeerId, float], ...]
    """Reporter, neighbour, seconds: the latest measurement of every link."""


class Place:
    """The state of a node in one topic."""

    __slots__ = ("counter", "payer", "rtts", "told_at", "told_storage")

    def __init__(self, payer: PeerId) -> None:
        self.payer = payer
        """The peer that asked for the place: the node itself, or who named it and answers for it."""
        self.counter = 0
        """The counter of the latest instruction; 0: there was none."""
        self.told_at = 0.0
        self.told_storage: tuple[PeerId, ...] = ()
        self.rtts: dict[PeerId, float] = {}


class TrackedTopic:
    """The state of one topic. Methods that change the graph return the nodes whose neighbours changed."""

    def __init__(
        self,
        topic: TopicId,
        first: Join,
        founder: PeerId,
        config: TrackerConfig,
        rng: Random,
        shares: FairShares,
        origins: Origins,
        now: float,
    ) -> None:
        """`shares` are those of all nodes in the places of all topics of the tracker."""
        self.topic = topic
        self.founder = founder
        """The node that counts as the one who asked for this topic: one that is here."""
        self._all_shares = shares
        self._named: dict[PeerId, dict[PeerId, None]] = {}
        """The nodes that have a place only since another named them, by who did."""
        self._own_shares: FairShares | None = None
        """The shares in this topic, once it was full."""
        self.is_near = first.near
        self.created_at = now
        self.places: dict[PeerId, Place] = {}
        self.storage: dict[PeerId, None] = {}
        self.awaited: dict[PeerId, float] = {}
        """Absent nodes, with the time until which their places are kept."""
        self.is_settling = False
        """Whether the tracker still learns existing links, and builds none."""
        self._was_settling = False
        self._config = config
        self._rng = rng
        # Insertion order is the order in which the exclusions end.
        self._failed: dict[tuple[PeerId, PeerId], tuple[float, PeerId]] = {}
        """Pairs whose link failed: until when they are not paired again, and who said so."""
        self._reported: dict[PeerId, dict[tuple[PeerId, PeerId], None]] = {}
        """The failed pairs by who said so."""
        self.graph: RegularGraph[PeerId] = RegularGraph(
            first.degree, rng, self._is_allowed, plain=config.control is Control.NAIVE
        )
        self.near_links = NearLinks(self.graph, rng)
        self._crowd = Crowd(origins)

    def describe_graph(self) -> Graph:
        """Describe the present graph of the topic."""
        return Graph(
            self.topic,
            self.graph.degree,
            self.is_near,
            tuple((peer, self.graph.neighbors(peer)) for peer in self.graph),
            tuple(
                (peer, other, rtt) for peer, place in self.places.items() for other, rtt in place.rtts.items()
            ),
        )

    def is_takeover(self, join: Join, now: float) -> bool:
        """Return whether this join begins a take-over: it is the first with neighbours, and little is built
        yet."""
        if self._was_settling or not join.neighbors or self._config.settle <= 0:
            return False
        return not self.graph.edges() or now - self.created_at < self._config.settle

    def begin_settling(self) -> None:
        """Begin to learn the existing links."""
        self.is_settling = self._was_settling = True

    def join_node(self, peer: PeerId, join: Join, dialable: bool, now: float) -> list[PeerId]:
        """Give a node a place, for the first time or again on a new link."""
        if peer not in self.places or peer in self.awaited:
            self._forgive(peer)
        self._take_place(peer, peer)
        self._crowd.add(peer)
        self.graph.prefers = self._are_apart if self._crowd.is_crowded else None
        self.awaited.pop(peer, None)
        if join.storage:
            self.storage[peer] = None
        else:
            self.storage.pop(peer, None)
        self.graph.add_node(peer, dialable)
        if self.is_settling:
            self.graph.pause_node(peer)
            self._await_named(peer, join.neighbors, now)
            return self.graph.adopt_edges(peer, join.neighbors)
        changed = dict.fromkeys(self.graph.adopt_edges(peer, join.neighbors))
        changed.update(dict.fromkeys(self.graph.join_node(peer, dialable)))
        return list(changed)

    def _forgive(self, peer: PeerId) -> None:
        """Let a node that joins, or joins again, be paired with every other: it may be another process."""
        for pair in [pair for pair in self._failed if peer in pair]:
            self._forget_pair(pair)

    def _await_named(self, peer: PeerId, neighbors: tuple[PeerId, ...], now: float) -> None:
        """Give neighbours that have not joined yet a place, so that the links to them stay."""
        for other in neighbors[: self.graph.degree]:
            if (
                other != peer
                and other not in self.graph
                and not self.is_full
                and not self._all_shares.is_full()
            ):
                self._take_place(other, peer)
                self.graph.add_node(other)
                self.keep_place(other, now + self._config.expected)

    def end_settling(self) -> list[PeerId]:
        """Let the present nodes get new neighbours; return those to instruct."""
        self.is_settling = False
        here = [peer for peer in self.places if peer not in self.awaited]
        for peer in here:
            self.graph.resume_node(peer)
        self.graph.fill_free_slots()
        return here

    def keep_place(self, peer: PeerId, until: float) -> None:
        """Keep the place of an absent node for a while."""
        self.awaited[peer] = until
        self.graph.pause_node(peer)

    @property
    def is_full(self) -> bool:
        """Whether no more nodes may be in this topic."""
        return len(self.places) >= self._config.max_nodes

    def find_greedier(self, peer: PeerId, origins: Origins) -> PeerId | None:
        """Return who has to leave this full topic so that a peer can join; None: nobody."""
        if self._own_shares is None:
            self._own_shares = FairShares(self._config.max_nodes, origins)
            for place in self.places.values():
                self._own_shares.add(place.payer)
        return self._own_shares.find_greedier(peer)

    def named_by(self, peer: PeerId) -> list[PeerId]:
        """Return the nodes that have a place only since this one named them."""
        return list(self._named.get(peer, ()))

    def _take_place(self, peer: PeerId, payer: PeerId) -> None:
        place = self.places.get(peer)
        if place is None:
            self.places[peer] = Place(payer)
        elif place.payer != payer:
            self._give_up_claim(peer, place.payer)
            place.payer = payer
        else:
            return
        self._count(payer, 1)
        if payer != peer:
            self._named.setdefault(payer, {})[peer] = None

    def _give_up_claim(self, peer: PeerId, payer: PeerId) -> None:
        """Let a place no longer count as taken by this peer."""
        self._count(payer, -1)
        named = self._named.get(payer)
        if named is not None and named.pop(peer, self) is not self and not named:
            del self._named[payer]

    def _count(self, payer: PeerId, amount: int) -> None:
        for shares in (self._all_shares, self._own_shares):
            if shares is not None:
                shares.add(payer) if amount > 0 else shares.remove(payer)

    def remove_node(self, peer: PeerId) -> list[PeerId]:
        """Remove a node that has left for good."""
        self._give_up_claim(peer, self.places.pop(peer).payer)
        self.awaited.pop(peer, None)
        self.storage.pop(peer, None)
        self._crowd.discard(peer)
        return self.graph.remove_node(peer)

    def note_failed_links(self, peer: PeerId, missing: Iterable[PeerId], now: float) -> list[PeerId]:
        """Replace the links of a node to neighbours that it could not reach, or lost; not too many of them.

        Who reports ever more failures chooses its neighbours, and keeps the tracker busy.
        """
        changed: dict[PeerId, None] = {}
        for other in missing:
            if self.reports_too_much(peer):
                break
            pair = _pair(peer, other)
            self._forget_pair(pair)
            self._reported.setdefault(peer, {})[pair] = None
            self._failed[pair] = now + self._config.failed_pair_memory, peer
            changed.update(dict.fromkeys(self.graph.cut_edge(peer, other)))
        return list(changed)

    def reports_too_much(self, peer: PeerId) -> bool:
        """Return whether a node has reported so many failed links that no more of them count for now."""
        return len(self._reported.get(peer, ())) >= MOST_FAILED

    def _forget_pair(self, pair: tuple[PeerId, PeerId]) -> None:
        """Let a pair be paired again, if its link had failed."""
        failure = self._failed.pop(pair, None)
        if failure is None:
            return
        reporter = failure[1]
        reported = self._reported.get(reporter)
        if reported is not None:
            reported.pop(pair, None)
            if not reported:
                del self._reported[reporter]

    def forget_failures(self, now: float) -> list[PeerId]:
        """Let pairs whose link failed long ago be paired again."""
        for pair, (until, _) in list(self._failed.items()):
            if until > now:
                break
            self._forget_pair(pair)
        return [] if self.is_settling else self.graph.fill_free_slots()

    def next_forgetting_at(self) -> float | None:
        """Return when the oldest exclusion ends."""
        return next((until for until, _ in self._failed.values()), None)

    def note_rtts(self, peer: PeerId, statuses: Iterable[NeighborStatus]) -> list[tuple[PeerId, float]]:
        """Keep the round-trip times that a node reports; return those to nodes of this topic."""
        place = self.places[peer]
        known = [
            (status.peer, status.rtt_us / 1e6)
            for status in statuses
            if status.rtt_us is not None and status.peer in self.places
        ]
        place.rtts = dict(known)
        return known

    def storage_for(self, peer: PeerId) -> tuple[PeerId, ...]:
        """Choose the storage nodes to name to a node: those named before if still here, then random ones."""
        if not self.storage:
            return ()
        kept = [other for other in self.places[peer].told_storage if other in self.storage]
        others = [other for other in self.storage if other != peer and other not in kept]
        return tuple(kept + self._rng.sample(others, min(STORAGE_NODES - len(kept), len(others))))

    def find_misinformed(self) -> list[PeerId]:
        """Return the nodes that were told of a storage node that has left, or of fewer than there are."""
        found: list[PeerId] = []
        for peer, place in self.places.items():
            others = len(self.storage) - (peer in self.storage)
            told = [other for other in place.told_storage if other in self.storage]
            if len(told) < min(others, STORAGE_NODES) or len(told) < len(place.told_storage):
                found.append(peer)
        return found

    def sample_members(self, peer: PeerId, is_dialable: Callable[[PeerId], bool]) -> list[PeerId]:
        """Draw members that are here and not neighbours of this one, spread over networks and ages."""
        near = (peer, *self.graph.neighbors(peer))

        def suits(other: PeerId) -> bool:
            return other not in near and other not in self.awaited and is_dialable(other)

        return self._crowd.draw_sample(MEMBERS, self._rng, suits)

    def _are_apart(self, a: PeerId, b: PeerId, lost: PeerId | None) -> bool:
        """Return whether no network but its own has two neighbours of a node, if these become neighbours.

        `lost` is the neighbour that b loses for it.
        """
        network_of = self._crowd.network_of
        of_a, of_b = network_of(a), network_of(b)
        return of_a == of_b or (
            all(network_of(other) != of_b for other in self.graph.neighbors(a))
            and all(network_of(other) != of_a for other in self.graph.neighbors(b) if other != lost)
        )

    def _is_allowed(self, a: PeerId, b: PeerId) -> bool:
        return not self._failed or _pair(a, b) not in self._failed


def _pair(a: PeerId, b: PeerId) -> tuple[PeerId, PeerId]:
    return (a, b) if a < b else (b, a)
