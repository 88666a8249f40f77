"""The serving side of Kademlia: answers questions of peers and keeps their records, within limits."""

from __future__ import annotations

from typing import assert_never

import msgspec

from linnet.core.allowances import Allowances
from linnet.core.errors import RemoteError
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.core.stores import Cells
from linnet.machine.outbox import Outbox
from linnet.machine.shelf import Kept, Shelf, ShelfCells, ShelfLimits
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
from linnet.overlay.kademlia.routing_table import RoutingTable
from linnet.overlay.kademlia.value_records import LEEWAY, Stored, check_record
from linnet.trace.records import Kind, Record

SPACE = "kademlia kept"

_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(tuple[bytes, int, Stored])


class ValueShelf(Shelf[Stored]):
    """Records of others that this node keeps. Each expires unless it is handed over again."""

    def __init__(self, cells: Cells, config: KademliaConfig) -> None:
        limits = ShelfLimits(config.records, config.candidates, config.giver_records, config.candidates)
        written = ShelfCells(cells, SPACE, _encode, lambda raw: Kept(*_decoder.decode(raw)))
        super().__init__(limits, written)
        self._lifetime = config.lifetime

    def put(self, record: Stored, giver: PeerId, now: float) -> Reason | None:
        """Keep a record that a peer gave; return None if it is kept, else the reason."""
        known = self.find_known(record)
        # A record admitted while our clock was ahead gives way to one that is valid now.
        is_early = known is not None and known.version > (now + LEEWAY) * 1000
        if known is not None and known.version > record.version and not is_early:
            return Reason.STALE
        if known is None and (limit := self.find_limit(record.key, giver)) is not None:
            return limit
        if known != record:
            try:
                check_record(record, now)
            except RemoteError as error:
                return error.reason
            if known is not None and known.version == record.version:
                # The owner signed two contents for one version. The first one stays.
                return Reason.EQUIVOCATION
        elif record.expires <= now:
            return Reason.STALE
        self.keep(Kept(giver, min(record.expires, int(now + self._lifetime)), record))
        return None


class Server:
    """Answers the questions of peers; each refusal is sent to the peer, and recorded."""

    def __init__(self, table: RoutingTable, shelf: ValueShelf, config: KademliaConfig, out: Outbox) -> None:
        self._table = table
        self._shelf = shelf
        self._k = config.k
        self._allowances = Allowances(config.burst, config.rate)
        self._out = out

    def answer_question(self, peer: PeerId, message: KademliaQuestion, now: float) -> None:
        """Answer a peer's question, or keep its record."""
        if not self._allowances.spend(peer, now):
            self._refuse(peer, message, Reason.FLOODING)
            return
        match message:
            case PingNode(request):
                self._out.send(peer, NodeIsHere(request))
            case FindNode(request, target):
                self._out.send(peer, NodesAre(request, self._table.find_nearest(target, self._k, peer), None))
            case FindRecord(request, key):
                records = self._shelf.find(key, now)[:CANDIDATES]
                nearest = self._table.find_nearest(key, self._k, peer)
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
