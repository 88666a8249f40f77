"""How a node carries out instructions in one topic: what the two control protocols have in common."""

from __future__ import annotations

from typing import Protocol

from linnet.core.ids import PeerId
from linnet.overlay.edges import Edges
from linnet.overlay.messages import Instruction


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

    def instruct(self, instruction: Instruction, now: float) -> None:
        """The tracker says who the neighbours are."""

    def report(self) -> None:
        """It is time to tell round-trip times, if there is nothing more important."""

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open."""

    def handle_link_down(self, peer: PeerId) -> None:
        """A link is gone."""

    def handle_dial_failed(self, peer: PeerId) -> None:
        """A link could not be opened."""

    def handle_open(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour."""

    def handle_close(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour no longer."""

    def handle_connect_due(self, now: float) -> None:
        """What was begun has had its time to connect."""

    def handle_retry_due(self) -> None:
        """It is time to try once more for neighbours that are missing."""
