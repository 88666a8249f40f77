"""What several parts of a node are told, one after the other: where a device is, how far, who is nearby."""

from __future__ import annotations

from linnet.edge.notices import LanChange, LanChanged, LanPeer
from linnet.machine.part import Part, on_notice
from linnet.overlay.overlays import Overlays
from linnet.peer.edge import Edge
from linnet.peer.links import Links, RoundTripMeasured
from linnet.peer.local_networks import LocalNetworks
from linnet.peer.whereabouts import Learned
from linnet.rooms.rooms import Rooms


class Neighborhood(Part):
    """Passes on what concerns several parts at once."""

    def __init__(
        self, links: Links, overlays: Overlays, rooms: Rooms, local: LocalNetworks, edge: Edge
    ) -> None:
        self._links = links
        self._overlays = overlays
        self._rooms = rooms
        self._local = local
        self._edge = edge

    def start(self, now: float) -> None:
        """The node is up: what may be spoken of on local networks and with proxies is settled."""
        self._settle_local((), now)

    @on_notice(Learned)
    def try_address(self, notice: Learned, now: float) -> None:
        """It was heard where a device is: whoever needs it tries it there at once."""
        self._rooms.try_address(notice.topic, notice.contact, now)
        self._links.seek(notice.contact.peer, now)

    @on_notice(RoundTripMeasured)
    def note_round_trip(self, notice: RoundTripMeasured, now: float) -> None:
        """It was measured how far a peer is: relays are chosen by that, and near neighbours."""
        self._rooms.note_rtt(notice.peer, notice.seconds)
        self._overlays.member.note_rtt(notice.peer, notice.seconds)

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
