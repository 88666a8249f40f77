"""Whom a node's topics have beside them: its overlays, its tracker if it is one, and its local networks.

What these tell is for the topic that it is about, and goes there at once; the rest is for the node.
"""

from __future__ import annotations

from typing import get_args

from linnet.core.ids import Contact, PeerId
from linnet.core.inputs import (
    DialFailed,
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
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.edge.commands import LanCommand
from linnet.edge.notices import LanPeer
from linnet.edge.presence import PresenceEffect
from linnet.overlay.messages import OverlayMessage
from linnet.overlay.notices import OverlayNotice
from linnet.overlay.overlays import OverlaysEffect
from linnet.overlay.trackerless.messages import TrackerlessMessage
from linnet.peer.local_networks import parted
from linnet.peer.outgoing import Asking
from linnet.peer.parts import Parts
from linnet.trace.records import Kind, Record

_NOTICES = frozenset(get_args(OverlayNotice))


class Neighborhood:
    """Overlays, tracker and local networks, heard together."""

    def __init__(self, parts: Parts) -> None:
        self._tracker = parts.tracker
        self._overlays = parts.overlays
        self._local = parts.local
        self._account = parts.account
        self._edge = parts.edge
        self._streams = parts.streams
        self._rooms = parts.rooms

    def start(self, bootstrap: tuple[Contact, ...], now: float) -> list[Asking]:
        """The node is up."""
        return [*self._noticed(self._overlays.start(bootstrap, now), now), *self._on_local([], now)]

    def stop(self, now: float) -> None:
        """The node goes down."""
        self._overlays.stop(now)

    def links(self, event: LinkUp | LinkDown | DialFailed, now: float) -> list[Asking]:
        """Overlays, and the tracker if this node is one, hear of all links."""
        effects = self._noticed(
            [] if self._edge.is_ours(event.peer) else self._overlays.links(event, now), now
        )
        if self._tracker is not None:
            effects += self._tracker.handle(event, now)
        return effects

    def rtt(self, peer: PeerId, rtt: float, now: float) -> list[Asking]:
        """A peer is so far away."""
        return self._noticed(self._overlays.rtt(peer, rtt, now), now)

    def probed(self, event: Probed, now: float) -> list[Asking]:
        """A tracker's attempt to dial somebody back has ended."""
        return [] if self._tracker is None else [*self._tracker.handle(event, now)]

    def on_tracker_message(self, peer: PeerId, message: OverlayMessage, now: float) -> list[Asking]:
        """Both sides of the tracker overlay hear its messages; each takes its own."""
        effects = self._noticed(self._overlays.on_tracker_message(peer, message, now), now)
        if self._tracker is not None:
            effects += self._tracker.handle(Received(peer, message), now)
        return effects

    def on_trackerless(self, peer: PeerId, message: TrackerlessMessage, now: float) -> list[Asking]:
        """A message of an overlay without trackers."""
        if self._edge.is_ours(peer):
            note = f"{type(message).__name__}: nothing but streams is spoken of with a proxy"
            return [Record(Kind.REJECTED, peer=peer, reason=Reason.NOT_ALLOWED, note=note)]
        return self._noticed(self._overlays.on_message(peer, message, now), now)

    def on_network(self, event: NetworkIs | Heard | Met | NotMet, now: float) -> list[Asking]:
        """Something was heard on a local network, or of one."""
        return self._on_local(self._local.handle(event, now), now)

    def ask_local(self, request: int, command: LanCommand, now: float) -> list[Asking]:
        """A command about local networks."""
        changed, replies = self._local.ask(request, command, now)
        return [*self._on_local(changed, now), *replies]

    def overlay_fired(self, tick: Tick, now: float) -> list[Asking]:
        """A timer of an overlay has run out."""
        return self._noticed(self._overlays.fired(tick, now), now)

    def tracker_fired(self, tick: Tick, now: float) -> list[Asking]:
        """A timer of the tracker has run out."""
        return [] if self._tracker is None else [*self._tracker.handle(TimerFired(tick), now)]

    def local_fired(self, tick: Tick, now: float) -> list[Asking]:
        """A timer of local networks has run out."""
        return self._on_local(self._local.fired(tick, now), now)

    def _on_local(self, effects: list[PresenceEffect], now: float) -> list[Asking]:
        """What presence on local networks asks; its notices are for overlays without trackers."""
        asked, notices = parted(effects)
        self._account.announced(asked, now)
        out: list[Asking] = [*asked, *self._edge.on_local(notices, self._local, now)]
        if self._edge.is_edge:
            out += self._rooms.settle(self._local.spoken, now)
        for notice in notices:
            if self._edge.is_ours(notice.contact.peer if isinstance(notice, LanPeer) else notice.peer):
                continue
            if isinstance(notice, LanPeer):
                allowed = self._local.allowed_with(notice.contact.peer)
                out += self._noticed(self._overlays.local(notice.contact, allowed, now), now)
            elif not self._local.is_here(notice.peer):
                self._overlays.not_local(notice.peer)
        return out

    def _noticed(self, effects: list[OverlaysEffect], now: float) -> list[Asking]:
        """What the overlay asks and tells; its notices go to the topic that they are about."""
        if not effects:
            return []
        # By type and not by isinstance: a union is slow to ask.
        if _NOTICES.isdisjoint(map(type, effects)):
            return effects  # type: ignore[return-value] # none is a notice
        rooms = self._rooms
        notices: list[OverlayNotice] = [each for each in effects if type(each) in _NOTICES]  # type: ignore[misc]
        if not any(rooms.holds(each.topic) for each in notices):
            return self._streams.heed(effects, now)  # type: ignore[return-value] # a list of less
        out: list[Asking] = []
        for each in effects:
            if isinstance(each, OverlayNotice) and rooms.holds(each.topic):
                out += rooms.noticed(each, now)
            else:
                out += self._streams.heed((each,), now)
        return out
