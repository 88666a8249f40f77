"""Every message travels and comes back the same; what breaks a bound is none."""

from __future__ import annotations

from random import Random

import pytest
from tests.overlay.kademlia.people import contact

from linnet.core.errors import MalformedMessage
from linnet.core.reasons import Reason
from linnet.identity.keys import SigningKey
from linnet.overlay.kademlia.messages import (
    FindNode,
    FindRecord,
    KademliaMessage,
    KeepRecord,
    NodeIsHere,
    NodesAre,
    PingNode,
    RecordKept,
    RecordsAre,
)
from linnet.overlay.kademlia.routing_table import NodeId, record_key
from linnet.overlay.kademlia.value_records import sign_record
from linnet.wire.codec import Codec

CODEC: Codec[KademliaMessage] = Codec(KademliaMessage)
KEY = record_key(b"test", b"music")
RECORD = sign_record(SigningKey.generate(Random(1).randbytes), KEY, 1, 2, b"here")
CONTACTS = tuple(map(contact, range(20)))


@pytest.mark.parametrize(
    "message",
    [
        PingNode(1),
        NodeIsHere(1),
        FindNode(2, KEY),
        NodesAre(2, CONTACTS, None),
        NodesAre(2, (), Reason.FLOODING),
        FindRecord(3, KEY),
        RecordsAre(3, (RECORD,) * 8, CONTACTS, None),
        KeepRecord(4, RECORD),
        RecordKept(4, Reason.QUOTA),
    ],
)
def test_messages_travel(message: KademliaMessage) -> None:
    assert CODEC.decode(CODEC.encode(message)) == message


@pytest.mark.parametrize(
    "message",
    [
        FindNode(1, NodeId(b"short")),
        NodesAre(1, tuple(map(contact, range(21))), None),
        RecordsAre(1, (RECORD,) * 9, (), None),
        PingNode(-1),
    ],
)
def test_what_breaks_a_bound_is_no_message(message: KademliaMessage) -> None:
    with pytest.raises(MalformedMessage):
        CODEC.decode(CODEC.encode(message))
