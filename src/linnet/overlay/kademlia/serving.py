"""The serving side: answers what peers ask and keeps what they give, within limits."""

from __future__ import annotations

from typing import TypeAlias, assert_never

from linnet.core.allowances import Allowances
from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.messages import (
    CANDIDATES,
    FindNode,
    FindRecord,
    KademliaAnswer,
    KademliaQuestion,
    KeepRecord,
    NodeIsHere,
    NodesAre,
    PingNode,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.shelf import Shelf
from linnet.overlay.kademlia.table import RoutingTable
from linnet.trace.records import Kind, Record

ServingEffect: TypeAlias = Send[KademliaAnswer] | AfterCommit[Send[RecordKept]] | Record | Blame


class Serving:
    """Every refusal is said to the peer, and recorded."""

    def __init__(self, table: RoutingTable, shelf: Shelf, config: KademliaConfig) -> None:
        self._table = table
        self._shelf = shelf
        self._k = config.k
        self._allowances = Allowances(config.burst, config.rate)

    def on_question(self, peer: PeerId, message: KademliaQuestion, now: float) -> list[ServingEffect]:
        """A peer asks, or gives."""
        if not self._allowances.spend(peer, now):
            return self._refused(peer, message, Reason.FLOODING)
        match message:
            case PingNode(request):
                return [Send(peer, NodeIsHere(request))]
            case FindNode(request, target):
                return [Send(peer, NodesAre(request, self._table.nearest(target, self._k, peer), None))]
            case FindRecord(request, key):
                records = self._shelf.find(key, now)[:CANDIDATES]
                nearest = self._table.nearest(key, self._k, peer)
                return [Send(peer, RecordsAre(request, records, nearest, None))]
            case KeepRecord(request, record):
                reason = self._shelf.put(record, peer, now)
                if reason is None:
                    return [AfterCommit((Send(peer, RecordKept(request, None)),))]
                return self._refused(peer, message, reason)
            case _:
                assert_never(message)

    def _refused(self, peer: PeerId, message: KademliaQuestion, reason: Reason) -> list[ServingEffect]:
        what = type(message).__name__
        record = Record(Kind.REJECTED, peer=peer, reason=reason, note=f"kademlia: {what}")
        blame = [Blame(peer, reason)] if reason is Reason.BAD_SIGNATURE else []
        return [record, Send(peer, _refusal(message, reason)), *blame]


def _refusal(message: KademliaQuestion, reason: Reason) -> KademliaAnswer:
    match message:
        case PingNode(request):
            return NodeIsHere(request)
        case FindNode(request):
            return NodesAre(request, (), reason)
        case FindRecord(request):
            return RecordsAre(request, (), (), reason)
        case KeepRecord(request):
            return RecordKept(request, reason)
        case _:
            assert_never(message)
