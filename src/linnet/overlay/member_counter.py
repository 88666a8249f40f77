"""The counter protocol at the node: only the newest instruction counts, each gets one status.

Juslenius 2021, section 4.3: the protocol of the WebRTC version, which made mass joins converge
without throttling.
"""

from __future__ import annotations

from linnet.core.effects import CancelTimer, SetTimer
from linnet.core.ids import Contact, PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.core.timers import Tick
from linnet.overlay.config import MemberConfig
from linnet.overlay.edges import Edges
from linnet.overlay.effects import MemberEffect
from linnet.overlay.follower import OWNER
from linnet.overlay.messages import Instruction
from linnet.trace.records import Kind, Record


class CounterFollower:
    """Carries out the newest instruction strictly, and tells once what came of it.

    A status is due when every neighbour is up or has failed, at the latest after
    `connect_timeout`; after that, whenever a neighbour is lost. An instruction that is not
    fulfilled is tried again every `retry_period`.
    """

    def __init__(self, topic: TopicId, config: MemberConfig, edges: Edges) -> None:
        self.edges = edges
        self.status_due = False
        self._topic = topic
        self._config = config
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

    def instruct(self, instruction: Instruction, now: float) -> list[MemberEffect]:
        """Make these the neighbours, unless a newer instruction came before."""
        if self._counter is not None and instruction.counter <= self._counter:
            if instruction.counter == self._counter and self._is_settled:
                self.status_due = True
                return []
            note = f"instruction {instruction.counter}, newest {self._counter}"
            return [Record(Kind.REJECTED, self._topic, reason=Reason.STALE, note=note)]
        self._counter = instruction.counter
        self._expected = {contact.peer: contact for contact in instruction.neighbors}
        self._failed = {}
        self._is_settled = False
        effects: list[MemberEffect] = []
        for peer in list(self.edges.wanted):
            if peer not in self._expected:
                effects += self.edges.drop(peer)
        for contact in instruction.neighbors:
            effects += self.edges.want(contact)
        if self._missing():
            effects.append(SetTimer(self._config.connect_timeout, self._tick("connect")))
        return effects + self._settle_if_done()

    def report(self) -> None:
        """Tell round-trip times, unless an instruction is being carried out and will be answered."""
        if self._is_settled and self._counter is not None:
            self.status_due = True

    def linked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is open."""
        return self.edges.linked(peer) + self._settle_if_done()

    def unlinked(self, peer: PeerId) -> list[MemberEffect]:
        """A link is gone."""
        was_up = peer in self.edges.up
        return self.edges.unlinked(peer) + self._note_loss(was_up)

    def dial_failed(self, peer: PeerId) -> list[MemberEffect]:
        """A link could not be opened."""
        if self._is_settled or peer not in self._expected or peer in self.edges.up:
            return []
        self._failed[peer] = None
        return self._settle_if_done()

    def opened(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour; it is remembered even if the instruction is still to come."""
        return self.edges.opened(peer) + self._settle_if_done()

    def closed(self, peer: PeerId) -> list[MemberEffect]:
        """A peer counts us as a neighbour no longer, or refuses to."""
        was_up, was_offered = peer in self.edges.up, peer in self.edges.offered
        effects = self.edges.closed(peer)
        if not was_offered and not self._is_settled and peer in self._expected:
            self._failed[peer] = None
            return effects + self._settle_if_done()
        return effects + self._note_loss(was_up)

    def fired(self, what: str, now: float) -> list[MemberEffect]:
        """A timer of this topic's has run out."""
        missing = self._missing()
        if what == "connect" and not self._is_settled:
            self._failed = dict.fromkeys(missing)
            return self._settle_if_done()
        if what == "retry" and self._is_settled and missing:
            effects: list[MemberEffect] = []
            for peer in missing:
                effects += self.edges.retry(self._expected[peer])
            self.status_due = self._counter is not None
            return [*effects, SetTimer(self._config.retry_period, self._tick("retry"))]
        return []

    def _missing(self) -> list[PeerId]:
        return [peer for peer in self._expected if peer not in self.edges.up]

    def _settle_if_done(self) -> list[MemberEffect]:
        missing = self._missing()
        if self._is_settled or any(peer not in self._failed for peer in missing):
            return []
        self._is_settled = True
        self.status_due = self._counter is not None
        effects: list[MemberEffect] = [CancelTimer(self._tick("connect"))]
        if missing:
            effects.append(SetTimer(self._config.retry_period, self._tick("retry")))
        return effects

    def _note_loss(self, was_up: bool) -> list[MemberEffect]:
        """A neighbour that was lost is told at once, with the counter of the newest instruction."""
        if not was_up or not self._is_settled:
            return []
        self.status_due = self._counter is not None
        return [SetTimer(self._config.retry_period, self._tick("retry"))]

    def _tick(self, what: str) -> Tick:
        return Tick(OWNER, what, self._topic)
