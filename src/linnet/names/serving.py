"""The serving side: keeps the blocks of others and hands them out, within limits. It can read none."""

from __future__ import annotations

from typing import TypeAlias

from linnet.core.allowances import Allowances
from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.names.config import NamesConfig
from linnet.names.messages import CANDIDATES, AskRecord, PutAnswer, PutRecord, RecordIs
from linnet.names.store import RecordStore
from linnet.trace.records import Kind, Record

ServingEffect: TypeAlias = Send[PutAnswer | RecordIs] | AfterCommit[Send[PutAnswer]] | Record | Blame


class Serving:
    """Answers what peers ask and give. Every refusal is said to the peer, and recorded."""

    def __init__(self, store: RecordStore, config: NamesConfig) -> None:
        self._store = store
        self._serve = config.serve
        self._asks = Allowances(config.burst, config.rate)
        self._puts = Allowances(config.burst, config.rate)

    def on_put(self, peer: PeerId, message: PutRecord, now: float) -> list[ServingEffect]:
        """A peer wants a block to be kept."""
        reason = self._objection(self._puts, peer, now)
        if reason is None:
            reason = self._store.put(message.block, peer, now)
        answer = Send(peer, PutAnswer(message.request, reason))
        if reason is None:
            return [AfterCommit((answer,))]
        size = len(message.block.sealed)
        record = Record(Kind.REJECTED, peer=peer, bytes=size, reason=reason, note="a record to keep")
        blame = [Blame(peer, reason)] if reason is Reason.BAD_SIGNATURE else []
        return [record, answer, *blame]

    def on_ask(self, peer: PeerId, message: AskRecord, now: float) -> list[ServingEffect]:
        """A peer wants to know what is kept under a key."""
        reason = self._objection(self._asks, peer, now)
        if reason is not None:
            record = Record(Kind.REJECTED, peer=peer, reason=reason, note="a question for a record")
            return [record, Send(peer, RecordIs(message.request, message.lookup, (), reason))]
        blocks = self._store.find(message.lookup)[:CANDIDATES]
        return [Send(peer, RecordIs(message.request, message.lookup, blocks, None))]

    def _objection(self, allowances: Allowances, peer: PeerId, now: float) -> Reason | None:
        if not self._serve:
            return Reason.UNSUPPORTED
        return None if allowances.spend(peer, now) else Reason.FLOODING
