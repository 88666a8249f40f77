"""How a node without trackers stands: what a person, a test or a simulation may ask."""

from __future__ import annotations

from msgspec import Struct

from linnet.core.ids import PeerId, TopicId


class RingStatus(Struct, frozen=True, gc=False):
    """One topic."""

    topic: TopicId
    known: int
    """Members that are known."""
    successors: tuple[PeerId, ...]
    predecessors: tuple[PeerId, ...]
    neighbors: tuple[PeerId, ...]
    """Who passes events to us and we to them."""
    uncovered: int
    """Members that the ring wants and that no link may be held to: the limit of links is reached."""


class TrackerlessStatus(Struct, frozen=True, gc=False):
    """All of it."""

    rounds: int
    sample: tuple[PeerId, ...]
    alike: tuple[PeerId, ...]
    fingers: tuple[PeerId, ...]
    acquaintances: int
    held: int
    """Peers that links are held to for topics."""
    rings: tuple[RingStatus, ...]
    intersections: int
    """Private intersections that were run to their end."""
    intersections_empty: int
    """Of them, those that found nothing in common."""
