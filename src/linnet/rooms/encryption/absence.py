"""Members that have been away for so long that nobody should wait for them: they are put out, and added anew.

As long as a member has not acknowledged an operation all others keep what its ratchet will take then, a
newcomer is told of all of it, and whoever robs the one that is away can read the group. A relay keeps
operations for as long and no longer (`linnet.rooms.relay.group_keeping`), so who has missed more could not
follow anyway.
"""

from __future__ import annotations

from linnet.groups import agreement
from linnet.groups.ids import MemberId
from linnet.groups.state import GroupState

CONTACT = 3_600.0
"""Seconds in touch with others before we blame anybody: it may be us who were away, or still catch up."""


class Absence:
    """Who lets one room's group wait, as one device sees it."""

    def __init__(self, seconds: float, most: int) -> None:
        self._seconds = seconds
        self._most = most
        self._met: float | None = None
        """Since when somebody of the room has been here without a break."""

    def look(self, is_anyone_here: bool, now: float) -> None:
        """Whether there is anybody to hear acknowledgements from."""
        if not is_anyone_here:
            self._met = None
        elif self._met is None:
            self._met = now

    def overdue(self, state: GroupState, now: float) -> tuple[MemberId, ...]:
        """Members to be put out, without us; nobody before we have been in touch for a while."""
        return () if now < self.ripe(now) else self._late(state, now)

    def next_look(self, state: GroupState, now: float) -> float | None:
        """When to look again, if somebody is late and it is too early to say so."""
        is_early = self._met is not None and now < self.ripe(now)
        return self.ripe(now) if is_early and self._late(state, now) else None

    def ripe(self, now: float) -> float:
        """When we have been in touch for long enough; later than now while nobody is here."""
        return (now if self._met is None else self._met) + CONTACT

    def _late(self, state: GroupState, now: float) -> tuple[MemberId, ...]:
        late = agreement.overdue(state, now - self._seconds, self._most)
        return tuple(member for member in late if member != state.me)
