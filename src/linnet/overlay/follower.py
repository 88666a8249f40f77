"""How a node carries out instructions in one topic: what the two control protocols have in common."""

from __future__ import annotations

from typing import Protocol

from linnet.core.ids import PeerId
from linnet.overlay.edges import Edges
from linnet.overlay.effects import MemberEffect
from linnet.overlay.messages import Instruction

OWNER = "member"
"""Owner of the timers of a node's side."""


class Follower(Protocol):
    """One topic's obedience. `Member` asks after each call whether a status is due, and sends it."""

    edges: Edges
    status_due: bool
    """Whether the tracker is to be told; `Member` takes it back."""

    @property
    def counter(self) -> int | None:
        """Of the newest instruction of the tracker that is followed; None: there was none yet."""

    def reset(self) -> None:
        """Another tracker is followed, or the same on a new link: its counters begin anew."""

    def instruct(self, instruction: Instruction, now: float) -> list[MemberEffect]:
        """The tracker says who the neighbours are."""

    def report(self) -> None:
        """It is time to tell round-trip times, if there is nothing more important."""

    def linked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is open."""

    def unlinked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is gone."""

    def dial_failed(self, peer: PeerId) -> list[MemberEffect]:
        """A link could not be opened."""

    def opened(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour."""

    def closed(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour no longer."""

    def fired(self, what: str, now: float) -> list[MemberEffect]:
        """A timer of this topic's has run out."""
