"""Watching a simulated overlay: who was handed what and when, and in which order."""

from __future__ import annotations

from collections.abc import Iterable

from linnet.core.ids import EventId, PeerId, TopicId
from linnet.event.event import Event
from linnet.overlay.notices import NeighborUp
from linnet.sim.gossip_topic import references

WINDOW = 10.0
"""Seconds within which an event is to have come by being passed on."""


class Published:
    """One event, and who is to have it."""

    __slots__ = ("at", "event", "expected", "hits", "publisher", "topic")

    def __init__(
        self, event: Event, topic: int, publisher: PeerId, at: float, expected: Iterable[PeerId]
    ) -> None:
        self.event = event
        self.topic = topic
        self.publisher = publisher
        self.at = at
        self.expected = dict.fromkeys(expected)
        """Honest subscribers that were there when it was published."""
        self.hits = 0


class OverlayMeter:
    """All that is counted while a simulation runs."""

    def __init__(self, honest: Iterable[PeerId]) -> None:
        self._honest = dict.fromkeys(honest)
        self.published: dict[EventId, Published] = {}
        self.had: dict[PeerId, dict[EventId, None]] = {peer: {} for peer in self._honest}
        self.causal_violations = 0
        self.repeated = 0
        self.handed_over = 0
        """To honest nodes other than the publisher."""
        self.passed_on = 0
        """Of these, those that came by being passed on."""
        self.hops = 0
        self.max_hops = 0
        self.delay = 0.0
        self.first_up: dict[tuple[PeerId, TopicId], float] = {}
        """When a node first had a neighbour in a topic."""

    def publish(self, published: Published) -> None:
        """Something is being published."""
        self.published[published.event.id] = published
        if published.publisher in self.had:
            self.had[published.publisher][published.event.id] = None

    def handed(self, peer: PeerId, event: Event, hops: int, now: float) -> None:
        """An application was handed an event."""
        had = self.had.get(peer)
        known = self.published.get(event.id)
        if had is None or known is None:
            return  # A liar's; or the publisher's own, which is entered by `publish`.
        if event.id in had:
            self.repeated += 1
            return
        if any(ref not in had for ref in references(event)):
            self.causal_violations += 1
        had[event.id] = None
        self.handed_over += 1
        if hops:
            self.passed_on += 1
            self.hops += hops
            self.max_hops = max(self.max_hops, hops)
            self.delay += now - known.at
            if now - known.at <= WINDOW and peer in known.expected:
                known.hits += 1

    def noticed(self, peer: PeerId, effect: object, now: float) -> None:
        """A notice of an overlay."""
        if isinstance(effect, NeighborUp):
            self.first_up.setdefault((peer, effect.topic), now)

    @property
    def hit_ratio(self) -> float:
        """Of those that were there, within the window, by passing on alone."""
        expected = sum(len(each.expected) for each in self.published.values())
        return sum(each.hits for each in self.published.values()) / expected if expected else 1.0

    def repaired(self, members: Iterable[Iterable[PeerId]]) -> float:
        """Of all honest members of each topic, those who have all by now, event by event."""
        by_topic = [list(each) for each in members]
        pairs = have = 0
        for event, each in self.published.items():
            honest = [peer for peer in by_topic[each.topic] if peer in self.had]
            pairs += len(honest)
            have += sum(event in self.had[peer] for peer in honest)
        return have / pairs if pairs else 1.0
