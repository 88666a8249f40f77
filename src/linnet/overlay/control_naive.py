"""The naive protocol at the node, with the flaw that made Streamr give it up.

Juslenius 2021, section 4.3: the protocol of the WebSocket version. Instructions are handled in parallel, and
a status goes out after each connection, so it may report a half-finished state; near neighbours connect
first, and so are kept more often.
"""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.timers import Timer
from linnet.machine.outbox import Outbox
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import ConnectDue, Edges
from linnet.overlay.messages import Instruction, StatusAll


class NaiveFollower:
    """Carries out every instruction; a newer one does not cancel the connections that an older one has begun.

    A peer that counts us as a neighbour becomes ours. A status is due after each change; `TrackerClient`
    delays it.
    """

    def __init__(self, topic: TopicId, config: MemberConfig, edges: Edges, out: Outbox) -> None:
        self.edges = edges
        self.status_due = False
        self._topic = topic
        self._config = config
        self._out = out
        self.counter: int | None = None
        """The counter of the latest instruction, on which nothing depends here; None: there was none yet."""
        self._begun_at: dict[PeerId, float] = {}

    def forget_counter(self) -> None:
        """Forget the counter, since another tracker is followed, or the same one on a new link."""
        self.counter = None

    def follow_instruction(self, instruction: Instruction, now: float) -> None:
        """Close connections that are not listed and begin those that are new."""
        self.counter = instruction.counter
        was_idle = not self._begun_at
        listed = {contact.peer: None for contact in instruction.neighbors}
        for peer in list(self.edges.up):
            if peer not in listed:
                self.edges.drop_edge(peer)
        for contact in instruction.neighbors:
            if contact.peer not in self.edges.wanted:
                self._begin(contact, now)
        if was_idle and self._begun_at:
            self._out.set_timer(self._config.connect_timeout, ConnectDue(self._topic))

    def report_rtts(self) -> None:
        """Do nothing: round-trip times travel with the other statuses here."""

    def handle_link_up(self, peer: PeerId) -> None:
        """Open the edge that waits for this link."""
        was_up = peer in self.edges.up
        self.edges.handle_link_up(peer)
        self._note_connection(peer, was_up)

    def handle_link_down(self, peer: PeerId) -> None:
        """Drop the edge of a link that has closed; the tracker will name another neighbour."""
        was_up = peer in self.edges.up
        self.edges.handle_link_down(peer)
        self._drop_lost(peer, was_up)

    def handle_dial_failed(self, peer: PeerId) -> None:
        """Give up the edge of a link that could not be opened."""
        if peer in self._begun_at:
            del self._begun_at[peer]
            self.status_due = True
            self.edges.drop_edge(peer)

    def handle_open(self, peer: PeerId) -> None:
        """Make a peer that counts us as a neighbour our neighbour as well, instructed or not."""
        was_up = peer in self.edges.up
        self.edges.handle_open(peer)
        if peer not in self.edges.wanted:
            self.edges.want_edge(Contact(peer))
        self._note_connection(peer, was_up)

    def handle_close(self, peer: PeerId) -> None:
        """Drop the edge to a peer that counts us as a neighbour no longer."""
        was_up = peer in self.edges.up
        self.edges.handle_close(peer)
        self._drop_lost(peer, was_up)

    def give_up_neighbor(self, peer: PeerId) -> bool:
        """Give up a neighbour, and have a status sent without it; return whether it was one."""
        if peer not in self.edges.up:
            return False
        self.edges.drop_edge(peer)
        self.status_due = True
        return True

    def handle_connect_due(self, now: float) -> None:
        """Give up connections that have not come up in time."""
        for peer, begun_at in list(self._begun_at.items()):
            if begun_at + self._config.connect_timeout <= now:
                del self._begun_at[peer]
                self.status_due = True
                self.edges.drop_edge(peer)
        if self._begun_at:
            wait = min(self._begun_at.values()) + self._config.connect_timeout - now
            self._out.set_timer(wait, ConnectDue(self._topic))

    def handle_retry_due(self) -> None:
        """Do nothing: the tracker names other neighbours."""

    def _begin(self, contact: Contact, now: float) -> None:
        self._begun_at[contact.peer] = now
        self.edges.want_edge(contact)
        self._note_connection(contact.peer, False)

    def _drop_lost(self, peer: PeerId, was_up: bool) -> None:
        if was_up:
            self.status_due = True
            self.edges.drop_edge(peer, tell=False)

    def _note_connection(self, peer: PeerId, was_up: bool) -> None:
        """Have a status sent after each new connection."""
        if peer in self.edges.up and not was_up:
            self._begun_at.pop(peer, None)
            self.status_due = True


class StatusDue(Timer, frozen=True):
    """Fires when the status for a tracker has been delayed for long enough."""

    tracker: PeerId


class StatusQueue:
    """Delays the status for each tracker; a newer status replaces it and starts the delay again.

    Juslenius 2021, section 4.3: a queue of size one with a timeout of 200 ms, which starts anew with each
    status that is put in. The delay has no upper bound.
    """

    def __init__(self, delay: float, out: Outbox) -> None:
        self._delay = delay
        self._out = out
        self._waiting: dict[PeerId, tuple[StatusAll, ...]] = {}

    def put_status(self, tracker: PeerId, statuses: tuple[StatusAll, ...]) -> None:
        """Replace the status that waits, and start the delay anew."""
        self._waiting[tracker] = statuses
        self._out.set_timer(self._delay, StatusDue(tracker))

    def send_status(self, tracker: PeerId) -> None:
        """Send the delayed status."""
        for status in self._waiting.pop(tracker, ()):
            self._out.send(tracker, status)

    def drop_status(self, tracker: PeerId) -> None:
        """Drop the status for a tracker whose link is closed: the next link begins with a join."""
        if self._waiting.pop(tracker, None) is not None:
            self._out.cancel_timer(StatusDue(tracker))
