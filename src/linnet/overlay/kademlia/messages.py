"""The messages of Kademlia (tags 120 to 127).

Every message travels on a link that is authenticated to a device key, from which the id follows: no node can
speak from the place of another.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from msgspec import Meta

from linnet.core.ids import Contact, Count
from linnet.core.messages import Message
from linnet.core.reasons import Reason
from linnet.overlay.kademlia.config import MOST_K
from linnet.overlay.kademlia.routing_table import NodeId
from linnet.overlay.kademlia.value_records import Stored

CANDIDATES = 8
"""The most records under one key in one answer."""

WireId = Annotated[NodeId, Meta(min_length=32, max_length=32)]
Contacts = Annotated[tuple[Contact, ...], Meta(max_length=MOST_K)]


class PingNode(Message, frozen=True, tag=120):
    """Asks whether the peer is still up."""

    request: Count


class NodeIsHere(Message, frozen=True, tag=121):
    """The answer to `PingNode`."""

    request: Count


class FindNode(Message, frozen=True, tag=122):
    """Asks for the known nodes nearest to a key."""

    request: Count
    target: WireId


class NodesAre(Message, frozen=True, tag=123):
    """The nodes nearest to the key, or the reason why none are named."""

    request: Count
    contacts: Contacts
    reason: Reason | None


class FindRecord(Message, frozen=True, tag=124):
    """Asks for the records under a key, and for the known nodes nearest to it."""

    request: Count
    key: WireId


class RecordsAre(Message, frozen=True, tag=125):
    """All records kept under the key, and the known nodes near it."""

    request: Count
    records: Annotated[tuple[Stored, ...], Meta(max_length=CANDIDATES)]
    contacts: Contacts
    reason: Reason | None


class KeepRecord(Message, frozen=True, tag=126):
    """Asks the peer to keep a record."""

    request: Count
    record: Stored


class RecordKept(Message, frozen=True, tag=127):
    """Says that the record is stored, or why it is not."""

    request: Count
    reason: Reason | None


KademliaQuestion: TypeAlias = PingNode | FindNode | FindRecord | KeepRecord
KademliaAnswer: TypeAlias = NodeIsHere | NodesAre | RecordsAre | RecordKept
KademliaMessage: TypeAlias = KademliaQuestion | KademliaAnswer
