"""Notices forks in one stream: compares what comes, keeps and passes on proofs, tells readers."""

from __future__ import annotations

from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId, TopicId
from linnet.core.reasons import Reason
from linnet.delivery.context import Context
from linnet.delivery.flood import Flood
from linnet.delivery.forks import FORK_BYTES, RecentUnits, fork_bytes, told_fork
from linnet.delivery.items import Forked
from linnet.delivery.messages import Fork
from linnet.event.event import Unverified, Verified
from linnet.identity.cards import Card
from linnet.machine.outbox import Outbox
from linnet.streams.subscribe import Readers
from linnet.trace.records import Kind, Record


class ForkDetection:
    """The forks of one stream, as far as they are known here."""

    def __init__(self, topic: TopicId, context: Context, flood: Flood, readers: Readers, out: Outbox) -> None:
        self._topic = topic
        self._context = context
        self._flood = flood
        self._readers = readers
        self._out = out
        self.recent = RecentUnits()

    def is_other(self, unit: Unverified) -> bool:
        """Return whether a unit differs from a recent one that begins with the same number."""
        known = self.recent.find(unit.author, unit.device, unit.seq or 0)
        return known is not None and known.unit.sig != unit.sig

    def compare(self, verified: Verified, card: Card, source: PeerId | None) -> None:
        """Compare a verified unit with those that came lately; a fork is kept, passed on and told once."""
        unit = verified.unit
        if self._context.forks.knows(self._topic, unit.author, unit.device):
            return
        known = self.recent.find_fork(verified)
        if known is not None:
            self._note(Fork(known.unit, unit, card), told_fork(known, verified), source)

    def handle_fork(self, peer: PeerId, fork: Fork) -> None:
        """Take in the proof of a neighbour, or blame it for a false one."""
        unit = fork.first
        if self._context.forks.knows(self._topic, unit.author, unit.device):
            return
        try:
            if fork_bytes(fork) > FORK_BYTES:
                raise RemoteError(Reason.TOO_LARGE, "the proof of a fork")
            # History: neither the dates of the card nor a revocation make a fork undone.
            first, card = self._context.check(fork.first, fork.card, None)
            second, _ = self._context.check(fork.second, None, None)
            told = told_fork(first, second)
        except RemoteError as error:
            self._out.record(Record(Kind.REJECTED, self._topic, peer=peer, reason=error.reason, note="fork"))
            self._out.blame(peer, error.reason)
            return
        self._note(Fork(fork.first, fork.second, card), told, peer)

    def greet_neighbor(self, peer: PeerId) -> None:
        """Show a new neighbour the proofs of this stream."""
        for fork in self._context.forks.of_topic(self._topic):
            self._out.send(peer, fork)

    def _note(self, fork: Fork, told: Forked, source: PeerId | None) -> None:
        is_kept = self._context.forks.keep(fork)
        note = "two events with one number" + ("" if is_kept else "; there is no room for the proof")
        place = (self._topic, None, told.device, told.number)
        self._out.record(Record(Kind.REJECTED, *place, peer=source, reason=Reason.EQUIVOCATION, note=note))
        self._readers.tell_forked(told)
        if is_kept:
            for peer in self._flood.neighbors:
                if peer != source:
                    self._out.committed.send(peer, fork)
