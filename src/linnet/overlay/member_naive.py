"""The naive protocol at the node, with the flaw for which it was given up.

Juslenius 2021, section 4.3: the protocol of the WebSocket version. Instructions are handled in
parallel, and a status goes out after each connection, so it may tell of a state that is
half-way; near neighbours connect first, and so are kept more often.
"""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.machine.outbox import Outbox
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import Edges
from linnet.overlay.messages import Instruction
from linnet.overlay.timers import ConnectDue


class NaiveFollower:
    """Carries out every instruction; a newer one does not cancel what an older one has begun.

    Whoever counts us as a neighbour becomes one. A status is due after each change; `Member`
    delays it.
    """

    def __init__(self, topic: TopicId, config: MemberConfig, edges: Edges, out: Outbox) -> None:
        self.edges = edges
        self.status_due = False
        self._topic = topic
        self._config = config
        self._out = out
        self._counter: int | None = None
        self._begun_at: dict[PeerId, float] = {}

    @property
    def counter(self) -> int | None:
        """Of the latest instruction, which nothing depends on here; None: there was none yet."""
        return self._counter

    def reset(self) -> None:
        """Another tracker is followed, or the same on a new link."""
        self._counter = None

    def instruct(self, instruction: Instruction, now: float) -> None:
        """Close connections that are not listed and begin those that are new."""
        self._counter = instruction.counter
        was_idle = not self._begun_at
        listed = {contact.peer: None for contact in instruction.neighbors}
        for peer in list(self.edges.up):
            if peer not in listed:
                self.edges.drop(peer)
        for contact in instruction.neighbors:
            if contact.peer not in self.edges.wanted:
                self._begin(contact, now)
        if was_idle and self._begun_at:
            self._out.set_timer(self._config.connect_timeout, ConnectDue(self._topic))

    def report(self) -> None:
        """Round-trip times travel with the other statuses here."""

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open."""
        was_up = peer in self.edges.up
        self.edges.handle_link_up(peer)
        self._note_connection(peer, was_up)

    def handle_link_down(self, peer: PeerId) -> None:
        """A link is gone; the tracker will name another neighbour."""
        was_up = peer in self.edges.up
        self.edges.handle_link_down(peer)
        self._drop_lost(peer, was_up)

    def handle_dial_failed(self, peer: PeerId) -> None:
        """A link could not be opened."""
        if peer in self._begun_at:
            del self._begun_at[peer]
            self.status_due = True
            self.edges.drop(peer)

    def handle_open(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour: then it is ours as well, instructed or not."""
        was_up = peer in self.edges.up
        self.edges.handle_open(peer)
        if peer not in self.edges.wanted:
            self.edges.want(Contact(peer))
        self._note_connection(peer, was_up)

    def handle_close(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour no longer."""
        was_up = peer in self.edges.up
        self.edges.handle_close(peer)
        self._drop_lost(peer, was_up)

    def handle_connect_due(self, now: float) -> None:
        """Give up what has not come up in time."""
        for peer, begun_at in list(self._begun_at.items()):
            if begun_at + self._config.connect_timeout <= now:
                del self._begun_at[peer]
                self.status_due = True
                self.edges.drop(peer)
        if self._begun_at:
            wait = min(self._begun_at.values()) + self._config.connect_timeout - now
            self._out.set_timer(wait, ConnectDue(self._topic))

    def handle_retry_due(self) -> None:
        """Nothing is tried again here: the tracker names others."""

    def _begin(self, contact: Contact, now: float) -> None:
        self._begun_at[contact.peer] = now
        self.edges.want(contact)
        self._note_connection(contact.peer, False)

    def _drop_lost(self, peer: PeerId, was_up: bool) -> None:
        if was_up:
            self.status_due = True
            self.edges.drop(peer, tell=False)

    def _note_connection(self, peer: PeerId, was_up: bool) -> None:
        """A status is due after each connection that was formed."""
        if peer in self.edges.up and not was_up:
            self._begun_at.pop(peer, None)
            self.status_due = True
