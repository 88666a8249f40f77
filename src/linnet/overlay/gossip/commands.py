"""Commands for a node without trackers: set trust, show what was disclosed, show the state of the overlay."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from msgspec import Meta, Struct, field

from linnet.core.ids import PeerId, TopicId
from linnet.machine.commands import Command
from linnet.overlay.gossip.privacy_budget import BudgetIs

NO_PART = (
    "this node takes no part in overlays without trackers; start it with: linnet up --overlay ring, "
    "or set trackerless.enabled = true"
)
"""The answer of a node that takes no part in such overlays."""


class SetTrust(Command["TrustIs"], frozen=True, gc=False):
    """Trust a device so much, or no longer; nobody is told."""

    peer: PeerId = field(name="device")
    value: Annotated[float, Meta(gt=0, le=1)] | None = None
    """Above 0, up to 1; None: no longer."""


class ListTrust(Command["TrustIs"], frozen=True, gc=False):
    """List the devices that the user of this node trusts."""


class ExaminePrivacy(Command[BudgetIs], frozen=True, gc=False):
    """Show what this node has told others of its interests, and what it adds up to."""


class ExamineOverlay(Command["TrackerlessStatus"], frozen=True, gc=False):
    """Show the peers that a node without trackers knows, and the state of each of its topics."""


class Trusted(NamedTuple):
    """A device that the user trusts."""

    device: PeerId
    value: float


class TrustIs(Struct, frozen=True, gc=False):
    """The devices that the user trusts, and how much. The list stays on this device."""

    devices: tuple[Trusted, ...]
    """Most first."""


class RingStatus(Struct, frozen=True, gc=False):
    """The ring of one topic."""

    topic: TopicId
    known: int
    """The number of members that are known."""
    successors: tuple[PeerId, ...]
    predecessors: tuple[PeerId, ...]
    neighbors: tuple[PeerId, ...]
    """Peers with which we pass events to each other."""
    uncovered: int
    """Members that the ring wants but cannot link to, since the limit of links is reached."""
    name: str | None = None
    """The name of the stream or room, where it is known."""


class TrackerlessStatus(Struct, frozen=True, gc=False):
    """The state of an overlay without trackers."""

    rounds: int
    sample: tuple[PeerId, ...]
    alike: tuple[PeerId, ...]
    fingers: tuple[PeerId, ...]
    acquaintances: int
    held: int
    """Peers to which links are held for topics."""
    rings: tuple[RingStatus, ...]
    intersections: int
    """Private intersections that were completed."""
    intersections_empty: int
    """Completed intersections that found no topic in common."""
    alone_seconds: float | None = None
    """How long the sample of peers has been empty; None: it is not."""
