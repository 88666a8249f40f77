"""Compares what two relays of a room hold, so that one can take the place of the other.

Both are read from their oldest event, by pages that they sign. What the old one holds, and what this device
has of the room, is given to the new one, until it has signed that it holds all of it. Nothing of a comparison
is stored: it begins again when it is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from linnet.core.ids import EventId, PeerId
from linnet.core.reasons import Reason
from linnet.rooms.messages import RelayTaken, ResyncPage
from linnet.rooms.relay_statements import RelayStatement

LISTED = 100
"""The most events that an answer lists by id."""
MOST_COUNTED = 1_000_000
"""The most events of one relay that are counted; of one that names more, it is never known what it holds."""
PATIENCE = 60.0
"""Seconds after the last question until a comparison ends."""
_MAY_CHANGE = frozenset(
    {Reason.QUOTA, Reason.QUEUE_FULL, Reason.TOO_MANY, Reason.TOO_LARGE, Reason.MISSING_DEPENDENCY}
)
"""Refusals that are no judgement by the room's rules: the event is still to be brought to the relay."""


class RelayCount(Struct):
    """What one relay holds, as far as it was read."""

    held: dict[EventId, None] = {}
    """The events that it has signed to hold."""
    keys: dict[EventId, None] = {}
    """Operations on keys that it holds; of these it signs nothing."""
    refused: dict[EventId, Reason] = {}
    upto: int | None = None
    """The position up to which its signed pages follow each other without a gap."""
    is_whole: bool = False
    """Whether they reach its newest event."""

    @property
    def is_full(self) -> bool:
        """Whether no more of its events are counted."""
        return len(self.held) + len(self.keys) + len(self.refused) >= MOST_COUNTED

    def __contains__(self, event: object) -> bool:
        return event in self.held or event in self.keys


class RelayCensus:
    """The comparison of two relays of one room."""

    def __init__(self, old: PeerId, new: PeerId, ours: Iterable[EventId]) -> None:
        self.old, self.new = old, new
        self._ours = dict.fromkeys(ours)
        """The events that this device has and that a relay of the room may still keep."""
        self._counts = {old: RelayCount(), new: RelayCount()}

    @property
    def at_old(self) -> RelayCount:
        """What the relay holds that is to be replaced."""
        return self._counts[self.old]

    @property
    def at_new(self) -> RelayCount:
        """What the relay holds that takes its place."""
        return self._counts[self.new]

    def wanted(self) -> dict[EventId, None]:
        """Return the events that the new relay should hold."""
        return self._ours | self.at_old.held | self.at_old.keys

    def lacking(self) -> list[EventId]:
        """Return the events that would be left behind: the new relay has not said that it holds them."""
        found = []
        for event in self.wanted():
            reason = self.at_new.refused.get(event)
            is_settled = reason is not None and reason not in _MAY_CHANGE and event not in self.at_old
            if event not in self.at_new and not is_settled:
                found.append(event)
        return found

    def note_page(
        self, relay: PeerId, page: ResyncPage, said: RelayStatement | None, keys: Iterable[EventId]
    ) -> None:
        """Note a page of a relay; `keys` are the operations on keys in it."""
        count = self._counts.get(relay)
        if count is None or page.reason is not None or count.is_full:
            return
        count.keys |= dict.fromkeys(keys)
        if said is None or said.reach is None:
            return
        count.held |= dict.fromkeys(each.event for each in said.held)
        # A pushed page may come before the first page that we asked for.
        goes_on = page.after is None if count.upto is None else said.reach.after <= count.upto
        if goes_on:
            count.upto = max(count.upto or 0, said.reach.upto)
            count.is_whole = count.is_whole or (page.after is None and not page.more)

    def note_answer(self, relay: PeerId, taken: RelayTaken, said: RelayStatement | None) -> None:
        """Note a relay's answer to events that it was given."""
        count = self._counts.get(relay)
        if count is None or count.is_full:
            return
        if said is not None:
            count.held |= dict.fromkeys(each.event for each in said.held)
        for outcome in taken.outcomes:
            if outcome.cursor is not None:
                count.refused.pop(outcome.event, None)
                if said is not None and not said.holds(outcome.event):
                    count.keys[outcome.event] = None  # It signs nothing of operations on keys.
            elif not outcome.missing and outcome.reason is not None:
                count.refused[outcome.event] = outcome.reason
