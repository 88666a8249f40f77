"""What the control API is asked about overlays without trackers, trust and privacy, and what it answers."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from linnet.node.control_types import DeviceText, StreamName
from linnet.overlay.config import Overlay

TrustValue = Annotated[float, Meta(gt=0, le=1, description="above 0, up to 1")]


class TrustRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Trust a device so much, or no longer. It stays on this device."""

    device: DeviceText
    value: TrustValue | None = None
    """Absent: no longer."""


class SwitchRequest(Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Give a stream another overlay at this node, while it goes on."""

    stream: StreamName
    overlay: Overlay | None = None
    """Absent: what the configuration says."""


class SwitchReply(Struct, frozen=True):
    """The overlay of a stream at this node."""

    stream: str
    topic: str
    overlay: Overlay
    before: Overlay
    """What it was until now. For a while the stream is in both."""


class TrustView(Struct, frozen=True):
    """A device that the user trusts."""

    device: str
    value: float


class TrustReply(Struct, frozen=True):
    """Whom the user trusts, most first."""

    devices: tuple[TrustView, ...]


class FilterView(Struct, frozen=True):
    """A randomised filter of our topics that everyone may have seen."""

    epoch: int
    """Which week it was for, counted from 1970."""
    network: str
    """The local network that it was for, hexadecimal; empty for the internet."""
    times: int
    """Releases; one is right."""
    epsilon: float
    """Of all of them, with `answers`. By a factor of e^epsilon, at most, they change the odds of one topic's
    being ours."""
    answers: float
    """Of that, what answers to searches for topics told, which are as noisy as a filter."""
    last: float
    """Unix time."""


class IntersectionView(Struct, frozen=True):
    """Private intersections with one peer."""

    peer: str
    runs: int
    bucket: int
    """It knows that we have at most so many topics."""
    tested: int
    """Topics that it can have asked about, at most; it had to be able to name each."""
    common: int
    """Common topics, of the run with most. It knows them, as do we."""
    last: float


class AnnouncementView(Struct, frozen=True):
    """Announcements on one local network: that a node is there, and nothing of topics."""

    network: str
    times: int
    last: float


class ProxyView(Struct, frozen=True):
    """A proxy: it knows our address and the topics that it serves us, not what is said there."""

    proxy: str
    topics: int
    last: float


class EarlierView(Struct, frozen=True):
    """What is no longer told apart."""

    releases: int
    epsilon: float
    peers: int
    runs: int
    networks: int
    announcements: int
    proxies: int
    told: int = 0
    """Devices that were told addresses."""


class AddressesView(Struct, frozen=True):
    """A device that shares a topic with us and was told addresses, never of whom or in which topic."""

    peer: str
    own: int
    """How often it was told where we may be dialled."""
    others: int
    """How often it was told where others may be dialled who share a topic with it."""
    last: float


class PrivacyReply(Struct, frozen=True):
    """What this node has told others of its interests, the latest last."""

    filters: tuple[FilterView, ...]
    epsilon: float
    """Of all filters together."""
    odds: float
    """By this factor, at most, all filters together change the odds of a topic that was in every one."""
    surest: float
    """How sure of such a topic someone can be, at most, who can name it and had it at even odds."""
    intersections: tuple[IntersectionView, ...]
    runs: int
    announcements: tuple[AnnouncementView, ...]
    proxies: tuple[ProxyView, ...]
    earlier: EarlierView
    addresses: tuple[AddressesView, ...] = ()


class RingView(Struct, frozen=True):
    """A topic without a tracker."""

    topic: str
    name: str | None
    """Of the stream or room, if it has one."""
    known: int
    """Members that are known."""
    successors: tuple[str, ...]
    predecessors: tuple[str, ...]
    neighbors: tuple[str, ...]
    """Who passes events to us and we to them."""
    uncovered: int
    """Members that the ring wants and for whom no link is left."""


class OverlayReply(Struct, frozen=True):
    """How a node without trackers stands."""

    rounds: int
    sample: tuple[str, ...]
    alike: tuple[str, ...]
    fingers: tuple[str, ...]
    acquaintances: int
    held: int
    """Peers that links are held to for topics."""
    intersections: int
    intersections_empty: int
    rings: tuple[RingView, ...]
