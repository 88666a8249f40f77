"""Which overlay a topic has, a tracker's graph or a ring without trackers, and how it changes over.

A topic that changes its overlay is in both for a while: it leaves the old one only when the new one has
given it neighbours and others had the time to change too, so nothing is lost on the way. Whoever is a
neighbour in both is announced once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Protocol, TypeAlias

from linnet.core.effects import Blame, CancelTimer, Hold, Release, Send, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.inputs import DialFailed, LinkDown, LinkUp, Received, TimerFired
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.overlay.config import Overlay
from linnet.overlay.effects import MemberEffect
from linnet.overlay.member import Member
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, OverlayNotice
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.trace.records import Record

OWNER = "overlays"
TRACKERLESS = "trackerless"
OVERLAP = 600.0
"""Seconds that a topic stays in its old overlay once the new one has given it neighbours."""
_LOOK = 5.0

TrackerlessEffect: TypeAlias = (
    Send[TrackerlessMessage]
    | Hold
    | Release
    | Blame
    | SetTimer[Tick]
    | CancelTimer[Tick]
    | Record
    | OverlayNotice
)
TrackerlessInput: TypeAlias = LinkUp | LinkDown | DialFailed | Received[TrackerlessMessage] | TimerFired[Tick]
OverlaysEffect: TypeAlias = MemberEffect | TrackerlessEffect
Routing: TypeAlias = Callable[[tuple[PeerId, ...], Sequence[PeerId]], Sequence[PeerId]]
"""To whom an event is passed on, of those who are up; these had it before us, or nobody."""


class WithoutTrackers(Protocol):
    """What this needs of `linnet.overlay.trackerless.trackerless`."""

    def start(self, bootstrap: Iterable[Contact], now: float) -> list[TrackerlessEffect]:
        """The node is up."""

    def join(
        self, topic: TopicId, keeps: bool, now: float, contacts: Iterable[Contact] = ()
    ) -> list[TrackerlessEffect]:
        """Want neighbours in a topic."""

    def leave(self, topic: TopicId, now: float) -> list[TrackerlessEffect]:
        """Want none any more."""

    def stop(self, now: float) -> None:
        """The node goes down."""

    def handle(self, event: TrackerlessInput, now: float) -> list[TrackerlessEffect]:
        """Apply one input."""

    def targets(self, topic: TopicId, sources: Collection[PeerId], up: Sequence[PeerId]) -> Sequence[PeerId]:
        """To whom an event is passed on."""

    def local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> list[TrackerlessEffect]:
        """A device is on a local network with us, on which these topics may be known."""

    def not_local(self, peer: PeerId) -> None:
        """A device is on no local network with us any more."""


class _Topic:
    """What overlay a topic has, and which it is about to leave."""

    __slots__ = ("leaving", "met_at", "overlay")

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self.leaving: Overlay | None = None
        self.met_at: float | None = None
        """When the new overlay first had neighbours; None: not yet."""


class Overlays:
    """All topics of a node, whichever overlay each has."""

    def __init__(
        self, member: Member, trackerless: WithoutTrackers | None = None, overlap: float = OVERLAP
    ) -> None:
        self.member = member
        self._overlap = overlap
        self.trackerless = trackerless
        self._topics: dict[TopicId, _Topic] = {}
        self._sources: dict[tuple[TopicId, PeerId], dict[Overlay, None]] = {}
        """Through which overlays a peer is a neighbour in a topic."""

    def tracker(self, topic: TopicId) -> PeerId | None:
        """The tracker that is followed in a topic."""
        return self.member.tracker(topic)

    def is_unreachable(self, topic: TopicId) -> bool:
        """Whether nobody can dial us, and the tracker of a topic has nobody for us to dial."""
        return self.overlay(topic) is Overlay.TRACKER and self.member.is_unreachable(topic)

    def overlay(self, topic: TopicId) -> Overlay | None:
        """The overlay of a topic, if it is joined."""
        known = self._topics.get(topic)
        return None if known is None else known.overlay

    def routing(self, topic: TopicId) -> Routing | None:
        """To whom events of a topic are passed on; None: to all neighbours, as in a tracker's graph."""
        if self.overlay(topic) is not Overlay.RING:
            return None
        return lambda sources, up: self._targets(topic, sources, up)

    def _targets(self, topic: TopicId, sources: tuple[PeerId, ...], up: Sequence[PeerId]) -> Sequence[PeerId]:
        known = self._topics.get(topic)
        if known is None or known.leaving is not None or self.trackerless is None:
            return [peer for peer in up if peer not in sources]
        return self.trackerless.targets(topic, sources, up)

    def join(
        self,
        topic: TopicId,
        overlay: Overlay,
        trackers: tuple[Contact, ...],
        degree: int,
        near: bool,
        storage: bool,
        now: float,
        contacts: Iterable[Contact] = (),
    ) -> list[OverlaysEffect]:
        """Want neighbours in a topic, or other ones than before."""
        if overlay is Overlay.RING and self.trackerless is None:
            return [JoinRefused(topic, Reason.UNSUPPORTED)]
        known = self._topics.get(topic)
        effects: list[OverlaysEffect] = []
        if known is None:
            self._topics[topic] = _Topic(overlay)
        elif known.overlay is not overlay:
            known.leaving, known.overlay = known.overlay, overlay
            known.met_at = now if self._has_neighbors(topic, overlay) else None
            effects.append(SetTimer(_LOOK, _tick(topic)))
        if overlay is Overlay.RING and self.trackerless is not None:
            joined = self.trackerless.join(topic, storage, now, contacts=contacts)
            return effects + self._merged(joined, overlay, now)
        asked = self.member.join(topic, trackers, degree, near, storage, now)
        return effects + self._merged(asked, overlay, now)

    def leave(self, topic: TopicId, now: float) -> list[OverlaysEffect]:
        """Want no neighbours in a topic any more."""
        known = self._topics.pop(topic, None)
        if known is None:
            return []
        effects: list[OverlaysEffect] = [CancelTimer(_tick(topic))] if known.leaving else []
        for overlay in (known.leaving, known.overlay):
            if overlay is not None:
                effects += self._left(topic, overlay, now)
        return effects

    def start(self, bootstrap: Iterable[Contact], now: float) -> list[OverlaysEffect]:
        """The node is up."""
        if self.trackerless is None:
            return []
        return self._merged(self.trackerless.start(bootstrap, now), Overlay.RING, now)

    def stop(self, now: float) -> None:
        """The node goes down."""
        if self.trackerless is not None:
            self.trackerless.stop(now)

    def local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> list[OverlaysEffect]:
        """A device is on a local network with us, on which these topics may be known."""
        if self.trackerless is None:
            return []
        return self._merged(self.trackerless.local(contact, allowed, now), Overlay.RING, now)

    def not_local(self, peer: PeerId) -> None:
        """A device is on no local network with us any more."""
        if self.trackerless is not None:
            self.trackerless.not_local(peer)

    def rtt(self, peer: PeerId, seconds: float, now: float) -> list[OverlaysEffect]:
        """The round-trip time of a link was measured."""
        return self._merged(self.member.rtt(peer, seconds), Overlay.TRACKER, now)

    def on_tracker_message(self, peer: PeerId, message: OverlayMessage, now: float) -> list[OverlaysEffect]:
        """A message of the tracker overlay."""
        return self._merged(self.member.handle(Received(peer, message), now), Overlay.TRACKER, now)

    def on_message(self, peer: PeerId, message: TrackerlessMessage, now: float) -> list[OverlaysEffect]:
        """A message of the overlay without trackers."""
        if self.trackerless is None:
            return []
        return self._merged(self.trackerless.handle(Received(peer, message), now), Overlay.RING, now)

    def links(self, event: LinkUp | LinkDown | DialFailed, now: float) -> list[OverlaysEffect]:
        """A link is open, gone, or did not come up: both overlays hear of it."""
        effects = self._merged(self.member.handle(event, now), Overlay.TRACKER, now)
        if self.trackerless is not None:
            effects += self._merged(self.trackerless.handle(event, now), Overlay.RING, now)
        return effects

    def fired(self, tick: Tick, now: float) -> list[OverlaysEffect]:
        """A timer has run out."""
        if tick.owner == OWNER:
            return self._look(TopicId(tick.key), now)
        if tick.owner == TRACKERLESS and self.trackerless is not None:
            return self._merged(self.trackerless.handle(TimerFired(tick), now), Overlay.RING, now)
        return self._merged(self.member.handle(TimerFired(tick), now), Overlay.TRACKER, now)

    def _look(self, topic: TopicId, now: float) -> list[OverlaysEffect]:
        """See whether the old overlay can be left."""
        known = self._topics.get(topic)
        if known is None or known.leaving is None:
            return []
        if known.met_at is None or now < known.met_at + self._overlap:
            return [SetTimer(_LOOK, _tick(topic))]
        old, known.leaving = known.leaving, None
        return self._left(topic, old, now)

    def _left(self, topic: TopicId, overlay: Overlay, now: float) -> list[OverlaysEffect]:
        if overlay is Overlay.TRACKER:
            return self._merged(self.member.leave(topic, now), overlay, now)
        if self.trackerless is None:
            return []
        return self._merged(self.trackerless.leave(topic, now), overlay, now)

    def _merged(
        self, effects: Sequence[OverlaysEffect], overlay: Overlay, now: float
    ) -> list[OverlaysEffect]:
        """Announce a neighbour when the first overlay has it, and that it is gone with the last."""
        if not effects:
            return []
        merged: list[OverlaysEffect] = []
        for effect in effects:
            if isinstance(effect, NeighborUp):
                sources = self._sources.setdefault((effect.topic, effect.peer), {})
                is_first = not sources
                sources[overlay] = None
                self._met(effect.topic, overlay, now)
                if not is_first:
                    continue
            elif isinstance(effect, NeighborDown):
                pair = (effect.topic, effect.peer)
                sources = self._sources.get(pair, {})
                sources.pop(overlay, None)
                if sources:
                    continue
                self._sources.pop(pair, None)
            merged.append(effect)
        return merged

    def _has_neighbors(self, topic: TopicId, overlay: Overlay) -> bool:
        return any(of == topic and overlay in sources for (of, _), sources in self._sources.items())

    def _met(self, topic: TopicId, overlay: Overlay, now: float) -> None:
        known = self._topics.get(topic)
        if known is not None and known.overlay is overlay and known.leaving and known.met_at is None:
            known.met_at = now


def _tick(topic: TopicId) -> Tick:
    return Tick(OWNER, "look", topic)
