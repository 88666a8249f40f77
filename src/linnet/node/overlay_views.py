"""From what overlays without trackers say of themselves to what the control API says: ids become text."""

from __future__ import annotations

from collections.abc import Mapping
from math import exp

from linnet.node.control_views import device_text, topic_text
from linnet.node.overlay_types import (
    AddressesView,
    AnnouncementView,
    EarlierView,
    FilterView,
    IntersectionView,
    OverlayReply,
    PrivacyReply,
    ProxyView,
    RingView,
    SwitchReply,
    TrustReply,
    TrustView,
)
from linnet.overlay.trackerless.commands import TrustIs
from linnet.overlay.trackerless.privacy import BudgetIs
from linnet.overlay.trackerless.status import RingStatus, TrackerlessStatus
from linnet.peer.interface import NodeStatus
from linnet.streams.commands import OverlayIs

_MOST = 700.0
"""Of an epsilon: beyond it e^epsilon is no number for a machine, nor for anyone."""


def trust_view(told: TrustIs) -> TrustReply:
    """Whom the user trusts."""
    return TrustReply(tuple(TrustView(device_text(peer), value) for peer, value in told.peers))


def switch_view(stream: str, told: OverlayIs) -> SwitchReply:
    """The overlay of a stream."""
    return SwitchReply(stream, topic_text(told.topic), told.overlay, told.before)


def privacy_view(told: BudgetIs) -> PrivacyReply:
    """What was told."""
    earlier = told.earlier
    return PrivacyReply(
        tuple(
            FilterView(
                one.epoch,
                one.network.hex(),
                one.times,
                (one.epsilon_milli + one.answers_milli) / 1000,
                one.answers_milli / 1000,
                one.last,
            )
            for one in told.filters
        ),
        told.epsilon,
        exp(min(told.epsilon, _MOST)),
        told.surest,
        tuple(
            IntersectionView(device_text(one.peer), one.runs, one.bucket, one.tested, one.common, one.last)
            for one in told.intersections
        ),
        told.runs,
        tuple(AnnouncementView(one.network.hex(), one.times, one.last) for one in told.announcements),
        tuple(ProxyView(device_text(one.proxy), one.topics, one.last) for one in told.proxies),
        EarlierView(
            earlier.releases,
            earlier.epsilon_milli / 1000,
            earlier.peers,
            earlier.runs,
            earlier.networks,
            earlier.announcements,
            earlier.proxies,
            earlier.told,
        ),
        tuple(AddressesView(device_text(one.peer), one.own, one.others, one.last) for one in told.addresses),
    )


def names_of(status: NodeStatus) -> dict[bytes, str]:
    """What the topics of a node are called."""
    names: dict[bytes, str] = {room.room: room.name for room in status.rooms if room.name}
    names.update({stream.topic: stream.stream for stream in status.streams})
    return names


def overlay_view(told: TrackerlessStatus, names: Mapping[bytes, str]) -> OverlayReply:
    """How it stands."""
    return OverlayReply(
        told.rounds,
        tuple(map(device_text, told.sample)),
        tuple(map(device_text, told.alike)),
        tuple(map(device_text, told.fingers)),
        told.acquaintances,
        told.held,
        told.intersections,
        told.intersections_empty,
        tuple(_ring_view(ring, names) for ring in told.rings),
    )


def _ring_view(ring: RingStatus, names: Mapping[bytes, str]) -> RingView:
    return RingView(
        topic_text(ring.topic),
        names.get(ring.topic),
        ring.known,
        tuple(map(device_text, ring.successors)),
        tuple(map(device_text, ring.predecessors)),
        tuple(map(device_text, ring.neighbors)),
        ring.uncovered,
    )
