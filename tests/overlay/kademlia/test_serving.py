"""What peers are answered."""

from __future__ import annotations

from random import Random

from msgspec.structs import replace
from tests.overlay.kademlia.people import OWN, contact

from linnet.core.effects import AfterCommit, Blame, Send
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.config import KademliaConfig
from linnet.overlay.kademlia.ids import record_key
from linnet.overlay.kademlia.messages import (
    FindNode,
    FindRecord,
    KeepRecord,
    NodeIsHere,
    NodesAre,
    PingNode,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.records import sign_record
from linnet.overlay.kademlia.serving import Serving
from linnet.overlay.kademlia.shelf import Shelf
from linnet.overlay.kademlia.table import RoutingTable
from linnet.store.memory import MemoryStore
from linnet.trace.records import Kind, Record

NOW = 1_800_000_000.0
A, B, C = map(contact, (1, 2, 3))
KEY = record_key(b"test", b"music")
RECORD = sign_record(SigningKey.generate(Random(1).randbytes), KEY, int(NOW * 1000), int(NOW) + 60, b"here")


def serving(config: KademliaConfig | None = None) -> Serving:
    chosen = config or KademliaConfig()
    table = RoutingTable(OWN, chosen)
    for each in (A, B, C):
        table.seen(each)
    return Serving(table, Shelf(MemoryStore().cells, chosen), chosen)


def test_every_question_has_an_answer_without_the_asker_in_it() -> None:
    here = serving()
    assert here.on_question(A.peer, PingNode(7), NOW) == [Send(A.peer, NodeIsHere(7))]
    (sent,) = here.on_question(A.peer, FindNode(8, KEY), NOW)
    assert isinstance(sent, Send)
    assert isinstance(sent.message, NodesAre)
    assert {each.peer for each in sent.message.contacts} == {B.peer, C.peer}
    kept = here.on_question(A.peer, KeepRecord(9, RECORD), NOW)
    assert kept == [AfterCommit((Send(A.peer, RecordKept(9, None)),))]
    (sent,) = here.on_question(B.peer, FindRecord(10, KEY), NOW)
    assert isinstance(sent, Send)
    assert isinstance(sent.message, RecordsAre)
    assert (sent.message.records, len(sent.message.contacts)) == ((RECORD,), 2)


def test_what_is_forged_is_refused_and_blamed() -> None:
    forged = replace(RECORD, body=b"there")
    note = "kademlia: KeepRecord"
    assert serving().on_question(A.peer, KeepRecord(1, forged), NOW) == [
        Record(Kind.REJECTED, peer=A.peer, reason=Reason.BAD_SIGNATURE, note=note),
        Send(A.peer, RecordKept(1, Reason.BAD_SIGNATURE)),
        Blame(A.peer, Reason.BAD_SIGNATURE),
    ]


def test_who_asks_too_much_is_told_so() -> None:
    here = serving(KademliaConfig(burst=1.0, rate=0.1))
    here.on_question(A.peer, PingNode(1), NOW)
    for message, answer in (
        (PingNode(2), NodeIsHere(2)),
        (FindNode(3, KEY), NodesAre(3, (), Reason.FLOODING)),
        (FindRecord(4, KEY), RecordsAre(4, (), (), Reason.FLOODING)),
        (KeepRecord(5, RECORD), RecordKept(5, Reason.FLOODING)),
    ):
        effects = here.on_question(A.peer, message, NOW)
        note = f"kademlia: {type(message).__name__}"
        assert effects == [
            Record(Kind.REJECTED, peer=A.peer, reason=Reason.FLOODING, note=note),
            Send(A.peer, answer),
        ]
    assert len(here.on_question(B.peer, PingNode(6), NOW)) == 1
