"""The counter protocol at the node: only the newest instruction counts, and each gets one status.

Juslenius 2021, section 4.3: the protocol of the WebRTC version, which made mass joins converge without
throttling.
"""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import ConnectDue, Edges, RetryDue
from linnet.overlay.messages import Instruction
from linnet.trace.records import Kind, Record


class CounterFollower:
    """Carries out the newest instruction strictly, and reports the outcome once.

    A status is due when every neighbour is up or has failed, at the latest after `connect_timeout`; after
    that, whenever a neighbour is lost. An instruction that is not fulfilled is tried again every
    `retry_period`.
    """

    def __init__(self, topic: TopicId, config: MemberConfig, edges: Edges, out: Outbox) -> None:
        self.edges = edges
        self.status_due = False
        self._topic = topic
        self._config = config
        self._out = out
        self.counter: int | None = None
        """The counter of the newest instruction of the tracker that is followed; None: there was none yet."""
        self._expected: dict[PeerId, Contact] = {}
        self._failed: dict[PeerId, None] = {}
        self._is_settled = True

    def forget_counter(self) -> None:
        """Forget the counter, since another tracker is followed, or the same one on a new link."""
        self.counter = None
        self.status_due = False

    def follow_instruction(self, instruction: Instruction, now: float) -> None:
        """Make these the neighbours, unless a newer instruction came before."""
        if self.counter is not None and instruction.counter <= self.counter:
            if instruction.counter == self.counter and self._is_settled:
                self.status_due = True
                return
            note = f"instruction {instruction.counter}, newest {self.counter}"
            self._out.record(Record(Kind.REJECTED, self._topic, reason=Reason.STALE, note=note))
            return
        self.counter = instruction.counter
        self._expected = {contact.peer: contact for contact in instruction.neighbors}
        self._failed = {}
        self._is_settled = False
        for peer in list(self.edges.wanted):
            if peer not in self._expected:
                self.edges.drop_edge(peer)
        for contact in instruction.neighbors:
            self.edges.want_edge(contact)
        if self._missing():
            self._out.set_timer(self._config.connect_timeout, ConnectDue(self._topic))
        self._settle_if_done()

    def report_rtts(self) -> None:
        """Have a status sent with round-trip times, unless an instruction is in progress and gets a status
        anyway."""
        if self._is_settled and self.counter is not None:
            self.status_due = True

    def handle_link_up(self, peer: PeerId) -> None:
        """Open the edge that waits for this link."""
        self.edges.handle_link_up(peer)
        self._settle_if_done()

    def handle_link_down(self, peer: PeerId) -> None:
        """Lower the edge of a link that has closed."""
        was_up = peer in self.edges.up
        self.edges.handle_link_down(peer)
        self._note_loss(was_up)

    def handle_dial_failed(self, peer: PeerId) -> None:
        """Give up the edge of a link that could not be opened."""
        if not self._is_settled and peer in self._expected and peer not in self.edges.up:
            self._failed[peer] = None
            self._settle_if_done()

    def handle_open(self, peer: PeerId) -> None:
        """Note that a peer counts us as a neighbour, even if the instruction is still to come."""
        self.edges.handle_open(peer)
        self._settle_if_done()

    def handle_close(self, peer: PeerId) -> None:
        """Note that a peer counts us as a neighbour no longer, or refuses to."""
        was_up, was_offered = peer in self.edges.up, peer in self.edges.offered
        self.edges.handle_close(peer)
        if not was_offered and not self._is_settled and peer in self._expected:
            self._failed[peer] = None
            self._settle_if_done()
        else:
            self._note_loss(was_up)

    def give_up_neighbor(self, peer: PeerId) -> bool:
        """Give up a neighbour for good, and have its loss reported; return whether it was one."""
        if peer not in self.edges.up:
            return False
        self.edges.drop_edge(peer)
        self._expected.pop(peer, None)
        self.status_due = self._is_settled and self.counter is not None
        self._settle_if_done()
        return True

    def handle_connect_due(self, now: float) -> None:
        """Count the neighbours that have not come up in time as failed."""
        if not self._is_settled:
            self._failed = dict.fromkeys(self._missing())
            self._settle_if_done()

    def handle_retry_due(self) -> None:
        """Try missing neighbours once more, and have a status sent that reports them missing."""
        missing = self._missing()
        if self._is_settled and missing:
            for peer in missing:
                self.edges.retry_edge(self._expected[peer])
            self.status_due = self.counter is not None
            self._out.set_timer(self._config.retry_period, RetryDue(self._topic))

    def _missing(self) -> list[PeerId]:
        return [peer for peer in self._expected if peer not in self.edges.up]

    def _settle_if_done(self) -> None:
        missing = self._missing()
        if self._is_settled or any(peer not in self._failed for peer in missing):
            return
        self._is_settled = True
        self.status_due = self.counter is not None
        self._out.cancel_timer(ConnectDue(self._topic))
        if missing:
            self._out.set_timer(self._config.retry_period, RetryDue(self._topic))

    def _note_loss(self, was_up: bool) -> None:
        """Have the loss of a neighbour reported at once, with the counter of the newest instruction."""
        if was_up and self._is_settled:
            self.status_due = self.counter is not None
            self._out.set_timer(self._config.retry_period, RetryDue(self._topic))
