"""Which overlay a topic has, a tracker's graph or a ring without trackers, and how it changes over.

A topic that changes its overlay is in both for a while: it leaves the old one only when the new one has
given it neighbours and others had the time to change too, so nothing is lost on the way. Whoever is a
neighbour in both is announced once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, TypeAlias, get_args

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.machine.part import Part, on_notice, on_timer
from linnet.overlay.adjacency import Adjacency, NewOverlayMet
from linnet.overlay.config import Overlay
from linnet.overlay.member import Member
from linnet.overlay.notices import JoinRefused, OverlayNotice, OwnLinkUp
from linnet.overlay.trackerless.trackerless import Trackerless

OVERLAP = 600.0
"""Seconds that a topic stays in its old overlay once the new one has given it neighbours."""
_LOOK = 5.0

Routing: TypeAlias = Callable[[tuple[PeerId, ...], Sequence[PeerId]], Sequence[PeerId]]
"""To whom an event is passed on, of those who are up; these had it before us, or nobody."""
_NOTICES = frozenset(get_args(OverlayNotice))


class ChangeoverDue(Timer, frozen=True):
    """It is to be looked whether a topic can leave its old overlay."""

    topic: TopicId


class _Topic:
    """What overlay a topic has, and which it is about to leave."""

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
        member: Member,
        adjacency: Adjacency,
        out: Outbox,
        trackerless: Trackerless | None = None,
        overlap: float = OVERLAP,
    ) -> None:
        self.member = member
        self._adjacency = adjacency
        self._out = out
        self._overlap = overlap
        self.trackerless = trackerless
        self._topics: dict[TopicId, _Topic] = {}

    def collect(self, act: Callable[[], None]) -> list[Any]:
        """What joining or leaving asks for, notices among it, for a caller that still returns effects."""
        return self._out.collect(act, _NOTICES)

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
    ) -> None:
        """Want neighbours in a topic, or other ones than before."""
        if overlay is Overlay.RING and self.trackerless is None:
            self._out.notify(JoinRefused(topic, Reason.UNSUPPORTED))
            return
        known = self._topics.get(topic)
        if known is None:
            self._topics[topic] = _Topic(overlay)
        elif known.overlay is not overlay:
            self._change_over(topic, known, overlay, now)
        if overlay is Overlay.RING and self.trackerless is not None:
            self.trackerless.join(topic, storage, now, contacts=contacts)
        else:
            self.member.join(topic, trackers, degree, near, storage, now)

    def leave(self, topic: TopicId, now: float) -> None:
        """Want no neighbours in a topic any more."""
        known = self._topics.pop(topic, None)
        if known is None:
            return
        self._adjacency.awaited.pop(topic, None)
        if known.leaving:
            self._out.cancel_timer(ChangeoverDue(topic))
        for overlay in (known.leaving, known.overlay):
            if overlay is not None:
                self._leave(topic, overlay, now)

    def begin(self, bootstrap: Iterable[Contact], now: float) -> None:
        """The node is up."""
        if self.trackerless is not None:
            self.trackerless.begin(bootstrap, now)

    def stop(self, now: float) -> None:
        """The node goes down."""
        if self.trackerless is not None:
            self.trackerless.stop(now)

    @on_notice(OwnLinkUp)
    def handle_own_link(self, notice: OwnLinkUp, now: float) -> None:
        """This node is one of its own trackers, and speaks with itself as with another."""
        self.member.handle_link_up(notice.event, now)
        if self.trackerless is not None:
            self.trackerless.handle_link_up(notice.event, now)

    def add_local(self, contact: Contact, allowed: Collection[TopicId], now: float) -> None:
        """A device is on a local network with us, on which these topics may be known."""
        if self.trackerless is not None:
            self.trackerless.add_local(contact, allowed, now)

    def remove_local(self, peer: PeerId) -> None:
        """A device is on no local network with us any more."""
        if self.trackerless is not None:
            self.trackerless.remove_local(peer)

    @on_notice(NewOverlayMet)
    def note_first_neighbor(self, notice: NewOverlayMet, now: float) -> None:
        """From now on others have the time to change over too."""
        known = self._topics.get(notice.topic)
        if known is not None and known.leaving and known.met_at is None:
            known.met_at = now

    @on_timer(ChangeoverDue)
    def leave_old_overlay(self, timer: ChangeoverDue, now: float) -> None:
        """See whether the old overlay of a topic can be left."""
        known = self._topics.get(timer.topic)
        if known is None or known.leaving is None:
            return
        if known.met_at is None or now < known.met_at + self._overlap:
            self._out.set_timer(_LOOK, timer)
            return
        old, known.leaving = known.leaving, None
        self._leave(timer.topic, old, now)

    def _change_over(self, topic: TopicId, known: _Topic, overlay: Overlay, now: float) -> None:
        known.leaving, known.overlay = known.overlay, overlay
        if self._adjacency.has_neighbors(topic, overlay):
            known.met_at = now
            self._adjacency.awaited.pop(topic, None)
        else:
            known.met_at = None
            self._adjacency.awaited[topic] = overlay
        self._out.set_timer(_LOOK, ChangeoverDue(topic))

    def _leave(self, topic: TopicId, overlay: Overlay, now: float) -> None:
        if overlay is Overlay.TRACKER:
            self.member.leave(topic, now)
        elif self.trackerless is not None:
            self.trackerless.leave(topic, now)
