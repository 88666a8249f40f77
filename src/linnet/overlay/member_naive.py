"""The naive protocol at the node, with the flaw for which it was given up.

Juslenius 2021, section 4.3: the protocol of the WebSocket version. Instructions are handled in
parallel, and a status goes out after each connection, so it may tell of a state that is
half-way; near neighbours connect first, and so are kept more often.
"""

from __future__ import annotations

from linnet.core.effects import SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import Tick
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import Edges
from linnet.overlay.effects import MemberEffect
from linnet.overlay.follower import OWNER
from linnet.overlay.messages import Instruction


class NaiveFollower:
    """Carries out every instruction; a newer one does not cancel what an older one has begun.

    Whoever counts us as a neighbour becomes one. A status is due after each change; `Member`
    delays it.
    """

    def __init__(self, topic: TopicId, config: MemberConfig, edges: Edges) -> None:
        self.edges = edges
        self.status_due = False
        self._topic = topic
        self._config = config
        self._counter: int | None = None
        self._begun_at: dict[PeerId, float] = {}

    @property
    def counter(self) -> int | None:
        """Of the latest instruction, which nothing depends on here; None: there was none yet."""
        return self._counter

    def reset(self) -> None:
        """Another tracker is followed, or the same on a new link."""
        self._counter = None

    def instruct(self, instruction: Instruction, now: float) -> list[MemberEffect]:
        """Close connections that are not listed and begin those that are new."""
        self._counter = instruction.counter
        was_idle = not self._begun_at
        listed = {contact.peer: None for contact in instruction.neighbors}
        effects: list[MemberEffect] = []
        for peer in list(self.edges.up):
            if peer not in listed:
                effects += self.edges.drop(peer)
        for contact in instruction.neighbors:
            if contact.peer not in self.edges.wanted:
                effects += self._begin(contact, now)
        if was_idle and self._begun_at:
            effects.append(SetTimer(self._config.connect_timeout, Tick(OWNER, "connect", self._topic)))
        return effects

    def report(self) -> None:
        """Round-trip times travel with the other statuses here."""

    def linked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is open."""
        was_up = peer in self.edges.up
        return self._noting(peer, was_up, self.edges.linked(peer))

    def unlinked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is gone; the tracker will name another neighbour."""
        if peer not in self.edges.up:
            return self.edges.unlinked(peer)
        effects = self.edges.unlinked(peer)
        self.status_due = True
        return effects + self.edges.drop(peer, tell=False)

    def dial_failed(self, peer: PeerId) -> list[MemberEffect]:
        """A link could not be opened."""
        if peer not in self._begun_at:
            return []
        del self._begun_at[peer]
        self.status_due = True
        return self.edges.drop(peer)

    def opened(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour: then it is ours as well, instructed or not."""
        was_up = peer in self.edges.up
        effects = self.edges.opened(peer)
        if peer not in self.edges.wanted:
            effects += self.edges.want(Contact(peer))
        return self._noting(peer, was_up, effects)

    def closed(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour no longer."""
        if peer not in self.edges.up:
            return self.edges.closed(peer)
        effects = self.edges.closed(peer)
        self.status_due = True
        return effects + self.edges.drop(peer, tell=False)

    def fired(self, what: str, now: float) -> list[MemberEffect]:
        """Give up what has not come up in time."""
        effects: list[MemberEffect] = []
        if what != "connect":
            return effects
        for peer, begun_at in list(self._begun_at.items()):
            if begun_at + self._config.connect_timeout <= now:
                del self._begun_at[peer]
                self.status_due = True
                effects += self.edges.drop(peer)
        if self._begun_at:
            wait = min(self._begun_at.values()) + self._config.connect_timeout - now
            effects.append(SetTimer(wait, Tick(OWNER, "connect", self._topic)))
        return effects

    def _begin(self, contact: Contact, now: float) -> list[MemberEffect]:
        self._begun_at[contact.peer] = now
        return self._noting(contact.peer, False, self.edges.want(contact))

    def _noting(self, peer: PeerId, was_up: bool, effects: list[MemberEffect]) -> list[MemberEffect]:
        """A status is due after each connection that was formed."""
        if peer in self.edges.up and not was_up:
            self._begun_at.pop(peer, None)
            self.status_due = True
        return effects
