"""What peers are answered."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace
from tests.overlay.kademlia.people import OWN, contact

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.ids import PeerId
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.machine.outbox import Effect, Outbox
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.messages import (
    FindNode,
    FindRecord,
    KademliaQuestion,
    KeepRecord,
    NodeIsHere,
    NodesAre,
    PingNode,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.routing_table import RoutingTable, record_key
from linnet.overlay.kademlia.server import Server, ValueShelf
from linnet.overlay.kademlia.value_records import sign_record
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

NOW = 1_800_000_000.0
A, B, C = map(contact, (1, 2, 3))
KEY = record_key(b"test", b"music")
RECORD = sign_record(SigningKey.generate(Random(1).randbytes), KEY, int(NOW * 1000), int(NOW) + 60, b"here")


class Asked:
    """A server and its outbox."""

    def __init__(self, config: KademliaConfig | None = None) -> None:
        chosen = config or KademliaConfig()
        table = RoutingTable(OWN, chosen)
        for each in (A, B, C):
            table.note_seen(each)
        self._out = Outbox()
        self._server = Server(table, ValueShelf(MemoryStore().cells, chosen), chosen, self._out)

    def ask(self, peer: PeerId, message: KademliaQuestion) -> list[Effect]:
        self._server.answer_question(peer, message, NOW)
        return self._out.take()


def test_every_question_has_an_answer_without_the_asker_in_it() -> None:
    here = Asked()
    assert here.ask(A.peer, PingNode(7)) == [Send(A.peer, NodeIsHere(7))]
    (sent,) = here.ask(A.peer, FindNode(8, KEY))
    assert isinstance(sent, Send)
    assert isinstance(sent.message, NodesAre)
    assert {each.peer for each in sent.message.contacts} == {B.peer, C.peer}
    kept = here.ask(A.peer, KeepRecord(9, RECORD))
    assert kept == [AfterCommit((Send(A.peer, RecordKept(9, None)),))]
    (sent,) = here.ask(B.peer, FindRecord(10, KEY))
    assert isinstance(sent, Send)
    assert isinstance(sent.message, RecordsAre)
    assert (sent.message.records, len(sent.message.contacts)) == ((RECORD,), 2)


def test_what_is_forged_is_refused_and_blamed() -> None:
    forged = replace(RECORD, body=b"there")
    note = "kademlia: KeepRecord"
    assert Asked().ask(A.peer, KeepRecord(1, forged)) == [
        Record(Kind.REJECTED, peer=A.peer, reason=Reason.BAD_SIGNATURE, note=note),
        Send(A.peer, RecordKept(1, Reason.BAD_SIGNATURE)),
        Blame(A.peer, Reason.BAD_SIGNATURE),
    ]


def test_who_asks_too_much_is_told_so() -> None:
    here = Asked(KademliaConfig(burst=1.0, rate=0.1))
    here.ask(A.peer, PingNode(1))
    for message, answer in (
        (PingNode(2), NodeIsHere(2)),
        (FindNode(3, KEY), NodesAre(3, (), Reason.FLOODING)),
        (FindRecord(4, KEY), RecordsAre(4, (), (), Reason.FLOODING)),
        (KeepRecord(5, RECORD), RecordKept(5, Reason.FLOODING)),
    ):
        effects = here.ask(A.peer, message)
        note = f"kademlia: {type(message).__name__}"
        assert effects == [
            Record(Kind.REJECTED, peer=A.peer, reason=Reason.FLOODING, note=note),
            Send(A.peer, answer),
        ]
    assert len(here.ask(B.peer, PingNode(6))) == 1
