"""The serving side: answers what peers ask and keeps what they give, within limits."""

from __future__ import annotations

from typing import assert_never

from linnet.core.allowances import Allowances
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.machine.outbox import Outbox
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


class Serving:
    """Every refusal is said to the peer, and recorded."""

    def __init__(self, table: RoutingTable, shelf: Shelf, config: KademliaConfig, out: Outbox) -> None:
        self._table = table
        self._shelf = shelf
        self._k = config.k
        self._allowances = Allowances(config.burst, config.rate)
        self._out = out

    def answer_question(self, peer: PeerId, message: KademliaQuestion, now: float) -> None:
        """Answer what a peer asks, and keep what it gives."""
        if not self._allowances.spend(peer, now):
            self._refuse(peer, message, Reason.FLOODING)
            return
        match message:
            case PingNode(request):
                self._out.send(peer, NodeIsHere(request))
            case FindNode(request, target):
                self._out.send(peer, NodesAre(request, self._table.nearest(target, self._k, peer), None))
            case FindRecord(request, key):
                records = self._shelf.find(key, now)[:CANDIDATES]
                nearest = self._table.nearest(key, self._k, peer)
                self._out.send(peer, RecordsAre(request, records, nearest, None))
            case KeepRecord(request, record):
                reason = self._shelf.put(record, peer, now)
                if reason is None:
                    self._out.committed.send(peer, RecordKept(request, None))
                else:
                    self._refuse(peer, message, reason)
            case _:
                assert_never(message)

    def _refuse(self, peer: PeerId, message: KademliaQuestion, reason: Reason) -> None:
        what = type(message).__name__
        self._out.record(Record(Kind.REJECTED, peer=peer, reason=reason, note=f"kademlia: {what}"))
        self._out.send(peer, _refusal(message, reason))
        if reason is Reason.BAD_SIGNATURE:
            self._out.blame(peer, reason)


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
