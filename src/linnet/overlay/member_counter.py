"""The counter protocol at the node: only the newest instruction counts, each gets one status.

Juslenius 2021, section 4.3: the protocol of the WebRTC version, which made mass joins converge
without throttling.
"""

from __future__ import annotations

from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import Edges
from linnet.overlay.messages import Instruction
from linnet.overlay.timers import ConnectDue, RetryDue
from linnet.trace.records import Kind, Record


class CounterFollower:
    """Carries out the newest instruction strictly, and tells once what came of it.

    A status is due when every neighbour is up or has failed, at the latest after
    `connect_timeout`; after that, whenever a neighbour is lost. An instruction that is not
    fulfilled is tried again every `retry_period`.
    """

    def __init__(self, topic: TopicId, config: MemberConfig, edges: Edges, out: Outbox) -> None:
        self.edges = edges
        self.status_due = False
        self._topic = topic
        self._config = config
        self._out = out
        self._counter: int | None = None
        self._expected: dict[PeerId, Contact] = {}
        self._failed: dict[PeerId, None] = {}
        self._is_settled = True

    @property
    def counter(self) -> int | None:
        """Of the newest instruction of the tracker that is followed; None: there was none yet."""
        return self._counter

    def reset(self) -> None:
        """Another tracker is followed, or the same on a new link: its counters begin anew."""
        self._counter = None
        self.status_due = False

    def instruct(self, instruction: Instruction, now: float) -> None:
        """Make these the neighbours, unless a newer instruction came before."""
        if self._counter is not None and instruction.counter <= self._counter:
            if instruction.counter == self._counter and self._is_settled:
                self.status_due = True
                return
            note = f"instruction {instruction.counter}, newest {self._counter}"
            self._out.record(Record(Kind.REJECTED, self._topic, reason=Reason.STALE, note=note))
            return
        self._counter = instruction.counter
        self._expected = {contact.peer: contact for contact in instruction.neighbors}
        self._failed = {}
        self._is_settled = False
        for peer in list(self.edges.wanted):
            if peer not in self._expected:
                self.edges.drop(peer)
        for contact in instruction.neighbors:
            self.edges.want(contact)
        if self._missing():
            self._out.set_timer(self._config.connect_timeout, ConnectDue(self._topic))
        self._settle_if_done()

    def report(self) -> None:
        """Tell round-trip times, unless an instruction is being carried out and will be answered."""
        if self._is_settled and self._counter is not None:
            self.status_due = True

    def handle_link_up(self, peer: PeerId) -> None:
        """A link is open."""
        self.edges.handle_link_up(peer)
        self._settle_if_done()

    def handle_link_down(self, peer: PeerId) -> None:
        """A link is gone."""
        was_up = peer in self.edges.up
        self.edges.handle_link_down(peer)
        self._note_loss(was_up)

    def handle_dial_failed(self, peer: PeerId) -> None:
        """A link could not be opened."""
        if not self._is_settled and peer in self._expected and peer not in self.edges.up:
            self._failed[peer] = None
            self._settle_if_done()

    def handle_open(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour; it is remembered even if the instruction is still to come."""
        self.edges.handle_open(peer)
        self._settle_if_done()

    def handle_close(self, peer: PeerId) -> None:
        """A peer counts us as a neighbour no longer, or refuses to."""
        was_up, was_offered = peer in self.edges.up, peer in self.edges.offered
        self.edges.handle_close(peer)
        if not was_offered and not self._is_settled and peer in self._expected:
            self._failed[peer] = None
            self._settle_if_done()
        else:
            self._note_loss(was_up)

    def handle_connect_due(self, now: float) -> None:
        """Count as failed what has not come up in time."""
        if not self._is_settled:
            self._failed = dict.fromkeys(self._missing())
            self._settle_if_done()

    def handle_retry_due(self) -> None:
        """Try once more for neighbours that are missing, and tell that they are."""
        missing = self._missing()
        if self._is_settled and missing:
            for peer in missing:
                self.edges.retry(self._expected[peer])
            self.status_due = self._counter is not None
            self._out.set_timer(self._config.retry_period, RetryDue(self._topic))

    def _missing(self) -> list[PeerId]:
        return [peer for peer in self._expected if peer not in self.edges.up]

    def _settle_if_done(self) -> None:
        missing = self._missing()
        if self._is_settled or any(peer not in self._failed for peer in missing):
            return
        self._is_settled = True
        self.status_due = self._counter is not None
        self._out.cancel_timer(ConnectDue(self._topic))
        if missing:
            self._out.set_timer(self._config.retry_period, RetryDue(self._topic))

    def _note_loss(self, was_up: bool) -> None:
        """A neighbour that was lost is told at once, with the counter of the newest instruction."""
        if was_up and self._is_settled:
            self.status_due = self._counter is not None
            self._out.set_timer(self._config.retry_period, RetryDue(self._topic))
