"""Handing a record to the nodes that are nearest to its key, and knowing who keeps it."""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.outcomes import Placed
from linnet.overlay.kademlia.records import Stored


class Placing:
    """One record on its way to those who are to keep it."""

    def __init__(self, number: int, record: Stored) -> None:
        self.number = number
        self.record = record
        self._open: dict[PeerId, None] = {}
        self._kept: dict[PeerId, None] = {}
        self._refused: dict[PeerId, Reason] = {}

    def hand_to(self, contacts: tuple[Contact, ...]) -> tuple[Contact, ...]:
        """These are the nearest; whom to hand it to."""
        self._open = {contact.peer: None for contact in contacts}
        return contacts

    def settle(self, peer: PeerId, reason: Reason | None) -> None:
        """A node keeps it, or does not."""
        if peer not in self._open:
            return
        del self._open[peer]
        if reason is None:
            self._kept[peer] = None
        else:
            self._refused[peer] = reason

    @property
    def outcome(self) -> Placed | None:
        """Who keeps it, once all have answered or are not waited for."""
        if self._open:
            return None
        return Placed(self.number, tuple(self._kept), tuple(self._refused.items()))
