"""What a node's topics are told of those around them, until they hear it themselves.

Overlays and proxies say who is a neighbour, and the address book where a device was found: that is for the
topic that it is about. What happens on local networks is for topics, overlays without trackers and proxies.
"""

from __future__ import annotations

from linnet.edge.notices import LanChange, LanChanged, LanPeer
from linnet.machine.part import Part, on_notice
from linnet.overlay.notices import JoinRefused, NeighborDown, NeighborUp, OverlayNotice, StorageKnown
from linnet.peer.parts import Parts
from linnet.peer.whereabouts import Learned


class Neighborhood(Part):
    """Passes on what streams and rooms are told, and what happens on local networks."""

    def __init__(self, parts: Parts) -> None:
        self._out = parts.out
        self._links = parts.links
        self._overlays = parts.overlays
        self._local = parts.local
        self._edge = parts.edge
        self._streams = parts.streams
        self._rooms = parts.rooms

    def start(self, now: float) -> None:
        """The node is up: what may be spoken of on local networks and with proxies is settled."""
        self._settle_local((), now)

    # What topics are told.

    @on_notice(NeighborUp)
    def pass_on_neighbor(self, notice: NeighborUp, now: float) -> None:
        """A topic has a new neighbour."""
        self._pass_on(notice, now)

    @on_notice(NeighborDown)
    def pass_on_loss(self, notice: NeighborDown, now: float) -> None:
        """A topic has lost a neighbour."""
        self._pass_on(notice, now)

    @on_notice(StorageKnown)
    def pass_on_storage(self, notice: StorageKnown, now: float) -> None:
        """A topic has other storage nodes."""
        self._pass_on(notice, now)

    @on_notice(JoinRefused)
    def pass_on_refusal(self, notice: JoinRefused, now: float) -> None:
        """A topic is taken by no tracker, or by no proxy."""
        self._pass_on(notice, now)

    @on_notice(Learned)
    def try_address(self, notice: Learned, now: float) -> None:
        """It was heard where a device is: whoever needs it tries it there at once."""
        self._rooms.try_address(notice.topic, notice.contact, now)
        self._links.seek(notice.contact.peer, now)

    def _pass_on(self, notice: OverlayNotice, now: float) -> None:
        if self._rooms.holds(notice.topic):
            self._rooms.handle_notice(notice, now)
        else:
            self._out.extend(self._streams.heed((notice,), now))

    # Local networks.

    @on_notice(LanChanged)
    def handle_lan_changes(self, notice: LanChanged, now: float) -> None:
        """Something happened on local networks: overlays without trackers hear who is there."""
        self._settle_local(notice.changes, now)

    def _settle_local(self, changes: tuple[LanChange, ...], now: float) -> None:
        self._edge.settle_local(changes, self._local, now)
        if self._edge.is_edge:
            self._rooms.settle_nearby(self._local.spoken, now)
        for change in changes:
            if self._edge.is_ours(change.peer):
                continue
            if isinstance(change, LanPeer):
                self._overlays.add_local(change.contact, self._local.allowed_with(change.peer), now)
            elif not self._local.is_here(change.peer):
                self._overlays.remove_local(change.peer)
