"""Events over one large ring after gossip has finished: the shipped rule, hop by hop.

There is no network and no time: every member knows its true neighbours and some random members. The bench
counts which members get an event over how many hops, and how many copies are sent. Failed members are gone at
once, and the others know: as right after a failure, before any repair.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from msgspec import Struct

from linnet.core.ids import PeerId, TopicId
from linnet.overlay.gossip.config import TrackerlessConfig
from linnet.overlay.gossip.dissemination import choose_targets
from linnet.overlay.gossip.messages import Descriptor, RingMember
from linnet.overlay.gossip.ring import Ring
from linnet.overlay.gossip.topic_tags import topic_keys
from linnet.sim.seeded_random import named_luck

_TOPIC = TopicId(bytes(32))


class RingPlan(Struct, frozen=True, kw_only=True):
    """A ring, its failures and its events."""

    nodes: int
    fanout: int = 3
    spares: int = 2
    shortcuts: int = 2
    failed: float = 0.0
    """Share of members that have failed."""
    events: int = 5
    seed: int = 1


class RingFigures(Struct, frozen=True):
    """The figures of all events together, in whole numbers."""

    expected: int
    """Pairs of an event and a running member other than its publisher."""
    reached: int
    hops: int
    """Hops of all first receipts, added up."""
    max_hops: int
    copies: int

    @property
    def hit_ratio(self) -> float:
        """The share of expected pairs that were reached."""
        return self.reached / self.expected if self.expected else 1.0

    @property
    def mean_hops(self) -> float:
        """The mean hops of first receipts."""
        return self.hops / self.reached if self.reached else 0.0

    @property
    def copies_each(self) -> float:
        """The copies sent for each member reached."""
        return self.copies / self.reached if self.reached else 0.0


class LargeRing:
    """All members of a topic, each with its ring."""

    def __init__(self, plan: RingPlan) -> None:
        self._plan = plan
        self._luck = luck = named_luck(plan.seed, f"ring/{plan.nodes}/{plan.fanout}/{plan.failed}")
        self._peers = sorted(PeerId(luck.randbytes(32)) for _ in range(plan.nodes))
        config = TrackerlessConfig(fanout=plan.fanout, spares=plan.spares, shortcuts=plan.shortcuts)
        keys = topic_keys(_TOPIC, None)
        members = [_member(peer) for peer in self._peers]
        self._rings: list[Ring] = []
        self._near: list[dict[PeerId, None]] = [{} for _ in self._peers]
        self._place = {peer: place for place, peer in enumerate(self._peers)}
        for place, peer in enumerate(self._peers):
            ring = Ring(peer, keys, config, 0, _rank)
            for other in self._chosen(place):
                ring.merge_members((members[other],), met=self._peers[other])
                self._near[place][self._peers[other]] = None
                self._near[other][peer] = None
            self._rings.append(ring)
        dead = luck.sample(range(plan.nodes), round(plan.failed * plan.nodes))
        self._alive = [True] * plan.nodes
        for place in dead:
            self._alive[place] = False
        self._up = [tuple(peer for peer in near if self._alive[self._place[peer]]) for near in self._near]
        self._silent: dict[int, None] = {}

    def silence(self, places: Iterable[int]) -> None:
        """Let the members at these places, counted around the ring, pass nothing on from now on."""
        self._silent.update(dict.fromkeys(place % len(self._peers) for place in places))

    def reached(self, publisher: int) -> dict[int, int]:
        """Publish one event; return the places that it reaches, with the hops."""
        return self._reached(publisher)[0]

    def run(self) -> RingFigures:
        """Publish all events, each from another publisher."""
        alive = [place for place, is_alive in enumerate(self._alive) if is_alive]
        found = [self._spread(self._luck.choice(alive)) for _ in range(self._plan.events)]
        return RingFigures(
            expected=self._plan.events * (len(alive) - 1),
            reached=sum(each.reached for each in found),
            hops=sum(each.hops for each in found),
            max_hops=max(each.max_hops for each in found),
            copies=sum(each.copies for each in found),
        )

    def _chosen(self, place: int) -> list[int]:
        """Choose the links of a member: the nearest on both sides, and some at random."""
        count, plan = len(self._peers), self._plan
        near = [(place + step) % count for side in (1, -1) for step in _steps(side, plan.spares)]
        far = [self._luck.randrange(count) for _ in range(plan.shortcuts)]
        return [other for other in dict.fromkeys((*near, *far)) if other != place]

    def _spread(self, publisher: int) -> RingFigures:
        hops_of, copies = self._reached(publisher)
        return RingFigures(0, len(hops_of) - 1, sum(hops_of.values()), max(hops_of.values()), copies)

    def _reached(self, publisher: int) -> tuple[dict[int, int], int]:
        hops_of = {publisher: 0}
        queue: deque[tuple[int, PeerId | None]] = deque([(publisher, None)])
        copies = 0
        while queue:
            place, source = queue.popleft()
            if place in self._silent and source is not None:
                continue
            sources = () if source is None else (source,)
            for peer in self._targets(place, sources):
                copies += 1
                other = self._place[peer]
                if other not in hops_of:
                    hops_of[other] = hops_of[place] + 1
                    queue.append((other, self._peers[place]))
        return hops_of, copies

    def _targets(self, place: int, sources: tuple[PeerId, ...]) -> tuple[PeerId, ...]:
        return choose_targets(self._rings[place], sources, self._up[place], self._plan.fanout, self._luck)


def spread_over_ring(plan: RingPlan) -> RingFigures:
    """Build a ring and send events over it."""
    return LargeRing(plan).run()


def _steps(side: int, spares: int) -> list[int]:
    return [side * step for step in range(1, spares + 1)]


def _rank(peer: PeerId) -> int:
    return int.from_bytes(peer[:8], "big")


def _member(peer: PeerId) -> RingMember:
    return RingMember(Descriptor(peer, 1, 0, b"", 0, 1, (), 0, bytes(64)), 0, bytes(16))
