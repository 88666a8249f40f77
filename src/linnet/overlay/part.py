"""The overlays of all topics: gives each a tracker's graph or a ring without trackers, and changes it over.

A topic that changes its overlay is in both for a while: it leaves the old one only when the new one has given
it neighbours and other nodes had the time to change too, so nothing is lost on the way. A neighbour in both
is announced once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TypeAlias

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import TopicTimer
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_notice, on_timer
from linnet.overlay.config import Overlay
from linnet.overlay.gossip.part import GossipOverlay
from linnet.overlay.notices import (
    Adjacency,
    JoinRefused,
    MembersWanted,
    NewOverlayMet,
    OwnLinkUp,
    ReplaceNeighbor,
)
from linnet.overlay.tracker_client import TopicOptions, TrackerClient

OVERLAP = 600.0
"""Seconds that a topic stays in its old overlay once the new one has given it neighbours."""
_LOOK = 5.0

Routing: TypeAlias = Callable[[tuple[PeerId, ...], Sequence[PeerId]], Sequence[PeerId]]
"""Chooses the peers to pass an event to, from those whose links are open; the first argument has the event
already."""


class ChangeoverDue(TopicTimer, frozen=True):
    """Fires when a topic is to be checked for leaving its old overlay."""


class _Topic:
    """The overlay of a topic, and the one that it is about to leave."""

    __slots__ = ("leaving", "met_at", "overlay")

    def __init__(self, overlay: Overlay) -> None:
        self.overlay = overlay
        self.leaving: Overlay | None = None
        self.met_at: float | None = None
        """When the new overlay first had neighbours; None: not yet."""


class Overlays(Part):
    """The overlays of all topics of a node."""

    def __init__(
        self,
        member: TrackerClient,
        adjacency: Adjacency,
        out: Outbox,
        trackerless: GossipOverlay | None = None,
        overlap: float = OVERLAP,
    ) -> None:
        self.member = member
        self._adjacency = adjacency
        self._out = out
        self._overlap = overlap
        self.trackerless = trackerless
        self._topics: dict[TopicId, _Topic] = {}

    def tracker(self, topic: TopicId) -> PeerId | None:
        """Return the tracker that is followed in a topic."""
        return self.member.tracker(topic)

    def is_unreachable(self, topic: TopicId) -> bool:
        """Return whether nobody can dial us, and the tracker of a topic has no node for us to dial."""
        return self.overlay(topic) is Overlay.TRACKER and self.member.is_unreachable(topic)

    def overlay(self, topic: TopicId) -> Overlay | None:
        """Return the overlay of a topic, if it is joined."""
        known = self._topics.get(topic)
        return None if known is None else known.overlay

    def routing(self, topic: TopicId) -> Routing | None:
        """Return the choice of peers for events of a topic; None: all neighbours, as in a tracker's graph."""
        if self.overlay(topic) is not Overlay.RING:
            return None
        return lambda sources, up: self._choose_targets(topic, sources, up)

    def _choose_targets(
        self, topic: TopicId, sources: tuple[PeerId, ...], up: Sequence[PeerId]
    ) -> Sequence[PeerId]:
        known = self._topics.get(topic)
        if known is None or known.leaving is not None or self.trackerless is None:
            return [peer for peer in up if peer not in sources]
        return self.trackerless.topics.choose_targets(topic, sources, up)

    def join(
        self, overlay: Overlay, options: TopicOptions, now: float, contacts: Iterable[Contact] = ()
    ) -> None:
        """Take part in a topic, or change how; a ring needs no trackers and no degree."""
        topic = options.topic
        if overlay is Overlay.RING and self.trackerless is None:
            self._out.notify(JoinRefused(topic, Reason.UNSUPPORTED))
            return
        known = self._topics.get(topic)
        if known is None:
            self._topics[topic] = _Topic(overlay)
        elif known.overlay is not overlay:
            self._change_over(topic, known, overlay, now)
        if overlay is Overlay.RING and self.trackerless is not None:
            self.trackerless.topics.join_topic(topic, options.storage, now, contacts)
        else:
            self.member.join(options, now)

    def leave(self, topic: TopicId, now: float) -> None:
        """Take part in a topic no longer."""
        known = self._topics.pop(topic, None)
        if known is None:
            return
        self._adjacency.awaited.pop(topic, None)
        if known.leaving:
            self._out.cancel_timer(ChangeoverDue(topic))
        for overlay in (known.leaving, known.overlay):
            if overlay is not None:
                self._leave_overlay(topic, overlay, now)

    def begin(self, bootstrap: Iterable[Contact], now: float) -> None:
        """Begin to gossip, as the node has started."""
        if self.trackerless is not None:
            self.trackerless.begin(bootstrap, now)

    def stop(self, now: float) -> None:
        """Save what gossip knows, as the node stops."""
        if self.trackerless is not None:
            self.trackerless.stop(now)

    @on_notice(MembersWanted)
    def ask_members(self, notice: MembersWanted, now: float) -> None:
        """Ask the tracker of a topic for members beside the neighbours."""
        self.member.ask_members(notice.topic)

    @on_notice(ReplaceNeighbor)
    def replace_neighbor(self, notice: ReplaceNeighbor, now: float) -> None:
        """Have the tracker of a topic name another neighbour."""
        self.member.replace_neighbor(notice.topic, notice.peer)

    @on_notice(OwnLinkUp)
    def handle_own_link(self, notice: OwnLinkUp, now: float) -> None:
        """Let this node speak with itself, since it is one of its own trackers."""
        self.member.handle_link_up(notice.event, now)
        if self.trackerless is not None:
            self.trackerless.handle_link_up(notice.event, now)

    def add_local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> None:
        """Gossip with a device that is on a local network with us, on which these topics may be known."""
        if self.trackerless is not None:
            self.trackerless.add_local(contact, allowed, now)

    def remove_local(self, peer: PeerId, is_denied: bool, now: float) -> None:
        """A device is on no local network with us; `is_denied`: nothing is allowed where it was met."""
        if self.trackerless is not None:
            self.trackerless.remove_local(peer, is_denied, now)

    @on_notice(NewOverlayMet)
    def note_first_neighbor(self, notice: NewOverlayMet, now: float) -> None:
        """Note when the new overlay has its first neighbour: from then on others have time to change too."""
        known = self._topics.get(notice.topic)
        if known is not None and known.leaving and known.met_at is None:
            known.met_at = now

    @on_timer(ChangeoverDue)
    def leave_old_overlay(self, timer: ChangeoverDue, now: float) -> None:
        """Leave the old overlay of a topic once the overlap is over."""
        known = self._topics.get(timer.topic)
        if known is None or known.leaving is None:
            return
        if known.met_at is None or now < known.met_at + self._overlap:
            self._out.set_timer(_LOOK, timer)
            return
        old, known.leaving = known.leaving, None
        self._leave_overlay(timer.topic, old, now)

    def _change_over(self, topic: TopicId, known: _Topic, overlay: Overlay, now: float) -> None:
        known.leaving, known.overlay = known.overlay, overlay
        if self._adjacency.has_neighbors(topic, overlay):
            known.met_at = now
            self._adjacency.awaited.pop(topic, None)
        else:
            known.met_at = None
            self._adjacency.awaited[topic] = overlay
        self._out.set_timer(_LOOK, ChangeoverDue(topic))

    def _leave_overlay(self, topic: TopicId, overlay: Overlay, now: float) -> None:
        if overlay is Overlay.TRACKER:
            self.member.leave(topic, now)
        elif self.trackerless is not None:
            self.trackerless.topics.leave_topic(topic, now)
