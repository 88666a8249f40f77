"""A rendezvous that is gone is followed by another: who tracked its events hands them to that one.

What was not finished is sent on as an event (`content.trackers`). What was finished is not: all that there
was to do for it was done, but for those who were away meanwhile. It is handed over as it was tracked, so that
the next rendezvous has it for who comes back. Nothing has to be handed over while the one before is there:
it sends on what came to it lately itself.
"""

from __future__ import annotations

from linnet.content.branches import Way
from linnet.content.claims import Claims
from linnet.content.lately import Lately, WentBy
from linnet.content.messages import LOGGED, Log, Logged, Tracked
from linnet.content.reach import Reach
from linnet.core.ids import PeerId


class Successions:
    """What was handed to whom."""

    def __init__(self, ours: PeerId, reach: Reach, claims: Claims, lately: Lately) -> None:
        self._ours = ours
        self._reach = reach
        self._claims = claims
        self._lately = lately
        self._handed: dict[Way, PeerId] = {}

    def hand_over(self, attribute: str, now: float) -> None:
        """Hand who claimed an attribute what was tracked for one who is gone, or is this one itself."""
        heir = self._claims.claimant(attribute)
        if heir is None or heir.peer == self._ours:
            return
        some = [
            event for event in self._lately.elsewhere(attribute, now) if self._is_wanted(event, heir.peer)
        ]
        for start in range(0, len(some), LOGGED):
            part = some[start : start + LOGGED]
            for _, way, passing, hops, _ in part:
                self._handed[way] = heir.peer
                self._reach.send(heir, Log(attribute, passing.unit, passing.card, hops))
            self._reach.send(heir, Logged((), tuple(Tracked(*event.way) for event in part)))

    def handle_link_down(self, peer: PeerId, now: float) -> None:
        """Hand what a node led that is gone to who has claimed it since."""
        self._handed = {way: heir for way, heir in self._handed.items() if heir != peer}
        for attribute in self._lately.led_by(peer):
            heir = self._claims.claimant(attribute)
            if heir is not None and heir.peer != peer:
                self.hand_over(attribute, now)

    def tidy(self) -> None:
        """Forget what is not tracked any more."""
        self._handed = {way: heir for way, heir in self._handed.items() if self._lately.has(way)}

    def _is_wanted(self, event: WentBy, heir: PeerId) -> bool:
        leader = event.leader
        is_gone = leader is not None and (leader == heir or not self._reach.is_up(leader))
        return is_gone and self._handed.get(event.way) != heir
