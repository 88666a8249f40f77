"""The serving side: keeps the blocks of others and hands them out, within limits. It can read none."""

from __future__ import annotations

from linnet.core.allowances import Allowances
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
from linnet.names.config import NamesConfig
from linnet.names.messages import CANDIDATES, AskRecord, PutAnswer, PutRecord, RecordIs
from linnet.names.store import RecordStore
from linnet.trace.records import Kind, Record


class Serving:
    """Answers what peers ask and give. Every refusal is said to the peer, and recorded."""

    def __init__(self, store: RecordStore, config: NamesConfig, out: Outbox) -> None:
        self._store = store
        self._serve = config.serve
        self._asks = Allowances(config.burst, config.rate)
        self._puts = Allowances(config.burst, config.rate)
        self._out = out

    def handle_put(self, peer: PeerId, message: PutRecord, now: float) -> None:
        """Keep a block that a peer gives, or say why not."""
        reason = self._objection(self._puts, peer, now)
        if reason is None:
            reason = self._store.put(message.block, peer, now)
        answer = PutAnswer(message.request, reason)
        if reason is None:
            self._out.committed.send(peer, answer)
            return
        size = len(message.block.sealed)
        note = "a record to keep"
        self._out.record(Record(Kind.REJECTED, peer=peer, bytes=size, reason=reason, note=note))
        self._out.send(peer, answer)
        if reason is Reason.BAD_SIGNATURE:
            self._out.blame(peer, reason)

    def handle_question(self, peer: PeerId, message: AskRecord, now: float) -> None:
        """Tell a peer what is kept under a key."""
        reason = self._objection(self._asks, peer, now)
        blocks = self._store.find(message.lookup)[:CANDIDATES] if reason is None else ()
        if reason is not None:
            note = "a question for a record"
            self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=note))
        self._out.send(peer, RecordIs(message.request, message.lookup, blocks, reason))

    def _objection(self, allowances: Allowances, peer: PeerId, now: float) -> Reason | None:
        if not self._serve:
            return Reason.UNSUPPORTED
        return None if allowances.spend(peer, now) else Reason.FLOODING
